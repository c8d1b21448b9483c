//! The frames of a TFRecord file: length, checksum of the length, data, checksum of the data.
//!
//! <https://www.tensorflow.org/tutorials/load_data/tfrecord>: the length is a little-endian 64-bit
//! integer; the checksums are CRC-32C, rotated right by 15 bits, plus 0xa282ead8.

use crate::Error;
use crate::over_budget::OverBudget;
use crate::source::OpenFile;
use crate::source::budget::{MemoryBudget, Reservation, ReservedBytes, over_budget};
use crate::source::rows::malformed;
use crate::source::rows::table::{open_file, too_large, unreadable};
use crate::store::StorePath;
use flate2::read::MultiGzDecoder;
use meetpoint_format::checksum::crc32c;
use std::io::{BufReader, Read};
use std::sync::Arc;

/// Longest record that is read into memory.
const RECORD_BYTES_MAX: u64 = 1 << 31;

/// A record.
#[derive(Debug)]
pub(super) struct Frame {
    /// Index in the file.
    pub(super) number: u64,
    /// Offset of the frame in the decompressed file.
    pub(super) offset: u64,
    /// Offset of the data in the file, if it is not compressed.
    pub(super) at: Option<u64>,
    /// The data.
    pub(super) bytes: Vec<u8>,
    /// The memory reserved for the data and the values parsed from it.
    pub(super) held: Reservation,
}

/// The records of a file.
pub(super) struct Frames {
    pub(super) path: StorePath,
    pub(super) name: Arc<str>,
    file: Arc<OpenFile>,
    is_plain: bool,
    reader: Box<dyn Read + Send>,
    next: u64,
    number: u64,
    bytes: u64,
    budget: MemoryBudget,
}

/// The masked checksum that TensorFlow stores.
fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Whether a file starts with the length of a record and its checksum.
pub(super) fn begins_as_one(path: &StorePath) -> Result<bool, Error> {
    let mut head = Vec::new();
    let file = path.open().map_err(|error| unreadable(path, error))?;
    file.take(12).read_to_end(&mut head).map_err(|error| unreadable(path, error))?;
    Ok(head.len() == 12 && masked(&head[..8]).to_le_bytes() == head[8..])
}

/// Whether a file is gzip.
pub(super) fn is_gzip(path: &StorePath) -> Result<bool, Error> {
    let mut head = Vec::new();
    let file = path.open().map_err(|error| unreadable(path, error))?;
    file.take(2).read_to_end(&mut head).map_err(|error| unreadable(path, error))?;
    Ok(head == [0x1f, 0x8b])
}

impl Frames {
    /// Opens a file, plain or gzip.
    pub(super) fn open(path: &StorePath, budget: &MemoryBudget) -> Result<Self, Error> {
        let is_plain = !is_gzip(path)?;
        let (file, bytes) = open_file(path)?;
        let reading = path.open().map_err(|error| unreadable(path, error))?;
        let reading = BufReader::with_capacity(1 << 20, reading);
        let reader: Box<dyn Read + Send> = match is_plain {
            true => Box::new(reading),
            false => Box::new(Inflated::new(reading, budget)),
        };
        let name = path.display().to_string().into();
        let path = path.clone();
        let budget = budget.clone();
        Ok(Self { path, name, file, is_plain, reader, next: 0, number: 0, bytes, budget })
    }

    /// The file, if it contains records unchanged.
    pub(super) fn ranges(&self) -> Option<Arc<OpenFile>> {
        self.is_plain.then(|| Arc::clone(&self.file))
    }

    /// The next record; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Error> {
        let offset = self.next;
        let (head, _) = self.read(12)?;
        let fault = |problem: String| malformed(&self.path, Some(offset), problem);
        if head.is_empty() {
            return Ok(None);
        }
        if head.len() < 12 {
            return Err(fault("is truncated within the length of a record".to_owned()));
        }
        let (length, stored) = head.split_at(8);
        check(length, stored).map_err(|text| {
            fault(format!(
                "the length of a record: {text}; the file is damaged or not a TFRecord file"
            ))
        })?;
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes were split off"));
        let left = self.bytes.saturating_sub(offset + 12);
        if length > RECORD_BYTES_MAX || (self.is_plain && length > left) {
            return Err(fault(format!(
                "a record of {length} bytes where {left} are left in the file, or more than the \
                 {RECORD_BYTES_MAX} that are read; the file is truncated or damaged"
            )));
        }
        if let Err(over) = self.budget.check_stated(length + 4, self.bytes) {
            return Err(self.too_large(over));
        }
        let (mut bytes, held) = self.read(length + 4)?;
        let fault = |problem: String| malformed(&self.path, Some(offset), problem);
        if bytes.len() as u64 != length + 4 {
            return Err(fault("is truncated within a record".to_owned()));
        }
        let stored = bytes.split_off(length as usize);
        check(&bytes, &stored).map_err(|text| {
            fault(format!("the data of record {}: {text}; the file is damaged", self.number))
        })?;
        let number = self.number;
        self.number += 1;
        self.next = offset + 12 + length + 4;
        let at = self.is_plain.then_some(offset + 12);
        Ok(Some(Frame { number, offset, at, bytes, held }))
    }

    /// The error of a record that needs more memory than the source may use.
    fn too_large(&self, over: OverBudget) -> Error {
        let record = format!("record {}", self.number);
        let offset = self.is_plain.then_some(self.next);
        too_large(&self.path, Some(record), offset, over)
    }

    /// Reads up to `count` bytes; memory grows with the bytes actually read.
    fn read(&mut self, count: u64) -> Result<(Vec<u8>, Reservation), Error> {
        let from = self.reader.as_mut();
        // The ratio is checked during decompression.
        let read = self.budget.read_to_end(from, Vec::new(), count, u64::MAX);
        read.map(ReservedBytes::split).map_err(|error| {
            use std::io::ErrorKind;
            if let Some(over) = over_budget(&error) {
                return self.too_large(over);
            }
            match error.kind() {
                ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
                    let problem = format!("gzip data that cannot be decompressed: {error}");
                    malformed(&self.path, Some(self.next), problem)
                }
                _ => unreadable(&self.path, error),
            }
        })
    }
}

/// Decompresses gzip, and fails once more comes out than the bytes read so far can hold.
struct Inflated<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    /// Bytes decompressed so far.
    position: u64,
    budget: MemoryBudget,
}

impl<R: Read> Inflated<R> {
    fn new(reader: R, budget: &MemoryBudget) -> Self {
        let decoder = MultiGzDecoder::new(Counted { reader, bytes: 0 });
        Self { decoder, position: 0, budget: budget.clone() }
    }
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let got = self.decoder.read(to)?;
        self.position += got as u64;
        self.budget.check_ratio(self.position, self.decoder.get_ref().bytes)?;
        Ok(got)
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    reader: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let got = self.reader.read(to)?;
        self.bytes += got as u64;
        Ok(got)
    }
}

fn check(bytes: &[u8], stored: &[u8]) -> Result<(), String> {
    let stored = u32::from_le_bytes(stored.try_into().expect("checksums are read as four bytes"));
    let got = masked(bytes);
    if got == stored {
        return Ok(());
    }
    Err(format!("checksum {stored:08x} is stored, the bytes give {got:08x}"))
}
