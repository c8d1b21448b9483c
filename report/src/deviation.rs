//! Why a run differs from its plan.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a run differs from its plan. `ratio`: achieved over predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Deviation {
    /// The host needed a different amount of processor time.
    HostTime {
        /// Achieved over predicted.
        ratio: f64,
    },
    /// The threads of the host had a smaller share of their cores than in the profile.
    HostShare {
        /// Cores that they had together, on average.
        cores: f64,
        /// Cores that the prediction needs.
        predicted_cores: f64,
    },
    /// A device needed a different time.
    DeviceTime {
        /// Achieved over predicted.
        ratio: f64,
    },
    /// The GPU was busy for a different time.
    GpuTime {
        /// Achieved over predicted.
        ratio: f64,
    },
    /// The GPU of the plan prepared no samples.
    GpuUnused,
    /// More or fewer bytes were read.
    Reads {
        /// Achieved over predicted.
        ratio: f64,
    },
    /// Steps took a different time.
    Steps {
        /// Achieved over predicted.
        ratio: f64,
    },
    /// The cache held a different share of the samples.
    CacheHits {
        /// Achieved.
        achieved: f64,
        /// Predicted.
        predicted: f64,
    },
    /// No resource explains the difference.
    Unexplained {
        /// Achieved over predicted, of the epoch.
        ratio: f64,
    },
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostTime { ratio } => write!(
                f,
                "the host needed {ratio:.2} times the predicted processor time: its cores were \
                 slower or faster than during the profile, or the samples differ from those \
                 measured"
            ),
            Self::HostShare { cores, predicted_cores } => write!(
                f,
                "the host's threads ran on {cores:.2} cores on average, and the prediction needs \
                 {predicted_cores:.2}: other processes used the cores, or the threads waited for \
                 reads or memory"
            ),
            Self::DeviceTime { ratio } => {
                write!(f, "the devices were busy for {ratio:.2} times the predicted time")
            }
            Self::GpuTime { ratio } => {
                write!(f, "the GPU was busy for {ratio:.2} times the predicted time")
            }
            Self::GpuUnused => write!(
                f,
                "the GPU of the plan was not used, so the host prepared its share of the samples"
            ),
            Self::Reads { ratio } => write!(f, "{ratio:.2} times the predicted bytes were read"),
            Self::Steps { ratio } => {
                write!(f, "the steps of the accelerator took {ratio:.2} times the predicted time")
            }
            Self::CacheHits { achieved, predicted } => write!(
                f,
                "the cache had {:.0} % of the samples, and {:.0} % were predicted",
                100.0 * achieved,
                100.0 * predicted
            ),
            Self::Unexplained { ratio } => write!(
                f,
                "the epoch took {ratio:.2} times the predicted time, and no resource explains it"
            ),
        }
    }
}
