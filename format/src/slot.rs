//! A prepared batch in the spool: a 4 KiB header and the payload.
//!
//! The header is written last, in one write, so a slot is visible whole or not at all; a header
//! that does not check is no header. Little-endian throughout; the layout is in docs/formats.md.

use crate::checksum::crc32c;
use crate::recipe::{Dtype, RecipeHash};
use std::fmt::Display;

/// Bytes of a header; the payload starts here.
pub const HEADER_BYTES: usize = 4096;

/// Version of the layout; another one is refused.
pub const VERSION: u32 = 1;

/// "MEETSLOT" as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"MEETSLOT");

// Where each field begins. Everything between `RESERVED_AT` and the header's checksum is zero. The
// checksum is in the last of the header's 512-byte sectors, so it covers a tear at any sector.
const MAGIC_AT: usize = 0;
const VERSION_AT: usize = 8;
const DTYPE_AT: usize = 12;
const EPOCH_AT: usize = 16;
const BATCH_AT: usize = 20;
const GENERATION_AT: usize = 24;
const PAYLOAD_CRC32C_AT: usize = 28;
const SEED_AT: usize = 32;
const PAYLOAD_BYTES_AT: usize = 40;
const RECIPE_AT: usize = 48;
const SHAPE_AT: usize = 80;
const RESERVED_AT: usize = 96;
const HEADER_CRC32C_AT: usize = HEADER_BYTES - 4;

/// What a slot says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotHeader {
    /// Epoch, from 0.
    pub epoch: u32,
    /// Batch in the epoch.
    pub batch: u32,
    /// Fence number under which it was prepared.
    pub generation: u32,
    /// Seed of the job.
    pub seed: u64,
    /// Recipe that was followed.
    pub recipe: RecipeHash,
    /// Element type.
    pub dtype: Dtype,
    /// Axes of the batch, outermost first (NHWC or NCHW).
    pub shape: [u32; 4],
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// CRC-32C of the payload.
    pub payload_crc32c: u32,
}

/// Why bytes are not the slot that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlotError {
    /// Fewer than [`HEADER_BYTES`] bytes.
    #[error("slot header cut short: {got} of {HEADER_BYTES} bytes")]
    Short {
        /// Bytes there were.
        got: usize,
    },
    /// Not a slot header.
    #[error("no slot header here (magic number {got:#018x})")]
    Magic {
        /// The first eight bytes.
        got: u64,
    },
    /// A header of another version of the format.
    #[error("slot format version {got}, this program reads {expected}")]
    Version {
        /// Version found.
        got: u32,
        /// Version understood.
        expected: u32,
    },
    /// The header's own checksum is wrong: a torn or corrupt publish.
    #[error("slot header checksum is {got:#010x}, expected {expected:#010x}: torn or corrupt")]
    HeaderChecksum {
        /// Computed.
        got: u32,
        /// Stored.
        expected: u32,
    },
    /// A field differs from what was granted.
    #[error("slot {field} is {got}, expected {expected}")]
    Field {
        /// Its name.
        field: &'static str,
        /// As found.
        got: String,
        /// As granted.
        expected: String,
    },
    /// The payload's checksum is wrong.
    #[error("slot payload checksum is {got:#010x}, expected {expected:#010x}: torn or corrupt")]
    PayloadChecksum {
        /// Computed.
        got: u32,
        /// Stored.
        expected: u32,
    },
}

impl SlotHeader {
    /// The header's bytes.
    pub fn encode(&self) -> Box<[u8; HEADER_BYTES]> {
        let mut bytes = Box::new([0; HEADER_BYTES]);
        let mut put = |at: usize, field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
        };
        put(MAGIC_AT, &MAGIC.to_le_bytes());
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(DTYPE_AT, &dtype_code(self.dtype).to_le_bytes());
        put(EPOCH_AT, &self.epoch.to_le_bytes());
        put(BATCH_AT, &self.batch.to_le_bytes());
        put(GENERATION_AT, &self.generation.to_le_bytes());
        put(PAYLOAD_CRC32C_AT, &self.payload_crc32c.to_le_bytes());
        put(SEED_AT, &self.seed.to_le_bytes());
        put(PAYLOAD_BYTES_AT, &self.payload_bytes.to_le_bytes());
        put(RECIPE_AT, &self.recipe.0);
        for (axis, length) in self.shape.iter().enumerate() {
            put(SHAPE_AT + 4 * axis, &length.to_le_bytes());
        }
        let checksum = crc32c(&bytes[..HEADER_CRC32C_AT]);
        bytes[HEADER_CRC32C_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header and checks magic, version and its own checksum. Bytes after the first
    /// [`HEADER_BYTES`] are not looked at.
    pub fn decode(bytes: &[u8]) -> Result<Self, SlotError> {
        let bytes: &[u8; HEADER_BYTES] =
            bytes.first_chunk().ok_or(SlotError::Short { got: bytes.len() })?;
        let magic = read_u64(bytes, MAGIC_AT);
        if magic != MAGIC {
            return Err(SlotError::Magic { got: magic });
        }
        let version = read_u32(bytes, VERSION_AT);
        if version != VERSION {
            return Err(SlotError::Version { got: version, expected: VERSION });
        }
        let (got, expected) =
            (crc32c(&bytes[..HEADER_CRC32C_AT]), read_u32(bytes, HEADER_CRC32C_AT));
        if got != expected {
            return Err(SlotError::HeaderChecksum { got, expected });
        }
        if bytes[RESERVED_AT..HEADER_CRC32C_AT].iter().any(|byte| *byte != 0) {
            return Err(field("reserved area", "not zero", "zero"));
        }
        let code = read_u32(bytes, DTYPE_AT);
        Ok(Self {
            epoch: read_u32(bytes, EPOCH_AT),
            batch: read_u32(bytes, BATCH_AT),
            generation: read_u32(bytes, GENERATION_AT),
            seed: read_u64(bytes, SEED_AT),
            recipe: RecipeHash(read(bytes, RECIPE_AT)),
            dtype: dtype_of(code).ok_or_else(|| field("dtype", code, "1, 2 or 3"))?,
            shape: std::array::from_fn(|axis| read_u32(bytes, SHAPE_AT + 4 * axis)),
            payload_bytes: read_u64(bytes, PAYLOAD_BYTES_AT),
            payload_crc32c: read_u32(bytes, PAYLOAD_CRC32C_AT),
        })
    }

    /// Checks every field but the payload's checksum against what was granted.
    pub fn check(&self, expected: &SlotExpectation) -> Result<(), SlotError> {
        same("epoch", self.epoch, expected.epoch)?;
        same("generation", self.generation, expected.generation)?;
        same("batch", self.batch, expected.batch)?;
        same("seed", self.seed, expected.seed)?;
        same("recipe", self.recipe, expected.recipe)?;
        same("dtype", self.dtype.name(), expected.dtype.name())?;
        if self.shape != expected.shape {
            let [got, wanted] = [self.shape, expected.shape].map(|shape| format!("{shape:?}"));
            return Err(field("shape", got, wanted));
        }
        match expected.payload_bytes() {
            Some(bytes) => same("payload_bytes", self.payload_bytes, bytes),
            None => Err(field("payload_bytes", self.payload_bytes, "less than 2^64")),
        }
    }

    /// Checks the payload against the header's length and checksum.
    pub fn check_payload(&self, payload: &[u8]) -> Result<(), SlotError> {
        same("payload_bytes", payload.len() as u64, self.payload_bytes)?;
        let got = crc32c(payload);
        if got != self.payload_crc32c {
            return Err(SlotError::PayloadChecksum { got, expected: self.payload_crc32c });
        }
        Ok(())
    }
}

/// What the host granted, against which a slot is held before it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotExpectation {
    /// Epoch.
    pub epoch: u32,
    /// Batch.
    pub batch: u32,
    /// Generation of the grant.
    pub generation: u32,
    /// Seed.
    pub seed: u64,
    /// Recipe.
    pub recipe: RecipeHash,
    /// Element type.
    pub dtype: Dtype,
    /// Axes.
    pub shape: [u32; 4],
}

impl SlotExpectation {
    /// Bytes of the payload that dtype and shape imply; `None` when 64 bits cannot hold them.
    pub fn payload_bytes(&self) -> Option<u64> {
        let element = self.dtype.bytes() as u64;
        // A zero axis makes an empty payload, however long the others are.
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(element, |bytes, axis| bytes.checked_mul(u64::from(*axis)))
    }
}

/// Bytes of a slot that holds `payload_bytes`: header and payload, rounded up to 4 KiB so that
/// every slot starts on a block; `u64::MAX`, more than any spool, where 64 bits cannot hold that.
pub fn slot_bytes(payload_bytes: u64) -> u64 {
    let block = HEADER_BYTES as u64;
    payload_bytes
        .checked_next_multiple_of(block)
        .and_then(|bytes| bytes.checked_add(block))
        .unwrap_or(u64::MAX)
}

/// The number that stands for an element type in a header.
fn dtype_code(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::Uint8 => 1,
        Dtype::Float16 => 2,
        Dtype::Float32 => 3,
    }
}

/// The inverse of [`dtype_code`].
fn dtype_of(code: u32) -> Option<Dtype> {
    match code {
        1 => Some(Dtype::Uint8),
        2 => Some(Dtype::Float16),
        3 => Some(Dtype::Float32),
        _ => None,
    }
}

fn read<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has the array's length")
}

fn read_u32(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(read(bytes, at))
}

fn read_u64(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(read(bytes, at))
}

fn same<T: PartialEq + Display>(name: &'static str, got: T, expected: T) -> Result<(), SlotError> {
    if got == expected { Ok(()) } else { Err(field(name, got, expected)) }
}

fn field(name: &'static str, got: impl Display, expected: impl Display) -> SlotError {
    SlotError::Field { field: name, got: got.to_string(), expected: expected.to_string() }
}

#[cfg(test)]
mod tests;
