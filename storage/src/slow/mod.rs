//! Slows storage down to a given device: latency per command, bandwidth per direction.
//!
//! [`Pacer`] computes when the device would complete a command, without a clock; [`Lead`] decides
//! which of these moments to sleep for; [`SlowEngine`] applies both to an engine, and [`Throttle`]
//! to bytes that are copied without one.

mod engine;
mod lead;
mod pacer;
mod throttle;

pub use engine::{Meter, SlowEngine};
pub use lead::{LATE_MAX, LEAD_MAX, Lead, WaitDecision};
pub use pacer::{Achieved, CommandTimes, Direction, Figures, Pace, Pacer};
pub use throttle::{SLICE_MAX, Throttle};
