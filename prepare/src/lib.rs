//! Turns a batch index into a tensor: finds the samples, reads them, checks them, decodes them.
//!
//! Host and device both prepare through this crate, which is what makes their samples equal.
//! In reading order: [`Dataset`] (an open dataset), [`KeyLookup`] (how it finds keys),
//! [`SampleReader`] (samples as they are stored, in any order), [`MappedDataset`] (the same without
//! a copy), [`original`] (the file of what it holds), [`Preparer`] (one thread's means of preparing
//! batches), [`BatchMemory`] (where they lie), [`CpuPreparer`] (the preparer of host and device),
//! [`DecodeMemory`] (what preparers share for large pictures), [`OnError`] (what is done about a
//! damaged sample), [`Error`].

mod batch;
mod buffers;
mod column_cache;
mod columns;
mod contents;
mod damage;
mod dataset;
mod decode_memory;
mod diagnose;
mod encoded;
mod error;
mod filter;
mod keys;
mod mapped;
mod memory;
mod preparer;
mod recent;
mod samples;

pub use batch::{BYTES_AHEAD_MAX, CpuPreparer, Job, READ_TIMEOUT, READS_MAX};
pub use column_cache::ColumnsReadAgain;
pub use contents::modified_ns;
pub use damage::{Action, Damage, Judge, Mended, OnError, samples_held};
pub use dataset::{Dataset, OpenFile};
pub use decode_memory::{DecodeMemory, NoMemory, Reserved, UNCOUNTED_BYTES};
pub use encoded::{decodes_regions, original, original_until};
pub use error::Error;
pub use keys::KeyLookup;
pub use mapped::MappedDataset;
pub use memory::{BatchMemory, MemoryKind};
pub use preparer::{Pace, PrepareStats, PreparedBatch, Preparer};
pub use samples::{Each, OnDamage, READ_BYTES_MAX, ReadStats, SampleReader};
