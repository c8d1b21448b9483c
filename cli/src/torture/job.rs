//! The random jobs: the settings of job K of a seed, and its job file.

use super::choices::Choices;
use super::growth::HUGE_RISE_MAX;
use super::sets::{SAMPLES, SetName};
use super::trouble::{Injected, Needs, Trouble};
use meetpoint_host::StrategyName;
use serde::Serialize;
use std::fmt::Write as _;

/// How host and device reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Transport {
    /// The host starts its devices.
    Spawned,
    /// Devices that run before the host, each on a Unix socket.
    Unix,
    /// Devices that run before the host, each on a port of the loopback interface with a token.
    Tcp,
}

/// A recipe of small pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RecipeName {
    /// Random crops and flips, bytes.
    Augmented,
    /// The same without random parameters.
    Deterministic,
    /// Random crops, float32, normalised.
    Float,
}

impl RecipeName {
    const ALL: [Self; 3] = [Self::Augmented, Self::Deterministic, Self::Float];

    /// Bytes of one prepared sample, at most.
    fn sample_bytes(self) -> u64 {
        match self {
            Self::Augmented => 48 * 48 * 3,
            Self::Deterministic => 40 * 40 * 3,
            Self::Float => 32 * 32 * 3 * 4,
        }
    }

    fn operations(self) -> &'static str {
        match self {
            Self::Augmented => {
                "[[recipe.operation]]\nname = \"decode\"\n\
                 [[recipe.operation]]\nname = \"random_resized_crop\"\nsize = 48\n\
                 [[recipe.operation]]\nname = \"random_horizontal_flip\"\n"
            }
            Self::Deterministic => {
                "[[recipe.operation]]\nname = \"decode\"\n\
                 [[recipe.operation]]\nname = \"resize\"\nsize = 48\n\
                 [[recipe.operation]]\nname = \"center_crop\"\nsize = 40\n"
            }
            Self::Float => {
                "[[recipe.operation]]\nname = \"decode\"\n\
                 [[recipe.operation]]\nname = \"random_resized_crop\"\nsize = 32\n\
                 [[recipe.operation]]\nname = \"to_dtype\"\ndtype = \"float32\"\nscale = true\n\
                 [[recipe.operation]]\nname = \"normalize\"\nmean = [0.485, 0.456, 0.406]\n\
                 std = [0.229, 0.224, 0.225]\n\
                 [[recipe.operation]]\nname = \"layout\"\nlayout = \"NCHW\"\n"
            }
        }
    }
}

/// One random job with its fault. Everything in it follows from the seed and its number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TortureJob {
    pub(super) number: u64,
    pub(super) trouble: Trouble,
    /// Batches after which the fault happens, over all ranks.
    pub(super) after_batches: u64,
    /// Duration of a pause, a delay or a silence.
    pub(super) pause_ms: u64,
    /// Decides what is damaged: a bit, a length, a device.
    pub(super) detail: u64,
    /// Whether the job has many epochs in one process, whose resources are watched.
    pub(super) is_endurance: bool,
    pub(super) set: SetName,
    pub(super) strategy: &'static str,
    pub(super) workers: u32,
    pub(super) prefetch: u32,
    pub(super) is_tuned: bool,
    pub(super) ranks: u32,
    pub(super) batch_size: u32,
    pub(super) epochs: u32,
    pub(super) seed: u64,
    pub(super) sampler: &'static str,
    pub(super) recipe: RecipeName,
    pub(super) cache: Option<&'static str>,
    pub(super) engine: &'static str,
    pub(super) has_file_spool: bool,
    pub(super) quota_bytes: u64,
    pub(super) memory_budget_bytes: u64,
    pub(super) transport: Transport,
    pub(super) devices: u32,
    pub(super) is_shared: bool,
    pub(super) cpu_ratio: Option<f64>,
    pub(super) runs_ahead: bool,
    pub(super) reuses: bool,
    pub(super) chooses_by_saving: bool,
    pub(super) step_ms: u32,
    pub(super) on_error: &'static str,
    /// The batch of the device at which it injects its fault.
    pub(super) device_batch: u32,
}

/// Jobs with this remainder have many epochs.
const ENDURANCE_EVERY: u64 = 12;

impl TortureJob {
    /// Job `number` of a campaign. `endurance_epochs` is the number of epochs of an endurance job.
    pub(super) fn new(seed: u64, number: u64, endurance_epochs: u32) -> Self {
        let mut choices = Choices::new(seed, number);
        let is_endurance = number % ENDURANCE_EVERY == ENDURANCE_EVERY - 1;
        let trouble = match is_endurance {
            true => choices.one_of(&[Trouble::None, Trouble::DeviceKilled]),
            false => choices.one_of(&Trouble::ALL),
        };
        let needs = trouble.needs();
        let has_one_rank = is_endurance || needs == Needs::Resume;
        let uses_device = !matches!(needs, Needs::AnyJob | Needs::Copy | Needs::Resume);
        let strategies = StrategyName::ALL;
        let strategies: Vec<StrategyName> = strategies
            .into_iter()
            .filter(|&name| name != StrategyName::HostOnly || !(uses_device || is_endurance))
            .collect();
        let strategy = choices.one_of(&strategies);
        let transport = match needs {
            Needs::UnixDevice => Transport::Unix,
            Needs::Proxy => Transport::Tcp,
            Needs::OwnDevice => choices.one_of(&[Transport::Unix, Transport::Tcp]),
            _ if is_endurance => Transport::Spawned,
            _ => choices.one_of(&[Transport::Spawned, Transport::Unix, Transport::Tcp]),
        };
        let recipe = choices.one_of(&RecipeName::ALL);
        let is_random = recipe != RecipeName::Deterministic;
        let ranks = if has_one_rank { 1 } else { choices.one_of(&[1, 1, 2, 3]) };
        let batch_size = choices.small(1, 7);
        let epochs = if is_endurance { endurance_epochs } else { choices.small(1, 3) };
        let sampler = choices.one_of(&["shuffled", "sequential", "class_balanced", "aspect_ratio"]);
        let is_many_parts = choices.is_one_of_100(60);
        let devices = if is_many_parts { choices.one_of(&[1, 1, 2, 3]) } else { 1 };
        // With parts of their own, each device must hold a batch for each rank.
        let is_small = ranks == 1 || batch_size <= 2;
        let is_shared = devices > 1 && (has_one_rank || !is_small || choices.is_one_of_100(50));
        let reuses = !is_random && sampler == "sequential" && choices.is_one_of_100(50);
        let runs_ahead = !reuses && choices.is_one_of_100(25);
        let chooses_by_saving =
            !reuses && !runs_ahead && !has_one_rank && choices.is_one_of_100(15);
        let has_file_spool = choices.is_one_of_100(35);
        let batch_bytes = u64::from(batch_size) * (recipe.sample_bytes() + 64);
        let slot_bytes = batch_bytes + 8192;
        let slots = match trouble {
            Trouble::SpoolTiny => choices.between(1, 4),
            _ => choices.between(8, 64),
        };
        let memory_batches = match trouble {
            Trouble::MemoryTight => choices.between(1, 6),
            _ if is_endurance => HUGE_RISE_MAX / (2 << 20),
            _ => 32,
        };
        let total = u64::from(epochs) * u64::from(SAMPLES.div_ceil(batch_size));
        Self {
            number,
            trouble,
            after_batches: match choices.is_one_of_100(20) {
                // A signal before its handler is installed ends any program.
                true if trouble == Trouble::HostInterrupted => 1,
                true => 0,
                false => choices.between(1, (total * 4 / 5).max(1)),
            },
            pause_ms: choices.between(50, 1500),
            detail: choices.between(0, u64::MAX),
            is_endurance,
            set: match is_many_parts {
                true => SetName::ManyParts,
                false => choices.one_of(&[SetName::OnePart, SetName::Coefficients]),
            },
            strategy: strategy.as_str(),
            workers: choices.small(0, 3),
            prefetch: choices.small(1, 3),
            is_tuned: choices.is_one_of_100(15),
            ranks,
            batch_size,
            epochs,
            seed: choices.between(0, 1 << 40),
            sampler,
            recipe,
            cache: match is_random {
                true => None,
                false => choices.one_of(&[None, Some("256KiB"), Some("8MiB")]),
            },
            engine: choices.one_of(&["auto", "auto", "threads"]),
            has_file_spool,
            quota_bytes: slots * slot_bytes * u64::from(ranks),
            memory_budget_bytes: memory_batches * (2 << 20) * u64::from(ranks),
            transport,
            devices,
            is_shared,
            cpu_ratio: match choices.is_one_of_100(30) {
                true => Some(choices.one_of(&[0.25, 0.5, 0.9])),
                false => None,
            },
            runs_ahead,
            reuses,
            chooses_by_saving,
            step_ms: match is_endurance {
                true => 0,
                false => choices.one_of(&[0, 2, 5, 20]),
            },
            on_error: match trouble.is_of_part() {
                true => choices.one_of(&["raise", "skip", "replace"]),
                false => "raise",
            },
            device_batch: choices.small(1, 6),
        }
    }

    /// Whether the host starts no device: the campaign does.
    pub(super) fn has_own_devices(&self) -> bool {
        self.transport != Transport::Spawned && self.strategy != StrategyName::HostOnly.as_str()
    }

    /// The text of `--fault` or of the key `faults`, if the device injects the fault itself.
    pub(super) fn device_fault(&self) -> Option<String> {
        match self.trouble {
            Trouble::Injected(injected) => Some(injected.at(self.device_batch)),
            _ => None,
        }
    }

    /// The job file. `addresses` are those of the devices that the campaign starts, one for each:
    /// a path or `tcp://HOST:PORT`.
    pub(super) fn text(&self, dataset: &str, addresses: &[String]) -> String {
        let mut text = format!(
            "dataset = {dataset:?}\nstrategy = {:?}\nworkers = {}\nprefetch = {}\ntune = {:?}\n\
             ranks = {}\nbatch_size = {}\nepochs = {}\nseed = {}\nengine = {:?}\n\
             memory_budget = \"{}B\"\non_error = {:?}\nstall_timeout = {:?}\nrun_ahead = {}\n\
             reuse = {}\nchoice = {:?}\n",
            self.strategy,
            self.workers,
            self.prefetch,
            if self.is_tuned { "auto" } else { "off" },
            self.ranks,
            self.batch_size,
            self.epochs,
            self.seed,
            self.engine,
            self.memory_budget_bytes,
            self.on_error,
            self.stall_timeout(),
            self.runs_ahead,
            self.reuses,
            if self.chooses_by_saving { "saving" } else { "tail" },
        );
        match self.reuses {
            true => text.push_str("shuffle = false\n"),
            false => {
                let _ = writeln!(text, "sampler = {:?}", self.sampler);
            }
        }
        if let Some(cache) = self.cache {
            let _ = writeln!(text, "cache = {cache:?}");
        }
        if self.devices > 1 {
            // The default differs between devices of this machine and of others.
            let _ = writeln!(text, "shared = {}", self.is_shared);
        }
        text.push_str(self.recipe.operations());
        self.write_devices(&mut text, addresses);
        let kind = if self.has_file_spool { "file\"\ndirectory = \"spool" } else { "memory" };
        let _ = writeln!(text, "[spool]\nkind = \"{kind}\"\nquota = \"{}B\"", self.quota_bytes);
        match self.step_ms {
            0 => text.push_str("[accelerator]\nkind = \"null\"\n"),
            step => {
                let _ = writeln!(text, "[accelerator]\nkind = \"emulated\"\nstep = \"{step}ms\"");
            }
        }
        text
    }

    fn write_devices(&self, text: &mut String, addresses: &[String]) {
        for number in 0..self.devices as usize {
            text.push_str("[[device]]\n");
            match (self.transport, addresses.get(number)) {
                (Transport::Unix, Some(socket)) => {
                    let _ = writeln!(text, "kind = \"connect\"\nsocket = {socket:?}");
                }
                (Transport::Tcp, Some(address)) => {
                    let _ = writeln!(
                        text,
                        "kind = \"connect\"\naddress = {address:?}\ntoken_file = \"token\""
                    );
                }
                // Without an address, the strategy needs no device that is running.
                _ => {
                    text.push_str("kind = \"emulated\"\nallow_shared = true\n");
                    if let Some(ratio) = self.cpu_ratio {
                        let _ = writeln!(text, "cpu_ratio = {ratio}");
                    }
                    if let Some(fault) = self.device_fault().filter(|_| number == 0) {
                        let _ = writeln!(text, "faults = [{fault:?}]");
                    }
                }
            }
        }
    }

    /// Short where a device is expected to be silent.
    fn stall_timeout(&self) -> &'static str {
        match self.trouble {
            Trouble::DevicePaused
            | Trouble::ConnectionSilent
            | Trouble::Injected(Injected::Stall) => "400ms",
            _ => "2s",
        }
    }

    /// One line that says what it is.
    pub(super) fn describe(&self) -> String {
        let Self { strategy, workers, ranks, batch_size, epochs, devices, .. } = self;
        let transport = match self.transport {
            _ if *strategy == StrategyName::HostOnly.as_str() => String::new(),
            Transport::Spawned => format!(", {devices} spawned"),
            Transport::Unix => format!(", {devices} over Unix sockets"),
            Transport::Tcp => format!(", {devices} over TCP"),
        };
        let spool = if self.has_file_spool { "file spool" } else { "memory spool" };
        let many = if self.is_endurance { "endurance, " } else { "" };
        format!(
            "{many}{strategy}, {workers} workers, {ranks} ranks, batches of {batch_size}, \
             {epochs} epochs{transport}, {spool}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{TortureJob, Transport};
    use crate::torture::trouble::{Needs, Trouble};
    use meetpoint_host::JobFile;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn jobs_follow_from_the_seed_and_their_number() {
        for number in 0..50 {
            assert_eq!(TortureJob::new(3, number, 40), TortureJob::new(3, number, 40));
        }
        assert_ne!(TortureJob::new(3, 0, 40), TortureJob::new(4, 0, 40));
    }

    #[test]
    fn every_job_is_a_valid_job_file_and_every_fault_occurs() {
        let mut seen = BTreeSet::new();
        for number in 0..600 {
            let job = TortureJob::new(1, number, 40);
            seen.insert(job.trouble);
            let address = match job.transport {
                Transport::Tcp => "tcp://127.0.0.1:7",
                Transport::Unix | Transport::Spawned => "d0",
            };
            let addresses = match job.has_own_devices() {
                true => vec![address.to_owned(); job.devices as usize],
                false => Vec::new(),
            };
            let text = job.text("some.set", &addresses);
            let read = JobFile::parse(&text, Path::new("job.toml"));
            let read = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(read.strategy.as_str(), job.strategy);
            assert_eq!(read.devices.len(), job.devices as usize);
            match job.trouble.needs() {
                Needs::Device => assert_ne!(job.strategy, "host-only"),
                Needs::UnixDevice => assert!(job.transport == Transport::Unix),
                Needs::Proxy => assert!(job.transport == Transport::Tcp),
                Needs::Resume => assert_eq!((job.ranks, job.chooses_by_saving), (1, false)),
                Needs::AnyJob | Needs::OwnDevice | Needs::Copy => {}
            }
        }
        assert_eq!(seen.len(), Trouble::ALL.len(), "{seen:?}");
    }
}
