//! The consumption of a run: measured energy, modelled energy, memory traffic, wear and cost.
//!
//! Measured and modelled figures have separate types and never share a field. In reading order:
//! this file (the data), [`model`] (modelled figures), [`measure`] (measured figures),
//! [`tables`].

pub mod measure;
pub mod model;
pub mod tables;

use meetpoint_host::energy::{Coverage, MeterError, NoMeters};
use serde::{Deserialize, Serialize};

/// The readings of the meters of this machine during the epochs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEnergy {
    /// Length of the interval: from before the first epoch to after the last.
    pub measured_seconds: f64,
    /// Sum over the meters that do not overlap (packages, memory, graphics boards); `None` if there
    /// is none, or one of them failed.
    pub measured_joules: Option<f64>,
    /// The readings of each meter; empty if none works.
    pub meters: Vec<MeasuredPart>,
    /// Why nothing was measured.
    pub nothing_because: Option<NoMeters>,
}

/// The readings of one meter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredPart {
    /// Its name.
    pub meter: String,
    /// The scope of its figure: `package`, `cores`, `dram`, `gpu`, …
    pub scope: String,
    /// The parts of the machine that it covers, with all processes.
    pub covers: Coverage,
    /// Whether it is part of the sum; the other meters overlap with those.
    pub adds_up: bool,
    /// Joules over the interval; `None` if the meter failed in it.
    pub measured_joules: Option<f64>,
    /// Why it failed.
    pub failure: Option<MeterError>,
    /// Number of readings.
    pub readings: u64,
    /// Mean share of the time in which a graphics board was busy; `None` for other meters.
    #[serde(default)]
    pub utilisation: Option<f64>,
}

/// Modelled energy; the watts and their sources are in the power file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledEnergy {
    /// The whole node: the sum of all parts.
    pub modelled_joules: f64,
    /// Preparation only: host cores, their memory and the devices.
    #[serde(default)]
    pub modelled_preparation_joules: f64,
    /// Whole-node joules per sample.
    #[serde(default)]
    pub modelled_joules_per_sample: Option<f64>,
    /// `modelled(PROFILE@HASH)`: name and hash of the power file.
    pub source: String,
    /// Parts of the sum.
    pub modelled_parts: Vec<EnergyPart>,
    /// Keys of watts without a verified source.
    pub unverified_watts: Vec<String>,
}

/// One part of the modelled energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyPart {
    /// The component.
    pub name: String,
    /// Modelled joules.
    pub modelled_joules: f64,
}

/// Bytes that a run transferred and wrote, and the modelled memory traffic, flash wear and cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consumption {
    /// Bytes of tensors that came from devices.
    pub device_to_host_bytes: u64,
    /// Bytes of slots written to flash per epoch, counted; 0 if the spool is in memory.
    pub flash_bytes_per_epoch: u64,
    /// Modelled bytes on the host's memory bus.
    pub modelled_dram: ModelledDram,
    /// Wear of the drive that holds the spool; `None` if the power file does not describe it.
    pub modelled_wear: Option<ModelledWear>,
    /// Cost of an epoch; `None` if the power file has no prices.
    pub modelled_cost: Option<ModelledCost>,
}

/// Modelled memory traffic; each crossing of the bus counts once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledDram {
    /// The sum of the four.
    pub modelled_bytes: u64,
    /// From storage or devices into memory.
    pub modelled_read_bytes: u64,
    /// Loaded to be decoded or checked.
    pub modelled_decoded_bytes: u64,
    /// Tensors stored.
    pub modelled_written_bytes: u64,
    /// Tensors read by the consumer.
    pub modelled_consumed_bytes: u64,
}

/// Modelled flash wear: written bytes, compared with the rating of a drive in the power file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledWear {
    /// Drive writes per day, if such epochs run consecutively.
    pub modelled_drive_writes_per_day: f64,
    /// The rating of the drive.
    pub rated_drive_writes_per_day: f64,
    /// Share of the rated bytes that an epoch uses up.
    pub modelled_life_share_per_epoch: f64,
    /// Years until the rated bytes are written; `None` if nothing is written.
    pub modelled_years: Option<f64>,
    /// Keys of values without a verified source.
    pub unverified: Vec<String>,
}

/// Modelled cost of an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledCost {
    /// The currency of all figures, such as `USD`.
    pub currency: String,
    /// The sum of the four.
    pub modelled_total: f64,
    /// Price of the node for this time.
    pub modelled_node: f64,
    /// Electricity of the whole node.
    pub modelled_energy: f64,
    /// The additional cost of devices over plain drives, over their life.
    pub modelled_device_premium: f64,
    /// Price of the drive, multiplied by the share of its rated life that was used up.
    pub modelled_flash_wear: f64,
    /// Keys of prices that are only examples.
    pub example_prices: Vec<String>,
    /// Keys of values without a verified source.
    pub unverified: Vec<String>,
}
