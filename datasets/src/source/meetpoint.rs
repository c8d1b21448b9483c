//! Another Meetpoint dataset: all of its samples, or those that a [`Selection`] names.
//!
//! A coefficient form is converted back to the original file. Each sample is compared with its
//! checksum; one that differs is unreadable, and reading continues.

use super::{
    Content, Entry, Finished, Item, SampleOrigin, Size, Source, SourceOptions, SourceSchema,
};
use crate::store::StorePath;
use crate::{Error, LeftOut};
use arrow_array::RecordBatch;
use glob::Pattern;
use meetpoint_format::dataset::{ContentKind, MANIFEST_NAME};
use meetpoint_format::split_mix::SplitMix64;
use meetpoint_prepare::Dataset;
use std::ops::Range;
use std::sync::Arc;

/// The samples to take from a dataset, by default all. A sample must pass every condition.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection {
    /// Samples by their index in the dataset.
    pub range: Option<Range<u64>>,
    /// A pattern of keys: `*`, `?`, `[…]`; `*` also matches slashes.
    pub keys: Option<String>,
    /// Names of labels; samples without a label do not pass.
    pub labels: Option<Vec<String>>,
    /// Number of samples to choose at random from those that pass all other conditions, and the
    /// seed; their order is retained.
    pub sample: Option<(u64, u64)>,
}

/// Returns the evidence that `path` is a Meetpoint dataset.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    let is_one = path.join(MANIFEST_NAME).is_file()
        && super::arrow::json(&path.join(MANIFEST_NAME))
            .is_ok_and(|manifest| manifest["format"].as_str() == Some("meetpoint-dataset"));
    Ok(is_one.then(|| format!("it holds {MANIFEST_NAME} of a Meetpoint dataset")))
}

/// Opens a dataset with all its samples.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    options.allow_only("a Meetpoint dataset", &[])?;
    open_selection(path, &Selection::default())
}

/// Opens a dataset with the selected samples. Choosing a number of them reads all keys and labels
/// once, and takes 8 bytes per chosen sample.
pub fn open_selection(path: &StorePath, pick: &Selection) -> Result<Box<dyn Source>, Error> {
    let failed = |source| Error::Source { path: path.to_path_buf(), source };
    path.reserve().map_err(failed)?;
    let dataset = Dataset::open_with(path.path(), &|file| path.at(file).open())?;
    let passes = Passes::new(&dataset, pick, path)?;
    let columns = Arc::clone(dataset.columns());
    let mut selected = SelectedSamples {
        schema: SourceSchema::clone(&columns),
        file: path.display().to_string(),
        dataset,
        passes,
        chosen: None,
        next_batch: 0,
        current: None,
    };
    if let Some((count, seed)) = pick.sample {
        selected.choose(count, seed)?;
    }
    Ok(Box::new(selected))
}

/// The conditions that a sample must pass.
struct Passes {
    range: Range<u64>,
    keys: Option<Pattern>,
    labels: Option<Vec<i32>>,
}

impl Passes {
    fn new(dataset: &Dataset, pick: &Selection, path: &StorePath) -> Result<Self, Error> {
        let fault = |problem: String| super::rows::malformed(path, None, problem);
        let all = dataset.len();
        let range = pick.range.clone().unwrap_or(0..all);
        if range.start > range.end || range.end > all {
            return Err(fault(format!(
                "has {all} samples, and {} to {} are selected",
                range.start, range.end
            )));
        }
        let keys = pick.keys.as_deref().map(Pattern::new).transpose();
        let keys = keys.map_err(|error| fault(format!("a pattern of keys: {error}")))?;
        let known = &dataset.manifest().labels;
        let index = |name: &String| {
            let index = known.iter().position(|label| label == name);
            let index = index.and_then(|index| i32::try_from(index).ok());
            index.ok_or_else(|| {
                let some: Vec<&str> = known.iter().take(20).map(String::as_str).collect();
                fault(format!("has no label {name:?}; it has {}", some.join(", ")))
            })
        };
        let labels = pick.labels.as_ref();
        let labels = labels.map(|names| names.iter().map(index).collect()).transpose()?;
        Ok(Self { range, keys, labels })
    }

    fn take(&self, sample: u64, key: &str, label: Option<i32>) -> bool {
        self.range.contains(&sample)
            && self.keys.as_ref().is_none_or(|pattern| pattern.matches(key))
            && self
                .labels
                .as_ref()
                .is_none_or(|labels| label.is_some_and(|label| labels.contains(&label)))
    }
}

/// The selected samples of a dataset.
struct SelectedSamples {
    dataset: Dataset,
    schema: SourceSchema,
    file: String,
    passes: Passes,
    /// The chosen samples, in order, if a number of them was requested.
    chosen: Option<Vec<u64>>,
    next_batch: usize,
    current: Option<Current>,
}

/// A record batch.
struct Current {
    first_sample: u64,
    keys: Vec<String>,
    extra: Option<Arc<RecordBatch>>,
    row: usize,
}

impl SelectedSamples {
    /// Chooses `count` of the samples that pass, all such sets being equally likely, by reservoir
    /// sampling.
    fn choose(&mut self, count: u64, seed: u64) -> Result<(), Error> {
        let mut chosen: Vec<u64> = Vec::new();
        let mut random = SplitMix64::new(seed);
        let mut seen = 0u64;
        for batch in 0..self.dataset.record_batches() {
            let rows = self.dataset.keyed_rows(batch)?;
            for (row, key) in rows.keys.iter().enumerate() {
                let sample = rows.first_sample + row as u64;
                let label = self.dataset.locate(sample)?.label;
                if !self.passes.take(sample, key, label) {
                    continue;
                }
                seen += 1;
                if (chosen.len() as u64) < count {
                    chosen.push(sample);
                } else {
                    let place = below(&mut random, seen);
                    if place < count {
                        chosen[place as usize] = sample;
                    }
                }
            }
        }
        chosen.sort_unstable();
        self.chosen = Some(chosen);
        Ok(())
    }

    fn enter(&self, batch: usize) -> Result<Current, Error> {
        let rows = self.dataset.keyed_rows(batch)?;
        let extra = if self.schema.extra.fields().is_empty() {
            None
        } else {
            Some(Arc::new(self.dataset.extra(batch, None)?))
        };
        Ok(Current { first_sample: rows.first_sample, keys: rows.keys, extra, row: 0 })
    }

    /// Whether a record batch can contain selected samples.
    fn is_wanted(&self, batch: usize) -> bool {
        let samples = self.dataset.samples_of(batch);
        let range = &self.passes.range;
        let overlaps = samples.start < range.end && range.start < samples.end;
        overlaps
            && self.chosen.as_ref().is_none_or(|chosen| {
                let first = chosen.partition_point(|sample| *sample < samples.start);
                chosen.get(first).is_some_and(|sample| *sample < samples.end)
            })
    }

    fn entry(&self, current: &Current, row: usize) -> Result<Option<Entry>, Error> {
        let sample = current.first_sample + row as u64;
        let key = &current.keys[row];
        let label = self.dataset.locate(sample)?.label;
        let is_chosen = match &self.chosen {
            Some(chosen) => chosen.binary_search(&sample).is_ok(),
            None => self.passes.take(sample, key, label),
        };
        if !is_chosen {
            return Ok(None);
        }
        let member = Some(format!("sample {sample}"));
        let origin = SampleOrigin { file: self.file.clone(), member, offset: None };
        let content = if self.schema.kind == ContentKind::None {
            Vec::new()
        } else {
            match self.dataset.read_file(sample) {
                Ok(bytes) => bytes,
                Err(error) => {
                    let reason = error.to_string().into();
                    return Ok(Some(Entry::Unreadable(LeftOut { path: key.clone(), reason })));
                }
            }
        };
        let extra = current.extra.as_ref().map(|extra| (Arc::clone(extra), row));
        let content = Content::Bytes(content);
        Ok(Some(Entry::Sample(Box::new(Item { key: key.clone(), origin, content, label, extra }))))
    }
}

impl Source for SelectedSamples {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        let is_counted = self.passes.keys.is_none() && self.passes.labels.is_none();
        let samples = match &self.chosen {
            Some(chosen) => Some(chosen.len() as u64),
            None => is_counted.then(|| self.passes.range.end - self.passes.range.start),
        };
        let is_all = samples == Some(self.dataset.len());
        Size { samples, bytes: is_all.then(|| self.dataset.manifest().image_bytes) }
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => {
                    let batch = self.next_batch;
                    if batch == self.dataset.record_batches() {
                        return Ok(None);
                    }
                    self.next_batch += 1;
                    if !self.is_wanted(batch) {
                        continue;
                    }
                    self.enter(batch)?
                }
            };
            while current.row < current.keys.len() {
                let row = current.row;
                current.row += 1;
                if let Some(entry) = self.entry(&current, row)? {
                    self.current = Some(current);
                    return Ok(Some(entry));
                }
            }
        }
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        Ok(Finished { labels: self.dataset.manifest().labels.clone(), ..Finished::default() })
    }
}

/// A number below `bound`: the upper half of a product, whose bias is below 2⁻⁴⁰ here.
fn below(random: &mut SplitMix64, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}
