//! Which samples form batch b of epoch e: those at positions b*B to (b+1)*B of a sampler, for one
//! rank or several, with one store or with devices that hold different samples.
//!
//! All batches of an epoch form one sequence: those of device 0, those of device 1, and so on. Rank
//! r of G takes every G-th batch of the sequence, starting at r, so all ranks have the same number
//! of batches, and the numbers of a device's batches that two ranks take differ by at most one. The
//! order in which a rank consumes its batches is given by the rank's own [`Interleave`].

use crate::holders::{Held, Holders};
use crate::interleave::{Interleave, InterleaveError};
use crate::replacement::{candidates, candidates_among};
use crate::sampler::{EpochOrder, Positions, Sampling};
use std::sync::Arc;

/// Maximum number of ranks.
pub const RANKS_MAX: u32 = 1 << 16;

/// How the positions of an epoch are divided into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// Samples in a batch, at least 1.
    pub batch_size: u32,
    /// Whether to drop batches that are not full, and steps in which not every rank has a batch.
    pub drop_last: bool,
    /// Seed of the job.
    pub seed: u64,
}

/// One of several consumers that take turns in taking the batches of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// The rank, from 0.
    pub rank: u32,
    /// Number of ranks, at least 1.
    pub ranks: u32,
}

impl Rank {
    /// The only one.
    pub const ALONE: Self = Self { rank: 0, ranks: 1 };
}

/// Why an epoch cannot be divided into batches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchingError {
    /// The batch size is 0.
    #[error("a batch has at least one sample")]
    BatchSize,
    /// A rank that does not exist, or too many ranks.
    #[error("rank {rank} of {ranks}: there are from 1 to 65536 ranks, counted from 0")]
    Rank {
        /// The given rank.
        rank: u32,
        /// The given number of ranks.
        ranks: u32,
    },
    /// Holders that belong to another dataset.
    #[error("the devices hold {held} samples, the dataset has {samples}")]
    Samples {
        /// Samples in the parts of all devices.
        held: u64,
        /// Samples in the dataset.
        samples: u64,
    },
    /// Batches that cannot be interleaved.
    #[error(transparent)]
    Interleave(#[from] InterleaveError),
}

/// One sample of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Index of the sample in the dataset.
    pub sample: u64,
    /// Key of its random parameters in the epoch, [`crate::random::DrawKey::sample`]: the index of
    /// the sample, or the position in the epoch (over all devices, in their order) where the
    /// sampler may repeat samples. No two positions of an epoch have the same key.
    pub key: u64,
}

/// How an epoch is divided into the batches of one rank; together with (seed, epoch) it determines
/// their content.
///
/// Batch b of rank r is step b of that rank, and batch b·G + r among those of all ranks. Its
/// content is a function of dataset, recipe, sampler, seed, epoch, ranks, holders and that number.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Batching {
    options: BatchOptions,
    sampling: Arc<Sampling>,
    rank: Rank,
    holders: Holders,
    plan: Arc<EpochLayout>,
}

#[derive(Debug)]
struct EpochLayout {
    positions: Positions,
    /// Number of different batches of all ranks and devices, without repeats.
    total: u64,
    /// Batches of each rank.
    steps: u64,
    /// By device: its share of the positions.
    shares: Vec<Share>,
    /// The order of this rank's batches; `None` if there is one device.
    interleave: Option<Interleave>,
}

/// The positions of a device, and which of its batches are this rank's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    positions: u64,
    /// Index of the device's first batch among all batches.
    begin: u64,
    /// Index of the rank's first batch among the device's batches.
    first: u64,
    /// Batches of this rank, not counting the repeated one.
    own: u64,
    /// Index of the batch that is repeated so that all ranks have the same number.
    repeated: Option<u64>,
}

/// Where a batch comes from.
#[derive(Debug, Clone, Copy)]
struct BatchOrigin {
    device: u16,
    /// Index among the device's batches, over all ranks.
    of_device: u64,
    /// Index among the batches of all ranks and devices.
    number: u64,
}

impl Batching {
    /// For a single rank, and devices that all hold the same samples. Panics on a batch size of 0.
    pub fn alone(options: BatchOptions, sampling: Sampling) -> Self {
        let alone = Self::new(options, Arc::new(sampling), Rank::ALONE, Holders::all_alike());
        alone.expect("batches have at least one sample")
    }

    /// For one of several ranks, and devices that may hold different samples.
    pub fn new(
        options: BatchOptions,
        sampling: Arc<Sampling>,
        rank: Rank,
        holders: Holders,
    ) -> Result<Self, BatchingError> {
        let Rank { rank: number, ranks } = rank;
        if options.batch_size == 0 {
            return Err(BatchingError::BatchSize);
        }
        if number >= ranks || ranks > RANKS_MAX {
            return Err(BatchingError::Rank { rank: number, ranks });
        }
        if let Some(devices) = holders.devices_held() {
            let held = devices.iter().map(Held::samples).sum();
            let samples = sampling.samples();
            if held != samples {
                return Err(BatchingError::Samples { held, samples });
            }
        }
        let plan = Arc::new(EpochLayout::new(&options, &sampling, rank, &holders)?);
        Ok(Self { options, sampling, rank, holders, plan })
    }

    /// The same for another rank.
    pub fn of_rank(&self, rank: Rank) -> Result<Self, BatchingError> {
        Self::new(self.options, Arc::clone(&self.sampling), rank, self.holders.clone())
    }

    /// How the positions are divided into batches.
    pub fn options(&self) -> &BatchOptions {
        &self.options
    }

    /// The sampler on this dataset.
    pub fn sampling(&self) -> &Arc<Sampling> {
        &self.sampling
    }

    /// Samples in the dataset.
    pub fn samples(&self) -> u64 {
        self.sampling.samples()
    }

    /// Number of positions of an epoch over all ranks: the number of samples, unless the sampler
    /// determines another.
    pub fn positions(&self) -> u64 {
        self.sampling.length()
    }

    /// Samples in a full batch.
    pub fn batch_size(&self) -> u32 {
        self.options.batch_size
    }

    /// Seed of the job.
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// The rank that consumes these batches.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The assignment of samples to devices.
    pub fn holders(&self) -> &Holders {
        &self.holders
    }

    /// Batches of this rank in an epoch, the same number for every rank.
    ///
    /// Batch indices have 32 bits, so an epoch can be run only when this is at most 2^32; the
    /// runtime refuses more. Nothing here overflows even then.
    pub fn batches(&self) -> u64 {
        self.plan.steps
    }

    /// Batches that are repeated, over all ranks, so that all have the same number.
    pub fn padded(&self) -> u64 {
        let ranks = u64::from(self.rank.ranks);
        if self.options.drop_last { 0 } else { (ranks - self.plan.total % ranks) % ranks }
    }

    /// Batches of the sequence of all ranks, without repeats.
    pub fn sequence(&self) -> u64 {
        self.plan.total
    }

    /// The batches of the sequence that are repeated so that all ranks have the same number; one
    /// for each repeat.
    pub fn repeated(&self) -> impl Iterator<Item = u64> + use<> {
        let total = self.plan.total;
        (total..total + self.padded()).map(move |place| place % total)
    }

    /// The batches of the sequence that no rank takes, so that all ranks have the same number.
    pub fn dropped(&self) -> std::ops::Range<u64> {
        let total = self.plan.total;
        total.min(self.plan.steps.saturating_mul(self.rank.ranks.into()))..total
    }

    /// Number of batches that are dropped because they are not full, one at most for each device.
    pub fn short_batches(&self) -> usize {
        let size = u64::from(self.options.batch_size);
        let is_short = |share: &&Share| !share.positions.is_multiple_of(size);
        if self.options.drop_last { self.plan.shares.iter().filter(is_short).count() } else { 0 }
    }

    /// Whether a batch repeats the samples of another so that all ranks have the same number.
    pub fn is_padding(&self, batch: u32) -> bool {
        let repeats =
            |(device, n): (u16, u32)| u64::from(n) >= self.plan.shares[usize::from(device)].own;
        if self.plan.interleave.is_none() {
            return u64::from(batch) < self.batches() && self.place_of(batch) >= self.plan.total;
        }
        u64::from(batch) < self.batches() && repeats(self.holder(batch))
    }

    /// Positions that are in no batch of any rank.
    pub fn left_out(&self) -> u64 {
        if !self.options.drop_last {
            return 0;
        }
        let whole = self.plan.steps * u64::from(self.rank.ranks);
        self.positions() - whole * u64::from(self.options.batch_size)
    }

    /// Number of devices that hold different samples; 1 where all hold the same.
    pub fn devices(&self) -> u32 {
        self.holders.devices()
    }

    /// Batches of this rank that a device holds; 0 if the device does not exist.
    pub fn count(&self, device: u16) -> u64 {
        self.plan.shares.get(usize::from(device)).map_or(0, Share::len)
    }

    /// The device that holds a batch, and the ordinal of the batch among its batches for this rank.
    /// Panics if the batch does not exist.
    pub fn holder(&self, batch: u32) -> (u16, u32) {
        let batches = self.batches();
        assert!(u64::from(batch) < batches, "batch {batch} is not in 0..{batches}");
        let Some(interleave) = &self.plan.interleave else { return (0, batch) };
        let (device, n) = interleave.holder(batch.into());
        (device, u32::try_from(n).expect("a device has no more batches than there are"))
    }

    /// The n-th batch that a device holds for this rank: the inverse of [`Self::holder`]. Panics
    /// when `n >= count(device)`, or in an epoch of more than 2^32 batches.
    pub fn nth(&self, device: u16, n: u32) -> u32 {
        assert!(u64::from(n) < self.count(device), "device {device} has no batch {n}");
        let Some(interleave) = &self.plan.interleave else { return n };
        u32::try_from(interleave.nth(device, n.into())).expect("an epoch has at most 2^32 batches")
    }

    /// The order of an epoch.
    pub fn order(&self, epoch: u32) -> EpochOrder {
        self.plan.positions.order(epoch)
    }

    /// Number of samples in batch `batch`: only the last batch of a device may be short; 0 if the
    /// batch does not exist.
    pub fn batch_len(&self, batch: u32) -> u32 {
        self.place(batch).map_or(0, |place| self.len_of(place))
    }

    /// The samples of a batch, in batch order.
    pub fn samples_of<'o>(
        &self,
        order: &'o EpochOrder,
        batch: u32,
    ) -> impl Iterator<Item = u64> + use<'o> {
        self.entries_of(order, batch).map(|entry| entry.sample)
    }

    /// The samples of a batch with the keys of their random parameters, in batch order.
    pub fn entries_of<'o>(
        &self,
        order: &'o EpochOrder,
        batch: u32,
    ) -> impl Iterator<Item = Entry> + use<'o> {
        let place = self.place(batch);
        let device = place.map_or(0, |place| place.device);
        let len = place.map_or(0, |place| self.len_of(place));
        let start = place.map_or(0, |place| place.of_device * u64::from(self.options.batch_size));
        let overall = self.plan.positions.overall(device, start);
        let has_repeats = self.sampling.has_repeats();
        order.samples_from(device, start, len).zip(overall..).map(move |(sample, position)| Entry {
            sample,
            key: if has_repeats { position } else { sample },
        })
    }

    /// Candidates to replace a damaged sample, in order; never the damaged sample itself.
    ///
    /// They are the [`candidates`] of the whole dataset or, if the sampler leaves samples out, the
    /// samples at pseudo-random positions of the epoch.
    pub fn replacements<'o>(
        &self,
        order: &'o EpochOrder,
        epoch: u32,
        damaged: u64,
    ) -> impl Iterator<Item = u64> + use<'o> {
        let is_any = self.sampling.is_of_every_sample();
        let of_dataset = if is_any { self.samples() } else { 0 };
        let of_epoch = if is_any { 0 } else { self.positions() };
        let seed = self.options.seed;
        let plan = Arc::clone(&self.plan);
        let at_positions = candidates_among(seed, epoch, damaged, of_epoch).map(move |overall| {
            let (device, position) = plan.positions.of_overall(overall);
            order.sample_at(device, position)
        });
        let others = at_positions.filter(move |sample| *sample != damaged);
        candidates(seed, epoch, damaged, of_dataset).chain(others)
    }

    fn len_of(&self, place: BatchOrigin) -> u32 {
        let size = u64::from(self.options.batch_size);
        let share = &self.plan.shares[usize::from(place.device)];
        // The product is below the positions, as every batch has at least one.
        let len = (share.positions - place.of_device * size).min(size);
        u32::try_from(len).expect("a batch is no longer than batch_size")
    }

    /// Number of a batch among those of all ranks and devices, which keys its random parameters; a
    /// repeated batch has the number of the original. Panics if the batch does not exist.
    pub fn number(&self, batch: u32) -> u64 {
        self.place(batch).expect("the epoch has the batch").number
    }

    /// Position in the sequence of all batches; past its end for a repeated batch. Only with one
    /// device.
    fn place_of(&self, batch: u32) -> u64 {
        u64::from(batch) * u64::from(self.rank.ranks) + u64::from(self.rank.rank)
    }

    fn place(&self, batch: u32) -> Option<BatchOrigin> {
        if u64::from(batch) >= self.batches() {
            return None;
        }
        let Some(interleave) = &self.plan.interleave else {
            let number = self.place_of(batch) % self.plan.total;
            return Some(BatchOrigin { device: 0, of_device: number, number });
        };
        let (device, n) = interleave.holder(batch.into());
        let share = &self.plan.shares[usize::from(device)];
        let in_row = match share.repeated {
            Some(repeated) if n == share.own => repeated,
            _ => share.first + n * u64::from(self.rank.ranks),
        };
        Some(BatchOrigin { device, of_device: in_row - share.begin, number: in_row })
    }
}

impl EpochLayout {
    fn new(
        options: &BatchOptions,
        sampling: &Sampling,
        rank: Rank,
        holders: &Holders,
    ) -> Result<Self, InterleaveError> {
        let size = u64::from(options.batch_size);
        let batches_of = |positions: u64| match options.drop_last {
            true => positions / size,
            false => positions.div_ceil(size),
        };
        let positions = Positions::new(sampling, holders, (options.batch_size, options.seed));
        let held: Vec<u64> = positions.lengths().collect();
        let ranks = u64::from(rank.ranks);
        let total: u64 = held.iter().copied().map(batches_of).sum();
        let steps = if options.drop_last { total / ranks } else { total.div_ceil(ranks) };
        // A position in the sequence that is repeated for this rank.
        let beyond = u128::from(steps) * u128::from(ranks) + u128::from(rank.rank);
        let beyond = u64::try_from(beyond).ok().and_then(|place| place.checked_sub(ranks));
        let repeated = beyond.filter(|place| total > 0 && *place >= total);
        let repeated = repeated.map(|place| place % total);
        // The sequence ends there for all ranks.
        let end = total.min(steps.saturating_mul(ranks));
        let mut begin = 0;
        let shares: Vec<Share> = held
            .into_iter()
            .map(|positions| {
                let after = begin + batches_of(positions);
                let to_first = (u64::from(rank.rank) + ranks - begin % ranks) % ranks;
                let first = begin.saturating_add(to_first);
                let own = after.min(end).saturating_sub(first).div_ceil(ranks);
                let repeated = repeated.filter(|place| (begin..after).contains(place));
                let share = Share { positions, begin, first, own, repeated };
                begin = after;
                share
            })
            .collect();
        let counts: Vec<u64> = shares.iter().map(Share::len).collect();
        let several = holders.devices_held().is_some();
        let interleave = several.then(|| Interleave::new(&counts, options.seed)).transpose()?;
        Ok(Self { positions, total, steps, shares, interleave })
    }
}

impl Share {
    /// Batches of this rank.
    fn len(&self) -> u64 {
        self.own + u64::from(self.repeated.is_some())
    }
}

#[cfg(test)]
mod tests;
