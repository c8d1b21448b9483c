//! What a run costs by the model: energy, memory traffic, wear of flash, money.
//!
//! It reads no meter. Every result says that it is modelled, and with which file of watts; it must
//! never share a column with a measured figure.
//!
//! In reading order: [`PowerModel`] (the numbers, each with its source), [`presets`] (those that
//! come with the program), [`Activity`] and [`ModelledEnergy`] (joules), [`DramTraffic`] (bytes
//! that memory moves), [`Wear`] (flash), [`Cost`] (money), [`PowerModel::costs`] (what the
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
/// Drive makers count years of 365 days: 1.38 PB over 5 years is 756 GB a day.
const DAYS_PER_YEAR: f64 = 365.0;
const BYTES_PER_TB: f64 = 1e12;
