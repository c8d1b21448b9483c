//! A sampler on one dataset: its rule, the length of an epoch, and a checksum to compare with the
//! other end's.

use super::columns::SampleColumns;
use super::rule::Rule;
use super::{Sampler, Sequential, Shuffled};
use sha2::{Digest, Sha256};

/// A sampler with everything that it reads from its dataset. Cheap to clone behind an `Arc`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    sampler: Sampler,
    samples: u64,
    rule: Rule,
    /// Whether a sample may occur more than once in an epoch.
    has_repeats: bool,
    checksum: [u8; 32],
}

impl Sampling {
    /// Reads what the sampler needs of a dataset: weights, labels, or the result of a filter.
    pub fn of<C: SampleColumns>(sampler: &Sampler, columns: &C) -> Result<Self, C::Error> {
        let rule = sampler.rule(columns)?;
        Ok(Self::new(sampler.clone(), columns.samples(), rule))
    }

    /// Every sample of a dataset of this size in the order of the dataset.
    pub fn sequential(samples: u64) -> Self {
        Self::new(Sequential.into(), samples, Rule::Every { shuffle: false })
    }

    /// Every sample of a dataset of this size, in a different order in each epoch.
    pub fn shuffled(samples: u64) -> Self {
        Self::new(Shuffled.into(), samples, Rule::Every { shuffle: true })
    }

    fn new(sampler: Sampler, samples: u64, rule: Rule) -> Self {
        let has_repeats = match &rule {
            Rule::Every { .. } | Rule::WithoutReplacement { .. } | Rule::Bucketed { .. } => false,
            Rule::Listed { list, .. } => is_repeated(list, samples),
            Rule::WithReplacement { .. } => true,
            Rule::Repeated { repeats, .. } => *repeats > 1,
            Rule::Mixture { datasets, .. } => datasets.iter().any(|it| it.passes() > 1),
        };
        let checksum = checksum(&sampler.to_string(), samples, &rule);
        Self { sampler, samples, rule, has_repeats, checksum }
    }

    /// The sampler.
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Samples in the dataset.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The rule.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Whether a sample may occur more than once in an epoch. Its random parameters are then keyed
    /// by its position instead of its index.
    pub fn has_repeats(&self) -> bool {
        self.has_repeats
    }

    /// Whether an epoch may contain any sample of the dataset.
    pub fn is_of_every_sample(&self) -> bool {
        matches!(self.rule, Rule::Every { .. } | Rule::Repeated { .. } | Rule::Bucketed { .. })
    }

    /// Positions of an epoch.
    pub fn length(&self) -> u64 {
        match &self.rule {
            Rule::Every { .. } => self.samples,
            Rule::Listed { list, .. } => list.len() as u64,
            Rule::Bucketed { buckets, .. } => buckets.len(),
            Rule::WithReplacement { length, .. }
            | Rule::WithoutReplacement { length, .. }
            | Rule::Repeated { length, .. } => *length,
            Rule::Mixture { datasets, .. } => datasets.iter().map(|it| it.length).sum(),
        }
    }

    /// SHA-256 of the description and the tables: equal if host and device select the same samples.
    pub fn checksum(&self) -> [u8; 32] {
        self.checksum
    }
}

/// Whether a sample occurs more than once in a list. Uses one bit for each of the dataset's
/// samples, and nothing for an ascending list, such as that of a filter.
fn is_repeated(list: &[u64], samples: u64) -> bool {
    if list.is_sorted_by(|a, b| a < b) {
        return false;
    }
    let words = usize::try_from(samples.div_ceil(64)).expect("fewer than the bytes of an index");
    let mut seen = vec![0u64; words];
    list.iter().any(|sample| {
        let (word, bit) = ((sample / 64) as usize, 1 << (sample % 64));
        let is_seen = seen[word] & bit != 0;
        seen[word] |= bit;
        is_seen
    })
}

/// Numbers are hashed as 8 bytes each, low byte first.
fn checksum(description: &str, samples: u64, rule: &Rule) -> [u8; 32] {
    let shares: Vec<u64>;
    let (table, length): (&[u64], u64) = match rule {
        Rule::Every { .. } => (&[], samples),
        Rule::Listed { list, .. } => (list, list.len() as u64),
        Rule::WithReplacement { weights, length }
        | Rule::WithoutReplacement { weights, length } => (weights, *length),
        Rule::Repeated { length, .. } => (&[], *length),
        Rule::Bucketed { buckets, .. } => {
            shares = buckets.table();
            (&shares, buckets.len())
        }
        Rule::Mixture { datasets, .. } => {
            shares = datasets.iter().flat_map(|it| [it.samples, it.length]).collect();
            (&shares, datasets.iter().map(|it| it.length).sum())
        }
    };
    let mut hash = Sha256::new();
    hash.update((description.len() as u64).to_le_bytes());
    hash.update(description.as_bytes());
    for number in [samples, length, table.len() as u64] {
        hash.update(number.to_le_bytes());
    }
    for chunk in table.chunks(512) {
        let bytes: Vec<u8> = chunk.iter().flat_map(|number| number.to_le_bytes()).collect();
        hash.update(&bytes);
    }
    hash.finalize().into()
}
