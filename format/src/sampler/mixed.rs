//! Random access to a mixture: the dataset of a position, and the sample in it.
//!
//! The datasets are interleaved like the batches of devices, so how many positions of a dataset
//! precede another position is computed, without a table. Position n of a dataset holds sample n
//! mod (number of samples) of that dataset's order, and every pass over the dataset has another
//! order.

use super::rule::DatasetShare;
use super::shares::divide;
use crate::holders::Held;
use crate::interleave::Interleave;
use crate::order::Order;

/// Number of datasets up to which filling a batch allocates nothing.
const CHUNK: usize = 64;

/// A mixture on one device, or on all samples if all devices hold the same.
#[derive(Debug)]
pub(super) struct Mixed {
    /// By dataset.
    held: Vec<DeviceShare>,
    interleave: Interleave,
    shuffle: bool,
}

/// What a device holds of a dataset.
#[derive(Debug, Clone, Copy)]
struct DeviceShare {
    /// Samples of other datasets that precede them on the device.
    before: u64,
    samples: u64,
}

/// The order of an epoch of a mixture.
#[derive(Debug, Clone)]
pub(super) struct MixedOrder {
    /// By dataset, for the first pass.
    orders: Vec<Order>,
}

impl Mixed {
    /// For each of the devices, with its number of positions.
    pub(super) fn of_devices(
        held: &[Held],
        datasets: &[DatasetShare],
        shuffle: bool,
        seed: u64,
    ) -> Vec<(u64, Self)> {
        let mut lengths = vec![Vec::with_capacity(datasets.len()); held.len()];
        let mut parts = vec![Vec::with_capacity(datasets.len()); held.len()];
        let mut first = 0;
        for share in datasets {
            let end = first + share.samples;
            let of_device = |held: &Held| {
                let before = held.before(first);
                DeviceShare { before, samples: held.before(end) - before }
            };
            let of_devices: Vec<DeviceShare> = held.iter().map(of_device).collect();
            let masses: Vec<u128> = of_devices.iter().map(|it| it.samples.into()).collect();
            let passes = share.passes();
            let most: Vec<u64> =
                of_devices.iter().map(|it| it.samples.saturating_mul(passes)).collect();
            let divided = divide(share.length, &masses, &most);
            for (device, (part, length)) in of_devices.into_iter().zip(divided).enumerate() {
                parts[device].push(part);
                lengths[device].push(length);
            }
            first = end;
        }
        let of_device = |(held, lengths): (Vec<DeviceShare>, Vec<u64>)| {
            let interleave = Interleave::new(&lengths, seed);
            let interleave = interleave.expect("the rule limits datasets and positions");
            (interleave.len(), Self { held, interleave, shuffle })
        };
        parts.into_iter().zip(lengths).map(of_device).collect()
    }

    pub(super) fn order(&self, seed: u64, epoch: u32, device: u16) -> MixedOrder {
        let order = |(dataset, held): (u16, &DeviceShare)| match self.shuffle {
            true => Order::of_dataset(held.samples, seed, epoch, device, dataset),
            false => Order::sequential(held.samples),
        };
        MixedOrder { orders: (0..).zip(&self.held).map(order).collect() }
    }

    /// The samples at the positions from `first` on, as indices among those that the device holds.
    pub(super) fn fill(&self, order: &MixedOrder, first: u64, out: &mut [u64]) {
        let mut datasets = [0_u16; CHUNK];
        let mut passes = [0_u64; CHUNK];
        let mut positions = self.interleave.from(first);
        for chunk in out.chunks_mut(CHUNK) {
            for (at, value) in chunk.iter_mut().enumerate() {
                let (dataset, n) = positions.next().expect("positions of the epoch");
                let samples = self.held[usize::from(dataset)].samples;
                datasets[at] = dataset;
                // Most positions are in the first pass, and divisions are slow.
                (passes[at], *value) =
                    if n < samples { (0, n) } else { (n / samples, n % samples) };
            }
            Order::samples_of(chunk, |at| {
                order.orders[usize::from(datasets[at])].of_pass(passes[at])
            });
            for (value, dataset) in chunk.iter_mut().zip(datasets) {
                *value += self.held[usize::from(dataset)].before;
            }
        }
    }
}
