//! Detects duplicate keys, in 19 to 39 bytes per sample.
//!
//! For each key, 128 bits of a randomly keyed hash are stored. Among a billion keys, two share a
//! hash with a probability of 2^-69; the second pass over the source, which finds both locations,
//! would detect that too.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// The keys inserted so far.
#[derive(Default)]
pub(crate) struct KeySet {
    seen: HashSet<u128, BuildHasherDefault<IdentityHasher>>,
    high: RandomState,
    low: RandomState,
}

impl KeySet {
    /// Adds a key; `false` if it was already present.
    pub(crate) fn insert(&mut self, key: &str) -> bool {
        let high = u128::from(self.high.hash_one(key));
        self.seen.insert(high << 64 | u128::from(self.low.hash_one(key)))
    }
}

/// A hasher that returns the lower half of the stored hash.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, hash: u128) {
        let bytes = hash.to_le_bytes();
        self.0 = bytes.iter().take(8).rev().fold(0, |low, byte| low << 8 | u64::from(*byte));
    }
}

#[cfg(test)]
mod tests {
    use super::KeySet;

    #[test]
    fn only_a_key_that_occurred_is_reported() {
        let mut keys = KeySet::default();
        assert!((0..10_000).all(|index| keys.insert(&format!("key {index}"))));
        assert!((0..10_000).all(|index| !keys.insert(&format!("key {index}"))));
        assert!(keys.insert("") && !keys.insert(""));
    }
}
