//! The scheduler in virtual time, the closed forms it must meet, and a model of energy.
//!
//! It uses no clock, thread or file: times, watts and the text of a power file are arguments, and
//! the same arguments give the same result.
//!
//! In reading order: [`closed_forms`] (the times of the strategies by formula), [`scenario`] (what
//! is simulated), [`run`] (simulates it with the real scheduler, in `engine`), [`Outcome`],
//! [`Trace`] (replays a recorded run), [`studies`] (experiments with every strategy), [`power`]
//! (modelled energy, wear and cost).

mod engine;
mod error;
mod outcome;
pub mod power;
pub mod scenario;
pub mod studies;
mod trace;

pub use engine::{run, run_keeping};
pub use error::Error;
pub use meetpoint_scheduler::closed_forms;
pub use outcome::{
    DeviceOutcome, EpochOutcome, Interval, LegBytes, LostRank, MiddleHalf, Outcome, RankOutcome,
    Recording, Resource, ResourceUse, WorkKind,
};
pub use trace::Trace;
