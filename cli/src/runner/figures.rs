//! Derives the figures of a run for the report: sums, the closed form compared with the measured
//! time, guarantees, energy.

use super::{Measured, ranks};
use meetpoint_format::column::BatchLayout;
use meetpoint_host::explain::{Explanation, GpuMeter, RunContext, explain};
use meetpoint_host::group::RankOutcome;
use meetpoint_host::stats::EpochStats;
use meetpoint_host::verify::{
    Fact, LevelVerdict, RankRuns, Reference, Verdict as HostVerdict, verify_ranks,
};
use meetpoint_host::{AcceleratorJob, DeviceKind, JobFile, SpoolKind, Tune};
use meetpoint_report as report;
use meetpoint_report::predict::Predicted;
use meetpoint_report::{Form, Level, Run, Verdict, collect, energy, predict};
use meetpoint_scheduler::{AnyStrategy, Profile};
use meetpoint_sim::closed_forms::Inputs;
use meetpoint_sim::power::PowerModel;

/// The run in the report's data model, without its energy.
pub(super) fn figures(
    job: &JobFile,
    measured: &Measured,
    reference: Result<&Reference, &Fact>,
) -> Run {
    let totals = collect::totals(&measured.epochs);
    let ranks: Vec<&[EpochStats]> = measured.ranks.iter().map(|it| &it.epochs[..]).collect();
    let epochs: Vec<report::Epoch> =
        measured.epochs.iter().map(|epoch| collect::epoch(epoch, &ranks, job.workers)).collect();
    let predictions: Vec<Predicted> = epochs
        .iter()
        .zip(&measured.epochs)
        .map(|(epoch, stats)| match disturbance(job, stats) {
            Some(form) => Predicted { seconds: None, form },
            None => predict::epoch(decided(measured, stats), &inputs(job, measured, epoch, stats)),
        })
        .collect();
    Run {
        strategy: measured.name.as_str().to_owned(),
        prediction: predict::total(&predictions, totals.seconds),
        epochs,
        levels: levels(measured, reference),
        devices: collect::devices(&measured.epochs),
        ranks: ranks::rows(measured),
        uneven: report::uneven::of_epochs(
            &measured.ranks[0].job.batching,
            measured.epochs.iter().map(|epoch| epoch.epoch),
        ),
        measured_energy: measured.energy.as_ref().map(energy::measure::measured),
        modelled_energy: None,
        consumption: None,
        events: collect::events(&measured.epochs),
        damage: measured.epochs.iter().flat_map(|epoch| epoch.damage.records.clone()).collect(),
        explanation: explanation(job, measured),
        deliveries: measured.deliveries.clone(),
        plan: planned(job, measured),
        totals,
    }
}

/// The job's plan compared with the achieved times.
fn planned(job: &JobFile, measured: &Measured) -> Option<report::plan::PlanComparison> {
    let step = match job.accelerator {
        AcceleratorJob::Null => 0.0,
        AcceleratorJob::Emulated { step } => step.as_secs_f64(),
    };
    report::plan::compare(&job.plan.as_ref()?.predicted, &measured.epochs, step)
}

/// What limited the last epoch of rank 0.
fn explanation(job: &JobFile, measured: &Measured) -> Option<Explanation> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let context =
        RunContext { workers: job.workers, cores, replayed_step_ns: None, transform_ns: 0.0 };
    let mut explanation = explain(measured.ranks[0].epochs.last()?, &context)?;
    if let Some(measurement) = &measured.energy {
        let samples = measured.epochs.iter().map(|epoch| epoch.samples).sum();
        explanation.gpu_meters = GpuMeter::of(measurement, samples);
    }
    Some(explanation)
}

/// The strategy that decided in an epoch: the one that `auto` selected, otherwise the run's own.
fn decided(measured: &Measured, stats: &EpochStats) -> AnyStrategy {
    stats.schedule.selection.map_or(measured.strategy, |selection| selection.strategy)
}

/// Why the closed forms do not describe an epoch.
fn disturbance(job: &JobFile, stats: &EpochStats) -> Option<Form> {
    let has_faults = job.devices.iter().any(|device| match &device.kind {
        DeviceKind::Emulated(settings) => !settings.faults.is_empty(),
        DeviceKind::Connect { .. } | DeviceKind::Remote(_) => false,
    });
    match stats.devices.is_empty() {
        _ if job.ranks > 1 => Some(Form::SharedDevices),
        _ if stats.schedule.device_lost => Some(Form::DeviceLost),
        _ if stats.schedule.stalls > 0 => Some(Form::DeviceStalled),
        false if has_faults => Some(Form::FaultsInJob),
        _ => None,
    }
}

fn inputs(job: &JobFile, measured: &Measured, epoch: &report::Epoch, stats: &EpochStats) -> Inputs {
    // In the closed forms, zero means "not known".
    let nanoseconds = |time: Option<f64>| time.map_or(0, |time| (time * 1e9).round() as u64);
    Inputs {
        batches: stats.batches,
        background: job.workers > 0 || job.tune == Tune::Auto,
        profile: Profile {
            host_ns: nanoseconds(epoch.profile.t_c_seconds),
            device_ns: nanoseconds(epoch.profile.t_s_seconds),
            ready_ns: nanoseconds(epoch.profile.t_g_seconds),
        },
        spool_slots: measured.ranks[0].spool_slots.unwrap_or(0),
    }
}

fn levels<'m>(measured: &'m Measured, reference: Result<&Reference, &Fact>) -> Vec<Level> {
    let reference = match reference {
        Ok(reference) => reference,
        Err(why) => {
            let claimed = measured.strategy.levels().iter().map(|level| Level {
                level: format!("{level:?}"),
                verdict: Verdict::NotChecked,
                findings: vec![why.clone().into()],
            });
            return claimed.collect();
        }
    };
    let of_rank = |rank: &'m RankOutcome| RankRuns { job: &rank.job, runs: &rank.epochs };
    let ranks: Vec<RankRuns<'m>> = measured.ranks.iter().map(of_rank).collect();
    verify_ranks(measured.strategy, &ranks, reference).into_iter().map(level).collect()
}

fn level(judged: LevelVerdict) -> Level {
    let (verdict, findings) = match judged.verdict {
        HostVerdict::Verified { how } => (Verdict::Verified, how),
        HostVerdict::Failed { place } => (Verdict::Failed, vec![place]),
        HostVerdict::NotChecked { why } => (Verdict::NotChecked, vec![why]),
        HostVerdict::NotClaimed => (Verdict::NotClaimed, vec![Fact::NotClaimed.into()]),
    };
    Level { level: format!("{:?}", judged.level), verdict, findings }
}

/// Adds the modelled figures of a run: energy, memory traffic, wear, cost.
pub(super) fn with_energy(
    job: &JobFile,
    measured: &Measured,
    mut run: Run,
    power: &PowerModel,
    cores: usize,
) -> Run {
    let step_seconds = match job.accelerator {
        AcceleratorJob::Null => 0.0,
        AcceleratorJob::Emulated { step } => step.as_secs_f64(),
    };
    // Without values of variable length.
    let columns = measured.ranks[0].job.batch_columns().ok();
    let layout = columns.and_then(|columns| BatchLayout::new(&columns, job.batch_size, |_| 0));
    let setting = energy::model::Setting {
        cores,
        devices: job.devices.len(),
        accelerators: job.ranks,
        step_seconds,
        batch_bytes: layout.map_or(0, |layout| layout.bytes()),
        spool_on_flash: matches!(job.spool.kind, SpoolKind::File { .. }),
    };
    let (modelled, consumption) = energy::model::model(power, &run, &setting);
    run.modelled_energy = Some(modelled);
    run.consumption = Some(consumption);
    run
}
