//! The Bloom filter of keys in a datadings dataset, as simplebloom 1.1 writes it.
//!
//! A header of 32 bytes (`SIMPBLOO`, total bytes, elements, false positive probability;
//! big-endian), then the bits.

/// First bytes of a filter.
const MAGIC: &[u8; 8] = b"SIMPBLOO";
/// Bytes of the header.
const HEADER_BYTES: usize = 32;

/// A filter that is being filled.
#[derive(Debug)]
pub(super) struct Bloom {
    bytes: Vec<u8>,
    bits: u64,
    hashes: u64,
}

impl Bloom {
    /// An empty filter for `keys` keys, with a false positive probability of one in `keys`.
    pub(super) fn new(keys: u64) -> Self {
        let keys = keys.max(2);
        // The same operations in the same order as in simplebloom, so that rounding agrees.
        let count = keys as f64;
        let probability = 1.0 / count;
        let bits = count * probability.ln() / -0.480_453_013_918_201_5;
        let bits = ((bits / 8.0).ceil() * 8.0) as u64;
        let hashes = (bits as f64 / count * std::f64::consts::LN_2).round_ties_even() as u64;
        let bits_bytes = usize::try_from(bits / 8).expect("some 10 bytes a key fit in memory");
        let mut bytes = Vec::with_capacity(HEADER_BYTES + bits_bytes);
        bytes.extend(MAGIC);
        bytes.extend(((HEADER_BYTES + bits_bytes) as u64).to_be_bytes());
        bytes.extend(keys.to_be_bytes());
        bytes.extend(probability.to_be_bytes());
        bytes.resize(HEADER_BYTES + bits_bytes, 0);
        Self { bytes, bits, hashes }
    }

    /// Adds a key by the first two words of its hash.
    pub(super) fn add(&mut self, first: u64, second: u64) {
        for number in 0..self.hashes {
            let bit = first.wrapping_add(number.wrapping_mul(second)) % self.bits;
            self.bytes[HEADER_BYTES + (bit / 8) as usize] |= 1 << (bit % 8);
        }
    }

    /// The file.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
