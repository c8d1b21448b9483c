//! Turns a batch index into a tensor: locates the samples, reads, checks and decodes them.
//!
//! Host and device both prepare through this crate, so their samples are equal. In reading order:
//! [`DatasetPaths`] (the folders of a dataset), [`Dataset`] (an open dataset), [`KeyLookup`] (how
//! it looks up keys), [`SampleReader`] (stored samples, in any order), [`MappedDataset`] (the same
//! without a copy), [`RemoteFolder`] (a dataset in a store), [`ExtentFolder`] (a dataset by its
//! extents on a block device), [`original`] (the original file of a
//! stored sample), [`Preparer`] (prepares batches in one thread), [`BatchMemory`] (the memory of
//! batches), [`CpuPreparer`] (prepares with the CPU), [`Offload`] (prepares some of the pictures
//! elsewhere), [`gpu`] (an offload to a GPU), [`csx`] (devices that load, compute and copy),
//! [`PreparerFactory`] (creates the preparers of a loader or a device), [`DecodeMemory`] (memory
//! for large images, shared by preparers), [`abandoning`] (an interrupt that ends a wait for any
//! decoder), [`Start`] (applies a recipe to samples on which its first operations were executed),
//! [`OnePreparer`] (single samples), [`collated_shape`] and [`PictureSizes`] (sizes of pictures,
//! before they are decoded), [`codec`] (compression of prepared samples), [`cache`] (prepared
//! samples in memory), [`OnError`] (how damaged samples are handled), [`read_recipe`] (a recipe by
//! its name), [`read_recipe_files`] (the files that it needs), [`Error`].

mod batch;
mod buffers;
pub mod cache;
pub mod codec;
mod column_cache;
mod columns;
mod concatenation;
mod contents;
pub mod csx;
mod csx_error;
mod damage;
mod dataset;
mod dataset_folder;
mod decode_memory;
mod diagnose;
mod encoded;
mod error;
mod extents;
mod extents_error;
mod factory;
mod filter;
pub mod gpu;
mod gpu_use;
mod helper_threads;
mod in_extents;
mod in_store;
mod job;
mod keys;
mod mapped;
mod memory;
mod offload;
mod paths;
mod picture;
mod picture_sizes;
mod prefetch;
mod preparer;
mod read_limits;
mod read_picture_sizes;
mod recent_keys;
mod recipe_file;
mod recipe_files;
mod recipe_files_error;
mod remote;
mod resume;
mod samples;
mod shape;
mod small_samples;

pub use batch::CpuPreparer;
pub use column_cache::ColumnsReadAgain;
pub use contents::modified_ns;
pub use damage::{Action, Damage, DamagePolicy, OnError, Replacement, samples_held};
pub use dataset::Dataset;
pub use dataset_folder::OpenFile;
pub use decode_memory::{
    DecodeMemory, LimitOrigin, NoMemory, Reserved, TooLargeToDecode, UNCOUNTED_BYTES, picture_bytes,
};
pub use encoded::{decodes_regions, original, original_until};
pub use error::{Error, RemoteRefusal};
pub use extents::ExtentFolder;
pub use extents_error::ExtentFolderError;
pub use factory::{CpuPreparers, PreparerFactory, Resources};
pub use helper_threads::abandoning;
pub use job::Job;
pub use keys::KeyLookup;
pub use mapped::MappedDataset;
pub use memory::{BatchMemory, MemoryKind};
pub use offload::{Finished, Offload, OffloadCounts, Tensors};
pub use paths::{DatasetPaths, is_url};
pub use picture_sizes::PictureSizes;
pub use preparer::{Pace, PrepareStats, PreparedBatch, Preparer};
pub use read_limits::{BYTES_AHEAD_MAX, READ_TIMEOUT, READS_MAX};
pub use recipe_file::{RecipeFileError, find_recipe, read_recipe};
pub use recipe_files::{begin_files_at, read_recipe_files};
pub use recipe_files_error::RecipeFilesError;
pub use remote::{NextUse, OpenRemote, RemoteFailure, RemoteFolder, RemoteUse, Wanted};
pub use resume::{OnePreparer, Start};
pub use samples::{Each, OnDamage, READ_BYTES_MAX, ReadStats, SampleReader};
pub use shape::{collated_shape, fixed_shape};
