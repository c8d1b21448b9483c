//! The contract of a storage engine, run over every engine, alone and under the decorators.
//!
//! An engine that this machine does not have is named as skipped on standard error. The engine
//! `nvme` is tested where the variable `MEETPOINT_TEST_NVME_OVERWRITE` names a namespace, such as
//! /dev/ng0n1, whose contents the tests replace; `scripts/nvme-guest` does so in a virtual machine.
#![expect(clippy::unwrap_used, reason = "in a test, what fails panics")]

mod drive;
mod extents;
mod failures;
mod harness;
mod limits;
mod memlock;
mod nvme;
mod property;
mod reads;
mod writes;
