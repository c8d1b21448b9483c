//! A training on the simulated machine: a host, its devices, the network between them, and the
//! faults that a seed determines.
//!
//! In reading order: `sizes`, `plan` (the job and its faults), `dataset` (the input, and the
//! expected bytes of every sample), `preparer` (preparation that takes simulated time), `ledger`
//! (the consumed batches), `link` (the network), `agent` (device processes), `training` (the host
//! process), `operator` (starts everything and injects the faults).

mod agent;
mod dataset;
mod ledger;
mod link;
mod operator;
mod plan;
mod preparer;
mod sizes;
mod training;

pub(crate) use dataset::Fixture;
pub(crate) use operator::{Report, run};
pub(crate) use plan::Plan;
