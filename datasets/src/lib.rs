//! Imports, exports and checks datasets: pack, unpack, inspect, verify.
//!
//! In reading order: [`pack()`] (a folder of images into a dataset), [`JpegOptions`] (in which form
//! JPEGs are stored), [`unpack()`] (a dataset into a folder of files of another kind),
//! [`convert()`] (a source into such a folder), [`inspect()`] (what is in a dataset), [`verify()`]
//! (whether every bit is unchanged, and the location of damage), [`extents`] (where on its block
//! device a dataset is), [`preview()`] (a contact sheet of
//! a recipe's results), [`Writer`] (rows into a dataset), [`shards`] (these commands divided among
//! hosts), [`options`] (the values of their options), [`Error`].
//!
//! ```
//! use meetpoint_datasets::{PackOptions, UnpackOptions, pack, unpack, verify};
//! use meetpoint_prepare::Dataset;
//!
//! # let folder = tempfile::tempdir()?;
//! # let (set, copy) = (folder.path().join("pictures.set"), folder.path().join("copy"));
//! // Two pictures in each of the folders `coarse` and `fine`, which become the labels.
//! let pictures = "tests/golden/pictures".as_ref();
//! let packed = pack(pictures, &set, &PackOptions::default(), &mut |_| ())?;
//! assert_eq!(packed.labels, ["coarse", "fine"]);
//!
//! let dataset = Dataset::open(&set)?;
//! assert_eq!(dataset.len(), packed.samples);
//! assert!(verify(&set, &mut |_| ())?.is_sound());
//!
//! // Every picture is written as the file that it was, byte for byte.
//! unpack(&set, &copy, &UnpackOptions::default(), &mut |_| ())?;
//! let original = std::fs::read("tests/golden/pictures/fine/444.jpg")?;
//! assert_eq!(std::fs::read(copy.join("fine/444.jpg"))?, original);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod choice;
mod destination;
mod error;
pub mod extents;
mod in_store;
pub mod index;
pub mod inspect;
mod jpeg;
mod key_index;
mod key_set;
mod left_out;
mod message;
mod named_lock;
mod natural;
pub mod operations;
pub mod options;
mod over_budget;
pub mod pack;
mod pattern;
mod preview;
mod sample_origin;
pub mod shards;
mod share;
pub mod sink;
mod sink_kind;
pub mod source;
pub mod store;
mod stored_part;
mod threads;
pub mod unpack;
pub mod verify;
mod walk;
pub mod writer;
mod writer_inputs;

pub use error::Error;
pub use in_store::open_dataset;
pub use inspect::{Inspection, inspect, inspect_with};
pub use jpeg::{JpegOptions, Progressive, RestartMarkers};
pub use left_out::LeftOut;
pub use message::Message;
pub use natural::natural_order;
pub use pack::{Check, OnError, PackOptions, PackProgress, PackSummary, pack};
pub use preview::{DRAWS_MAX, Preview, PreviewError, PreviewOptions, SAMPLES_MAX, preview};
pub use sink::{Shards, SinkKind};
pub use unpack::{
    ConvertProgress, ConvertSummary, UnpackOptions, UnpackProgress, UnpackSummary, convert, unpack,
};
pub use verify::{
    DamageLocation, DeepReport, Problem, VerifyOptions, VerifyProgress, VerifyReport, verify,
    verify_deep, verify_with,
};
pub use writer::{Writer, WriterOptions, Written};
