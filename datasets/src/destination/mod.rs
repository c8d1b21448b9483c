//! Where a result appears: complete or not at all, by a rename from a working folder beside it.
//!
//! The working folder is `NAME.partial-PID-N`; its descriptor is locked while its process lives. An
//! unlocked one was left by a killed process, and the next process removes or resumes it. A
//! resumable one is called `NAME.partial-0-0` in every process, so that two processes cannot both
//! begin. A dataset is written directly into it. Files with arbitrary names are written into a
//! folder inside it, next to a marker file, so that leftovers are recognised whatever the files are
//! called.
//!
//! In reading order: `names` (the files that Meetpoint writes into such folders), `leftover` (the
//! working folders of other processes), `resolve` (whether a destination can be created or
//! replaced) and `staging` (the working folder of this process).

mod leftover;
mod names;
mod resolve;
mod staging;

pub(crate) use leftover::{LeftoverFolder, retained_bytes};
pub(crate) use names::{JOURNAL_NAME, partial_keys};
pub(crate) use resolve::{Destination, Replace};
pub(crate) use staging::Staging;
