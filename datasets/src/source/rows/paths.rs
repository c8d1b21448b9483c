//! Whether the paths beside the content can be keys: every row has one, and all are different.

use super::row_source::bytes_at;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Hashes of the paths seen so far, 8 bytes each.
pub(crate) struct Paths {
    hasher: RandomState,
    seen: HashSet<u64>,
    is_sound: bool,
}

impl Default for Paths {
    fn default() -> Self {
        Self { hasher: RandomState::new(), seen: HashSet::new(), is_sound: true }
    }
}

impl Paths {
    /// Adds a column of paths; `false` if one is null, too long for a key or repeated.
    pub(crate) fn add(&mut self, paths: &ArrayRef) -> bool {
        let is_text =
            |array: &ArrayRef| matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8);
        self.is_sound = self.is_sound && is_text(paths);
        for row in 0..paths.len() {
            if !self.is_sound {
                break;
            }
            let path = if paths.is_valid(row) { bytes_at(paths, row) } else { None };
            self.is_sound = path.is_some_and(|path| {
                (1..=4096).contains(&path.len()) && self.seen.insert(self.hasher.hash_one(path))
            });
        }
        self.is_sound
    }

    /// Whether each path can be a key, and there is at least one.
    pub(crate) fn are_unique(&self) -> bool {
        self.is_sound && !self.seen.is_empty()
    }
}
