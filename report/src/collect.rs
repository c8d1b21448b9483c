//! Converts the runtime's measurements to the report's data model: units, sums and peaks.

use super::{
    AutoChoice, Batch, Device, Displacement, Epoch, Learned, Quantiles, RunEvent, Source, Totals,
    profile,
};
use crate::core_use::EmulatedCore;
use meetpoint_host::stats::{self, EpochStats, Preparer};

const NANOSECONDS: f64 = 1e9;

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / NANOSECONDS
}

/// One epoch that the host ran with this number of background threads; `ranks` has the epochs of
/// each.
pub fn epoch(stats: &EpochStats, ranks: &[&[EpochStats]], workers: u32) -> Epoch {
    let of_rank = |(rank, epochs): (u32, &&[EpochStats])| {
        let own = epochs.iter().filter(|epoch| epoch.epoch == stats.epoch);
        let records = own.flat_map(|epoch| &epoch.records);
        records.map(|record| batch(record, rank)).collect::<Vec<Batch>>()
    };
    let mut batches: Vec<Batch> = (0..).zip(ranks).flat_map(of_rank).collect();
    if ranks.len() > 1 {
        batches.sort_by(|a, b| a.consume.total_cmp(&b.consume));
    }
    Epoch {
        epoch: stats.epoch,
        seconds: seconds(stats.duration_ns),
        samples: stats.samples,
        order_hash: format!("{:08x}", stats.order_crc32c),
        split: stats.schedule.split,
        // A record does not contain the batches that were moved.
        record: match stats.displacement {
            None => stats.schedule.record.as_ref().map(ToString::to_string),
            Some(_) => None,
        },
        picked: stats.schedule.selection.map(|selection| AutoChoice {
            strategy: selection.strategy.name().as_str().to_owned(),
            why: selection.why,
        }),
        learned: learned(&stats.schedule.learned),
        ahead_batches: stats.ahead_batches,
        reused_batches: stats.reused_batches,
        displacement: stats
            .displacement
            .map(|moved| Displacement { mean_batches: moved.mean, max_batches: moved.max }),
        cache: stats.cache,
        store: stats.store,
        gpu: stats.gpu.clone(),
        tuning: stats.tuning,
        wait: quantiles(&stats.wait),
        prepare: quantiles(&stats.prepare),
        read: quantiles(&stats.read),
        fetch: quantiles(&stats.fetch),
        step: quantiles(&stats.step),
        profile: profile::measure(stats, workers),
        batches,
    }
}

fn learned(learned: &meetpoint_scheduler::Learned) -> Learned {
    let known = |time_ns: u64| (time_ns > 0).then(|| seconds(time_ns));
    Learned {
        t_c_seconds: known(learned.host_ns),
        t_g_seconds: known(learned.ready_ns),
        preparation_seconds: known(learned.preparation_ns),
        t_s_seconds: learned.device_ns.iter().map(|&time_ns| known(time_ns)).collect(),
    }
}

fn quantiles(quantiles: &stats::Quantiles) -> Quantiles {
    Quantiles {
        count: quantiles.count,
        mean_seconds: quantiles.mean_ns / NANOSECONDS,
        p50_seconds: seconds(quantiles.p50_ns),
        p90_seconds: seconds(quantiles.p90_ns),
        p99_seconds: seconds(quantiles.p99_ns),
        max_seconds: seconds(quantiles.max_ns),
    }
}

fn batch(record: &stats::BatchRecord, rank: u32) -> Batch {
    Batch {
        batch: record.batch,
        source: match record.source {
            Preparer::Host => Source::Host,
            Preparer::Device => Source::Device,
        },
        device: record.device,
        rank,
        memory: record.memory,
        prepare_start: seconds(record.prepare_start_ns),
        prepare_end: seconds(record.prepare_end_ns),
        ready: seconds(record.ready_ns),
        consume: seconds(record.consume_ns),
        step_end: seconds(record.step_end_ns),
    }
}

/// Sums and peaks over the epochs.
pub fn totals(epochs: &[EpochStats]) -> Totals {
    let sum = |of: fn(&EpochStats) -> u64| epochs.iter().map(of).sum::<u64>();
    let device = |of: fn(&stats::DeviceStats) -> u64| -> u64 {
        epochs.iter().flat_map(|epoch| &epoch.devices).map(of).sum()
    };
    let time = seconds(sum(|epoch| epoch.duration_ns));
    let samples = sum(|epoch| epoch.samples) as f64;
    Totals {
        seconds: time,
        samples_per_second: if time > 0.0 { samples / time } else { 0.0 },
        host_batches: sum(|epoch| epoch.schedule.host_batches.into()),
        device_batches: sum(|epoch| epoch.schedule.device_batches.into()),
        // The checksums for verification are not part of loading.
        host_core_seconds: seconds(sum(|epoch| epoch.host_cpu_ns.saturating_sub(epoch.verify_ns))),
        verify_core_seconds: seconds(sum(|epoch| epoch.verify_ns)),
        host_peak_memory_bytes: epochs
            .iter()
            .map(|epoch| epoch.host_peak_resident_bytes)
            .max()
            .unwrap_or(0),
        host_bytes_read: sum(|epoch| epoch.host_bytes_read),
        host_bytes_written: sum(|epoch| epoch.host_bytes_written),
        device_bytes_read: device(|device| device.bytes_read),
        device_bytes_written: device(|device| device.bytes_written),
    }
}

/// The part of each device, with the final values of its speed limits; empty if no epoch used one.
pub fn devices(epochs: &[EpochStats]) -> Vec<Device> {
    let count = epochs.iter().map(|epoch| epoch.devices.len()).max().unwrap_or(0);
    (0..count).map(|number| device(epochs, number)).collect()
}

fn device(epochs: &[EpochStats], number: usize) -> Device {
    let parts: Vec<&stats::DeviceStats> =
        epochs.iter().filter_map(|epoch| epoch.devices.get(number)).collect();
    let schedules: Vec<&stats::DeviceSchedule> =
        epochs.iter().filter_map(|epoch| epoch.schedule.devices.get(number)).collect();
    let sum = |of: fn(&stats::DeviceStats) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    let scheduled = |of: fn(&stats::DeviceSchedule) -> u32| {
        schedules.iter().map(|schedule| u64::from(of(schedule))).sum::<u64>()
    };
    let (busy_ns, finished) = (sum(|part| part.busy_ns), sum(|part| part.batches));
    Device {
        device: u16::try_from(number).unwrap_or(u16::MAX),
        batches: scheduled(|schedule| schedule.batches),
        revoked: scheduled(|schedule| schedule.revoked),
        stalls: scheduled(|schedule| schedule.stalls),
        is_lost: schedules.iter().any(|schedule| schedule.is_lost),
        t_s_seconds: (finished > 0).then(|| seconds(busy_ns) / finished as f64),
        bytes_read: sum(|part| part.bytes_read),
        bytes_written: sum(|part| part.bytes_written),
        core_seconds: seconds(sum(|part| part.cpu_ns)),
        busy_seconds: seconds(busy_ns),
        peak_memory_bytes: parts.iter().map(|part| part.peak_resident_bytes).max().unwrap_or(0),
        knobs: parts.last().map_or_else(Vec::new, |last| last.limits.clone()),
        core_use: parts.last().and_then(|last| last.core_use).map(EmulatedCore::from),
    }
}

/// The events of all epochs.
pub fn events(epochs: &[EpochStats]) -> Vec<RunEvent> {
    let of_epoch = |epoch: &EpochStats| -> Vec<RunEvent> {
        let event = |event: &stats::Event| RunEvent { epoch: epoch.epoch, event: event.clone() };
        epoch.events.iter().map(event).collect()
    };
    epochs.iter().flat_map(of_epoch).collect()
}
