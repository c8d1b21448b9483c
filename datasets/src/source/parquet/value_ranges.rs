//! Locates the values of a column in the file, for columns that are neither compressed nor encoded.
//!
//! In a page with PLAIN encoding each byte array is its length (four bytes, little-endian) and its
//! bytes ("Encodings" of the Parquet specification), so such a value is a range of the file.
//! Nothing is read twice: the pages are examined before the decoder gets them.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// First byte and length of a value in the file.
pub(super) type ByteRange = (u64, u64);

/// Ranges of the values of one column that were passed to the decoder and not yet requested.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueRanges {
    found: Arc<Mutex<KnownRanges>>,
}

#[derive(Debug, Default)]
struct KnownRanges {
    /// Ranges of the values that are not null, in order.
    places: VecDeque<ByteRange>,
    /// A page of the row group is encoded, so the file does not contain its values unchanged.
    is_lost: bool,
}

impl ValueRanges {
    /// Starts another row group.
    pub(super) fn clear(&self) {
        *self.lock() = KnownRanges::default();
    }

    /// Reports that the file does not contain the last value unchanged.
    pub(super) fn lose(&self) {
        self.lock().is_lost = true;
    }

    /// The range of the next value; `None` if it is unknown, or its length is not `bytes`.
    pub(super) fn next(&self, bytes: u64) -> Option<ByteRange> {
        let mut found = self.lock();
        let place = found.places.pop_front();
        place.filter(|(_, length)| !found.is_lost && *length == bytes)
    }

    fn lock(&self) -> MutexGuard<'_, KnownRanges> {
        self.found.lock().expect("no thread panics while holding the lock")
    }
}

/// A file that records the position of its last read.
pub(super) struct PositionRecorder {
    file: Arc<File>,
    /// The position after the last requested byte.
    end: Arc<AtomicU64>,
}

impl Length for PositionRecorder {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for PositionRecorder {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.end.store(start + length as u64, Ordering::Relaxed);
        self.file.get_bytes(start, length)
    }
}

/// Reads the pages of a column chunk and examines them.
pub(super) struct PageLocator {
    inner: SerializedPageReader<PositionRecorder>,
    end: Arc<AtomicU64>,
    places: ValueRanges,
    has_nulls: bool,
}

impl PageLocator {
    /// Opens a chunk of `rows` rows; `None` if it is compressed, nested in lists, or does not
    /// contain byte arrays.
    pub(super) fn open(
        file: &Arc<File>,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        places: &ValueRanges,
    ) -> Result<Option<Self>> {
        let column = chunk.column_descr();
        let is_plain = chunk.compression() == Compression::UNCOMPRESSED
            && column.physical_type() == Type::BYTE_ARRAY
            && column.max_rep_level() == 0;
        if !is_plain {
            return Ok(None);
        }
        let end = Arc::new(AtomicU64::new(0));
        let recorder = PositionRecorder { file: Arc::clone(file), end: Arc::clone(&end) };
        let inner = SerializedPageReader::new(Arc::new(recorder), chunk, rows, None)?;
        let has_nulls = column.max_def_level() > 0;
        Ok(Some(Self { inner, end, places: places.clone(), has_nulls }))
    }

    /// Records the ranges of a page's values.
    fn note(&self, page: &Page) {
        let (buffer, encoding, values) = match page {
            Page::DataPage { buf, encoding, def_level_encoding, .. } => {
                // The levels precede the values, and their length precedes the levels.
                let levels = match self.has_nulls {
                    false => Some(0),
                    true if *def_level_encoding == Encoding::RLE => word(buf, 0).map(|n| n + 4),
                    true => None,
                };
                (buf, encoding, levels)
            }
            Page::DataPageV2 {
                buf, encoding, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                (buf, encoding, Some(levels))
            }
            Page::DictionaryPage { .. } => return self.places.lose(),
        };
        let start = self.end.load(Ordering::Relaxed).checked_sub(buffer.len() as u64);
        let places = match (start, values) {
            (Some(start), Some(values)) if *encoding == Encoding::PLAIN => {
                places_of(buffer, start, values)
            }
            _ => None,
        };
        match places {
            Some(places) => self.places.lock().places.extend(places),
            None => self.places.lose(),
        }
    }
}

/// The ranges in the file of `values` values, for the bytes `page` at offset `start` of the file;
/// `None` if the values do not end with these bytes.
fn places_of(page: &[u8], start: u64, values: u64) -> Option<Vec<ByteRange>> {
    let mut places = Vec::new();
    let mut at = values;
    while at < page.len() as u64 {
        let length = word(page, at)?;
        places.push((start + at + 4, length));
        at += 4 + length;
    }
    (at == page.len() as u64).then_some(places)
}

/// Four bytes as a number.
fn word(page: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = page.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().expect("four bytes were taken")).into())
}

impl Iterator for PageLocator {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for PageLocator {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.iter().for_each(|page| self.note(page));
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.places.lose();
        self.inner.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::places_of;

    #[test]
    fn values_of_a_page_follow_their_lengths() {
        let page = b"??\x02\0\0\0ab\0\0\0\0\x01\0\0\0c";
        let places = places_of(page, 1000, 2).unwrap();
        assert_eq!(places, [(1006, 2), (1012, 0), (1016, 1)]);
        assert_eq!(places_of(&page[..page.len() - 1], 0, 2), None);
        assert_eq!(places_of(b"\xff\xff\xff\xff", 0, 0), None);
        assert_eq!(places_of(b"", 0, 0), Some(Vec::new()));
        assert_eq!(places_of(b"abc", 0, 9), None);
    }
}
