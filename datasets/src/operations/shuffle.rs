//! A dataset in another, random order.

use super::copy::{CopySummary, DatasetWrite};
use super::copy_options::{CopyOptions, Progress};
use super::gather::{Input, InputSample};
use crate::Error;
use meetpoint_format::order::Order;
use meetpoint_prepare::Dataset;
use std::path::Path;

/// Writes the samples of `from` to `to` in the order of epoch 0 with this seed:
/// sample `i` of the result is sample `Order::shuffled(n, seed, 0).sample_at(i)`.
///
/// The shuffle is global: it covers all samples, whatever the amount of memory.
pub fn shuffle(
    from: &Path,
    to: &Path,
    seed: u64,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<CopySummary, Error> {
    let dataset = Dataset::open(from)?;
    let order = Order::shuffled(dataset.len(), seed, 0);
    let labels = dataset.manifest().labels.clone();
    let samples = dataset.len();
    let mut picks =
        (0..samples).map(|place| Ok(InputSample { input: 0, sample: order.sample_at(place) }));
    let write = DatasetWrite {
        name: "shuffle",
        options: vec![("seed", seed.to_string())],
        inputs: &[Input::plain(dataset)],
        samples,
        labels,
    };
    write.copy(to, &mut picks, options, progress)
}
