//! Epochs in virtual time, with the real scheduler.
//!
//! In reading order: [`constants`] (an epoch of constant times), [`quick`] (given constants
//! compared with the closed forms), [`notes`] (the tables of the notes on DDLP), [`load`],
//! [`sweep`], [`scenario`] and [`picture`] (a scenario file), [`study`] (machines that differ from
//! their profile), [`hosts`] (trainings over many hosts), [`replay`] (a recorded run).

pub mod constants;
pub mod hosts;
pub mod load;
pub mod notes;
pub mod picture;
pub mod quick;
pub mod replay;
pub mod scenario;
pub mod study;
pub mod sweep;
