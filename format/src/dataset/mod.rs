//! A dataset on disk: a folder of Arrow IPC files with conventions, and `dataset.json`.
//!
//! Every byte of a part is under exactly one checksum: an image under its row's, the rest of a
//! record batch under that batch's in the footer, the footer under the manifest's, the manifest
//! under its own. `docs/dataset-format.md` describes it for other languages.
//!
//! In reading order: [`Manifest`] (what `dataset.json` says), [`Stored`] (in which
//! form, as it says), [`schema`] (the columns),
//! [`PartEncoder`] (rows to the bytes of a part), [`PartLayout`] (the footer of a part),
//! [`RecordBatchMetadata`] (everything of a record batch but its images), [`Index`] (where a
//! sample's bytes lie, found by reading little).

mod encode;
mod error;
mod index;
mod layout;
mod manifest;
mod record_batch;
pub mod schema;
mod stored;

pub use encode::{FinishedPart, PartEncoder, Row};
pub use error::DatasetError;
pub use index::{ENTRY_POINTS_KEPT_BYTES, Index, KeyedRows, PartBytes, SampleLocation};
pub use layout::{PartLayout, RecordBatchPlace};
pub use manifest::{
    MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest, PartEntry, Provenance, SELF_SHA256, part_name,
};
pub use record_batch::{BufferRole, EntryPointTable, EntryPoints, RecordBatchMetadata, RowTable};
pub use stored::{EntryPointSpacing, EntryPointsStored, Form, Kept, Stored};
