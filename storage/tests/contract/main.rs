//! The contract of a storage engine, run over every engine, alone and under the decorators.
//!
//! An engine that this machine does not have is named as skipped on standard error.
#![expect(clippy::unwrap_used, reason = "in a test, what fails panics")]

mod failures;
mod harness;
mod limits;
mod memlock;
mod property;
mod reads;
mod writes;
