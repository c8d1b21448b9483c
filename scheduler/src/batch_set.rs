//! A set of batch indices with constant-time first and last.
//!
//! A tree of 64-bit words: level 0 has a bit per batch, each bit above says whether the word below
//! it is not empty. Its memory is taken once, when it is made: one bit and a little per batch.

use crate::types::BatchIndex;

const BITS: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct BatchSet {
    /// Level 0 first; the last level is one word.
    levels: Vec<Vec<u64>>,
    len: u32,
}

impl BatchSet {
    pub(crate) fn with_capacity(batches: u32) -> Self {
        let mut levels = Vec::new();
        let mut bits = batches as usize;
        loop {
            let words = bits.div_ceil(BITS).max(1);
            levels.push(vec![0; words]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        Self { levels, len: 0 }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn contains(&self, batch: BatchIndex) -> bool {
        let at = batch.0 as usize;
        self.levels[0].get(at / BITS).is_some_and(|word| word & (1 << (at % BITS)) != 0)
    }

    pub(crate) fn insert(&mut self, batch: BatchIndex) {
        assert!(!self.contains(batch), "batch {} is in the set already", batch.0);
        let mut at = batch.0 as usize;
        for level in &mut self.levels {
            level[at / BITS] |= 1 << (at % BITS);
            at /= BITS;
        }
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, batch: BatchIndex) {
        assert!(self.contains(batch), "batch {} is not in the set", batch.0);
        let mut at = batch.0 as usize;
        for level in &mut self.levels {
            level[at / BITS] &= !(1 << (at % BITS));
            if level[at / BITS] != 0 {
                break;
            }
            at /= BITS;
        }
        self.len -= 1;
    }

    /// The lowest.
    pub(crate) fn first(&self) -> Option<BatchIndex> {
        self.descend(|word| word.trailing_zeros() as usize)
    }

    /// The highest.
    pub(crate) fn last(&self) -> Option<BatchIndex> {
        self.descend(|word| BITS - 1 - word.leading_zeros() as usize)
    }

    /// Walks from the top word down, choosing a set bit of each word by `pick`.
    fn descend(&self, pick: impl Fn(u64) -> usize) -> Option<BatchIndex> {
        if self.len == 0 {
            return None;
        }
        let at = self.levels.iter().rev().fold(0, |at, level| at * BITS + pick(level[at]));
        Some(BatchIndex(u32::try_from(at).expect("it was inserted as a u32")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_behaves_as_an_ordered_set(
            capacity in 1_u32..20_000, picks in proptest::collection::vec(any::<u32>(), 1..300),
        ) {
            let mut set = BatchSet::with_capacity(capacity);
            let mut model = BTreeSet::new();
            for pick in picks {
                let batch = BatchIndex(pick % capacity);
                if model.remove(&batch) {
                    set.remove(batch);
                } else {
                    model.insert(batch);
                    set.insert(batch);
                }
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert_eq!(set.last(), model.last().copied());
                prop_assert_eq!(set.len() as usize, model.len());
                prop_assert_eq!(set.contains(batch), model.contains(&batch));
            }
        }
    }

    #[test]
    fn the_edges_of_every_level_are_found() {
        for batches in [1, 64, 65, 4_096, 4_097, 262_145] {
            let mut set = BatchSet::with_capacity(batches);
            assert_eq!((set.first(), set.last()), (None, None));
            set.insert(BatchIndex(batches - 1));
            assert_eq!(set.first(), Some(BatchIndex(batches - 1)));
            assert_eq!(set.last(), Some(BatchIndex(batches - 1)));
            assert!(!set.contains(BatchIndex(batches)));
            set.remove(BatchIndex(batches - 1));
            assert_eq!(set.first(), None);
        }
    }
}
