//! Splits a dataset into several disjoint ones that together contain all of it.

use super::column::{Values, name_of_value};
use super::copy::{CopySummary, DatasetWrite};
use super::copy_options::{CopyOptions, Progress};
use super::draw::{Strata, apportion};
use super::gather::{Input, InputSample};
use crate::Error;
use crate::error::OperationError;
use crate::share::Share;
use meetpoint_diagnose::{Remedy, Setting};
use meetpoint_prepare::Dataset;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How a dataset is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitBy {
    /// At random, each part with its share of the sum of all shares.
    Shares {
        /// The destination and share of each part.
        parts: Vec<(PathBuf, Share)>,
        /// Whether every label is split in these shares, not only all samples together.
        stratify: bool,
        /// Seed of the random choice.
        seed: u64,
    },
    /// One part for each value of a column, in a folder and named after the value.
    Column {
        /// Name of the column, or `label`.
        column: String,
        /// Folder for the parts; created if it does not exist.
        folder: PathBuf,
    },
}

/// A part before it is written.
struct Planned {
    to: PathBuf,
    samples: u64,
}

/// Splits `from`. The order of samples does not change; every part has all labels, so a label has
/// the same number in each.
///
/// Parts appear one after another, each complete or not at all. With the same seed and shares the
/// split is the same, whatever the paths are called.
pub fn split(
    from: &Path,
    by: &SplitBy,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<CopySummary>, Error> {
    let inputs = [Input::plain(Dataset::open(from)?)];
    match by {
        SplitBy::Shares { parts, stratify, seed } => {
            by_shares(&inputs, parts, *stratify, *seed, options, progress)
        }
        SplitBy::Column { column, folder } => by_column(&inputs, column, folder, options, progress),
    }
}

fn by_shares(
    inputs: &[Input; 1],
    parts: &[(PathBuf, Share)],
    stratify: bool,
    seed: u64,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<CopySummary>, Error> {
    if parts.len() < 2 {
        let problem = format!("{} part is not a split", parts.len());
        return Err(OperationError::Shares { problem }.into());
    }
    let mut names = HashSet::new();
    if let Some((path, _)) = parts.iter().find(|(path, _)| !names.insert(path)) {
        let problem = format!("{} is named twice", path.display());
        return Err(OperationError::Shares { problem }.into());
    }
    let dataset = &inputs[0].dataset;
    let strata = match stratify {
        true => Strata::by_label(dataset, Setting::Stratify)?,
        false => Strata::whole(dataset),
    };
    let shares: Vec<Share> = parts.iter().map(|(_, share)| *share).collect();
    let sizes = apportion(&strata.counts, &shares);
    let planned = parts.iter().enumerate().map(|(part, (path, _))| {
        let samples = sizes.iter().map(|sizes| sizes[part]).sum();
        Planned { to: path.clone(), samples }
    });
    let said = vec![
        ("shares", shares.iter().map(Share::to_string).collect::<Vec<_>>().join(",")),
        ("stratify", stratify.to_string()),
        ("seed", seed.to_string()),
    ];
    let pick = |part: usize| {
        let sizes = &sizes;
        let picks = strata.places(dataset, seed).filter_map(move |place| match place {
            Ok(place) => {
                let before: u64 = sizes[place.stratum][..part].iter().sum();
                let own = before..before + sizes[place.stratum][part];
                own.contains(&place.place)
                    .then_some(Ok(InputSample { input: 0, sample: place.sample }))
            }
            Err(error) => Some(Err(error)),
        });
        Box::new(picks) as Box<dyn Iterator<Item = _> + Send>
    };
    write(inputs, &planned.collect::<Vec<_>>(), &said, &pick, options, progress)
}

fn by_column(
    inputs: &[Input; 1],
    column: &str,
    folder: &Path,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<CopySummary>, Error> {
    let dataset = &inputs[0].dataset;
    let values = Values::of(dataset, column)?;
    let mut planned = Vec::new();
    for (value, samples) in values.counts()? {
        let name = name_of_value(column, value.as_deref())?;
        planned.push((value, Planned { to: folder.join(name), samples }));
    }
    let (names, planned): (Vec<_>, Vec<_>) = planned.into_iter().unzip();
    let made = |source| Error::Write { path: folder.to_path_buf(), source };
    std::fs::create_dir_all(folder).map_err(made)?;
    let said = vec![("by", column.to_owned())];
    let pick = |part: usize| {
        let wanted = names[part].clone();
        let picks = values.each().filter_map(move |value| match value {
            Ok((sample, value)) => {
                (value == wanted).then_some(Ok(InputSample { input: 0, sample }))
            }
            Err(error) => Some(Err(error)),
        });
        Box::new(picks) as Box<dyn Iterator<Item = _> + Send>
    };
    write(inputs, &planned, &said, &pick, options, progress)
}

type PicksOfPart<'a> =
    dyn Fn(usize) -> Box<dyn Iterator<Item = Result<InputSample, Error>> + Send + 'a> + 'a;

/// Writes the parts one after another.
fn write<'a>(
    inputs: &'a [Input; 1],
    planned: &[Planned],
    said: &[(&'static str, String)],
    picks: &PicksOfPart<'a>,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<CopySummary>, Error> {
    if let Some(part) = planned.iter().find(|part| part.samples == 0) {
        let what = part.to.display().to_string();
        let remedy = Remedy::advice("give it a larger share").or("leave it out");
        return Err(OperationError::Empty { what, remedy }.into());
    }
    // All destinations are checked before anything is written.
    let may_not_be_there = !options.force && !options.resume;
    if let Some(part) = planned.iter().find(|part| may_not_be_there && part.to.exists()) {
        return Err(Error::Exists { path: part.to.clone() });
    }
    let samples = planned.iter().map(|part| part.samples).sum();
    let mut before = Progress { samples, ..Progress::default() };
    let mut summaries = Vec::new();
    for (number, part) in planned.iter().enumerate() {
        let mut options_said = said.to_vec();
        options_said.push(("part", format!("{number}")));
        let write = DatasetWrite {
            name: "split",
            options: options_said,
            inputs,
            samples: part.samples,
            labels: inputs[0].dataset.manifest().labels.clone(),
        };
        let mut last = Progress::default();
        let mut advance = |step: Progress| {
            last = step;
            progress(Progress {
                samples_done: before.samples_done + step.samples_done,
                samples,
                bytes_done: before.bytes_done + step.bytes_done,
            });
        };
        summaries.push(write.copy(&part.to, &mut picks(number), options, &mut advance)?);
        before.samples_done += last.samples_done;
        before.bytes_done += last.bytes_done;
    }
    Ok(summaries)
}
