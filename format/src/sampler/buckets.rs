//! Random access to batches of samples that share a bucket.
//!
//! For batches of B samples, a bucket with n samples has n / B whole batches. The remaining samples
//! of all buckets, at the last n mod B positions of each, are concatenated in the order of the
//! buckets and divided into batches too, which then contain neighbouring buckets; only the last of
//! these may be short. The whole batches of both types are permuted; the short one is the last of
//! the epoch. So every sample occurs once, and at most as many batches mix buckets as there are
//! buckets.

use crate::order::Order;
use std::sync::Arc;

/// Number of samples that are located together.
const CHUNK: usize = 64;

/// Samples by bucket. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// The samples of all buckets, one bucket after another, each in ascending order.
    samples: Arc<[u64]>,
    /// The end of each bucket in `samples`.
    ends: Arc<[u64]>,
}

impl Buckets {
    /// From the samples of each bucket.
    pub fn new(buckets: &[Vec<u64>]) -> Self {
        let mut end = 0;
        let ends = buckets.iter().map(|bucket| {
            end += bucket.len() as u64;
            end
        });
        Self { ends: ends.collect(), samples: buckets.concat().into() }
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.samples.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The samples of each bucket.
    pub fn each(&self) -> impl Iterator<Item = &[u64]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let end = usize::try_from(*end).expect("it is in memory");
            &self.samples[std::mem::replace(&mut start, end)..end]
        })
    }

    /// All samples, one bucket after another, followed by the ends of the buckets.
    pub(super) fn table(&self) -> Vec<u64> {
        [&self.samples[..], &self.ends[..]].concat()
    }

    /// The buckets with only those samples for which `holds` is true.
    pub(super) fn of(&self, holds: impl Fn(u64) -> bool) -> Self {
        let held = |bucket: &[u64]| bucket.iter().copied().filter(|it| holds(*it)).collect();
        Self::new(&self.each().map(held).collect::<Vec<Vec<u64>>>())
    }
}

/// Batches of the samples of some buckets.
#[derive(Debug)]
pub(super) struct Batched {
    buckets: Buckets,
    batch_size: u64,
    shuffle: bool,
    /// First sample of each bucket.
    starts: Vec<u64>,
    /// Number of whole batches of all buckets before each, and of all buckets.
    batches: Vec<u64>,
    /// Number of remaining samples of all buckets before each, and of all buckets.
    left: Vec<u64>,
}

/// The order of an epoch of batches.
#[derive(Debug, Clone)]
pub(super) struct BatchedOrder {
    /// The order of whole batches.
    batches: Order,
    /// The order of the samples of each bucket.
    samples: Vec<Order>,
}

impl Batched {
    /// Batches of `batch_size` samples.
    pub(super) fn new(buckets: Buckets, batch_size: u32, shuffle: bool) -> Self {
        let size = u64::from(batch_size);
        let (mut starts, mut batches, mut left) = (Vec::new(), vec![0], vec![0]);
        let (mut start, mut whole, mut rest) = (0, 0, 0);
        for bucket in buckets.each() {
            let samples = bucket.len() as u64;
            starts.push(start);
            (start, whole, rest) = (start + samples, whole + samples / size, rest + samples % size);
            batches.push(whole);
            left.push(rest);
        }
        Self { buckets, batch_size: size, shuffle, starts, batches, left }
    }

    /// Number of samples.
    pub(super) fn len(&self) -> u64 {
        self.buckets.len()
    }

    pub(super) fn order(&self, seed: u64, epoch: u32, device: u16) -> BatchedOrder {
        let order = |len: u64, number: u16| match self.shuffle {
            true => Order::of_dataset(len, seed, epoch, device, number),
            false => Order::sequential(len),
        };
        let samples = (1..).zip(self.buckets.each());
        BatchedOrder {
            batches: order(self.len() / self.batch_size, 0),
            samples: samples.map(|(number, it)| order(it.len() as u64, number)).collect(),
        }
    }

    /// The samples at the positions from `first` on.
    pub(super) fn fill(&self, order: &BatchedOrder, first: u64, out: &mut [u64]) {
        let mut buckets = [0_u16; CHUNK];
        let whole = self.len() / self.batch_size;
        // Successive positions are mostly in the same batch.
        let (mut batch, mut number) = (u64::MAX, 0);
        let mut position = first;
        for chunk in out.chunks_mut(CHUNK) {
            for (at, value) in chunk.iter_mut().enumerate() {
                if position / self.batch_size != batch {
                    batch = position / self.batch_size;
                    number = if batch < whole { order.batches.sample_at(batch) } else { batch };
                }
                let (bucket, within) = self.place(number, position % self.batch_size);
                buckets[at] = u16::try_from(bucket).expect("there are few buckets");
                *value = within;
                position += 1;
            }
            Order::samples_of(chunk, |at| order.samples[usize::from(buckets[at])]);
            for (value, bucket) in chunk.iter_mut().zip(buckets) {
                let at = self.starts[usize::from(bucket)] + *value;
                *value = self.buckets.samples[usize::try_from(at).expect("it is in memory")];
            }
        }
    }

    /// The bucket of a batch's n-th sample, and the sample's position in that bucket.
    fn place(&self, batch: u64, n: u64) -> (usize, u64) {
        let of_one = *self.batches.last().expect("there is an end");
        if batch < of_one {
            let bucket = self.batches.partition_point(|before| *before <= batch) - 1;
            return (bucket, (batch - self.batches[bucket]) * self.batch_size + n);
        }
        let left = (batch - of_one) * self.batch_size + n;
        let bucket = self.left.partition_point(|before| *before <= left) - 1;
        let whole = self.batches[bucket + 1] - self.batches[bucket];
        (bucket, whole * self.batch_size + left - self.left[bucket])
    }
}
