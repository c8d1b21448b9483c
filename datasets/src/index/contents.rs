//! Whether the files that content stays in are what they were: each is held against its length and
//! time, and each sample in it against its checksum.

use crate::Error;
use crate::verify::{Place, Problem};
use crate::walk::{Sample, Visited, each_sample, threads};
use meetpoint_format::dataset::{MANIFEST_NAME, SampleLocation};
use meetpoint_prepare::{Dataset, Error as ReadError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a sample was found to be.
type Found = (Option<SampleLocation>, Result<u64, ReadError>);

/// What is wrong with the files that the content of a dataset in place stays in; nothing where the
/// content is in the parts. `progress` is told the bytes that were read.
pub fn check_contents(
    dataset: &Dataset,
    asked_threads: usize,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Problem>, Error> {
    if dataset.content_root().is_none() {
        return Ok(Vec::new());
    }
    // By file and, for damage inside of one, by sample; file by file it is told once.
    let mut problems = BTreeMap::new();
    let mut sum = 0;
    let visit = |_: &mut (), sample: &Sample| -> Found {
        match dataset.locate(sample.index) {
            Err(error) => (None, Err(error)),
            Ok(location) => {
                let read = dataset.read_located(sample.index, &location);
                (Some(location), read.map(|bytes| bytes.len() as u64))
            }
        }
    };
    each_sample(dataset, threads(asked_threads), &|| (), &visit, &mut |visited| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let Visited { sample, result: (location, read) } =
            visited.map_err(|unread| unread.error)?;
        match read {
            Ok(bytes) => {
                sum += bytes;
                progress(bytes);
            }
            Err(error) => {
                let (order, problem) = problem_of(dataset, sample, location, &error);
                problems.entry(order).or_insert(problem);
            }
        }
        Ok(())
    })?;
    let mut problems: Vec<Problem> = problems.into_values().collect();
    let said = dataset.manifest().image_bytes;
    if problems.is_empty() && sum != said {
        problems.push(Problem {
            file: MANIFEST_NAME.to_owned(),
            place: Place::File,
            problem: format!("image_bytes is {said}, the files have {sum}; index anew"),
        });
    }
    Ok(problems)
}

/// What is wrong, and where it comes in the order of all.
fn problem_of(
    dataset: &Dataset,
    sample: Sample,
    location: Option<SampleLocation>,
    error: &ReadError,
) -> ((String, Option<u64>), Problem) {
    let file = match location.as_ref().map(|location| dataset.content_path(location)) {
        Some(path) => path.display().to_string(),
        None => MANIFEST_NAME.to_owned(),
    };
    let error = match error {
        ReadError::InPlace { source, .. } => source,
        other => other,
    };
    let of_file = matches!(error, ReadError::ContentChanged { .. } | ReadError::Content { .. });
    let row = location.filter(|_| !of_file).map(|location| location.row);
    let (place, order) = match row {
        Some(row) => (Place::Row { row, key: sample.key }, Some(sample.index)),
        None => (Place::File, None),
    };
    let said = error.to_string();
    // It is told behind the file.
    let problem = said.strip_prefix(&format!("{file}: ")).unwrap_or(&said).to_owned();
    ((file.clone(), order), Problem { file, place, problem })
}
