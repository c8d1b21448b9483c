//! Decompresses pages with memory that grows with the actual data.
//!
//! The `parquet` crate allocates as much memory as a page claims, up to 2 GiB, and needs a C
//! library for Zstandard. So pages are passed to it as if they were uncompressed, returned
//! unchanged, and decompressed here. LZ4, whose blocks do not record their length, is left to the
//! crate.

use super::value_ranges::{PageLocator, ValueRanges};
use crate::source::OverBudget;
use crate::source::budget::{MemoryBudget, Reservation, ReservedBytes, over_budget};
use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Maximum length of a page, whose header stores it in 31 bits.
const PAGE_BYTES_MAX: u64 = i32::MAX as u64;

/// One row group of a file.
pub(super) struct RowGroup<'a> {
    pub(super) file: Arc<File>,
    pub(super) metadata: &'a ParquetMetaData,
    pub(super) index: usize,
    /// The leaf column whose values are located in the file.
    pub(super) placed: Option<(usize, &'a ValueRanges)>,
    /// The budget for decompressed pages.
    pub(super) budget: &'a MemoryBudget,
}

impl RowGroup<'_> {
    fn group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.index)
    }
}

impl RowGroups for RowGroup<'_> {
    fn num_rows(&self) -> usize {
        usize::try_from(self.group().num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let chunk = self.group().column(column);
        let rows = self.num_rows();
        let open = |chunk: &ColumnChunkMetaData| {
            SerializedPageReader::new(Arc::clone(&self.file), chunk, rows, None)
        };
        if let Some((_, places)) = self.placed.filter(|(leaf, _)| *leaf == column) {
            places.clear();
            match PageLocator::open(&self.file, chunk, rows, places)? {
                Some(reader) => return Ok(Box::new(OneChunk { reader: Some(Box::new(reader)) })),
                None => places.lose(),
            }
        }
        let codec = chunk.compression();
        let inner = if is_unfolded_here(codec) {
            let plain = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED);
            open(&plain.build()?)?
        } else {
            open(chunk)?
        };
        let reader: Box<dyn PageReader> = match codec {
            Compression::UNCOMPRESSED => Box::new(inner),
            _ => Box::new(PageDecompressor { codec, inner, budget: self.budget.clone() }),
        };
        Ok(Box::new(OneChunk { reader: Some(reader) }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

struct OneChunk {
    reader: Option<Box<dyn PageReader>>,
}

impl Iterator for OneChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reader.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}

/// Decompresses pages as they are read, here or in `inner`.
struct PageDecompressor {
    codec: Compression,
    inner: SerializedPageReader<File>,
    budget: MemoryBudget,
}

impl PageDecompressor {
    fn unfold(&self, page: Page) -> Result<Page> {
        let unfolded = |buf: &Bytes, levels| unfolded(self.codec, buf, levels, &self.budget);
        Ok(match page {
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => Page::DataPage {
                buf: unfolded(&buf, 0)?,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            },
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                Page::DictionaryPage { buf: unfolded(&buf, 0)?, num_values, encoding, is_sorted }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } if is_compressed || !is_unfolded_here(self.codec) => Page::DataPageV2 {
                // The levels before the values are not compressed.
                buf: unfolded(
                    &buf,
                    u64::from(def_levels_byte_len) + u64::from(rep_levels_byte_len),
                )?,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed: false,
                statistics,
            },
            page => page,
        })
    }
}

fn is_unfolded_here(codec: Compression) -> bool {
    use Compression::{BROTLI, GZIP, SNAPPY, ZSTD};
    matches!(codec, SNAPPY | GZIP(_) | BROTLI(_) | ZSTD(_))
}

/// The decompressed bytes of a page, of which the first `levels` are stored uncompressed. Their
/// memory is released to the budget when the last reference to them is dropped.
fn unfolded(
    codec: Compression,
    buffer: &Bytes,
    levels: u64,
    budget: &MemoryBudget,
) -> Result<Bytes> {
    let fault = |text: String| ParquetError::General(text);
    let over = |over: OverBudget| ParquetError::External(Box::new(over));
    if !is_unfolded_here(codec) {
        let held = budget.hold(buffer.len() as u64).map_err(over)?;
        return Ok(Bytes::from_owner(HeldPage { page: buffer.clone(), _held: held }));
    }
    let levels = usize::try_from(levels).ok().filter(|levels| *levels <= buffer.len());
    let levels = levels.ok_or_else(|| fault("levels longer than their page".to_owned()))?;
    let mut bytes = buffer[..levels].to_vec();
    let folded = &buffer[levels..];
    if folded.is_empty() {
        return Ok(Bytes::from(bytes));
    }
    if codec == Compression::SNAPPY {
        let claimed = snap::raw::decompress_len(folded).unwrap_or(usize::MAX);
        // A copy of 64 bytes takes at least two.
        if claimed / 64 > folded.len() {
            return Err(fault("a Snappy block that claims an impossible length".to_owned()));
        }
        let held = budget.hold((levels + claimed) as u64).map_err(over)?;
        bytes.resize(levels + claimed, 0);
        let plain = snap::raw::Decoder::new().decompress(folded, &mut bytes[levels..]);
        let plain = plain.map_err(|error| fault(format!("a page: {error}")))?;
        bytes.truncate(levels + plain);
        return Ok(Bytes::from_owner(ReservedBytes::new(bytes, held)));
    }
    let limit = PAGE_BYTES_MAX + 1;
    let mut read = |from: &mut dyn Read| {
        budget.read_to_end(from, std::mem::take(&mut bytes), limit, folded.len() as u64)
    };
    let plain = match codec {
        Compression::GZIP(_) => read(&mut flate2::read::MultiGzDecoder::new(folded)),
        Compression::BROTLI(_) => read(&mut brotli::Decompressor::new(folded, 1 << 16)),
        _ => {
            let mut decoder = ruzstd::decoding::StreamingDecoder::new(folded)
                .map_err(|error| fault(format!("a page that is not a Zstandard frame: {error}")))?;
            read(&mut decoder)
        }
    };
    let plain = plain.map_err(|error| match over_budget(&error) {
        Some(refused) => over(refused),
        None => fault(format!("a page that cannot be decompressed: {error}")),
    })?;
    if plain.bytes.len() as u64 > PAGE_BYTES_MAX {
        return Err(fault(format!("a page of more than {PAGE_BYTES_MAX} bytes")));
    }
    Ok(Bytes::from_owner(plain))
}

/// A page that the `parquet` crate decompressed.
struct HeldPage {
    page: Bytes,
    _held: Reservation,
}

impl AsRef<[u8]> for HeldPage {
    fn as_ref(&self) -> &[u8] {
        &self.page
    }
}

impl Iterator for PageDecompressor {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for PageDecompressor {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.map(|page| self.unfold(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}
