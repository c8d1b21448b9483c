//! Batches that the ranks of a run delivered more than once, or not at all.

use meetpoint_format::batching::Batching;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Batches of an epoch that all ranks together deliver more than once, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uneven {
    /// Number of the epoch.
    pub epoch: u32,
    /// Whether they are repeated or omitted.
    pub kind: UnevenKind,
    /// Why.
    pub reason: UnevenReason,
    /// Their numbers in the sequence of all ranks; empty if they have none, because several devices
    /// that hold different samples each omit a last batch.
    pub batches: Vec<u64>,
}

/// What happens to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnevenKind {
    /// Delivered once more.
    Repeated,
    /// Not delivered.
    Omitted,
}

/// Why a batch is repeated or omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnevenReason {
    /// The batches of an epoch do not divide evenly among the ranks.
    EqualSteps,
    /// The rest of an epoch does not divide evenly among the ranks that resume it.
    Resume,
    /// It is not full, and `drop_last` drops it.
    ShortBatch,
}

impl fmt::Display for UnevenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repeated => "repeated",
            Self::Omitted => "omitted",
        })
    }
}

impl fmt::Display for UnevenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EqualSteps => "equal steps of all ranks",
            Self::Resume => "equal steps after a resume",
            Self::ShortBatch => "not full",
        })
    }
}

/// The repeated and the omitted batches of whole epochs.
pub fn of_epochs(batching: &Batching, epochs: impl Iterator<Item = u32>) -> Vec<Uneven> {
    use UnevenKind::{Omitted, Repeated};
    use UnevenReason::{EqualSteps, ShortBatch};
    let dropped: Vec<u64> = batching.dropped().collect();
    let last = batching.sequence();
    let has_short = batching.short_batches() > 0;
    // Only with one device is the last batch of the sequence the one that is not full.
    let short: Vec<u64> =
        (batching.devices() == 1 && has_short).then_some(last).into_iter().collect();
    let found = [
        (Repeated, EqualSteps, batching.repeated().collect::<Vec<u64>>(), false),
        (Omitted, EqualSteps, dropped, false),
        (Omitted, ShortBatch, short, has_short),
    ];
    let rows = |epoch| {
        let present = found.iter().filter(|(_, _, batches, is_any)| *is_any || !batches.is_empty());
        let row = move |(kind, reason, batches, _): &(UnevenKind, UnevenReason, Vec<u64>, bool)| {
            Uneven { epoch, kind: *kind, reason: *reason, batches: batches.clone() }
        };
        present.map(row).collect::<Vec<_>>()
    };
    epochs.flat_map(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_format::batching::{BatchOptions, Rank};
    use meetpoint_format::holders::Holders;
    use meetpoint_format::sampler::Sampling;
    use std::sync::Arc;

    fn batching(samples: u64, ranks: u32, drop_last: bool) -> Batching {
        let options = BatchOptions { batch_size: 3, drop_last, seed: 1 };
        let sampling = Sampling::sequential(samples);
        let rank = Rank { rank: 0, ranks };
        Batching::new(options, Arc::new(sampling), rank, Holders::all_alike()).unwrap()
    }

    fn rows(
        samples: u64,
        ranks: u32,
        drop_last: bool,
    ) -> Vec<(UnevenKind, UnevenReason, Vec<u64>)> {
        let found = of_epochs(&batching(samples, ranks, drop_last), 7..8);
        assert!(found.iter().all(|row| row.epoch == 7));
        found.into_iter().map(|row| (row.kind, row.reason, row.batches)).collect()
    }

    #[test]
    fn repeated_and_omitted_batches_are_named() {
        use UnevenKind::{Omitted, Repeated};
        use UnevenReason::{EqualSteps, ShortBatch};
        assert_eq!(rows(66, 2, false), []);
        // 22 batches, 4 ranks: 6 steps.
        assert_eq!(rows(66, 4, false), [(Repeated, EqualSteps, vec![0, 1])]);
        assert_eq!(rows(66, 4, true), [(Omitted, EqualSteps, vec![20, 21])]);
        let both = [(Omitted, EqualSteps, vec![20, 21]), (Omitted, ShortBatch, vec![22])];
        assert_eq!(rows(67, 4, true), both);
        // One batch and three ranks.
        assert_eq!(rows(3, 3, false), [(Repeated, EqualSteps, vec![0, 0])]);
    }
}
