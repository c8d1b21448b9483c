//! The contract of a storage engine, run over every engine, alone and under the decorators.
//!
//! An engine that this machine does not have is named as skipped on standard error. The engine
//! `nvme` is tested where the variable `MEETPOINT_TEST_NVME_OVERWRITE` names a namespace, such as
//! /dev/ng0n1, whose contents the tests replace; `scripts/nvme-guest` does so in a virtual machine.
//! With the feature `spdk`, the engine of this name is tested on files or, if the variables
//! `MEETPOINT_TEST_SPDK_DEVICE` and `MEETPOINT_TEST_SPDK_OVERWRITE` name a device of SPDK and what
//! stores its contents, on that device; `scripts/spdk.sh` does both.
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
#[cfg(feature = "spdk")]
mod spdk;
mod writes;
