//! Epochs in virtual time, decided by the scheduler that ships.
//!
//! In reading order: [`constants`] (an epoch of constant times), [`quick`] (given constants beside
//! the closed forms), [`notes`] (the tables of the notes on DDLP), [`load`], [`sweep`],
//! [`scenario`] and [`picture`] (a scenario file), [`study`] (machines that differ from their
//! profile), [`replay`] (a recorded run).

pub mod constants;
pub mod load;
pub mod notes;
pub mod picture;
pub mod quick;
pub mod replay;
pub mod scenario;
pub mod study;
pub mod sweep;
