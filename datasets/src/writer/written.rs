//! The parts and rows that a writer wrote, and the hashes of files.

use meetpoint_format::checksum::hexadecimal;
use meetpoint_format::dataset::{PartEntry, Row};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
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

/// Rows, counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowCounts {
    pub(crate) samples: u64,
    pub(crate) image_bytes: u64,
    pub(crate) image_bytes_max: u64,
    /// Samples with entry points.
    pub(crate) entry_points: u64,
    pub(crate) entry_points_bytes: u64,
}

impl RowCounts {
    /// Of one row.
    pub(super) fn of(row: &Row) -> Self {
        let image_bytes = row.image.len() as u64;
        let entry_points = row.entry_points.as_ref().map(|found| found.len() as u64);
        Self {
            samples: 1,
            image_bytes,
            image_bytes_max: image_bytes,
            entry_points: u64::from(entry_points.is_some()),
            entry_points_bytes: entry_points.unwrap_or(0),
        }
    }

    /// Counts other rows too.
    pub(crate) fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.image_bytes += other.image_bytes;
        self.image_bytes_max = self.image_bytes_max.max(other.image_bytes_max);
        self.entry_points += other.entry_points;
        self.entry_points_bytes += other.entry_points_bytes;
    }
}

/// The SHA-256 of everything in a file.
pub(crate) fn sha256_of(file: &mut File) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}
