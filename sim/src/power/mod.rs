//! Models of the cost of a run: energy, memory traffic, flash wear, money.
//!
//! It reads no meter. Every result is marked as modelled, with the power file that it is based on;
//! it must never share a column with a measured figure.
//!
//! In reading order: [`PowerModel`] (the numbers, each with its source), [`presets`] (the bundled
//! power files), [`Activity`] and [`ModelledEnergy`] (joules), [`DramTraffic`] (bytes on the memory
//! bus), [`Wear`] (flash), [`Cost`] (money), [`PowerModel::costs`] (what the
//! scheduler minimises).

mod cost;
mod costs;
mod energy;
mod error;
mod file;
mod model;
mod presets;
mod section;
mod traffic;
mod wear;

#[cfg(test)]
mod tests;

pub use cost::Cost;
pub use energy::{Activity, Component, ModelledEnergy, Part};
pub use error::PowerError;
pub use model::{Number, PowerModel};
pub use presets::{DEFAULT_PRESET, Preset, presets};
pub use traffic::DramTraffic;
pub use wear::Wear;

/// Joules in a kilowatt-hour.
pub const JOULES_PER_KWH: f64 = 3.6e6;

const SECONDS_PER_HOUR: f64 = 3_600.0;
const SECONDS_PER_DAY: f64 = 86_400.0;
/// Drive vendors count years of 365 days: 1.38 PB over 5 years is 756 GB a day.
const DAYS_PER_YEAR: f64 = 365.0;
const BYTES_PER_TB: f64 = 1e12;
