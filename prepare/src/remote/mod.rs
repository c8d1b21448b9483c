//! Datasets in stores: their bytes are fetched in ranges into a cache, and read from there.
//!
//! This crate sends no request: a [`RemoteFolder`] does, which a caller passes in as a value. In
//! reading order: [`RemoteFolder`] and [`OpenRemote`] (the seam), [`RemoteFailure`] (what went
//! wrong, as a value inside an [`std::io::Error`]), [`RemoteUse`] (counts for reports), `reading`
//! (the batches that are being read), `engine` (reads for preparers).

mod engine;
mod failure;
mod folder;
mod reading;
mod usage;

pub(crate) use engine::{PartFile, RemoteEngine};
pub use failure::RemoteFailure;
pub(crate) use folder::read_blocking;
pub use folder::{NextUse, OpenRemote, RemoteFolder, Wanted};
pub(crate) use reading::Reading;
pub use usage::RemoteUse;
