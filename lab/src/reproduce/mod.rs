//! Our figures beside those of the paper, as far as they are public.
//!
//! In reading order: [`paper`] (what is published, and what is not known), [`region`] (which
//! machines yield it), [`experiments`] (simulated), [`energy`] (modelled), [`measured`],
//! [`document`] (all of it, with its tables), `pictures`.

pub mod document;
pub mod energy;
pub mod experiments;
pub mod measured;
pub mod paper;
mod pictures;
pub mod region;
