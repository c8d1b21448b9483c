//! Work whose instructions are counted, for the bench of the scheduler and for the gate of
//! `scripts/instructions.sh`.
//!
//! In reading order: [`drive`] (decisions of the scheduler), [`samples`] (decoding and reading),
//! [`small`] (batches of small samples).

pub mod drive;
pub mod samples;
pub mod small;
