//! When each sample of an epoch is needed next, from the order of this epoch and the next.
//!
//! The order of an epoch is computable, so both are known in advance. Positions count the samples
//! in the order of consumption over all ranks: a rank consumes its batches in order, and the ranks
//! take turns.

use meetpoint_format::batching::Batching;
use meetpoint_format::sampler::EpochOrder;

/// Not needed in this epoch or the next.
pub(crate) const NEVER: u32 = u32::MAX;
/// How many batches another rank may lag behind before its samples count as used.
pub(crate) const SKEW_BATCHES: u64 = 64;

/// The next uses of samples: positions of this epoch, followed by those of the next.
#[derive(Debug)]
pub(crate) struct NextUses {
    epoch: u32,
    /// By position of this epoch.
    after: Vec<u32>,
    /// By sample, from the beginning of this epoch.
    first: Vec<u32>,
}

impl NextUses {
    /// The uses in an epoch of all ranks, each with its batches.
    pub(crate) fn of(ranks: &[Batching], epoch: u32) -> Self {
        let batching = &ranks[0];
        let (batches, size) = (batching.batches(), u64::from(batching.batch_size()));
        let positions = batches * ranks.len() as u64 * size;
        let length = usize::try_from(positions).expect("the number of positions was checked");
        let samples = usize::try_from(batching.samples()).expect("as was that of samples");
        let mut uses = Self { epoch, after: vec![NEVER; length], first: vec![NEVER; samples] };
        if let Some(next) = epoch.checked_add(1) {
            uses.scan(ranks, &batching.order(next), |uses, position, sample| {
                uses.first[sample] = to_word(positions + position);
            });
        }
        uses.scan(ranks, &batching.order(epoch), |uses, position, sample| {
            uses.after[usize::try_from(position).expect("below the length")] = uses.first[sample];
            uses.first[sample] = to_word(position);
        });
        uses
    }

    /// Visits every position of an epoch with its sample, the last first.
    fn scan(
        &mut self,
        ranks: &[Batching],
        order: &EpochOrder,
        mut visit: impl FnMut(&mut Self, u64, usize),
    ) {
        let batching = &ranks[0];
        let size = u64::from(batching.batch_size());
        let batches = u32::try_from(batching.batches()).expect("the number of positions fits");
        let mut samples: Vec<u64> = Vec::new();
        for batch in (0..batches).rev() {
            for (rank, of_rank) in ranks.iter().enumerate().rev() {
                samples.clear();
                samples.extend(of_rank.samples_of(order, batch));
                let begin = (u64::from(batch) * ranks.len() as u64 + rank as u64) * size;
                for (at, &sample) in samples.iter().enumerate().rev() {
                    let sample = usize::try_from(sample).expect("samples were counted");
                    visit(self, begin + at as u64, sample);
                }
            }
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The next use of the sample at a position, after that position.
    pub(crate) fn after(&self, position: u64) -> u32 {
        let position = usize::try_from(position).ok();
        position.and_then(|position| self.after.get(position)).copied().unwrap_or(NEVER)
    }

    /// The first use of a sample in the epoch or the next.
    pub(crate) fn first_of(&self, sample: u64) -> u32 {
        let sample = usize::try_from(sample).ok();
        sample.and_then(|sample| self.first.get(sample)).copied().unwrap_or(NEVER)
    }
}

fn to_word(position: u64) -> u32 {
    u32::try_from(position).expect("twice the number of positions has 32 bits")
}
