//! Decides which end of an epoch prepares each batch, and what the accelerator consumes next.
//!
//! Time and events are arguments: it never waits, sleeps or reads a clock, and a decision allocates
//! nothing. [`Epoch`] is the state machine; a host drives it with threads, a simulator in virtual
//! time.
//!
//! ```
//! use meetpoint_scheduler::{
//!     AcceleratorDecision, Config, DeviceConfig, DeviceDecision, DeviceId, Epoch, Holders,
//!     HostDecision, Learned, Mte, Split, Tail,
//! };
//!
//! // Six batches: the host prepares three from the front, the device three from the back.
//! let mut epoch = Epoch::new(Config {
//!     batches: 6,
//!     strategy: Mte { split: Split::Fixed(3), tail: Tail::Descending }.into(),
//!     host_ahead: 2,
//!     fetch_ahead: 2,
//!     devices: vec![DeviceConfig { ahead: 2, spool_slots: 4, first_generation: 1 }],
//!     holders: Holders::Shared,
//!     stall_timeout_ns: 1_000_000_000,
//!     stalls_max: 3,
//!     profile_batches: 0,
//!     learned: Learned::default(),
//!     replay: None,
//!     ranks: 1,
//!     costs: None,
//! })?;
//!
//! // Nothing takes time here: work is reported as soon as it is assigned.
//! let (device, now) = (DeviceId(0), 0);
//! let mut consumed = Vec::new();
//! epoch.accelerator_ready(now);
//! loop {
//!     while let HostDecision::Prepare(batch) = epoch.host(now) {
//!         epoch.host_finished(now, batch);
//!     }
//!     while let DeviceDecision::Work(run, generation) = epoch.device(now, device) {
//!         for batch in run.batches() {
//!             epoch.device_published(now, device, batch, generation);
//!         }
//!     }
//!     while let Some((batch, device, generation)) = epoch.fetch(now) {
//!         epoch.device_fetched(now, device, batch, generation);
//!     }
//!     match epoch.accelerator(now) {
//!         AcceleratorDecision::Consume(batch, _source) => {
//!             consumed.push(batch.0);
//!             epoch.accelerator_ready(now);
//!         }
//!         AcceleratorDecision::WaitUntil(_) => {}
//!         AcceleratorDecision::Agree(_) => unreachable!("there is one rank"),
//!         AcceleratorDecision::Done => break,
//!     }
//! }
//! assert_eq!(consumed, [0, 1, 2, 5, 4, 3]);
//! # Ok::<(), meetpoint_scheduler::Error>(())
//! ```
//!
//! In reading order: [`types`] (the vocabulary), [`Config`] and [`Terms`], [`Epoch`] (events in,
//! decisions out), `board` (the state that strategies read) with `ledger` (open batches, over
//! `parts`) and `device`, `strategies` (one file each) and `strategy_name`, `estimate`,
//! [`Learned`], [`Record`], [`Proposal`], [`Selection`], [`closed_forms`]. Independent of these:
//! [`Tuner`] (how many workers and batches ahead a host uses).

mod board;
pub mod closed_forms;
mod config;
mod decision;
mod device;
mod effects;
mod epoch;
mod error;
mod estimate;
mod learned;
mod ledger;
mod parts;
mod ranks;
mod record;
#[macro_use]
mod strategies;
mod strategy_name;
mod terms;
mod tournament;
mod tuning;
pub mod types;

pub use config::Config;
pub use decision::{AcceleratorDecision, DeviceDecision, HostDecision};
pub use epoch::{DeviceSummary, Epoch, Summary};
pub use error::{Error, OptionTooLarge};
pub use learned::{CommonTimes, Learned};
pub use ranks::{Agreement, Proposal};
pub use record::{NoRecord, Record};
pub use strategies::{
    AcceptedValues, AnyStrategy, Auto, DeviceOnly, DeviceUse, Goal, HostOnly, Level, Mte,
    MteFeedback, OptionSpec, Order, Reason, RecordKind, Selection, Share, Split, Strategy,
    StrategyName, StrategyOption, StrategyOptions, Tail, UnknownStrategy, Value, WholeRange,
    Windowed, WrongOption, Wrr, WrrFrozen,
};
pub use terms::{Costs, DeviceConfig, Holders, Interleave, Terms};
pub use tuning::{Budget, Concurrency, Interval, Tuned, Tuner, TuningChange, Verdict};
pub use types::{
    BatchIndex, DeviceId, Generation, Outcome, Profile, Source, Time, VoidReason, WorkRun,
};
