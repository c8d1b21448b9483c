//! A job under one strategy after another, each on a device process of its own, into a report.
//!
//! In reading order: this file (the sequence), [`strategy`] (which ones), [`device`] (how the
//! job's device is started), [`describe`] (the job in words).

mod describe;
mod device;
mod strategy;

pub(crate) use strategy::{Plan, StrategyName};

use crate::report::{self, Level, Report, Run, Verdict, collect, energy, machine, predict};
use crate::surface::failure::Interrupted;
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

/// Runs the job under every strategy of the plan and judges what came of it.
pub(crate) fn run(
    job: &JobFile,
    plan: &Plan,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<Report> {
    let switch = StopHandle::new();
    let waker = switch.clone();
    stop.on_signal(move || waker.stop());
    let mut measured: Vec<Measured> = Vec::new();
    let mut notices = Vec::new();
    if cfg!(debug_assertions) {
        let text = "this is an unoptimised build, so its times say little; build with --release";
        tell(&mut notices, text.to_owned());
    }
    for &name in &plan.strategies {
        if let Some(reason) = plan.reason_to_skip(name, &measured_times(&measured)) {
            tell(&mut notices, reason);
            continue;
        }
        let strategy = name.of(job);
        let run = run_strategy(job, strategy, &switch, output)
            .map_err(as_interrupted)
            .with_context(|| format!("strategy {} failed", strategy.name()))?;
        run.notices.iter().for_each(|notice| tell(&mut notices, notice.clone()));
        let time: u64 = run.epochs.iter().map(|epoch| epoch.duration_ns).sum();
        output.line(&format!("{}: {}", strategy.name(), units::nanoseconds(time)))?;
        measured.push(run);
    }
    let first = measured.first().context("no strategy was left to run")?;
    let reference = if job.verify { Some(reference(job, first, &switch)?) } else { None };
    let machine = machine::describe();
    let power = PowerModel::bundled();
    let description = describe::job(job, first.epochs.first(), &first.job);
    let runs = measured
        .iter()
        .map(|run| {
            let judged = judge(job, run, reference.as_ref());
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
        notices,
    })
}

/// Prints a notice once and keeps it for the report.
fn tell(notices: &mut Vec<String>, notice: String) {
    if !notices.contains(&notice) {
        output::notice(&notice);
        notices.push(notice);
    }
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
    let mut loader = Loader::open(job.loader_config(strategy, source, switch.clone()))?;
    let mut accelerator: Box<dyn Accelerator> = match job.accelerator {
        AcceleratorJob::Null => Box::new(Null),
        AcceleratorJob::Emulated { step } => Box::new(Emulated::new(step, switch.clone())),
    };
    let mut epochs = Vec::new();
    for epoch in 0..job.epochs {
        epochs.push(run_epoch(&mut loader, epoch, accelerator.as_mut())?);
        if job.epochs > 1 {
            let time = units::nanoseconds(epochs[epochs.len() - 1].duration_ns);
            output.line(&format!("{}, epoch {epoch}: {time}", strategy.name()))?;
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

fn judge(job: &JobFile, measured: &Measured, reference: Option<&Reference>) -> Run {
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

fn levels(measured: &Measured, reference: Option<&Reference>) -> Vec<Level> {
    let Some(reference) = reference else {
        let claimed = measured.strategy.levels().iter().map(|level| Level {
            level: format!("{level:?}"),
            verdict: Verdict::NotChecked,
            how: "verification was turned off".to_owned(),
        });
        return claimed.collect();
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

/// Writes the report where asked, prints it, and fails when a level did not hold.
pub(crate) fn finish(report: &Report, folder: &Path, output: Output) -> anyhow::Result<()> {
    let (json, html) = report::write::write(report, folder)?;
    output.result(report, || {
        let table = report::table::text(report);
        format!("\n{table}report: {} and {}", html.display(), json.display())
    })?;
    let failed: Vec<String> = report
        .runs
        .iter()
        .flat_map(|run| run.failed_levels().into_iter().map(move |level| (run, level)))
        .map(|(run, level)| format!("{} broke {}: {}", run.strategy, level.level, level.how))
        .collect();
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
}
