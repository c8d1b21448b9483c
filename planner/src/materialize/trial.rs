//! Prepares a few samples before anything is written, to check whether the rest of the recipe is
//! bit-identical to the whole, and to estimate the bytes of all samples.

use super::{PrepareOptions, StoredSampleBuilder, why_left_out};
use crate::Error;
use meetpoint_datasets::Writer;
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use meetpoint_prepare::{Dataset, OnePreparer};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Number of samples to prepare, spread evenly over the dataset.
const SAMPLES: u64 = 8;

/// Prepares the samples; unreadable ones are left to the main work.
pub(super) fn run(
    dataset: &Dataset,
    recipe: &Recipe,
    to: &Path,
    options: &PrepareOptions,
) -> Result<(), Error> {
    let operations = options.point.operations;
    let beginning = recipe.beginning(operations);
    let cpu = Cpu::detect();
    let mut builder = StoredSampleBuilder::new(dataset, &beginning, options)?;
    let mut first = OnePreparer::new(dataset, &beginning, cpu)?;
    let mut whole = OnePreparer::new(dataset, recipe, cpu)?;
    let mut rest = SamplePreparer::new(recipe, cpu);
    let (mut bytes, mut tried) = (0, 0);
    let all = dataset.len();
    for number in 0..SAMPLES.min(all) {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let sample = number * (all / SAMPLES.min(all));
        let content = match builder.build(dataset, sample) {
            Ok(content) => content,
            Err(error) if why_left_out(&error).is_some() => continue,
            Err(error) => return Err(error),
        };
        bytes += content.len() as u64;
        tried += 1;
        if options.is_jpeg() {
            continue;
        }
        let id = SampleId { seed: 0, epoch: 0, sample };
        let key = || dataset.key(sample).unwrap_or_else(|_| format!("at index {sample}"));
        let strategy = || options.point.to_string();
        let beginning = first.prepare(sample, id)?;
        let resumed = rest
            .resume(operations_number(recipe, operations), (&beginning.spec, &beginning.data), id)
            .map_err(|source| Error::Sample { strategy: strategy(), key: key(), source })?;
        if resumed != whole.prepare(sample, id)? {
            return Err(Error::NotIdentical { strategy: strategy(), key: key() });
        }
    }
    if tried == 0 {
        return Ok(());
    }
    let needed = u64::try_from(u128::from(bytes) * u128::from(all) / tried).unwrap_or(u64::MAX);
    let folder = std::path::absolute(to).unwrap_or_else(|_| to.to_path_buf());
    let folder = folder.parent().unwrap_or(&folder);
    let found = rustix::fs::statvfs(folder).map_err(|source| Error::Io {
        action: "open",
        path: folder.to_path_buf(),
        source: source.into(),
    })?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let retained = if options.resume { Writer::retained_bytes(to)? } else { 0 };
    if !fits(needed, free, retained) {
        let folder = folder.to_path_buf();
        let point = options.point.to_string();
        return Err(Error::Destination { folder, samples: all, point, needed, free });
    }
    Ok(())
}

/// Whether this number of bytes can be stored; those of a resumed command are stored already.
fn fits(needed: u64, free: u64, retained: u64) -> bool {
    needed.saturating_sub(retained) <= free
}

/// The number of the first operation after the cut, counting contained operations.
fn operations_number(recipe: &Recipe, operations: usize) -> usize {
    meetpoint_kernels::numbers_of(&recipe.operations()[..operations])
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn parts_of_a_stopped_command_reduce_the_needed_space() {
        assert!(!fits(11, 8, 0));
        assert!(fits(11, 8, 6));
        assert!(!fits(11, 4, 6));
        assert!(fits(11, 0, 12));
    }
}
