//! Makes storage as slow as a given device: latency per command, bandwidth per direction.
//!
//! [`Pacer`] says when a command of such a device would be over and touches no clock; [`Lead`]
//! turns those moments into sleeps worth taking; [`SlowEngine`] applies both to an engine and
//! [`Throttle`] to bytes that are moved without one.

mod engine;
mod lead;
mod pacer;
mod throttle;

pub use engine::{Meter, SlowEngine};
pub use lead::{Ahead, LATE_MAX, LEAD_MAX, Lead};
pub use pacer::{Achieved, Direction, Figures, Moved, Pace, Pacer};
pub use throttle::{SLICE_MAX, Throttle};
