//! Counters of a running loader: as text for Prometheus, and exported to an OpenTelemetry
//! collector.
//!
//! Both receive the same values and have the same instruments. In reading order: [`counted`] (the
//! values), [`prometheus`] (the text), [`otlp`] (the export).

pub mod counted;
mod error;
pub mod otlp;
pub mod prometheus;

pub use counted::{CompletedEpoch, ConsumedBatch};
pub use error::Error;
pub use otlp::{Exporter, Settings, Status};
pub use prometheus::Prometheus;

/// Upper bounds of the histogram buckets of waiting times, in seconds: from 100 microseconds to 105
/// s.
pub(crate) fn wait_buckets() -> impl Iterator<Item = f64> {
    (0..11).map(|power| 1e-4 * f64::from(1 << (2 * power)))
}
