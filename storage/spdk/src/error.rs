//! Errors of SPDK, apart from those of single transfers.

use std::time::Duration;

/// SPDK does not start, or a device does not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option has a value that it cannot have.
    #[error("{name}={value}: expected {expected}")]
    Option {
        /// The environment variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it can be.
        expected: &'static str,
    },
    /// A step of SPDK's start failed.
    #[error("SPDK does not start: {step}: {reason}")]
    Start {
        /// The step.
        step: &'static str,
        /// SPDK's messages, or the error number.
        reason: String,
    },
    /// A name has a form that names of devices do not have.
    #[error("{name}: {problem}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A device does not open.
    #[error("bdev {bdev}: {reason}")]
    Open {
        /// Its name in SPDK.
        bdev: String,
        /// SPDK's messages, or the error number.
        reason: String,
    },
    /// The thread did not answer in time; it may hang in a call of the operating system.
    #[error("SPDK's thread has not answered for {0:?}")]
    Timeout(Duration),
    /// The thread has ended.
    #[error("SPDK's thread has ended")]
    Ended,
}
