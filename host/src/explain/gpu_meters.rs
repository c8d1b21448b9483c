//! What NVML measured of graphics boards, for an explanation.

use crate::energy::{Coverage, Measurement};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The measurements of a graphics board over an interval, for all processes that use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuMeter {
    /// Name of the meter, such as `nvml:0`.
    pub meter: String,
    /// The product name of the board.
    pub board: String,
    /// Length of the interval.
    pub seconds: f64,
    /// Samples that were consumed in the interval.
    pub samples: u64,
    /// Energy of the board; `None` if the meter failed.
    pub joules: Option<f64>,
    /// The same for each sample; `None` also without samples.
    pub joules_per_sample: Option<f64>,
    /// Mean share of the time in which a kernel ran, 0 to 1; `None` if the board does not report
    /// it.
    pub utilisation: Option<f64>,
}

impl GpuMeter {
    /// The boards that NVML measured over an interval in which `samples` samples were consumed.
    /// Leaves out boards with neither a figure of energy nor one of utilisation.
    pub fn of(measurement: &Measurement, samples: u64) -> Vec<Self> {
        let boards = measurement.meters.iter().filter_map(|measured| {
            let Coverage::NvmlBoard { board } = &measured.covers else { return None };
            let per_sample = |joules: f64| (samples > 0).then(|| joules / samples as f64);
            Some(Self {
                meter: measured.meter.clone(),
                board: board.clone(),
                seconds: measurement.seconds,
                samples,
                joules: measured.joules,
                joules_per_sample: measured.joules.and_then(per_sample),
                utilisation: measured.utilisation,
            })
        });
        boards.filter(|board| board.joules.is_some() || board.utilisation.is_some()).collect()
    }
}

impl fmt::Display for GpuMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { meter, board, seconds, samples, .. } = self;
        write!(f, "{board} ({meter}), measured for {seconds:.1} s with {samples} samples:")?;
        let mut separator = " ";
        if let Some(joules) = self.joules {
            write!(f, "{separator}{joules:.1} J")?;
            separator = ", ";
        }
        if let Some(joules) = self.joules_per_sample {
            write!(f, "{separator}{joules:.4} J per sample")?;
        }
        if let Some(utilisation) = self.utilisation {
            write!(f, "{separator}a kernel ran for {:.0} % of the time", 100.0 * utilisation)?;
        }
        f.write_str("; other processes on the board are included.")
    }
}
