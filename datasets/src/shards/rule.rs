//! Divides the listing of a source into parts, independently of the content.

use crate::source::Item;
use meetpoint_format::checksum::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Default maximum bytes of the source in a part.
const SOURCE_BYTES: u64 = 256 << 20;

/// When the next part begins. A part has at least one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartRule {
    /// After this number of samples of the source, at least 1.
    pub samples: Option<u64>,
    /// Before a sample that would make the part exceed these bytes of the source, at least 1.
    pub source_bytes: Option<u64>,
}

impl PartRule {
    /// The rule for these two options; `None` if neither is given.
    pub fn of(samples: Option<u64>, source_bytes: Option<u64>) -> Option<Self> {
        (samples.is_some() || source_bytes.is_some()).then_some(Self { samples, source_bytes })
    }

    /// This rule, or the default of 256 MiB of the source if it is empty.
    fn in_effect(self) -> Self {
        if self == Self::default() {
            return Self { samples: None, source_bytes: Some(SOURCE_BYTES) };
        }
        self
    }
}

/// A part of a plan: consecutive samples of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPart {
    /// Index of its first sample in the source.
    pub first: u64,
    /// Samples of the source.
    pub samples: u64,
    /// Bytes of their content in the source.
    pub source_bytes: u64,
    /// SHA-256 of their keys, labels, lengths and locations, in lower-case hexadecimal.
    pub sha256: String,
}

/// The digest of the listing of a part.
#[derive(Debug, Clone, Default)]
pub struct ListingDigest(Sha256);

impl ListingDigest {
    /// Adds a sample: its key, label, bytes of content and location in the source.
    pub fn add(&mut self, key: &str, label: Option<i32>, bytes: u64, place: &str) {
        let Self(hash) = self;
        for text in [key, place] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        // No label differs from every label, including -1.
        hash.update(label.map_or(i64::MIN, i64::from).to_le_bytes());
        hash.update(bytes.to_le_bytes());
    }

    /// Adds a sample of a source.
    pub(crate) fn add_item(&mut self, item: &Item, bytes: u64) {
        self.add(&item.key, item.label, bytes, &item.origin.to_string());
    }

    /// The digest in lower-case hexadecimal.
    pub fn finish(self) -> String {
        hexadecimal(&self.0.finalize())
    }
}

/// Cuts a listing into parts.
#[derive(Debug)]
pub struct PartSplitter {
    rule: PartRule,
    parts: Vec<PlannedPart>,
    open: Option<(PlannedPart, ListingDigest)>,
    samples: u64,
    bytes: u64,
}

impl PartSplitter {
    /// Cuts a listing by this rule.
    pub fn new(rule: PartRule) -> Self {
        Self { rule: rule.in_effect(), parts: Vec::new(), open: None, samples: 0, bytes: 0 }
    }

    /// Adds a sample of a source.
    pub(crate) fn add_item(&mut self, item: &Item) {
        let bytes = item.content.bytes();
        self.add(bytes, |listed| listed.add_item(item, bytes));
    }

    /// Adds a sample with these bytes of content; `list` adds it to the digest of its part.
    pub fn add(&mut self, bytes: u64, list: impl FnOnce(&mut ListingDigest)) {
        let PartRule { samples: samples_max, source_bytes: bytes_max } = self.rule;
        let is_full = |part: &PlannedPart| {
            samples_max.is_some_and(|most| part.samples >= most)
                || bytes_max.is_some_and(|most| part.source_bytes.saturating_add(bytes) > most)
        };
        if self.open.as_ref().is_some_and(|(part, _)| is_full(part)) {
            self.end();
        }
        let (part, listed) = self.open.get_or_insert_with(|| {
            let (first, sha256) = (self.samples, String::new());
            (PlannedPart { first, samples: 0, source_bytes: 0, sha256 }, ListingDigest::default())
        });
        part.samples += 1;
        part.source_bytes += bytes;
        list(listed);
        self.samples += 1;
        self.bytes += bytes;
    }

    fn end(&mut self) {
        if let Some((part, listed)) = self.open.take() {
            self.parts.push(PlannedPart { sha256: listed.finish(), ..part });
        }
    }

    /// Samples so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The parts, the number of their samples, and the bytes of these samples.
    pub fn finish(mut self) -> (Vec<PlannedPart>, u64, u64) {
        self.end();
        (self.parts, self.samples, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{PartRule, PartSplitter};

    fn cut(rule: PartRule, lengths: &[u64]) -> Vec<(u64, u64, u64)> {
        let mut splitter = PartSplitter::new(rule);
        for (index, bytes) in lengths.iter().enumerate() {
            splitter.add(*bytes, |listed| listed.add(&index.to_string(), None, *bytes, ""));
        }
        let (parts, samples, bytes) = splitter.finish();
        assert_eq!((samples, bytes), (lengths.len() as u64, lengths.iter().sum()));
        parts.iter().map(|part| (part.first, part.samples, part.source_bytes)).collect()
    }

    #[test]
    fn a_part_ends_at_whichever_limit_it_reaches_first() {
        let rule = |samples, source_bytes| PartRule { samples, source_bytes };
        assert_eq!(cut(rule(Some(2), None), &[1, 1, 1]), [(0, 2, 2), (2, 1, 1)]);
        assert_eq!(cut(rule(None, Some(3)), &[2, 1, 1]), [(0, 2, 3), (2, 1, 1)]);
        assert_eq!(cut(rule(Some(2), Some(3)), &[3, 1, 1, 1]), [(0, 1, 3), (1, 2, 2), (3, 1, 1)]);
        // A sample that is longer than a part is a part by itself.
        assert_eq!(cut(rule(None, Some(3)), &[9, 9]), [(0, 1, 9), (1, 1, 9)]);
        assert_eq!(cut(PartRule::default(), &[]), []);
    }
}
