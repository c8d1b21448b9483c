//! A file as ranges of a block device, in the order of its bytes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A range of a block device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRange {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

impl DeviceRange {
    /// The byte after the last one; `None` if it is no offset.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }
}

/// Files by the names under which an engine opens them.
pub type ExtentFiles = HashMap<PathBuf, Arc<ExtentFile>>;

/// A file that consists of ranges of a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtentFile {
    /// The block device, an image of one, or the character device of an NVMe namespace.
    block: PathBuf,
    ranges: Vec<DeviceRange>,
    /// Where in the file each range begins.
    starts: Vec<u64>,
    bytes: u64,
}

/// A part of a read, in one range of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where on the device it begins.
    pub(super) offset: u64,
    /// Its length.
    pub(super) bytes: usize,
}

impl ExtentFile {
    /// A file of these ranges of `block`, one after the other. `None` if a range is empty, or ends
    /// beyond 2^64.
    pub fn new(block: PathBuf, ranges: Vec<DeviceRange>) -> Option<Self> {
        let (mut starts, mut bytes) = (Vec::with_capacity(ranges.len()), 0_u64);
        for range in &ranges {
            starts.push(bytes);
            range.end().filter(|_| range.bytes > 0)?;
            bytes = bytes.checked_add(range.bytes)?;
        }
        Some(Self { block, ranges, starts, bytes })
    }

    /// The block device.
    pub fn block(&self) -> &PathBuf {
        &self.block
    }

    /// Length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The ranges, in the order of the file.
    pub fn ranges(&self) -> &[DeviceRange] {
        &self.ranges
    }

    /// The ranges of the device that hold a range of the file, in order. Bytes after the end of the
    /// file are left out.
    pub fn device_ranges(&self, offset: u64, bytes: usize) -> Vec<DeviceRange> {
        let pieces = self.pieces(offset, bytes).into_iter();
        pieces.map(|it| DeviceRange { offset: it.offset, bytes: it.bytes as u64 }).collect()
    }

    /// The pieces of a range of the file, in order. Bytes after the end of the file are left out:
    /// no piece has a byte outside of the ranges.
    pub(super) fn pieces(&self, offset: u64, bytes: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let end = offset.saturating_add(bytes as u64).min(self.bytes);
        let mut at = offset;
        let mut index = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        while at < end {
            let (range, inside) = (self.ranges[index], at - self.starts[index]);
            let taken = (range.bytes - inside).min(end - at);
            let bytes = usize::try_from(taken).expect("at most the bytes that were requested");
            pieces.push(Piece { offset: range.offset + inside, bytes });
            at += taken;
            index += 1;
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(ranges: &[(u64, u64)]) -> Option<ExtentFile> {
        let ranges = ranges.iter().map(|&(offset, bytes)| DeviceRange { offset, bytes }).collect();
        ExtentFile::new("/dev/x".into(), ranges)
    }

    #[test]
    fn a_read_is_divided_where_the_ranges_are() {
        let file = file(&[(1000, 10), (50, 5), (2000, 100)]).unwrap();
        let pieces = |offset, bytes| {
            let pieces = file.pieces(offset, bytes).into_iter();
            pieces.map(|piece| (piece.offset, piece.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(file.bytes(), 115);
        assert_eq!(pieces(0, 10), [(1000, 10)]);
        assert_eq!(pieces(9, 7), [(1009, 1), (50, 5), (2000, 1)]);
        assert_eq!(pieces(10, 5), [(50, 5)]);
        assert_eq!(pieces(15, 0), []);
    }

    #[test]
    fn no_byte_after_the_end_is_read() {
        let file = file(&[(1000, 10), (50, 5)]).unwrap();
        assert_eq!(file.pieces(12, 100), [Piece { offset: 52, bytes: 3 }]);
        assert!(file.pieces(15, 1).is_empty());
        assert!(file.pieces(u64::MAX, usize::MAX).is_empty());
    }

    #[test]
    fn empty_ranges_and_those_without_an_end_are_refused() {
        assert!(file(&[(1, 0)]).is_none());
        assert!(file(&[(u64::MAX, 1)]).is_none());
        assert!(file(&[(0, u64::MAX), (0, 1)]).is_none());
        assert_eq!(file(&[]).unwrap().bytes(), 0);
    }
}
