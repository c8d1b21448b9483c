//! Brings datasets in and out: pack, inspect, verify.
//!
//! In reading order: [`pack()`] (a folder of images into a dataset), [`inspect()`] (what is in a
//! dataset), [`verify()`] (whether every bit is as it was packed, and where not), [`Error`].

mod error;
pub mod inspect;
mod natural;
pub mod pack;
pub mod verify;

pub use error::Error;
pub use inspect::{Inspection, inspect};
pub use natural::natural_order;
pub use pack::{Check, LeftOut, OnError, PackOptions, PackProgress, PackSummary, pack};
pub use verify::{Place, Problem, VerifyProgress, VerifyReport, verify};
