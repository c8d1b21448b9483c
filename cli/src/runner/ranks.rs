//! Combines several ranks: the sums of their epochs, and the row of each in the report.

use super::Measured;
use meetpoint_host::group::RankOutcome;
use meetpoint_host::stats::{DAMAGE_RECORDS_MAX, DeviceStats, EpochStats, Event};
use meetpoint_report::Rank;

/// The epochs of all ranks together. Values that cannot be added (times of single batches, the
/// order) are those of rank 0.
pub(super) fn together(ranks: &[RankOutcome]) -> Vec<EpochStats> {
    let Some((first, others)) = ranks.split_first() else { return Vec::new() };
    let mut epochs = first.epochs.clone();
    for other in others {
        for (epoch, more) in epochs.iter_mut().zip(&other.epochs) {
            add(epoch, more, other.rank);
        }
    }
    epochs
}

fn add(epoch: &mut EpochStats, more: &EpochStats, rank: u32) {
    epoch.is_complete &= more.is_complete;
    epoch.samples += more.samples;
    epoch.duration_ns = epoch.duration_ns.max(more.duration_ns);
    // CPU time of the process, thus of all ranks; each measured it over its own epoch.
    epoch.host_cpu_ns = epoch.host_cpu_ns.max(more.host_cpu_ns);
    epoch.host_peak_resident_bytes =
        epoch.host_peak_resident_bytes.max(more.host_peak_resident_bytes);
    epoch.host_bytes_read += more.host_bytes_read;
    epoch.host_bytes_written += more.host_bytes_written;
    epoch.verify_ns += more.verify_ns;
    epoch.ahead_batches += more.ahead_batches;
    epoch.reused_batches += more.reused_batches;
    if let (Some(cache), Some(more)) = (&mut epoch.cache, &more.cache) {
        // The other values describe the cache, which they share.
        cache.hits += more.hits;
        cache.misses += more.misses;
    }
    if let (Some(store), Some(more)) = (&mut epoch.store, more.store) {
        *store = *store + more;
    }
    if let (Some(gpu), Some(more)) = (&mut epoch.gpu, &more.gpu) {
        gpu.add(more);
    }
    if let (Some(tuning), Some(more)) = (&mut epoch.tuning, &more.tuning) {
        // Each rank tunes its own workers; the numbers of workers and of batches ahead are those of
        // rank 0.
        tuning.tried += more.tried;
        tuning.kept += more.kept;
        tuning.rolled_back += more.rolled_back;
        tuning.refused += more.refused;
    }
    for (device, more) in epoch.devices.iter_mut().zip(&more.devices) {
        add_device(device, more);
    }
    let (schedule, more_schedule) = (&mut epoch.schedule, &more.schedule);
    schedule.host_batches += more_schedule.host_batches;
    schedule.device_batches += more_schedule.device_batches;
    schedule.revoked += more_schedule.revoked;
    schedule.void_reports += more_schedule.void_reports;
    schedule.stalls += more_schedule.stalls;
    schedule.device_lost |= more_schedule.device_lost;
    for (device, more) in schedule.devices.iter_mut().zip(&more_schedule.devices) {
        device.batches += more.batches;
        device.revoked += more.revoked;
        device.stalls += more.stalls;
        device.is_lost |= more.is_lost;
    }
    epoch.damage.left_out += more.damage.left_out;
    epoch.damage.replaced += more.damage.replaced;
    let room = DAMAGE_RECORDS_MAX.saturating_sub(epoch.damage.records.len());
    epoch.damage.records.extend(more.damage.records.iter().take(room).cloned());
    let of_rank = |event: &Event| Event { rank: Some(rank), ..event.clone() };
    epoch.events.extend(more.events.iter().map(of_rank));
}

/// Each rank's link to a device counts only the work for that rank.
fn add_device(device: &mut DeviceStats, more: &DeviceStats) {
    device.cpu_ns += more.cpu_ns;
    device.busy_ns += more.busy_ns;
    device.bytes_read += more.bytes_read;
    device.bytes_written += more.bytes_written;
    device.batches += more.batches;
    device.peak_resident_bytes = device.peak_resident_bytes.max(more.peak_resident_bytes);
}

/// A row for each rank; none if there is only one rank.
pub(super) fn rows(measured: &Measured) -> Vec<Rank> {
    if measured.ranks.len() < 2 {
        return Vec::new();
    }
    measured.ranks.iter().map(row).collect()
}

fn row(outcome: &RankOutcome) -> Rank {
    let epochs = &outcome.epochs;
    let sum = |of: fn(&EpochStats) -> u64| epochs.iter().map(of).sum::<u64>();
    let waits: f64 = epochs.iter().map(|it| it.wait.mean_ns * it.wait.count as f64).sum();
    let batching = &outcome.job.batching;
    let repeated = |batch: &u32| batching.is_padding(*batch);
    let padded: u64 = epochs
        .iter()
        .flat_map(|epoch| epoch.records.iter().map(|record| record.batch))
        .filter(repeated)
        .map(|batch| u64::from(batching.batch_len(batch)))
        .sum();
    Rank {
        rank: outcome.rank,
        steps: sum(|epoch| epoch.records.len() as u64),
        host_batches: sum(|epoch| epoch.schedule.host_batches.into()),
        device_batches: sum(|epoch| epoch.schedule.device_batches.into()),
        wait_mean_seconds: waits / sum(|epoch| epoch.wait.count).max(1) as f64 / 1e9,
        padded_samples: padded,
    }
}
