//! Decides which end of an epoch prepares each batch, and what the accelerator consumes next.
//!
//! It is told the time and what happened; it never waits, sleeps or reads a clock, and a decision
//! allocates nothing. [`Epoch`] is the state machine; a host drives it with threads, a simulator
//! with virtual time.
//!
//! In reading order: [`types`] (the words), [`Config`], [`Epoch`] (events in, decisions out),
//! `ledger` (the state of what is under way, over `parts`), `strategies`, `estimate`, [`Learned`],
//! [`Record`], [`Proposal`], [`Picked`], [`closed_forms`] (what the strategies come to on paper).

pub mod closed_forms;
mod config;
mod epoch;
mod error;
mod estimate;
mod learned;
mod ledger;
mod parts;
mod picked;
mod ranks;
mod record;
mod strategies;
mod tournament;
pub mod types;

pub use config::{
    Config, Costs, DeviceConfig, Goal, Holders, Interleave, Level, Order, Split, Strategy, Tail,
    WINDOW_DEFAULT,
};
pub use epoch::{DeviceSummary, Epoch, Summary};
pub use error::Error;
pub use learned::{Common, Learned};
pub use picked::{Picked, Why};
pub use ranks::{Agreement, Proposal};
pub use record::{NoRecord, Record};
pub use types::{
    AcceleratorDecision, BatchIndex, DeviceDecision, DeviceId, Generation, HostDecision, Outcome,
    Profile, Source, Time, VoidReason, WorkRun,
};
