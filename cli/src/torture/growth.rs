//! Whether the resources of a process grow from epoch to epoch: a line through the samples, their
//! maxima and minima, and a limit for the rise. Times are never compared.

use super::processes::Holdings;
use serde::Serialize;

/// Share of the epochs at the beginning in which caches and buffers fill.
const WARM_UP_SHARE: f64 = 0.34;
/// Fewest samples after the warm-up that a line is drawn through.
const SAMPLES_MIN: usize = 8;
/// Maximum number of samples whose pairs are compared; of more, every n-th.
const PAIRED_MAX: usize = 400;
/// Permitted rise of resident memory over all samples: an allocator returns memory in large pieces.
const MEMORY_RISE_MAX: f64 = (3 << 20) as f64;
/// Permitted rise of memory in huge pages. A ring has as many as its budget permits, and uses
/// another one whenever more batches are in use than ever before.
pub(super) const HUGE_RISE_MAX: u64 = 32 << 20;
/// Permitted share of the resident memory by which it may rise.
const MEMORY_RISE_SHARE_MAX: f64 = 0.05;
/// Permitted rise of counts: less than one descriptor, socket or thread.
const COUNT_RISE_MAX: f64 = 0.9;
/// Permitted rise of the bytes of spools, which are reserved once: less than a page.
const SPOOL_RISE_MAX: f64 = 4095.0;

/// What a process held after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Epochs that had ended.
    pub(super) epoch: u32,
    /// What it held.
    pub(super) holdings: Holdings,
}

/// One resource of a process over many epochs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Trend {
    /// Which process: `host` or `device`.
    pub(super) process: &'static str,
    /// Which resource, with its unit.
    pub(super) resource: &'static str,
    /// Samples that the line goes through.
    pub(super) samples: usize,
    /// Mean of these samples.
    pub(super) mean: f64,
    /// Rise from the first to the last of them: that of the line, or of the maxima or minima, if it
    /// is lower.
    pub(super) rise: f64,
    /// The permitted rise.
    pub(super) rise_max: f64,
}

impl Trend {
    /// Whether it rises by more than is permitted.
    pub(super) fn is_growing(&self) -> bool {
        self.rise > self.rise_max
    }
}

/// A resource: its name, its value, and its permitted rise for a mean.
type Resource = (&'static str, fn(&Holdings) -> u64, fn(f64) -> f64);

const RESOURCES: [Resource; 6] = [
    (
        "memory_bytes",
        |it| it.anonymous_bytes,
        |mean| MEMORY_RISE_MAX.max(mean * MEMORY_RISE_SHARE_MAX),
    ),
    ("huge_page_bytes", |it| it.huge_bytes, |_| HUGE_RISE_MAX as f64),
    ("descriptors", |it| it.descriptors, |_| COUNT_RISE_MAX),
    ("sockets", |it| it.sockets, |_| COUNT_RISE_MAX),
    ("threads", |it| it.threads, |_| COUNT_RISE_MAX),
    ("spool_bytes", |it| it.spool_bytes, |_| SPOOL_RISE_MAX),
];

/// The trends of a process; none if there are too few samples.
pub(super) fn trends(process: &'static str, samples: &[Sample]) -> Vec<Trend> {
    let warm_up = (samples.len() as f64 * WARM_UP_SHARE).ceil() as usize;
    let settled = &samples[warm_up.min(samples.len())..];
    if settled.len() < SAMPLES_MIN {
        return Vec::new();
    }
    let trend = |(resource, value, permitted): Resource| {
        let points: Vec<(f64, f64)> = settled
            .iter()
            .map(|sample| (f64::from(sample.epoch), value(&sample.holdings) as f64))
            .collect();
        let (mean, slope) = line(&points);
        let span = points.last().map_or(0.0, |last| last.0) - points[0].0;
        Trend {
            process,
            resource,
            samples: points.len(),
            mean,
            rise: (slope * span).min(between_halves(&points)),
            rise_max: permitted(mean),
        }
    };
    RESOURCES.into_iter().map(trend).collect()
}

/// The mean, and the slope of the line by the estimator of Theil and Sen: the median of the slopes
/// between all pairs. Single samples, such as one without a device that is being restarted, do not
/// change it.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    let thinned: Vec<_> = points.iter().step_by(points.len().div_ceil(PAIRED_MAX)).collect();
    let pairs = thinned.iter().enumerate().flat_map(|(index, first)| {
        thinned[index + 1..].iter().map(move |last| (last.1 - first.1) / (last.0 - first.0))
    });
    let mut slopes: Vec<f64> = pairs.collect();
    let middle = slopes.len() / 2;
    (mean, *slopes.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Twice the difference between the maxima of both halves, or their minima if that is lower. A
/// leak raises both; readers of spools, which threads open when they first need them, raise one.
fn between_halves(points: &[(f64, f64)]) -> f64 {
    let (first, second) = points.split_at(points.len() / 2);
    let rise = |pick: fn(f64, f64) -> f64| {
        let [first, second] = [first, second].map(|half| {
            let values = half.iter().map(|point| point.1);
            values.reduce(pick).expect("there are more samples than halves")
        });
        2.0 * (second - first)
    };
    rise(f64::max).min(rise(f64::min))
}

#[cfg(test)]
mod tests {
    use super::{Sample, Trend, trends};
    use crate::torture::processes::Holdings;

    fn held(count: u32, of: impl Fn(u32) -> Holdings) -> Vec<Trend> {
        let sample = |epoch| Sample { epoch, holdings: of(epoch) };
        trends("host", &(0..count).map(sample).collect::<Vec<_>>())
    }

    fn growing(trends: &[Trend]) -> Vec<&str> {
        trends.iter().filter(|it| it.is_growing()).map(|it| it.resource).collect()
    }

    #[test]
    fn what_settles_or_varies_is_flat_and_what_leaks_is_found() {
        let base = Holdings {
            anonymous_bytes: 40 << 20,
            huge_bytes: 8 << 20,
            descriptors: 20,
            sockets: 4,
            threads: 7,
            spool_bytes: 1 << 20,
        };
        let settles = held(60, |epoch| Holdings {
            anonymous_bytes: (30 << 20) + u64::from(epoch.min(15)) * (1 << 20),
            descriptors: 20 + u64::from(epoch % 2),
            ..base
        });
        assert_eq!(settles.len(), 6);
        assert_eq!(growing(&settles), Vec::<&str>::new(), "{settles:?}");
        let leaks_memory = held(60, |epoch| Holdings {
            anonymous_bytes: base.anonymous_bytes + u64::from(epoch) * (100 << 10),
            ..base
        });
        assert_eq!(growing(&leaks_memory), ["memory_bytes"]);
        let rise = leaks_memory[0].rise;
        assert!((rise - 38.0 * 102_400.0).abs() < 1.0, "{rise}");
        let leaks_descriptors = held(60, |epoch| Holdings {
            descriptors: 20 + u64::from(epoch) / 10,
            sockets: 4 + u64::from(epoch) / 10,
            ..base
        });
        assert_eq!(growing(&leaks_descriptors), ["descriptors", "sockets"]);
    }

    #[test]
    fn a_device_that_is_away_for_single_epochs_is_no_trend_and_a_leak_at_each_restart_is() {
        let restarts = |epoch: u32| u64::from(epoch / 8);
        let base = Holdings { descriptors: 20, spool_bytes: 1 << 20, ..Holdings::default() };
        let away = held(60, |epoch| match epoch {
            24 | 25 | 31 => Holdings { descriptors: 17, spool_bytes: 0, ..base },
            _ => base,
        });
        assert_eq!(growing(&away), Vec::<&str>::new(), "{away:?}");
        let opens_late = held(60, |epoch| Holdings {
            descriptors: base.descriptors + u64::from(epoch % 8 * epoch / 60),
            ..base
        });
        assert_eq!(growing(&opens_late), Vec::<&str>::new(), "{opens_late:?}");
        let leaks = held(60, |epoch| Holdings {
            descriptors: base.descriptors + restarts(epoch),
            spool_bytes: base.spool_bytes * (1 + restarts(epoch)),
            ..base
        });
        assert_eq!(growing(&leaks), ["descriptors", "spool_bytes"]);
    }

    #[test]
    fn too_few_samples_have_no_trend() {
        assert_eq!(held(10, |_| Holdings::default()), []);
    }
}
