//! A job under one strategy after another, each on a device process of its own, into a report.
//!
//! In reading order: this file (the sequence), [`check`] (what is refused), [`strategy`] (which
//! ones), [`device`] (how the job's device is started), [`describe`] (the job in words).

mod check;
mod describe;
mod device;
mod strategy;

pub(crate) use strategy::{Plan, StrategyName};

use crate::report::{
    self, Failure, Level, Report, Run, Verdict, collect, energy, machine, predict,
};
use crate::surface::failure::{Interrupted, told};
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, output, units};
use anyhow::{Context, bail};
use meetpoint_host::stats::EpochStats;
use meetpoint_host::verify::{LevelVerdict, Reference, Verdict as HostVerdict, verify};
use meetpoint_host::{
    Accelerator, AcceleratorJob, DeviceJob, Emulated, EmulationInfo, Error, JobFile, Loader, Null,
    StopHandle,
};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::Job;
use meetpoint_scheduler::{Profile, Strategy};
use meetpoint_sim::closed_forms::Inputs;
use meetpoint_sim::power::PowerModel;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What ran under one strategy, before it is judged.
struct Measured {
    strategy: Strategy,
    epochs: Vec<EpochStats>,
    emulation: Option<EmulationInfo>,
    spool_slots: u32,
    job: Job,
    notices: Vec<String>,
}

/// What goes into the report beside measurements.
#[derive(Default)]
struct Told {
    notices: Vec<String>,
    failures: Vec<Failure>,
}

impl Told {
    /// Prints a notice once and keeps it.
    fn notice(&mut self, notice: String) {
        if !self.notices.contains(&notice) {
            output::notice(&notice);
            self.notices.push(notice);
        }
    }

    fn failure(&mut self, what: &str, error: &anyhow::Error) {
        let (message, because) = told(error);
        let error = std::iter::once(message).chain(because).collect::<Vec<_>>().join(": ");
        self.failures.push(Failure { what: what.to_owned(), error });
    }

    /// All failures in one sentence; what fails every strategy is said once.
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

/// Runs the job under every strategy of the plan and judges what came of it.
pub(crate) fn run(
    job: &JobFile,
    plan: &Plan,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<Report> {
    let mut told = Told::default();
    check::job(job)?.into_iter().for_each(|notice| told.notice(notice));
    let switch = StopHandle::new();
    let waker = switch.clone();
    stop.on_signal(move || waker.stop());
    if cfg!(debug_assertions) {
        let text = "this is an unoptimised build, so its times say little; build with --release";
        told.notice(text.to_owned());
    }
    let measured = measure(job, plan, &switch, output, &mut told)?;
    let Some(first) = measured.first() else { bail!("{}", told.every_failure()) };
    let reference = match job.verify.then(|| reference(job, first, &switch)) {
        None => Err("verification was turned off"),
        Some(Ok(reference)) => Ok(reference),
        Some(Err(error)) if error.is::<Interrupted>() => return Err(error),
        Some(Err(error)) => {
            told.failure(report::VERIFICATION, &error);
            Err("verification failed")
        }
    };
    let machine = machine::describe();
    let power = crate::power::model(None)?;
    let description = describe::job(job, first.epochs.first(), &first.job);
    let runs = measured
        .iter()
        .map(|run| {
            let judged = judge(job, run, reference.as_ref().map_err(|why| *why));
            with_energy(job, judged, &power, machine.cores)
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
        failures: told.failures,
        notices: told.notices,
    })
}

/// Runs one strategy after another. One that fails costs no other; an interruption ends all.
fn measure(
    job: &JobFile,
    plan: &Plan,
    switch: &StopHandle,
    output: Output,
    told: &mut Told,
) -> anyhow::Result<Vec<Measured>> {
    let mut measured: Vec<Measured> = Vec::new();
    for &name in &plan.strategies {
        if let Some(reason) = plan.reason_to_skip(name, &measured_times(&measured)) {
            told.notice(reason);
            continue;
        }
        let strategy = name.of(job);
        let name = strategy.name();
        match run_strategy(job, strategy, switch, output).map_err(as_interrupted) {
            Ok(run) => {
                run.notices.iter().for_each(|notice| told.notice(notice.clone()));
                let time: u64 = run.epochs.iter().map(|epoch| epoch.duration_ns).sum();
                output.line(&format!("{name}: {}", units::nanoseconds(time)));
                measured.push(run);
            }
            Err(error) if plan.strategies.len() == 1 || error.is::<Interrupted>() => {
                return Err(error.context(format!("strategy {name} failed")));
            }
            Err(error) => {
                output.line(&format!("{name}: FAILED"));
                told.failure(name, &error);
            }
        }
    }
    Ok(measured)
}

fn as_interrupted(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Error>() {
        Some(Error::Interrupted) => Interrupted.into(),
        _ => error,
    }
}

/// (strategy, seconds, t_s, t_g, batches) of what has run, for the decision what else to run.
fn measured_times(measured: &[Measured]) -> Vec<strategy::Times> {
    let times = |run: &Measured| {
        let last = run.epochs.last()?;
        Some(strategy::Times {
            name: run.strategy.name(),
            epoch_ns: last.duration_ns,
            t_s_ns: last.schedule.t_s_ns,
            batches: last.batches,
        })
    };
    measured.iter().filter_map(times).collect()
}

/// All epochs under one strategy, on a loader of its own.
fn run_strategy(
    job: &JobFile,
    strategy: Strategy,
    switch: &StopHandle,
    output: Output,
) -> anyhow::Result<Measured> {
    let source = match strategy {
        Strategy::HostOnly => None,
        _ => device::source(&job.device, job.engine)?,
    };
    let config = job.loader_config(strategy, source, switch.clone());
    let mut loader = Loader::open(config).map_err(|error| job.locate(error))?;
    let mut accelerator: Box<dyn Accelerator> = match job.accelerator {
        AcceleratorJob::Null => Box::new(Null),
        AcceleratorJob::Emulated { step } => Box::new(Emulated::new(step, switch.clone())),
    };
    let mut epochs = Vec::new();
    for epoch in 0..job.epochs {
        epochs.push(run_epoch(&mut loader, epoch, accelerator.as_mut())?);
        if job.epochs > 1 {
            let time = units::nanoseconds(epochs[epochs.len() - 1].duration_ns);
            output.line(&format!("{}, epoch {epoch}: {time}", strategy.name()));
        }
    }
    Ok(Measured {
        strategy,
        epochs,
        emulation: loader.device().and_then(|device| device.emulation),
        spool_slots: loader.spool_slots().unwrap_or(0),
        job: loader.job().clone(),
        notices: loader.notices(),
    })
}

fn run_epoch(
    loader: &mut Loader,
    epoch: u32,
    accelerator: &mut dyn Accelerator,
) -> anyhow::Result<EpochStats> {
    let total = u64::from(loader.batches_per_epoch());
    let mut bar = Progress::new(loader.config().strategy.name(), "batches", total);
    let mut running = loader.start_epoch(epoch)?;
    let mut done = 0;
    while let Some(batch) = running.next_batch()? {
        accelerator.step(&batch);
        done += 1;
        bar.set(done, total);
    }
    Ok(running.finish())
}

/// Prepares every sample again on the host alone, with the portable kernels, which are the meaning
/// of every instruction set.
fn reference(job: &JobFile, run: &Measured, switch: &StopHandle) -> anyhow::Result<Reference> {
    let mut bar = Progress::new("verifying", "epochs", u64::from(job.epochs));
    bar.set(0, u64::from(job.epochs));
    let epochs = 0..job.epochs;
    Reference::prepare(&run.job, epochs, job.engine, Cpu::Portable, switch)
        .map_err(|error| as_interrupted(error.into()))
        .context("failed to prepare the samples again for verification")
}

fn judge(job: &JobFile, measured: &Measured, reference: Result<&Reference, &str>) -> Run {
    let totals = collect::totals(&measured.epochs);
    let epochs: Vec<report::Epoch> =
        measured.epochs.iter().map(|epoch| collect::epoch(epoch, job.workers)).collect();
    let predictions = epochs
        .iter()
        .zip(&measured.epochs)
        .map(|(epoch, stats)| match disturbance(job, stats) {
            Some(reason) => Err(format!("no closed form: {reason}")),
            None => predict::epoch(measured.strategy, &inputs(job, measured, epoch)),
        })
        .collect();
    Run {
        strategy: measured.strategy.name().to_owned(),
        prediction: predict::total(predictions, totals.seconds),
        epochs,
        levels: levels(measured, reference),
        device: collect::device(&measured.epochs, measured.emulation.as_ref()),
        modelled_energy: None,
        events: collect::events(&measured.epochs),
        totals,
    }
}

/// Why an epoch is none of those that the closed forms speak of.
fn disturbance(job: &JobFile, stats: &EpochStats) -> Option<&'static str> {
    let used_device = stats.device.is_some();
    match &job.device {
        _ if stats.schedule.device_lost => Some("the device was lost"),
        _ if stats.schedule.stalls > 0 => Some("the device stalled"),
        DeviceJob::Emulated(knobs) if used_device && !knobs.faults.is_empty() => {
            Some("the job asks for faults")
        }
        _ => None,
    }
}

fn inputs(job: &JobFile, measured: &Measured, epoch: &report::Epoch) -> Inputs {
    // Zero is the closed forms' word for "not known".
    let nanoseconds = |time: Option<f64>| time.map_or(0, |time| (time * 1e9).round() as u64);
    Inputs {
        batches: u32::try_from(epoch.batches.len()).unwrap_or(u32::MAX),
        background: job.workers > 0,
        profile: Profile {
            host_ns: nanoseconds(epoch.profile.t_c_seconds),
            device_ns: nanoseconds(epoch.profile.t_s_seconds),
            ready_ns: nanoseconds(epoch.profile.t_g_seconds),
        },
        spool_slots: measured.spool_slots,
    }
}

fn levels(measured: &Measured, reference: Result<&Reference, &str>) -> Vec<Level> {
    let reference = match reference {
        Ok(reference) => reference,
        Err(why) => {
            let claimed = measured.strategy.levels().iter().map(|level| Level {
                level: format!("{level:?}"),
                verdict: Verdict::NotChecked,
                how: why.to_owned(),
            });
            return claimed.collect();
        }
    };
    let judged = verify(measured.strategy, &measured.job, &measured.epochs, reference);
    judged.into_iter().map(level).collect()
}

fn level(judged: LevelVerdict) -> Level {
    let (verdict, how) = match judged.verdict {
        HostVerdict::Verified { how } => (Verdict::Verified, how),
        HostVerdict::Failed { place } => (Verdict::Failed, place),
        HostVerdict::NotChecked { why } => (Verdict::NotChecked, why),
        HostVerdict::NotClaimed => (Verdict::NotClaimed, "the strategy does not claim it".into()),
    };
    Level { level: format!("{:?}", judged.level), verdict, how }
}

fn with_energy(job: &JobFile, mut run: Run, power: &PowerModel, cores: usize) -> Run {
    let steps = run.totals.host_batches + run.totals.device_batches;
    let accelerator_busy = match job.accelerator {
        AcceleratorJob::Null => 0.0,
        AcceleratorJob::Emulated { step } => step.as_secs_f64() * steps as f64,
    };
    let has_device = job.device != DeviceJob::None;
    run.modelled_energy = Some(energy::model(power, &run, cores, has_device, accelerator_busy));
    run
}

/// Writes the report where asked, prints it, and fails when anything in it did.
///
/// Neither waits for the other: a reader of standard output that left does not cost the files, a
/// full disk does not cost the table.
pub(crate) fn finish(report: &Report, folder: &Path, output: Output) -> anyhow::Result<()> {
    let written = report::write::write(report, folder);
    let printed = output.result(report, || {
        let table = report::table::text(report);
        match &written {
            Ok((json, html)) => {
                format!("\n{table}report: {} and {}", html.display(), json.display())
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
    use super::Told;
    use anyhow::anyhow;

    #[test]
    fn what_fails_every_strategy_is_said_once() {
        let mut told = Told::default();
        told.failure("host-only", &anyhow!("no such file").context("failed to open the set"));
        told.failure("wrr", &anyhow!("no such file").context("failed to open the set"));
        let once = "every strategy failed: failed to open the set: no such file";
        assert_eq!(told.every_failure(), once);
        told.failure("mte", &anyhow!("no device"));
        assert!(told.every_failure().ends_with("; mte failed: no device"));
        assert_eq!(told.every_failure().matches("no such file").count(), 2);
    }
}
