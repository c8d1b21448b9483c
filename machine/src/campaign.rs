//! Many seeds, each in a separate process.
#![expect(unsafe_code, reason = "forks a process for each simulation")]

use crate::machine;
use crate::real;
use crate::world::{Fixture, Plan, Report, run};
use anyhow::Context;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Maximum real time of a simulation, in seconds. Reached only if a call blocks in real time.
const REAL_LIMIT_S: u32 = 120;

/// Folders for the dataset and spools, in order of preference: memory is fastest. A socket name has
/// at most 107 bytes, so the user's temporary folder, whose path may be long, is not used.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];

/// The command that replays a seed.
const REPLAY: &str = "cargo run -p meetpoint-machine -- --seed";

/// Seeds between two reports of progress.
const REPORT_EVERY: u64 = 1000;

/// Seeds to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Campaign {
    /// The first one; 0 follows the largest one.
    pub(crate) first: u64,
    pub(crate) seeds: u64,
    /// Simulations at the same time.
    pub(crate) jobs: usize,
    /// Whether traces are printed.
    pub(crate) is_printed: bool,
    /// Whether to continue after a failure.
    pub(crate) keeps_going: bool,
}

/// A running simulation.
struct Running {
    seed: u64,
    processor: usize,
    output: File,
}

/// Sums over all simulations that succeeded.
#[derive(Debug, Default)]
struct Totals {
    seeds: u64,
    simulated_s: f64,
    numbers: [u64; 5],
}

impl Campaign {
    /// Runs all seeds; returns whether none failed. If the reader of standard output exits early,
    /// as `head` does, no further seed is started.
    pub(crate) fn run(self) -> anyhow::Result<bool> {
        let begun = Instant::now();
        let folder = FOLDERS
            .iter()
            .find_map(|parent| tempfile::Builder::new().prefix("mm-").tempdir_in(parent).ok());
        let folder = folder.context("failed to create a folder in /dev/shm and in /tmp")?;
        let fixture = Arc::new(Fixture::new(folder.path())?);
        let first = self.first;
        let mut seeds = (0..self.seeds).map(|number| first.wrapping_add(number));
        let mut running: BTreeMap<libc::pid_t, Running> = BTreeMap::new();
        let (mut totals, mut failures) = (Totals::default(), Vec::new());
        let mut processors: Vec<usize> = (0..self.jobs).collect();
        let mut has_reader = true;
        loop {
            let goes_on = has_reader && (failures.is_empty() || self.keeps_going);
            while goes_on && let Some(processor) = processors.pop() {
                let Some(seed) = seeds.next() else { break };
                let (process, output) = self.start(seed, processor, &fixture, folder.path())?;
                running.insert(process, Running { seed, processor, output });
            }
            if running.is_empty() {
                break;
            }
            let (process, status) = await_one()?;
            let Some(ended) = running.remove(&process) else { continue };
            let Running { seed, processor, mut output } = ended;
            processors.push(processor);
            let mut text = String::new();
            output.read_to_string(&mut text).context("failed to read the result of a seed")?;
            let path = folder.path().join(seed.to_string());
            std::fs::remove_dir_all(&path).context("failed to remove the folder of a seed")?;
            if status == 0 {
                totals.add(&text);
                if totals.seeds.is_multiple_of(REPORT_EVERY) {
                    eprintln!("{}", totals.sentence(begun, &failures));
                }
                if self.seeds == 1 {
                    has_reader &= print(&format!("seed {seed}: {text}"))?;
                }
            } else {
                failures.push(seed);
                let text = if text.is_empty() { "it hung or crashed\n" } else { &text };
                has_reader &= print(&format!("seed {seed}: {text}    replay: {REPLAY} {seed}\n"))?;
            }
        }
        if has_reader {
            print(&format!("{}\n", totals.sentence(begun, &failures)))?;
        }
        Ok(failures.is_empty())
    }

    /// Starts the process of a seed.
    fn start(
        self,
        seed: u64,
        processor: usize,
        fixture: &Arc<Fixture>,
        folder: &Path,
    ) -> anyhow::Result<(libc::pid_t, File)> {
        let folder = folder.join(seed.to_string());
        std::fs::create_dir(&folder).context("failed to create the folder of a seed")?;
        let mut ends = [0; 2];
        // SAFETY: there is room for two descriptors.
        let status = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
        anyhow::ensure!(status == 0, "failed to create a pipe: {}", last_error());
        // SAFETY: the call has created both, and nothing else owns them.
        let [output, input] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        // SAFETY: this process has one thread, so the copy may do anything.
        match unsafe { libc::fork() } {
            -1 => anyhow::bail!("failed to fork: {}", last_error()),
            0 => {
                use_processor(processor);
                simulate(seed, fixture, &folder, &input, self.is_printed)
            }
            process => Ok((process, File::from(output))),
        }
    }
}

/// Writes to standard output; returns whether it still has a reader.
fn print(text: &str) -> anyhow::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context("failed to write to standard output")),
    }
}

fn last_error() -> std::io::Error {
    std::io::Error::last_os_error()
}

/// Waits for the end of a simulation.
fn await_one() -> anyhow::Result<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    // SAFETY: the status outlives the call.
    let process = unsafe { libc::waitpid(-1, &raw mut status, 0) };
    anyhow::ensure!(process > 0, "failed to wait for a simulation: {}", last_error());
    Ok((process, status))
}

/// Binds all threads of this process to one processor: only one runs at a time, and thread switches
/// are cheapest this way. Without effect if the kernel refuses.
fn use_processor(processor: usize) {
    // SAFETY: an empty set is all zeros, and it has more bits than there are processors.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor % 1024, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Runs a seed in this process, and ends it.
fn simulate(
    seed: u64,
    fixture: &Arc<Fixture>,
    folder: &Path,
    output: &OwnedFd,
    is_printed: bool,
) -> ! {
    real::set_report(output.as_raw_fd());
    // SAFETY: these calls change only this process: it ends after a time, and with its parent.
    unsafe {
        libc::alarm(REAL_LIMIT_S);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let why = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
        match machine::current() {
            Some(_) => machine::fail(&format!("panic at {place}: {why}")),
            None => real::report(&format!("panic at {place}: {why}\n")),
        }
    }));
    let plan = Plan::of(seed);
    machine::start(seed, plan.interleaving, is_printed);
    let report = run(plan, Arc::clone(fixture), folder);
    machine::leave();
    real::report(&line(&report));
    real::end_program(0);
}

/// The report in one line, which [`Totals::add`] reads.
fn line(report: &Report) -> String {
    let Report { checksum, events, decisions, simulated_ns, batches, device_batches, faults } =
        report;
    format!(
        "trace {checksum:016x}, {:.3} simulated seconds, {batches} batches, {device_batches} of \
         devices, {faults} faults, {events} events, {decisions} decisions\n",
        *simulated_ns as f64 / 1e9
    )
}

impl Totals {
    fn add(&mut self, line: &str) {
        self.seeds += 1;
        let words = line.split([' ', ',']).skip(2).filter_map(|word| word.parse::<f64>().ok());
        for (at, number) in words.enumerate() {
            match at {
                0 => self.simulated_s += number,
                at => self.numbers[at - 1] += number as u64,
            }
        }
    }

    fn sentence(&self, begun: Instant, failures: &[u64]) -> String {
        let [batches, device_batches, faults, _, decisions] = self.numbers;
        let outcome = match failures {
            [] => "none failed".to_owned(),
            _ => format!("FAILED: {failures:?}"),
        };
        format!(
            "{} seeds succeeded, {outcome}: {batches} batches, {device_batches} of devices, \
             {faults} faults, {:.0} simulated seconds, {decisions} decisions, {:.1} s",
            self.seeds,
            self.simulated_s,
            begun.elapsed().as_secs_f64()
        )
    }
}
