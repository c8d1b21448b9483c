//! A dataset on disk: a folder of Arrow IPC files with conventions, and `dataset.json`.
//!
//! Exactly one checksum covers every byte of a part: an image by its row's, a further column of a
//! record batch by its own in the footer, the rest of a record batch by that batch's in the footer,
//! the footer by the manifest's, the manifest by its own.
//!
//! In reading order: [`Manifest`] (the content of `dataset.json`), [`Stored`] (the form of the
//! images), [`Prepared`] (which operations were executed before), [`schema`] (names and limits),
//! [`Columns`] (the columns of samples), [`PartEncoder`] (encodes rows as a part), [`PartLayout`]
//! (the footer of a part), [`RecordBatchMetadata`] (a record batch without its images and further
//! columns), [`ExtraTable`] (offsets and values of further columns), [`Index`] (locates a sample's
//! bytes with few reads), [`ContentLocation`] (content that stays in other files),
//! [`DatasetExtents`] (where on a block device the files are).

mod batch_reader;
mod columns;
mod encode;
mod encode_extra;
mod error;
mod extents;
mod extra;
mod footers;
mod in_place;
mod index;
mod layout;
mod manifest;
mod message;
mod part_bytes;
mod part_schema;
mod prepared;
mod record_batch;
mod row;
pub mod schema;
mod stored;

pub use columns::{ColumnEntry, Columns, ContentEntry, ContentKind, labels_of};
pub use encode::{FinishedPart, PartEncoder};
pub use error::DatasetError;
pub use extents::{
    DatasetExtents, EXTENTS_BYTES_MAX, EXTENTS_FORMAT, EXTENTS_VERSION, ExtentDevice, ExtentsError,
    FileExtent, FileExtents,
};
pub use extra::{ExtraBytes, ExtraTable};
pub use in_place::{ContentFile, ContentLocation, PLACE_COLUMN, ROOT_KEY, locates_content};
pub use index::{ENTRY_POINTS_BYTES_MAX, Index, KeyedRows, SampleLocation};
pub use layout::{PartLayout, RecordBatchExtent};
pub use manifest::{
    MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest, PartEntry, Provenance, SELF_SHA256, part_name,
};
pub use part_bytes::PartBytes;
pub use prepared::{Codec, Prepared, PreparedError, decode_sample, encode_sample};
pub use record_batch::{BufferRole, EntryPointTable, EntryPoints, RecordBatchMetadata, RowTable};
pub use row::Row;
pub use stored::{
    EntryPointSpacing, EntryPointsStored, Form, NotConverted, RestartMarkersStored, Stored,
};
