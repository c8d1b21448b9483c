//! The parts and rows that a writer wrote, and the hashes of files.

use meetpoint_format::dataset::PartEntry;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;

/// Bytes of a part per read.
const READ_BUFFER_BYTES: usize = 1 << 20;

/// The written parts.
#[derive(Debug, Default)]
pub(super) struct WrittenParts {
    pub(super) entries: Vec<PartEntry>,
    pub(super) rows: RowCounts,
}

/// Counts of rows.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct RowCounts {
    pub(super) samples: u64,
    pub(super) image_bytes: u64,
    pub(super) image_bytes_max: u64,
    /// Number of samples with entry points.
    pub(super) entry_points: u64,
    pub(super) entry_points_bytes: u64,
}

/// The SHA-256 of a whole file.
pub(super) fn sha256_of(file: &mut File) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string never fails");
        text
    })
}
