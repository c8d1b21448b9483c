//! Decides which end of an epoch prepares each batch, and what the accelerator consumes next.
//!
//! Time and events are arguments; it never waits, sleeps or reads a clock, and a decision allocates
//! nothing. [`Epoch`] is the state machine; a host drives it with threads, a simulator with virtual
//! time.
//!
//! In reading order: [`types`] (the words), [`Config`] and [`Terms`], [`Epoch`] (events in,
//! decisions out), `ledger` (the state of what is under way, over `parts`), `strategies` (one file
//! each), `estimate`, [`Learned`], [`Record`], [`Proposal`], [`Picked`], [`closed_forms`].

pub mod closed_forms;
mod config;
mod decision;
mod epoch;
mod error;
mod estimate;
mod learned;
mod ledger;
mod parts;
mod ranks;
mod record;
mod strategies;
mod terms;
mod tournament;
pub mod types;

pub use config::Config;
pub use decision::{AcceleratorDecision, DeviceDecision, HostDecision};
pub use epoch::{DeviceSummary, Epoch, Summary};
pub use error::{Error, OptionTooLarge};
pub use learned::{Common, Learned};
pub use ranks::{Agreement, Proposal};
pub use record::{NoRecord, Record};
pub use strategies::{
    AnyStrategy, Auto, DeviceOnly, DeviceUse, Goal, HostOnly, Level, Mte, MteFeedback, OptionSpec,
    Order, Picked, RecordKind, Share, Split, Strategy, StrategyName, StrategyOption,
    StrategyOptions, Tail, Takes, UnknownStrategy, Value, Whole, Why, Windowed, WrongOption, Wrr,
    WrrFrozen,
};
pub use terms::{Costs, DeviceConfig, Holders, Interleave, Terms};
pub use types::{
    BatchIndex, DeviceId, Generation, Outcome, Profile, Source, Time, VoidReason, WorkRun,
};
