//! Chooses the batches for devices that save the host the most time.
//!
//! The cost of a batch is estimated from the bytes of its encoded samples, which the dataset's
//! index knows, by a line fitted to the batches so far. Until enough are measured, or if all
//! batches are alike, the order does not change.

use crate::driver::BatchOrder;
use crate::stats::{BatchRecord, Preparer};
use meetpoint_format::batching::Batching;
use meetpoint_format::sampler::EpochOrder;
use meetpoint_prepare::{Error, Job};

/// Minimum number of batches of host and devices for fitting a line.
const MEASURED_LEAST: usize = 8;
/// Maximum number of samples; the oldest are dropped first.
const MEASURED_MOST: usize = 4096;
/// If the best batch saves at most this share more than the worst, the order is retained.
const SPREAD_LEAST: f64 = 0.02;

/// Measurements of host and devices.
#[derive(Debug, Default)]
pub(super) struct BatchTimes {
    host: Vec<(f64, f64)>,
    device: Vec<(f64, f64)>,
}

/// Time of a batch by its bytes: t = fixed + per_byte · bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LinearFit {
    fixed: f64,
    per_byte: f64,
}

impl BatchTimes {
    /// Adds the measurements of an epoch.
    pub(super) fn learn(
        &mut self,
        job: &Job,
        epoch: u32,
        records: &[BatchRecord],
    ) -> Result<(), Error> {
        let order = job.batching.order(epoch);
        // Only the last ones, as many as are retained.
        let begin = records.len().saturating_sub(2 * MEASURED_MOST);
        for record in &records[begin..] {
            let time = record.prepare_end_ns.saturating_sub(record.prepare_start_ns);
            if time == 0 {
                continue;
            }
            let measured = match record.source {
                Preparer::Host => &mut self.host,
                Preparer::Device => &mut self.device,
            };
            measured.push((bytes_of(job, &order, record.batch)? as f64, time as f64));
        }
        for measured in [&mut self.host, &mut self.device] {
            let excess = measured.len().saturating_sub(MEASURED_MOST);
            measured.drain(..excess);
        }
        Ok(())
    }

    /// The batches of an epoch, ending with those that devices should prepare; `None`: in order.
    pub(super) fn order(&self, job: &Job, epoch: u32) -> Result<Option<BatchOrder>, Error> {
        let Some((host, device)) =
            LinearFit::through(&self.host).zip(LinearFit::through(&self.device))
        else {
            return Ok(None);
        };
        let order = job.batching.order(epoch);
        let batches = u32::try_from(job.batching.batches()).expect("a loader was opened on it");
        let mut savings = Vec::with_capacity(batches as usize);
        for batch in 0..batches {
            let bytes = bytes_of(job, &order, batch)? as f64;
            savings.push(host.at(bytes) / device.at(bytes));
        }
        Ok(arrange(&savings, &job.batching).map(BatchOrder::new))
    }
}

/// The batch at each position: among the positions of each device's batches, later ones hold the
/// batches that save more.
fn arrange(savings: &[f64], batching: &Batching) -> Option<Vec<u32>> {
    let least = savings.iter().copied().fold(f64::INFINITY, f64::min);
    let most = savings.iter().copied().fold(0.0, f64::max);
    if most <= least * (1.0 + SPREAD_LEAST) {
        return None;
    }
    let batches = u32::try_from(savings.len()).expect("batches have 32 bits");
    let mut arranged: Vec<u32> = (0..batches).collect();
    let mut place = |places: &[u32]| {
        let mut sorted = places.to_vec();
        // A stable sort: batches that save the same keep their order.
        sorted.sort_by(|&a, &b| savings[a as usize].total_cmp(&savings[b as usize]));
        for (&place, batch) in places.iter().zip(sorted) {
            arranged[place as usize] = batch;
        }
    };
    match batching.devices() {
        1 => place(&(0..batches).collect::<Vec<u32>>()),
        devices => {
            for device in 0..u16::try_from(devices).expect("the number of devices was checked") {
                let count = u32::try_from(batching.count(device)).expect("no more than batches");
                let held: Vec<u32> = (0..count).map(|n| batching.nth(device, n)).collect();
                place(&held);
            }
        }
    }
    Some(arranged)
}

/// Bytes of the encoded samples of a batch.
fn bytes_of(job: &Job, order: &EpochOrder, batch: u32) -> Result<u64, Error> {
    let mut sum = 0;
    for sample in job.batching.samples_of(order, batch) {
        sum += job.dataset.locate(sample)?.bytes;
    }
    Ok(sum)
}

impl LinearFit {
    /// By least squares; `None` if there are too few points or the line does not rise.
    fn through(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < MEASURED_LEAST {
            return None;
        }
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (bytes, time) = (mean(|point| point.0), mean(|point| point.1));
        let variance: f64 = points.iter().map(|point| (point.0 - bytes).powi(2)).sum();
        let covariance: f64 = points.iter().map(|point| (point.0 - bytes) * (point.1 - time)).sum();
        let per_byte = covariance / variance;
        let fixed = time - per_byte * bytes;
        (per_byte.is_finite() && per_byte >= 0.0 && time > 0.0).then_some(Self { fixed, per_byte })
    }

    /// At least a nanosecond.
    fn at(self, bytes: f64) -> f64 {
        (self.fixed + self.per_byte * bytes).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_format::batching::BatchOptions;
    use meetpoint_format::sampler::Sampling;

    #[test]
    fn a_fitted_line_passes_through_collinear_points() {
        let points: Vec<(f64, f64)> =
            (0..20).map(|n| (f64::from(n), 5.0 + 3.0 * f64::from(n))).collect();
        let line = LinearFit::through(&points).unwrap();
        assert!((line.fixed - 5.0).abs() < 1e-9 && (line.per_byte - 3.0).abs() < 1e-9);
        assert_eq!(LinearFit::through(&points[..MEASURED_LEAST - 1]), None);
        assert_eq!(LinearFit::through(&[(4.0, 9.0); 20]), None, "all alike");
        let falling: Vec<(f64, f64)> =
            (0..20).map(|n| (f64::from(n), 50.0 - f64::from(n))).collect();
        assert_eq!(LinearFit::through(&falling), None);
    }

    #[test]
    fn batches_that_save_most_are_last_and_equal_ones_stay_in_order() {
        let options = BatchOptions { batch_size: 1, drop_last: false, seed: 0 };
        let batching = Batching::alone(options, Sampling::sequential(4));
        assert_eq!(arrange(&[0.5, 0.9, 0.1, 0.5], &batching), Some(vec![2, 0, 3, 1]));
        assert_eq!(arrange(&[0.5, 0.505, 0.5, 0.5], &batching), None);
    }
}
