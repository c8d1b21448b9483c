//! Compares our figures with the published figures of the paper.
//!
//! In reading order: [`paper`] (the published figures), [`region`] (the machines that they imply),
//! [`experiments`] (simulated), [`energy`] (modelled), [`measured`], [`document`] (all of it, with
//! its tables), `pictures`.

pub mod document;
pub mod energy;
pub mod experiments;
pub mod measured;
pub mod paper;
mod pictures;
pub mod region;
