//! Content in place: a column names the file and the position of each sample's content.
//!
//! The last column of such a dataset is [`PLACE_COLUMN`], a struct of five: `path` of the file
//! relative to the root (`Utf8`), `offset` and `bytes` of the content in it (`UInt64`), and the
//! state of the file when it was indexed: `file_bytes` (`UInt64`) and `modified_ns`, its
//! modification time in nanoseconds since 1970 (`Int64`). The metadata of the field contains the
//! root. The content column is then empty; `crc32c` is the checksum of the bytes in the file.

use super::Columns;
use super::schema::{IMAGE_BYTES_MAX, KEY_BYTES_MAX, KIND_KEY};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, StringArray, StructArray, UInt64Array};
use arrow_schema::{DataType, Field, Fields, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the column, and the value of its field's [`KIND_KEY`] metadata.
pub const PLACE_COLUMN: &str = "content_place";
/// Key of the field's metadata: the absolute path of the folder that paths are relative to.
pub const ROOT_KEY: &str = "meetpoint.root";

/// A file that contains samples, in its state when it was indexed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContentFile {
    /// Path relative to the root, `/`-separated.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// The location of the content of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentLocation {
    /// File.
    pub file: ContentFile,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

impl ContentLocation {
    /// The element of [`PLACE_COLUMN`] for it.
    pub fn to_array(&self) -> ArrayRef {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![self.file.path.as_str()])),
            Arc::new(UInt64Array::from(vec![self.offset])),
            Arc::new(UInt64Array::from(vec![self.bytes])),
            Arc::new(UInt64Array::from(vec![self.file.bytes])),
            Arc::new(Int64Array::from(vec![self.file.modified_ns])),
        ];
        Arc::new(StructArray::new(place_fields(), columns, None))
    }
}

/// Whether a further column contains the locations of content.
pub fn locates_content(field: &Field) -> bool {
    field.metadata().get(KIND_KEY).is_some_and(|kind| kind == PLACE_COLUMN)
}

fn place_fields() -> Fields {
    Fields::from(vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("offset", DataType::UInt64, false),
        Field::new("bytes", DataType::UInt64, false),
        Field::new("file_bytes", DataType::UInt64, false),
        Field::new("modified_ns", DataType::Int64, false),
    ])
}

impl Columns {
    /// The same columns for a dataset whose content stays in files below `root`.
    pub fn in_place(&self, root: &str) -> Self {
        let metadata = BTreeMap::from([
            (KIND_KEY.to_owned(), PLACE_COLUMN.to_owned()),
            (ROOT_KEY.to_owned(), root.to_owned()),
        ]);
        let place = Field::new(PLACE_COLUMN, DataType::Struct(place_fields()), false);
        let mut fields = self.extra.fields().to_vec();
        fields.push(Arc::new(place.with_metadata(metadata)));
        Self { extra: Arc::new(Schema::new(fields)), ..self.clone() }
    }

    /// The folder below which the content stays; `None` if it is in the parts.
    pub fn root(&self) -> Option<&str> {
        let last = self.extra.fields().last()?;
        let is_place = last.name() == PLACE_COLUMN
            && locates_content(last)
            && !last.is_nullable()
            && *last.data_type() == DataType::Struct(place_fields());
        last.metadata().get(ROOT_KEY).filter(|_| is_place).map(String::as_str)
    }

    /// The columns without the one that locates content in place.
    pub fn without_place(&self) -> Self {
        let mut fields = self.extra.fields().to_vec();
        if self.root().is_some() {
            fields.pop();
        }
        Self { extra: Arc::new(Schema::new(fields)), ..self.clone() }
    }
}

/// Locations of the content of a record batch's rows: about 20 bytes per row, and for each file its
/// path and 20 bytes.
#[derive(Debug)]
pub(super) struct LocationTable {
    /// End of the path in `paths`, length, modification time.
    files: Vec<(usize, u64, i64)>,
    paths: String,
    /// Index of the file, offset, bytes.
    rows: Vec<(u32, u64, u32)>,
}

impl LocationTable {
    /// Parses the column; the error says which row is wrong and why.
    pub(super) fn parse(column: &ArrayRef, longest: u64) -> Result<Self, String> {
        let column = column.as_struct();
        let paths = column.column(0).as_string::<i32>();
        let unsigned = |index: usize| column.column(index).as_primitive::<UInt64Type>();
        let (offsets, lengths, file_lengths) = (unsigned(1), unsigned(2), unsigned(3));
        let modified = column.column(4).as_primitive::<Int64Type>();
        let mut table = Self { files: Vec::new(), paths: String::new(), rows: Vec::new() };
        let mut last: Option<(&str, u64, i64)> = None;
        for row in 0..column.len() {
            let file = (paths.value(row), file_lengths.value(row), modified.value(row));
            let (offset, bytes) = (offsets.value(row), lengths.value(row));
            if last != Some(file) {
                if !stays_below(file.0) {
                    return Err(format!(
                        "row {row} of the batch: path {:?} leaves the root",
                        file.0
                    ));
                }
                table.paths.push_str(file.0);
                table.files.push((table.paths.len(), file.1, file.2));
                last = Some(file);
            }
            let fits = offset.checked_add(bytes).is_some_and(|end| end <= file.1);
            let bytes = u32::try_from(bytes).ok().filter(|_| fits && bytes <= longest);
            let Some(bytes) = bytes else {
                let (bytes, of) = (lengths.value(row), file.1);
                return Err(format!(
                    "row {row} of the batch: {bytes} bytes at byte {offset} of a file of {of}, \
                     dataset.json says at most {longest}"
                ));
            };
            let index = u32::try_from(table.files.len() - 1).expect("at most 65,536 rows");
            table.rows.push((index, offset, bytes));
        }
        debug_assert!(longest <= IMAGE_BYTES_MAX);
        Ok(table)
    }

    /// The location of the content of a row.
    pub(super) fn row(&self, row: usize) -> ContentLocation {
        let (index, offset, bytes) = self.rows[row];
        let index = index as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.files[before].0);
        let (end, file_bytes, modified_ns) = self.files[index];
        let path = self.paths[start..end].to_owned();
        let file = ContentFile { path, bytes: file_bytes, modified_ns };
        ContentLocation { file, offset, bytes: u64::from(bytes) }
    }
}

/// Whether a path stays below the folder that it is relative to.
fn stays_below(path: &str) -> bool {
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    path.len() <= KEY_BYTES_MAX && !path.contains('\0') && path.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, offset: u64, bytes: u64, of: u64) -> ContentLocation {
        let file = ContentFile { path: path.to_owned(), bytes: of, modified_ns: -5 };
        ContentLocation { file, offset, bytes }
    }

    fn table(places: &[ContentLocation], longest: u64) -> Result<LocationTable, String> {
        let arrays: Vec<ArrayRef> = places.iter().map(ContentLocation::to_array).collect();
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        let indices: Vec<_> = (0..arrays.len()).map(|index| (index, 0)).collect();
        LocationTable::parse(
            &arrow_select::interleave::interleave(&arrays, &indices).unwrap(),
            longest,
        )
    }

    #[test]
    fn content_locations_round_trip_and_files_are_stored_once() {
        let places = [place("a/x.tar", 0, 5, 20), place("a/x.tar", 5, 15, 20), place("b", 0, 1, 1)];
        let table = table(&places, 15).unwrap();
        assert_eq!(table.files.len(), 2);
        for (row, place) in places.iter().enumerate() {
            assert_eq!(table.row(row), *place);
        }
    }

    #[test]
    fn locations_outside_of_file_limit_or_root_are_refused() {
        for (wrong, words) in [
            (place("a", 16, 5, 20), "5 bytes at byte 16"),
            (place("a", u64::MAX, 5, 20), "of a file of 20"),
            (place("a", 0, 16, 20), "at most 15"),
            (place("../a", 0, 1, 1), "leaves the root"),
            (place("/a", 0, 1, 1), "leaves the root"),
            (place("a//b", 0, 1, 1), "leaves the root"),
            (place("a/./b", 0, 1, 1), "leaves the root"),
            (place("", 0, 1, 1), "leaves the root"),
        ] {
            let problem = table(&[place("a", 0, 1, 1), wrong], 15).unwrap_err();
            assert!(problem.contains("row 1") && problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn the_root_is_that_of_the_column() {
        let columns = Columns::images();
        assert_eq!(columns.root(), None);
        let there = columns.in_place("/data/photos");
        assert_eq!(there.root(), Some("/data/photos"));
        assert!(there.check().is_ok());
        assert_eq!(there.without_place(), columns);
        assert_eq!(columns.without_place(), columns);
    }
}
