//! Decides which end of an epoch prepares each batch, and what the accelerator consumes next.
//!
//! It is told the time and what happened; it never waits, sleeps or reads a clock, and a decision
//! allocates nothing. [`Epoch`] is the state machine; a host drives it with threads, a simulator
//! with virtual time.
//!
//! In reading order: [`types`] (the words), [`Config`], [`Epoch`] (events in, decisions out),
//! `ledger` (the state of every batch, over `batch_set`), `strategies`, `estimate`.

mod batch_set;
mod config;
mod epoch;
mod error;
mod estimate;
mod ledger;
mod strategies;
pub mod types;

pub use config::{Config, Level, Split, Strategy, Tail};
pub use epoch::{Epoch, Summary};
pub use error::Error;
pub use types::{
    AcceleratorDecision, BatchIndex, DeviceDecision, DeviceId, Generation, HostDecision, Outcome,
    Profile, Source, Time, VoidReason, WorkRun,
};
