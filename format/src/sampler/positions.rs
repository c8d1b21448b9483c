//! Random access: from a position of an epoch to the sample, for all samples or those of a device.

use super::buckets::{Batched, BatchedOrder};
use super::cumulative::Cumulative;
use super::mixed::{Mixed, MixedOrder};
use super::race::race;
use super::rule::Rule;
use super::sampling::Sampling;
use super::shares::divide;
use crate::holders::{Held, Holders};
use crate::order::Order;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of epochs whose sorted samples are cached: the one that is consumed, and the next, which
/// devices may begin early.
const EPOCHS_CACHED: usize = 2;

/// Number of positions that are looked up together.
const CHUNK: usize = 64;

/// The positions of a sampler, without what differs between epochs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Positions {
    devices: Vec<DevicePositions>,
    holders: Holders,
    seed: u64,
}

/// The positions of one device, or of all samples if all devices hold the same.
#[derive(Debug, Clone)]
struct DevicePositions {
    length: u64,
    /// Positions of the preceding devices.
    before: u64,
    draws: Draws,
}

/// How positions are mapped to samples, or to indices among those that the device holds.
#[derive(Debug, Clone)]
enum Draws {
    /// Each sample held, once.
    Each {
        shuffle: bool,
    },
    /// Samples of the dataset.
    Listed {
        list: Arc<[u64]>,
        shuffle: bool,
    },
    Cumulative(Arc<Cumulative>),
    Race(Arc<Race>),
    /// Each sample held, several times in succession.
    Repeated {
        held: u64,
        repeats: u64,
    },
    Mixed(Arc<Mixed>),
    /// Samples of the dataset.
    Batched(Arc<Batched>),
}

/// Samples and their positive weights, with the results of the latest epochs.
#[derive(Debug)]
struct Race {
    weights: Vec<(u64, u64)>,
    sorted: Mutex<Vec<(u32, Arc<[u64]>)>>,
}

/// The order of an epoch.
#[derive(Debug, Clone)]
pub struct EpochOrder {
    devices: Vec<DeviceOrder>,
    holders: Holders,
}

/// The order of an epoch of one device, or of all samples if all devices hold the same.
#[derive(Debug, Clone)]
enum DeviceOrder {
    /// Indices among the samples that the device holds.
    Held(Order),
    /// Samples of the dataset.
    Listed(Order, Arc<[u64]>),
    /// Indices among the samples that the device holds.
    Drawn { cumulative: Arc<Cumulative>, seed: u64, epoch: u32, device: u16 },
    /// Indices among the samples that the device holds, each several times in succession.
    Repeated(Order, u64),
    /// Indices among the samples that the device holds.
    Mixed(Arc<Mixed>, MixedOrder),
    /// Samples of the dataset.
    Batched(Arc<Batched>, BatchedOrder),
}

impl Positions {
    /// For the devices of a job with batches of `batch_size` samples.
    pub(crate) fn new(
        sampling: &Sampling,
        holders: &Holders,
        (batch_size, seed): (u32, u64),
    ) -> Self {
        let all = [Held::all(sampling.samples())];
        let held = holders.devices_held().unwrap_or(&all);
        let is_alone = holders.devices_held().is_none();
        let each = match sampling.rule() {
            Rule::Every { shuffle } => {
                let draws = Draws::Each { shuffle: *shuffle };
                held.iter().map(|held| (held.samples(), draws.clone())).collect()
            }
            Rule::Listed { list, shuffle } => {
                let of = |held: &Held| -> Arc<[u64]> {
                    match is_alone {
                        true => Arc::clone(list),
                        false => list.iter().copied().filter(|it| held.holds(*it)).collect(),
                    }
                };
                let listed = |list: Arc<[u64]>| {
                    (list.len() as u64, Draws::Listed { list, shuffle: *shuffle })
                };
                held.iter().map(of).map(listed).collect()
            }
            Rule::WithReplacement { weights, length } => {
                let tables: Vec<Cumulative> =
                    held.iter().map(|it| cumulative(it, weights)).collect();
                let masses: Vec<u128> = tables.iter().map(|it| it.total().into()).collect();
                let lengths = divide(*length, &masses, &vec![u64::MAX; masses.len()]);
                let draws = tables.into_iter().map(|it| Draws::Cumulative(Arc::new(it)));
                lengths.into_iter().zip(draws).collect()
            }
            Rule::WithoutReplacement { weights, length } => {
                let races: Vec<Race> = held.iter().map(|held| Race::new(held, weights)).collect();
                let masses: Vec<u128> = races.iter().map(Race::mass).collect();
                let most: Vec<u64> = races.iter().map(|it| it.weights.len() as u64).collect();
                let lengths = divide(*length, &masses, &most);
                let draws = races.into_iter().map(|race| Draws::Race(Arc::new(race)));
                lengths.into_iter().zip(draws).collect()
            }
            Rule::Repeated { repeats, length } => {
                let masses: Vec<u128> = held.iter().map(|held| held.samples().into()).collect();
                let most = held.iter().map(|held| held.samples().saturating_mul(*repeats));
                let lengths = divide(*length, &masses, &most.collect::<Vec<_>>());
                let draws = held
                    .iter()
                    .map(|held| Draws::Repeated { held: held.samples(), repeats: *repeats });
                lengths.into_iter().zip(draws).collect::<Vec<_>>()
            }
            Rule::Bucketed { buckets, shuffle } => {
                let of = |held: &Held| match is_alone {
                    true => buckets.clone(),
                    false => buckets.of(|sample| held.holds(sample)),
                };
                let batched = |buckets| {
                    let batched = Batched::new(buckets, batch_size, *shuffle);
                    (batched.len(), Draws::Batched(Arc::new(batched)))
                };
                held.iter().map(of).map(batched).collect()
            }
            Rule::Mixture { datasets, shuffle } => {
                let mixed = Mixed::of_devices(held, datasets, *shuffle, seed).into_iter();
                mixed.map(|(length, mixed)| (length, Draws::Mixed(Arc::new(mixed)))).collect()
            }
        };
        let mut before = 0;
        let devices = each.into_iter().map(|(length, draws)| {
            let device = DevicePositions { length, before, draws };
            before += length;
            device
        });
        Self { devices: devices.collect(), holders: holders.clone(), seed }
    }

    /// Positions of each device.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = u64> {
        self.devices.iter().map(|device| device.length)
    }

    /// Index of a device's position among the positions of all devices.
    pub(crate) fn overall(&self, device: u16, position: u64) -> u64 {
        self.devices[usize::from(device)].before + position
    }

    /// The device of a position among those of all devices, and the position on that device. Panics
    /// beyond the last.
    pub(crate) fn of_overall(&self, overall: u64) -> (u16, u64) {
        let after = self.devices.partition_point(|device| device.before <= overall);
        // If devices have no positions, the last match is the one that has some.
        let device = after - 1;
        let position = overall - self.devices[device].before;
        (u16::try_from(device).expect("at most 65536 devices"), position)
    }

    /// The order of an epoch. The first call for an epoch without replacement sorts its samples.
    pub(crate) fn order(&self, epoch: u32) -> EpochOrder {
        let order = |(device, it): (u16, &DevicePositions)| it.order(device, self.seed, epoch);
        let devices = (0..=u16::MAX).zip(&self.devices).map(order).collect();
        EpochOrder { devices, holders: self.holders.clone() }
    }
}

impl DevicePositions {
    fn order(&self, device: u16, seed: u64, epoch: u32) -> DeviceOrder {
        let order = |len, shuffle| match shuffle {
            true => Order::shuffled_of(len, seed, epoch, device),
            false => Order::sequential(len),
        };
        match &self.draws {
            Draws::Each { shuffle } => DeviceOrder::Held(order(self.length, *shuffle)),
            Draws::Listed { list, shuffle } => {
                DeviceOrder::Listed(order(self.length, *shuffle), Arc::clone(list))
            }
            Draws::Cumulative(cumulative) => {
                let cumulative = Arc::clone(cumulative);
                DeviceOrder::Drawn { cumulative, seed, epoch, device }
            }
            Draws::Race(race) => {
                let sorted = race.sorted(self.length, seed, epoch);
                DeviceOrder::Listed(Order::sequential(self.length), sorted)
            }
            Draws::Repeated { held, repeats } => {
                DeviceOrder::Repeated(order(*held, true), *repeats)
            }
            Draws::Batched(batched) => {
                DeviceOrder::Batched(Arc::clone(batched), batched.order(seed, epoch, device))
            }
            Draws::Mixed(mixed) => {
                DeviceOrder::Mixed(Arc::clone(mixed), mixed.order(seed, epoch, device))
            }
        }
    }
}

impl EpochOrder {
    /// The sample at a position of a device. Panics beyond its last.
    pub(crate) fn sample_at(&self, device: u16, position: u64) -> u64 {
        let mut sample = [0];
        self.fill(device, position, &mut sample);
        sample[0]
    }

    /// The samples at `count` consecutive positions of a device, starting at `first`.
    ///
    /// # Panics
    ///
    /// If the range ends beyond the last position of the device.
    pub(crate) fn samples_from(&self, device: u16, first: u64, count: u32) -> Samples<'_> {
        let (left, chunk) = (count.into(), [0; CHUNK]);
        Samples { order: self, device, next: first, left, chunk, taken: 0, filled: 0 }
    }

    fn fill(&self, device: u16, first: u64, out: &mut [u64]) {
        let positions = |out: &mut [u64]| out.iter_mut().zip(first..).for_each(|(it, n)| *it = n);
        match &self.devices[usize::from(device)] {
            DeviceOrder::Held(order) => {
                positions(out);
                order.samples_at(out);
            }
            DeviceOrder::Listed(order, list) => {
                positions(out);
                order.samples_at(out);
                let listed = |at: u64| list[usize::try_from(at).expect("below the list's length")];
                // Lists contain indices in the dataset.
                return out.iter_mut().for_each(|value| *value = listed(*value));
            }
            DeviceOrder::Drawn { cumulative, seed, epoch, device } => {
                cumulative.draw(first, (*seed, *epoch, *device), out);
            }
            DeviceOrder::Repeated(order, repeats) => {
                let (mut n, mut times) = (first / repeats, first % repeats);
                for value in &mut *out {
                    *value = n;
                    times += 1;
                    if times == *repeats {
                        (n, times) = (n + 1, 0);
                    }
                }
                order.samples_at(out);
            }
            DeviceOrder::Mixed(mixed, order) => mixed.fill(order, first, out),
            // These are also indices in the dataset.
            DeviceOrder::Batched(batched, order) => return batched.fill(order, first, out),
        }
        if let Some(held) = self.holders.held(device) {
            out.iter_mut().for_each(|value| *value = held.sample(*value));
        }
    }
}

/// The samples at successive positions, looked up in chunks.
pub(crate) struct Samples<'o> {
    order: &'o EpochOrder,
    device: u16,
    /// The position after the current chunk.
    next: u64,
    /// Number of positions from there on.
    left: u64,
    chunk: [u64; CHUNK],
    taken: usize,
    filled: usize,
}

impl Iterator for Samples<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.taken == self.filled {
            self.filled = self.left.min(CHUNK as u64) as usize;
            let chunk = &mut self.chunk[..self.filled];
            self.order.fill(self.device, self.next, chunk);
            self.taken = 0;
            self.next += self.filled as u64;
            self.left -= self.filled as u64;
        }
        let sample = self.chunk[..self.filled].get(self.taken)?;
        self.taken += 1;
        Some(*sample)
    }
}

impl Race {
    fn new(held: &Held, weights: &[u64]) -> Self {
        let samples = (0..held.samples()).map(|n| held.sample(n));
        let weight = |sample: u64| weights[usize::try_from(sample).expect("it has a weight")];
        let weights = samples.map(|sample| (sample, weight(sample)));
        let weights = weights.filter(|(_, weight)| *weight > 0).collect();
        Self { weights, sorted: Mutex::default() }
    }

    fn mass(&self) -> u128 {
        self.weights.iter().map(|(_, weight)| u128::from(*weight)).sum()
    }

    /// The samples of an epoch, cached for the latest [`EPOCHS_CACHED`].
    fn sorted(&self, length: u64, seed: u64, epoch: u32) -> Arc<[u64]> {
        // The cached list is only pushed to and shortened, so it stays valid after a panic.
        let mut cached = self.sorted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sorted)) = cached.iter().find(|(of, _)| *of == epoch) {
            return Arc::clone(sorted);
        }
        let sorted: Arc<[u64]> = race(&self.weights, length, seed, epoch).into();
        if cached.len() == EPOCHS_CACHED {
            cached.remove(0);
        }
        cached.push((epoch, Arc::clone(&sorted)));
        sorted
    }
}

/// The cumulative weights of the samples that a device holds.
fn cumulative(held: &Held, weights: &[u64]) -> Cumulative {
    let samples = (0..held.samples()).map(|n| held.sample(n));
    Cumulative::new(samples.map(|at| weights[usize::try_from(at).expect("it has a weight")]))
}
