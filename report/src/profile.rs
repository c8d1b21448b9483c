//! Mean times of a batch over a whole epoch, from the life of every batch.
//!
//! The scheduler's own estimates follow the latest batches, whereas a prediction of the epoch needs
//! averages.

use super::Profile;
use meetpoint_host::stats::{BatchRecord, EpochStats, Preparer};

/// t_c, t_g and t_s of an epoch that the host ran with `workers` background threads.
pub fn measure(stats: &EpochStats, workers: u32) -> Profile {
    let of = |source| stats.records.iter().filter(move |record| record.source == source);
    let host = || of(Preparer::Host);
    let step = mean(host().map(step_ns));
    let prepare = mean(host().map(prepare_ns));
    let t_c = prepare.zip(step).map(|(prepare, step)| match workers {
        0 => prepare + step,
        // Workers prepare while steps go on: the slower of the two sets the interval.
        workers => (prepare / f64::from(workers)).max(step),
    });
    let at_device = mean(of(Preparer::Device).map(prepare_ns));
    Profile {
        t_c_seconds: t_c,
        t_g_seconds: mean(of(Preparer::Device).map(step_ns)),
        t_s_seconds: device_time(stats).or(at_device),
    }
}

/// Busy time of a device over all batches that it finished, used or not; of several together as
/// of one that is as fast as all of them.
fn device_time(stats: &EpochStats) -> Option<f64> {
    let working = stats.devices.iter().filter(|device| device.batches > 0);
    let batches_per_second: f64 =
        working.map(|device| device.batches as f64 * 1e9 / device.busy_ns.max(1) as f64).sum();
    (batches_per_second > 0.0).then(|| 1.0 / batches_per_second)
}

/// Time from passing a batch to the consumer until it requests the next.
///
/// Not from the end of one step to the end of the next: without workers the host may prepare a
/// batch and then consume one of the device's that came meanwhile, and the time would count as the
/// other's.
fn step_ns(record: &BatchRecord) -> u64 {
    record.step_end_ns.saturating_sub(record.consume_ns)
}

fn prepare_ns(record: &BatchRecord) -> u64 {
    record.prepare_end_ns.saturating_sub(record.prepare_start_ns)
}

/// Mean in seconds; `None` without values.
fn mean(times_ns: impl Iterator<Item = u64>) -> Option<f64> {
    let (count, sum) =
        times_ns.fold((0_u64, 0.0), |(count, sum), time| (count + 1, sum + time as f64));
    (count > 0).then(|| sum / count as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::{mean, prepare_ns, step_ns};
    use meetpoint_host::MemoryKind;
    use meetpoint_host::stats::{BatchRecord, Preparer};

    #[test]
    fn preparation_between_two_steps_is_no_part_of_the_second() {
        // Prepared by the host from 80 to 140, while the device's batch became ready at 100.
        let device = BatchRecord {
            batch: 9,
            source: Preparer::Device,
            device: Some(0),
            memory: MemoryKind::Host,
            prepare_start_ns: 0,
            prepare_end_ns: 95,
            ready_ns: 100,
            consume_ns: 141,
            step_end_ns: 161,
        };
        let host = BatchRecord {
            batch: 1,
            source: Preparer::Host,
            device: None,
            memory: MemoryKind::Host,
            prepare_start_ns: 80,
            prepare_end_ns: 140,
            ready_ns: 140,
            consume_ns: 161,
            step_end_ns: 181,
        };
        assert_eq!((step_ns(&device), step_ns(&host)), (20, 20));
        assert_eq!((prepare_ns(&device), prepare_ns(&host)), (95, 60));
        assert_eq!(mean([20, 60].into_iter()), Some(40e-9));
        assert_eq!(mean(std::iter::empty()), None);
    }
}
