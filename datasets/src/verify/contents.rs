//! Checks the files of content in place: each is compared with its recorded length and time, and
//! each sample with its checksum.

use super::{DamageLocation, Problem};
use crate::Error;
use crate::threads::threads;
use crate::walk::{Sample, VisitedSample, each_sample};
use meetpoint_format::dataset::{MANIFEST_NAME, SampleLocation};
use meetpoint_prepare::{Dataset, Error as ReadError};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of checking a sample: its location, and the bytes read or the error.
type CheckedSample = (Option<SampleLocation>, Result<u64, ReadError>);

/// The problems of the files that contain the content of a dataset in place; none if the content is
/// in the parts. `progress` receives the number of bytes read.
pub fn check_contents(
    dataset: &Dataset,
    asked_threads: usize,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Problem>, Error> {
    if dataset.content_root().is_none() {
        return Ok(Vec::new());
    }
    // Damage of a whole file is reported once per file, other damage once per sample.
    let mut problems: BTreeMap<(String, Option<u64>), Damage> = BTreeMap::new();
    let mut sum = 0;
    let visit = |_: &mut (), sample: &Sample| -> CheckedSample {
        match dataset.locate(sample.index) {
            Err(error) => (None, Err(error)),
            Ok(location) => {
                let read = dataset.read_located(sample.index, &location);
                (Some(location), read.map(|bytes| bytes.len() as u64))
            }
        }
    };
    each_sample(dataset, threads(asked_threads)?, &|| (), &visit, &mut |visited| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let VisitedSample { sample, result: (location, read) } =
            visited.map_err(|unread| unread.error)?;
        match read {
            Ok(bytes) => {
                sum += bytes;
                progress(bytes);
            }
            Err(error) => {
                let (order, damage) = damage_of(dataset, sample, location, &error);
                match problems.entry(order) {
                    Entry::Vacant(entry) => drop(entry.insert(damage)),
                    Entry::Occupied(mut entry) => entry.get_mut().add(damage),
                }
            }
        }
        Ok(())
    })?;
    let mut problems: Vec<Problem> = problems.into_values().map(Damage::problem).collect();
    let said = dataset.manifest().image_bytes;
    if problems.is_empty() && sum != said {
        problems.push(Problem {
            file: MANIFEST_NAME.to_owned(),
            place: DamageLocation::File,
            problem: format!("image_bytes is {said}, the files have {sum}; index again"),
        });
    }
    Ok(problems)
}

/// A problem, and the samples that it affects.
struct Damage {
    file: String,
    problem: String,
    /// The first of these samples: its index, its row in the part, its key. `None` if the part does
    /// not yield it.
    first: Option<(u64, u64, String)>,
    samples: u64,
}

impl Damage {
    /// Adds the same problem found in other samples, in any order.
    fn add(&mut self, more: Self) {
        self.samples += more.samples;
        let known = self.first.take();
        self.first = match (known, more.first) {
            (Some(known), Some(more)) => Some(known.min(more)),
            (known, more) => known.or(more),
        };
    }

    fn problem(self) -> Problem {
        let Self { file, problem, first, samples } = self;
        match first {
            None => Problem { file, place: DamageLocation::File, problem },
            Some((_, row, key)) if samples == 1 => {
                Problem { file, place: DamageLocation::Row { row, key }, problem }
            }
            Some((_, row, key)) => Problem {
                file,
                place: DamageLocation::File,
                problem: format!("{problem}; it has {samples} samples, from row {row}, key {key}"),
            },
        }
    }
}

/// The problem, and its key in the order of all problems.
fn damage_of(
    dataset: &Dataset,
    sample: Sample,
    location: Option<SampleLocation>,
    error: &ReadError,
) -> ((String, Option<u64>), Damage) {
    let file = match location.as_ref().map(|location| dataset.content_path(location)) {
        Some(path) => path.display().to_string(),
        None => MANIFEST_NAME.to_owned(),
    };
    let error = match error {
        ReadError::InPlace { source, .. } => source,
        other => other,
    };
    let of_file = matches!(error, ReadError::ContentChanged { .. } | ReadError::Content { .. });
    let order = location.as_ref().filter(|_| !of_file).map(|_| sample.index);
    let first = location.map(|location| (sample.index, location.row, sample.key));
    let said = error.to_string();
    // The report already starts with the name of the file.
    let rest = said.strip_prefix(&file).map(|rest| rest.trim_start_matches([':', ' ']));
    let problem = rest.unwrap_or(&said).to_owned();
    ((file.clone(), order), Damage { file, problem, first, samples: 1 })
}
