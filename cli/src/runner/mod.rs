//! Runs a job with one strategy after another, each with its own device process, and writes a
//! report.
//!
//! In reading order: this file (the sequence), [`check`] (jobs that are refused), [`strategy`]
//! (which strategies to run), [`replay`] (recorded epochs), [`device`] (how the job's devices are
//! started), [`ledger`] (the consumed batches), [`figures`] (of a run, for the report), [`ranks`]
//! (several ranks combined), [`metering`] (energy), [`delivery`] (batches delivered to a GPU),
//! [`describe`] (the job in the report), [`trace`] (a timeline of the epochs).

mod delivery;
mod describe;
mod device;
mod figures;
pub(crate) mod ledger;
mod machine;
mod metering;
mod ranks;
pub(crate) mod replay;
mod strategy;
mod trace;

pub use device::OwnCommand;
pub(crate) use device::sources;
pub(crate) use strategy::RunPlan;

use crate::surface::failure::{self, Fault, Interrupted};
use crate::surface::output::table_style;
use crate::surface::progress::Progress;
use crate::surface::report_files::ReportFiles;
use crate::surface::{Output, Stop, output, units};
use anyhow::{Context, bail};
use delivery::{Deliveries, DeviceOut};
use ledger::{Ledger, Recording};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::batching::{BatchOptions, Batching, Rank};
use meetpoint_host::delivery::{DeliveryUse, Split, SplitRefusal};
use meetpoint_host::energy::{Machine, Measurement, Meters};
use meetpoint_host::group::{self, GroupCallbacks, RankOutcome};
use meetpoint_host::stats::{EpochStats, EventKind};
use meetpoint_host::verify::{Fact, Reference};
use meetpoint_host::{
    Accelerator, AcceleratorJob, Emulated, Error, JobFile, Loader, Notice, Notify, Null,
    StopHandle, StrategyName,
};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::Job;
use meetpoint_report::{self as report, Failure, Report};
use meetpoint_scheduler::{AnyStrategy, Costs};
use meetpoint_sim::power::PowerModel;
use metering::Metering;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a strategy waits for a device before the wait is reported.
const WAIT_REPORTED_AFTER: Duration = Duration::from_secs(5);

/// What was measured with one strategy.
struct Measured {
    name: StrategyName,
    strategy: AnyStrategy,
    /// What every rank did, rank 0 first; at least one.
    ranks: Vec<RankOutcome>,
    /// The epochs of all ranks together.
    epochs: Vec<EpochStats>,
    /// What the energy meters measured.
    energy: Option<Measurement>,
    /// Statistics of the delivery of batches to a GPU, for each rank; empty without one.
    deliveries: Vec<DeliveryUse>,
}

/// Notices and failures for the report.
#[derive(Default)]
struct Messages {
    notices: Vec<Notice>,
    failures: Vec<Failure>,
}

impl Messages {
    /// Prints a notice once and retains it for the report.
    fn notice(&mut self, notice: Notice) {
        if !self.notices.contains(&notice) {
            output::notice(&notice.in_full(Surface::CommandLine));
            self.notices.push(notice);
        }
    }

    fn failure(&mut self, what: &str, error: &anyhow::Error) {
        let failure::Description { cause, message, because, remedy } = failure::explain(error);
        let error = std::iter::once(message).chain(because).collect::<Vec<_>>().join(": ");
        let (what, cause) = (what.to_owned(), cause.to_owned());
        self.failures.push(Failure { what, cause, error, remedy });
    }

    /// All failures in one sentence; a failure of every strategy appears once.
    fn every_failure(&self) -> String {
        match &self.failures[..] {
            [first, rest @ ..] if rest.iter().all(|other| other.error == first.error) => {
                format!("every strategy failed: {}", first.error)
            }
            all => {
                let each =
                    |failure: &Failure| format!("{} failed: {}", failure.what, failure.error);
                all.iter().map(each).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// Runs the job with every strategy of the plan, and returns the report.
pub(crate) fn run(
    job: &JobFile,
    plan: &RunPlan,
    power: &PowerModel,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<Report> {
    let mut messages = Messages::default();
    let switch = StopHandle::new();
    let waker = switch.clone();
    stop.on_signal(move || waker.stop());
    let mut bar = Progress::new("reading sizes", "pictures", 0);
    let checked = job.check_with(&mut |done, of| {
        bar.set(done, of);
        !switch.is_stopped()
    });
    drop(bar);
    checked?.into_iter().for_each(|notice| messages.notice(notice));
    if cfg!(debug_assertions) {
        messages.notice(Notice::UnoptimisedBuild);
    }
    if let Some(path) = &plan.trace {
        trace::check(path)?;
    }
    let meters = Meters::find(Machine::this());
    let machine = machine::describe(&meters);
    let count = |things: usize| u32::try_from(things).unwrap_or(u32::MAX);
    let costs = power.costs(count(machine.cores), count(job.devices.len()), job.ranks);
    let measured = measure(job, plan, costs, meters, &switch, output, &mut messages)?;
    let Some(first) = measured.first() else {
        let remedy = messages.failures.iter().find_map(|failure| failure.remedy.clone());
        let message = messages.every_failure();
        return Err(match remedy {
            Some(remedy) => Fault::new("every_strategy_failed", message, remedy).into(),
            None => anyhow::anyhow!(message),
        });
    };
    if let Some(path) = &plan.trace {
        messages.notice(trace::write(path, &measured)?);
    }
    let reference = match job.verify.then(|| reference(job, first, &switch)) {
        None => Err(Fact::TurnedOff),
        Some(Ok(reference)) => Ok(reference),
        Some(Err(error)) if error.is::<Interrupted>() => return Err(error),
        Some(Err(error)) => {
            messages.failure(report::VERIFICATION, &error);
            Err(Fact::NoReference)
        }
    };
    let description = describe::job(job, first.epochs.first(), &first.ranks[0].job)?;
    let runs = measured
        .iter()
        .map(|run| {
            let figures = figures::figures(job, run, reference.as_ref());
            figures::with_energy(job, run, figures, power, machine.cores)
        })
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Report {
        version: report::VERSION,
        tool: concat!("meetpoint ", env!("CARGO_PKG_VERSION")).to_owned(),
        created_unix_seconds: now.as_secs(),
        machine,
        job: description,
        runs,
        failures: messages.failures,
        notices: messages.notices,
    })
}

/// Runs one strategy after another. If one fails, the next ones still run; an interruption ends
/// all.
fn measure(
    job: &JobFile,
    plan: &RunPlan,
    costs: Costs,
    mut meters: Meters,
    switch: &StopHandle,
    output: Output,
    messages: &mut Messages,
) -> anyhow::Result<Vec<Measured>> {
    let ledger = plan.ledger.as_deref().map(Ledger::open).transpose()?.map(Arc::new);
    let device_out = plan.device_out.map(|gpu| {
        // The verification and a ledger need the checksums of whole batches.
        let split = match job.verify || ledger.is_some() {
            true => Split::refused(&job.recipe, SplitRefusal::Compared),
            false => Split::for_dataset(&job.recipe, &job.columns.collate(), &job.dataset),
        };
        DeviceOut { gpu, split }
    });
    let mut measured: Vec<Measured> = Vec::new();
    for &name in &plan.strategies {
        let reason = plan.reason_to_skip(name, &measured_times(&measured));
        if let Some(reason) = reason {
            messages.notice(reason);
            continue;
        }
        let strategy = name;
        let name = strategy.as_str();
        let delivered = Deliveries::open(device_out.as_ref(), job.ranks, switch);
        let delivered = delivered.map_err(|fault| match switch.is_stopped() {
            true => anyhow::Error::from(Interrupted),
            false => fault.into(),
        });
        let run = delivered.and_then(|deliveries| {
            run_strategy(
                job,
                strategy,
                costs,
                (deliveries, device_out.as_ref(), ledger.as_ref()),
                &mut meters,
                switch,
                output,
            )
        });
        match run.map_err(as_interrupted) {
            Ok(run) => {
                let notices = run.ranks.iter().flat_map(|rank| &rank.notices);
                notices.for_each(|notice| messages.notice(notice.clone()));
                let time: u64 = run.epochs.iter().map(|epoch| epoch.duration_ns).sum();
                output.line(&format!("{name}: {}", units::nanoseconds(time)));
                measured.push(run);
            }
            Err(error) if plan.strategies.len() == 1 || error.is::<Interrupted>() => {
                return Err(error.context(format!("strategy {name} failed")));
            }
            Err(error) => {
                output.line(&format!("{name}: FAILED"));
                messages.failure(name, &error);
            }
        }
    }
    ledger.map_or(Ok(()), |ledger| ledger.finish())?;
    Ok(measured)
}

fn as_interrupted(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Error>() {
        Some(Error::Interrupted) => Interrupted.into(),
        _ => error,
    }
}

/// (strategy, seconds, t_s, t_g, batches) of the strategies that have run, to decide which others
/// to run.
fn measured_times(measured: &[Measured]) -> Vec<strategy::Times> {
    let times = |run: &Measured| {
        let last = run.epochs.last()?;
        Some(strategy::Times {
            name: run.name,
            epoch_ns: last.duration_ns,
            t_s_ns: last.schedule.t_s_ns,
            batches: last.batches,
        })
    };
    measured.iter().filter_map(times).collect()
}

/// All epochs with one strategy, each rank with its own loader.
fn run_strategy(
    job: &JobFile,
    name: StrategyName,
    costs: Costs,
    (deliveries, device_out, ledger): (Deliveries, Option<&DeviceOut>, Option<&Arc<Ledger>>),
    meters: &mut Meters,
    switch: &StopHandle,
    output: Output,
) -> anyhow::Result<Measured> {
    let sources = device::sources(&job.devices, job.engine)?;
    // A failing GPU stops only this strategy.
    let mut config = job.loader_config(name, sources, switch.child());
    config.costs = Some(costs);
    if let Some(DeviceOut { gpu, split }) = device_out.filter(|_| ledger.is_none()) {
        split.apply(&mut config, *gpu);
    }
    let bar = Arc::new(Mutex::new(Progress::new(name.as_str(), "batches", 0)));
    config.notify = Some(report_once(name, &bar));
    let metering = Metering::new(std::mem::take(meters));
    let callbacks = Stage { job, name, bar, metering, deliveries, ledger };
    let ranks = group::run(&config, job.epochs, &callbacks);
    let (energy, given_back) = callbacks.metering.end();
    *meters = given_back;
    let deliveries = callbacks.deliveries.finish(name.as_str(), output)?;
    let ranks = ranks.map_err(|error| job.locate(error))?;
    let epochs = ranks::together(&ranks);
    if job.epochs > 1 {
        for epoch in &epochs {
            let time = units::nanoseconds(epoch.duration_ns);
            output.line(&format!("{}, epoch {}: {time}", name.as_str(), epoch.epoch));
        }
    }
    Ok(Measured { name, strategy: job.strategy(name), ranks, epochs, energy, deliveries })
}

/// Reports on standard error, once per strategy, that the run waits for a device, and each device
/// that was not reached at the start.
fn report_once(name: StrategyName, bar: &Arc<Mutex<Progress>>) -> Notify {
    let (bar, was_wait_reported) = (Arc::clone(bar), AtomicBool::new(false));
    // All ranks of a job report the same lost devices.
    let lost = Mutex::new(BTreeSet::new());
    Notify::new(WAIT_REPORTED_AFTER, move |event| {
        let is_new = if let EventKind::DeviceLost { device, .. } = event {
            lost.lock().unwrap_or_else(PoisonError::into_inner).insert(device.number)
        } else {
            let is_wait = matches!(event, EventKind::DeviceAwaited { .. });
            is_wait && !was_wait_reported.swap(true, Ordering::SeqCst)
        };
        if is_new {
            let bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
            let sentence = format!("{}: {}", name.as_str(), event.in_full(Surface::CommandLine));
            bar.suspend(|| output::notice(&sentence));
        }
    })
}

/// What the ranks of a strategy share, and their progress.
struct Stage<'j> {
    job: &'j JobFile,
    name: StrategyName,
    bar: Arc<Mutex<Progress>>,
    metering: Metering,
    deliveries: Deliveries,
    ledger: Option<&'j Arc<Ledger>>,
}

impl GroupCallbacks for Stage<'_> {
    fn accelerator(&self, loader: &Loader) -> Box<dyn Accelerator> {
        let stop = loader.stop_handle();
        let time = match self.job.accelerator {
            AcceleratorJob::Null => Duration::ZERO,
            AcceleratorJob::Emulated { step } => step,
        };
        let step = self.deliveries.accelerator(time, &stop).unwrap_or_else(|| {
            match self.job.accelerator {
                AcceleratorJob::Null => Box::new(Null),
                AcceleratorJob::Emulated { step } => Box::new(Emulated::new(step, stop)),
            }
        });
        match self.ledger {
            Some(ledger) => {
                let ledger = Arc::clone(ledger);
                let (strategy, rank) = (self.name.as_str(), loader.config().rank);
                Box::new(Recording { ledger, strategy, rank, step })
            }
            None => step,
        }
    }

    fn before_epoch(&self, loader: &mut Loader, epoch: u32) {
        self.metering.begin();
        loader.set_replay(self.job.replay_of(self.name, epoch));
    }

    fn consumed(&self, progress: group::Progress) {
        // All ranks are at the same step, so one is enough.
        if progress.rank == 0 {
            let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
            bar.set(progress.consumed.into(), progress.batches.into());
        }
    }
}

/// Prepares every sample again on the host alone, with the portable kernels, which define the
/// results for every instruction set.
fn reference(job: &JobFile, run: &Measured, switch: &StopHandle) -> anyhow::Result<Reference> {
    let mut bar = Progress::new("verifying", "epochs", u64::from(job.epochs));
    bar.set(0, u64::from(job.epochs));
    let epochs = 0..job.epochs;
    // In the batches of a single rank, without gaps; those of several ranks differ.
    let prepared = &run.ranks[0].job;
    let own = &prepared.batching;
    let (options, sampling) =
        (BatchOptions { drop_last: false, ..*own.options() }, Arc::clone(own.sampling()));
    let batching = Batching::new(options, sampling, Rank::ALONE, own.holders().clone())
        .map_err(meetpoint_host::Error::from)?;
    let all = Job { batching, ..prepared.clone() };
    Reference::prepare(&all, epochs, job.engine, Cpu::Portable, switch)
        .map_err(|error| as_interrupted(error.into()))
        .context("failed to prepare the samples again for verification")
}

/// Writes the requested files, prints the report, and fails if anything in it failed.
///
/// The two are independent: the files are written even if standard output was closed, and the table
/// is printed even if the disk is full.
pub(crate) fn finish(report: &Report, files: &ReportFiles, output: Output) -> anyhow::Result<()> {
    let written = files.write(report);
    let printed = output.result(report, || {
        let table = report::table::text(report, table_style());
        match &written {
            Ok(paths) => {
                let paths: Vec<String> =
                    paths.iter().map(|path| path.display().to_string()).collect();
                format!("\n{table}report: {}", paths.join(" and "))
            }
            Err(_) => format!("\n{table}"),
        }
    });
    let failed = report.failed();
    match written {
        Err(error) if failed.is_empty() => return Err(error),
        Err(error) => return Err(error.context(failed.join("; "))),
        Ok(_) => {}
    }
    if failed.is_empty() { printed } else { bail!("{}", failed.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::Messages;
    use anyhow::anyhow;

    #[test]
    fn a_failure_of_every_strategy_is_reported_once() {
        let mut messages = Messages::default();
        messages.failure("host-only", &anyhow!("no such file").context("failed to open the set"));
        messages.failure("wrr", &anyhow!("no such file").context("failed to open the set"));
        let once = "every strategy failed: failed to open the set: no such file";
        assert_eq!(messages.every_failure(), once);
        messages.failure("mte", &anyhow!("no device"));
        assert!(messages.every_failure().ends_with("; mte failed: no device"));
        assert_eq!(messages.every_failure().matches("no such file").count(), 2);
    }
}
