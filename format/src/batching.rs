//! Which samples make batch b of epoch e: `order_e[b*B .. (b+1)*B]`.

use crate::order::Order;

/// How a dataset is cut into batches; with (seed, epoch) it fixes every batch's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// Samples in the dataset.
    pub samples: u64,
    /// Samples in a batch, at least 1: every method panics on 0.
    pub batch_size: u32,
    /// Whether a last batch that is not full is left out.
    pub drop_last: bool,
    /// Whether each epoch is shuffled.
    pub shuffle: bool,
    /// Seed of the job.
    pub seed: u64,
}

impl Batching {
    /// Batches in an epoch.
    ///
    /// Batch indices have 32 bits, so an epoch can be run only when this is at most 2^32; whoever
    /// starts one refuses more. Nothing here overflows even then.
    pub fn batches(&self) -> u64 {
        let size = u64::from(self.batch_size);
        if self.drop_last { self.samples / size } else { self.samples.div_ceil(size) }
    }

    /// The order of an epoch.
    pub fn order(&self, epoch: u32) -> Order {
        if self.shuffle {
            Order::shuffled(self.samples, self.seed, epoch)
        } else {
            Order::sequential(self.samples)
        }
    }

    /// Number of samples in batch `batch`: only the last may be short; 0 where there is no such
    /// batch.
    pub fn batch_len(&self, batch: u32) -> u32 {
        if u64::from(batch) >= self.batches() {
            return 0;
        }
        let size = u64::from(self.batch_size);
        let len = (self.samples - self.start_of(batch)).min(size);
        u32::try_from(len).expect("a batch is no longer than batch_size")
    }

    /// The samples of a batch, in batch order.
    pub fn samples_of(&self, order: &Order, batch: u32) -> impl Iterator<Item = u64> {
        let start = self.start_of(batch);
        let len = u64::from(self.batch_len(batch));
        let order = order.clone();
        (0..len).map(move |place| order.sample_at(start + place))
    }

    /// Position in the order of the first sample of a batch; two 32-bit factors fit 64 bits.
    fn start_of(&self, batch: u32) -> u64 {
        u64::from(batch) * u64::from(self.batch_size)
    }
}

#[cfg(test)]
mod tests {
    use super::Batching;

    fn batching(samples: u64, batch_size: u32, drop_last: bool) -> Batching {
        Batching { samples, batch_size, drop_last, shuffle: true, seed: 3 }
    }

    #[test]
    fn the_last_batch_is_short_or_left_out() {
        let kept = batching(10, 4, false);
        assert_eq!(kept.batches(), 3);
        assert_eq!([0, 1, 2, 3].map(|batch| kept.batch_len(batch)), [4, 4, 2, 0]);
        let dropped = batching(10, 4, true);
        assert_eq!(dropped.batches(), 2);
        assert_eq!([0, 1, 2].map(|batch| dropped.batch_len(batch)), [4, 4, 0]);
        assert_eq!(dropped.samples_of(&dropped.order(0), 2).count(), 0);
    }

    #[test]
    fn a_dataset_that_fills_its_batches_has_no_short_one() {
        for drop_last in [false, true] {
            let full = batching(8, 4, drop_last);
            assert_eq!(full.batches(), 2);
            assert_eq!(full.batch_len(1), 4);
        }
    }

    #[test]
    fn an_empty_dataset_has_no_batches() {
        for drop_last in [false, true] {
            let empty = batching(0, 4, drop_last);
            assert_eq!(empty.batches(), 0);
            assert_eq!(empty.batch_len(0), 0);
            assert_eq!(empty.samples_of(&empty.order(0), 0).count(), 0);
        }
    }

    #[test]
    fn the_batches_of_an_epoch_cover_every_sample_once() {
        for (samples, batch_size) in [(1, 1), (1, 8), (97, 10), (100, 10), (101, 1), (64, 64)] {
            let batching = batching(samples, batch_size, false);
            let order = batching.order(5);
            let batches = u32::try_from(batching.batches()).unwrap();
            let mut seen: Vec<u64> =
                (0..batches).flat_map(|batch| batching.samples_of(&order, batch)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..samples).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_batch_is_its_stretch_of_the_order() {
        let batching = batching(97, 10, false);
        let order = batching.order(2);
        let samples: Vec<u64> = batching.samples_of(&order, 9).collect();
        assert_eq!(samples, (90..97).map(|at| order.sample_at(at)).collect::<Vec<_>>());
    }

    #[test]
    fn without_shuffling_every_epoch_is_in_the_datasets_order() {
        let batching = Batching { shuffle: false, ..batching(10, 4, false) };
        let order = batching.order(7);
        assert_eq!(batching.samples_of(&order, 1).collect::<Vec<_>>(), [4, 5, 6, 7]);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let last = u32::MAX - 1;
        let one = batching(u64::from(u32::MAX), 1, false);
        assert_eq!(one.batches(), u64::from(u32::MAX));
        assert_eq!(one.batch_len(last), 1);
        let order = one.order(0);
        assert_eq!(one.samples_of(&order, last).next(), Some(order.sample_at(u64::from(last))));
        assert_eq!(batching(u64::MAX, 1, false).batches(), u64::MAX);
        let wide = batching(u64::MAX, u32::MAX, false);
        // (2^32 - 1)(2^32 + 1) = 2^64 - 1.
        assert_eq!(wide.batches(), (1 << 32) + 1);
        assert_eq!(wide.batch_len(u32::MAX), u32::MAX);
        let order = wide.order(1);
        assert!(wide.samples_of(&order, u32::MAX).next().is_some());
    }
}
