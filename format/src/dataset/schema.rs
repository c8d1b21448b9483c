//! Names and types of the columns of a part, and the limits that readers may rely on.

/// Value of `format` in the manifest and of [`FORMAT_KEY`] in the schema.
pub const FORMAT: &str = "meetpoint-dataset";
/// Version of these conventions: the only one that is written and read.
pub const VERSION: u32 = 3;
/// Key of the schema's metadata that holds [`FORMAT`].
pub const FORMAT_KEY: &str = "meetpoint.format";
/// Key of the schema's metadata that holds [`VERSION`] in decimal.
pub const VERSION_KEY: &str = "meetpoint.version";
/// Key of a column's metadata that says what the column is: `image`, `audio`, `text`, `mask`,
/// `boxes`, `label`, `array`, …
pub const KIND_KEY: &str = "meetpoint.kind";
/// Key of a column's metadata that names its integers: a JSON list of strings.
pub const LABELS_KEY: &str = "meetpoint.labels";

/// Key of the content's metadata that says which operations of a recipe were executed before: JSON
/// with the members of [`Prepared`](super::Prepared).
pub const PREPARED_KEY: &str = "meetpoint.prepared";

/// Relative path of the source file, `/`-separated, UTF-8. Unique in a dataset. (`Utf8`)
pub const KEY: &str = "key";
/// The encoded image: a file, or the coefficient form of a JPEG. Content that is not an image has
/// another name. (`LargeBinary`)
pub const IMAGE: &str = "image";
/// Index into the manifest's labels; null in a flat dataset. (`Int32`)
pub const LABEL: &str = "label";
/// CRC-32C of the image's bytes. (`UInt32`)
pub const CRC32C: &str = "crc32c";
/// Entry points, at which decoding the JPEG in [`IMAGE`] can start; null if there are none.
/// (`Binary`)
pub const ENTRY_POINTS: &str = "entry_points";

/// Maximum number of rows that a writer puts into a record batch: one read of metadata indexes
/// them.
pub const ROWS_PER_RECORD_BATCH: usize = 256;
/// Maximum number of rows of a record batch that a reader accepts.
pub const ROWS_PER_RECORD_BATCH_MAX: u32 = 1 << 16;
/// Bytes of content, entry points and further columns after which a writer begins the next record
/// batch (one row may have more).
pub const RECORD_BATCH_BYTES: u64 = 32 << 20;
/// Longest image in bytes.
pub const IMAGE_BYTES_MAX: u64 = 1 << 28;
/// Maximum bytes of entry points of a row.
pub const ENTRY_POINTS_BYTES_MAX: u64 = 1 << 20;
/// Maximum bytes of the further columns of a row.
pub const EXTRA_BYTES_MAX: u64 = 1 << 28;
/// Maximum number of columns besides those of every dataset.
pub const EXTRA_COLUMNS_MAX: usize = 256;
/// Deepest nesting of a column's type.
pub const NESTING_MAX: usize = 16;
/// Longest key in bytes.
pub const KEY_BYTES_MAX: usize = 4096;
/// Alignment in bytes of messages and buffers, relative to the file and to the body.
pub const ALIGNMENT: u64 = 64;
