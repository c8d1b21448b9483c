//! The scheduler in virtual time, the closed forms it must meet, and a model of energy.
//!
//! No clock, no thread, no file: times, watts and the text of a power file are arguments, and the
//! same arguments give the same result.
//!
//! In reading order: [`closed_forms`] (what the strategies come to on paper), [`scenario`] (what is
//! simulated), [`run`] (what the scheduler that ships does with it, over `engine`), [`Outcome`],
//! [`Trace`] (a recorded run, replayed), [`studies`] (questions asked of every strategy), [`power`]
//! (modelled joules).

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
    DeviceOutcome, Doing, EpochOutcome, Interval, LegBytes, LostRank, Outcome, RankOutcome,
    Recording,
};
pub use trace::Trace;
