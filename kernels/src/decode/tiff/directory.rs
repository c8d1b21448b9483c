//! The first directory of a TIFF or BigTIFF: its tags and their values.

use super::damaged;
use crate::Error;

/// Tags that the decoder uses (TIFF 6.0, section 8 and appendix A).
pub(super) mod tag {
    pub(in super::super) const WIDTH: u16 = 256;
    pub(in super::super) const HEIGHT: u16 = 257;
    pub(in super::super) const BITS_PER_SAMPLE: u16 = 258;
    pub(in super::super) const COMPRESSION: u16 = 259;
    pub(in super::super) const PHOTOMETRIC: u16 = 262;
    pub(in super::super) const FILL_ORDER: u16 = 266;
    pub(in super::super) const STRIP_OFFSETS: u16 = 273;
    pub(in super::super) const ORIENTATION: u16 = 274;
    pub(in super::super) const SAMPLES_PER_PIXEL: u16 = 277;
    pub(in super::super) const ROWS_PER_STRIP: u16 = 278;
    pub(in super::super) const STRIP_BYTE_COUNTS: u16 = 279;
    pub(in super::super) const PLANAR_CONFIGURATION: u16 = 284;
    pub(in super::super) const T4_OPTIONS: u16 = 292;
    pub(in super::super) const PREDICTOR: u16 = 317;
    pub(in super::super) const COLOUR_MAP: u16 = 320;
    pub(in super::super) const TILE_WIDTH: u16 = 322;
    pub(in super::super) const TILE_LENGTH: u16 = 323;
    pub(in super::super) const TILE_OFFSETS: u16 = 324;
    pub(in super::super) const TILE_BYTE_COUNTS: u16 = 325;
    pub(in super::super) const EXTRA_SAMPLES: u16 = 338;
    pub(in super::super) const SAMPLE_FORMAT: u16 = 339;
    pub(in super::super) const JPEG_TABLES: u16 = 347;
    pub(in super::super) const YCBCR_SUBSAMPLING: u16 = 530;
}

/// A file and its byte order.
#[derive(Debug, Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) big_endian: bool,
}

impl<'a> File<'a> {
    /// An unsigned number of `length` bytes.
    fn number(self, at: usize, length: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(length)?)?;
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.big_endian {
            bytes.iter().fold(0, join)
        } else {
            bytes.iter().rev().fold(0, join)
        })
    }

    fn offset(self, at: usize, length: usize) -> Option<usize> {
        usize::try_from(self.number(at, length)?).ok()
    }
}

/// The values of a tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values<'a> {
    file: File<'a>,
    at: usize,
    /// Bytes of a value.
    length: usize,
    count: usize,
}

impl<'a> Values<'a> {
    /// Number of values.
    pub(super) fn count(self) -> usize {
        self.count
    }

    /// The value at an index.
    pub(super) fn get(self, index: usize) -> Option<u64> {
        if index >= self.count {
            return None;
        }
        self.file.number(self.at + index * self.length, self.length)
    }

    /// All values, in order.
    pub(super) fn iter(self) -> impl Iterator<Item = u64> + 'a {
        (0..self.count).map_while(move |index| self.get(index))
    }

    /// The raw bytes of a tag of bytes.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.file.bytes.get(self.at..self.at + self.count * self.length).unwrap_or_default()
    }
}

/// A directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directory<'a> {
    pub(super) file: File<'a>,
    is_large: bool,
    /// Offset of the entries.
    entries: usize,
    count: usize,
}

impl<'a> Directory<'a> {
    /// Finds the first directory of a file.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        let file = File { bytes, big_endian: bytes.starts_with(b"MM") };
        let is_large = file.number(2, 2) == Some(43);
        let first = if is_large { file.offset(8, 8) } else { file.offset(4, 4) };
        let (count_bytes, entry_bytes) = if is_large { (8, 20) } else { (2, 12) };
        let found = first.and_then(|first| {
            let count = file.offset(first, count_bytes)?;
            let entries = first.checked_add(count_bytes)?;
            let end = count.checked_mul(entry_bytes)?.checked_add(entries)?;
            (end <= bytes.len()).then_some(Self { file, is_large, entries, count })
        });
        found.ok_or_else(|| damaged("its first directory is not inside the file"))
    }

    /// The values of a tag, if it exists.
    pub(super) fn values(&self, tag: u16) -> Result<Option<Values<'a>>, Error> {
        let (entry_bytes, word) = if self.is_large { (20, 8) } else { (12, 4) };
        let entries = (0..self.count).map(|index| self.entries + index * entry_bytes);
        let mut found = entries.filter(|at| self.file.number(*at, 2) == Some(u64::from(tag)));
        let Some(entry) = found.next() else { return Ok(None) };
        let values = self.file.number(entry + 2, 2).and_then(|kind| {
            // BYTE and UNDEFINED, SHORT, LONG and IFD, LONG8 and IFD8, and the signed ones.
            let length = match kind {
                1 | 6 | 7 => 1,
                3 | 8 => 2,
                4 | 9 | 13 => 4,
                16..=18 => 8,
                _ => return None,
            };
            let count = self.file.offset(entry + 4, word)?;
            let bytes = count.checked_mul(length)?;
            let inline = entry + 4 + word;
            let at = if bytes <= word { inline } else { self.file.offset(inline, word)? };
            let is_inside = at.checked_add(bytes)? <= self.file.bytes.len();
            is_inside.then_some(Values { file: self.file, at, length, count })
        });
        let reason = || damaged(format_args!("tag {tag} has another type, or lies outside"));
        values.map(Some).ok_or_else(reason)
    }

    /// The first value of a tag, if it exists.
    pub(super) fn first(&self, tag: u16) -> Result<Option<u64>, Error> {
        Ok(self.values(tag)?.and_then(|values| values.get(0)))
    }
}
