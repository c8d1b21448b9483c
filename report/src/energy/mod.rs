//! The consumption of a run: measured energy, modelled energy, memory traffic, wear and cost.
//!
//! Measured and modelled figures have separate types and never share a field. In reading order:
//! this file (the data), [`model`] (from the model), [`measure`] (from the meters),
//! [`tables`].

pub mod measure;
pub mod model;
pub mod tables;

use meetpoint_host::energy::NoMeters;
use serde::{Deserialize, Serialize};

/// The readings of the meters of this machine during the epochs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEnergy {
    /// Length of the interval: from before the first epoch to after the last.
    pub measured_seconds: f64,
    /// Sum over the meters that do not overlap (packages, memory, graphics boards); `None` where
    /// there is none, or one of them failed.
    pub measured_joules: Option<f64>,
    /// Meter by meter; empty where none works.
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
    /// The same in words. Meters see all that runs on the machine.
    pub covers: String,
    /// Whether it is part of the sum; the others overlap with those that are.
    pub adds_up: bool,
    /// Joules over the interval; `None` where the meter failed in it.
    pub measured_joules: Option<f64>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Number of readings.
    pub readings: u64,
    /// Mean share of the time in which a graphics board was busy; `None` for other meters.
    #[serde(default)]
    pub utilisation: Option<f64>,
}

/// Energy by the model; the watts and their sources are in the profile's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledEnergy {
    /// Whole node: everything together.
    pub modelled_joules: f64,
    /// Preparation only: host cores, their memory and the devices.
    #[serde(default)]
    pub modelled_preparation_joules: f64,
    /// Whole-node joules of a sample.
    #[serde(default)]
    pub modelled_joules_per_sample: Option<f64>,
    /// `modelled(PROFILE@HASH)`: name and hash of the file of watts.
    pub source: String,
    /// Parts of the sum.
    pub modelled_parts: Vec<EnergyPart>,
    /// Watts in the file that have no checked source.
    pub unverified_watts: Vec<String>,
}

/// One part of the modelled energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyPart {
    /// The component.
    pub name: String,
    /// By the model.
    pub modelled_joules: f64,
}

/// Bytes that a run moved and wrote, what that does to memory and flash, and money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consumption {
    /// Bytes of tensors that came from devices.
    pub device_to_host_bytes: u64,
    /// Slots written to flash in an epoch, counted; 0 where the spool is in memory.
    pub flash_bytes_per_epoch: u64,
    /// Bytes that the host's memory moved, by the model.
    pub modelled_dram: ModelledDram,
    /// Wear of the drive that holds the spool; `None` if the power file does not describe it.
    pub modelled_wear: Option<ModelledWear>,
    /// Money for an epoch; `None` where the file of watts has no prices.
    pub modelled_cost: Option<ModelledCost>,
}

/// Memory traffic by the model, each crossing of the bus counted once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledDram {
    /// All four.
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

/// Wear by the model: bytes written against the rating of a drive in the file of watts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledWear {
    /// Drive writes per day, if such epochs run consecutively.
    pub modelled_drive_writes_per_day: f64,
    /// The rating of the drive.
    pub rated_drive_writes_per_day: f64,
    /// Share of the rated bytes that an epoch uses up.
    pub modelled_life_share_per_epoch: f64,
    /// Years until the rated bytes are written; `None` where nothing is written.
    pub modelled_years: Option<f64>,
    /// Values that have no checked source.
    pub unverified: Vec<String>,
}

/// Money for an epoch by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledCost {
    /// The currency of all figures, such as `USD`.
    pub currency: String,
    /// All four.
    pub modelled_total: f64,
    /// The node, by the hour.
    pub modelled_node: f64,
    /// Electricity of the whole node.
    pub modelled_energy: f64,
    /// The additional cost of devices over plain drives, over their life.
    pub modelled_device_premium: f64,
    /// The drive's price by the share of its life that was written.
    pub modelled_flash_wear: f64,
    /// Prices that were chosen to show the sum.
    pub example_prices: Vec<String>,
    /// Values that have no checked source.
    pub unverified: Vec<String>,
}
