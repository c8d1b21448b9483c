//! Compares two datasets sample by sample, by their keys.
//!
//! Memory: 24 bytes per sample of each dataset and 16 per pair, in addition to that of open
//! datasets.

use super::copy_options::Progress;
use super::gather::carried;
use super::merge::difference;
use crate::Error;
use crate::jpeg::form_of;
use crate::threads::{start_thread, threads};
use arrow_array::RecordBatch;
use meetpoint_format::dataset::{Form, locates_content};
use meetpoint_kernels::{Error as PictureError, Interrupt};
use meetpoint_prepare::{Dataset, abandoning, original_until};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// How to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffOptions {
    /// Maximum number of samples of each kind that are listed; all are counted.
    pub named_max: usize,
    /// Treat contents with the same length and checksum as equal, without reading them.
    pub trust_checksums: bool,
    /// Threads that read; 0 for one per processor.
    pub threads: usize,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { named_max: 100, trust_checksums: false, threads: 0 }
    }
}

/// The differences.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// The first dataset.
    pub left: PathBuf,
    /// The second.
    pub right: PathBuf,
    /// Samples that are the same in both.
    pub same: u64,
    /// Of these, samples whose file is stored in different forms.
    pub other_form: u64,
    /// Samples only the first one has.
    pub only_left: Keys,
    /// Samples only the second one has.
    pub only_right: Keys,
    /// Samples that both have and that differ.
    pub changed: u64,
    /// The first of them, in the order of the first dataset.
    pub changed_named: Vec<Changed>,
    /// The first column that only one dataset has, or whose types differ, as text.
    pub columns: Option<String>,
    /// Whether the names of the labels, or their order, differ.
    pub label_names: bool,
    /// The first common sample whose position among the common samples differs.
    pub order: Option<MovedSample>,
}

/// Keys of samples.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Keys {
    /// Their number.
    pub samples: u64,
    /// The first of them.
    pub named: Vec<String>,
}

/// A sample that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Changed {
    /// Its index in the first dataset.
    pub left: u64,
    /// Its index in the second.
    pub right: u64,
    /// Its key.
    pub key: String,
    /// What differs: `content`, `label`, `column NAME`, or why it cannot be read.
    pub what: Vec<String>,
}

/// A sample at another position.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MovedSample {
    /// Its key.
    pub key: String,
    /// Its index in the first dataset.
    pub left: u64,
    /// Its index in the second.
    pub right: u64,
}

impl Difference {
    /// Whether there is no difference: the same samples with the same content, labels and columns
    /// in the same order.
    pub fn is_empty(&self) -> bool {
        self.only_left.samples == 0
            && self.only_right.samples == 0
            && self.changed == 0
            && self.columns.is_none()
            && !self.label_names
            && self.order.is_none()
    }
}

/// A sample that both datasets have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    left: u64,
    right: u64,
}

/// Compares two datasets. Entry points follow from the content and are not compared.
pub fn diff(
    left: &Path,
    right: &Path,
    options: &DiffOptions,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Difference, Error> {
    let (lefts, rights) = (Dataset::open(left)?, Dataset::open(right)?);
    let (left_keys, right_keys) = (keyed(&lefts, stop)?, keyed(&rights, stop)?);
    let (mut pairs, mut only_left, mut only_right) = join(&left_keys, &right_keys);
    drop((left_keys, right_keys));
    pairs.sort_unstable();
    let mut found = Difference {
        left: left.to_path_buf(),
        right: right.to_path_buf(),
        same: 0,
        other_form: 0,
        only_left: named(&lefts, &mut only_left, options.named_max)?,
        only_right: named(&rights, &mut only_right, options.named_max)?,
        changed: 0,
        changed_named: Vec::new(),
        columns: difference(&carried(lefts.columns()).0, &carried(rights.columns()).0),
        label_names: lefts.manifest().labels != rights.manifest().labels,
        order: moved(&lefts, &pairs)?,
    };
    let interrupt = abandoning(Interrupt::from(Arc::clone(stop)));
    let datasets = DatasetPair::new(&lefts, &rights, options, interrupt);
    compare_all(&datasets, &pairs, stop, progress, &mut found)?;
    Ok(found)
}

/// Each sample with the first 128 bits of its key's SHA-256, sorted; only equal keys are assumed to
/// have equal ones.
fn keyed(dataset: &Dataset, stop: &AtomicBool) -> Result<Vec<([u8; 16], u64)>, Error> {
    let mut keyed = Vec::new();
    for batch in 0..dataset.record_batches() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let rows = dataset.keyed_rows(batch)?;
        for (sample, key) in (rows.first_sample..).zip(&rows.keys) {
            let digest = Sha256::digest(key.as_bytes());
            keyed.push((digest[..16].try_into().expect("half of 32 bytes"), sample));
        }
    }
    keyed.sort_unstable();
    Ok(keyed)
}

/// Pairs of samples with equal keys, and the samples that only one dataset has.
fn join(lefts: &[([u8; 16], u64)], rights: &[([u8; 16], u64)]) -> (Vec<Pair>, Vec<u64>, Vec<u64>) {
    let (mut pairs, mut only_left, mut only_right) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut other) = (0, 0);
    while at < lefts.len() || other < rights.len() {
        match (lefts.get(at), rights.get(other)) {
            (Some((key, left)), Some((same, right))) if key == same => {
                pairs.push(Pair { left: *left, right: *right });
                (at, other) = (at + 1, other + 1);
            }
            (Some((key, left)), right) if right.is_none_or(|(second, _)| key < second) => {
                only_left.push(*left);
                at += 1;
            }
            (_, Some((_, right))) => {
                only_right.push(*right);
                other += 1;
            }
            (Some(_), None) | (None, None) => unreachable!("a key without another is the least"),
        }
    }
    (pairs, only_left, only_right)
}

fn named(dataset: &Dataset, samples: &mut [u64], named_max: usize) -> Result<Keys, Error> {
    samples.sort_unstable();
    let named = samples.iter().take(named_max).map(|sample| dataset.key(*sample));
    Ok(Keys { samples: samples.len() as u64, named: named.collect::<Result<_, _>>()? })
}

/// The first common sample whose position differs between the datasets.
fn moved(lefts: &Dataset, pairs: &[Pair]) -> Result<Option<MovedSample>, Error> {
    let mut rights: Vec<u64> = pairs.iter().map(|pair| pair.right).collect();
    rights.sort_unstable();
    let first = pairs.iter().zip(rights).find(|(pair, right)| pair.right != *right);
    let Some((pair, _)) = first else { return Ok(None) };
    let key = lefts.key(pair.left)?;
    Ok(Some(MovedSample { key, left: pair.left, right: pair.right }))
}

/// Two datasets that are compared.
struct DatasetPair<'a> {
    left: &'a Dataset,
    right: &'a Dataset,
    options: &'a DiffOptions,
    interrupt: Interrupt,
    /// Columns that both have with the same type: name, index in the first and in the second.
    columns: Vec<(&'a str, usize, usize)>,
}

/// The result of comparing the pairs of a record batch.
#[derive(Default)]
struct PairResults {
    same: u64,
    other_form: u64,
    changed: Vec<Changed>,
}

impl<'a> DatasetPair<'a> {
    fn new(
        left: &'a Dataset,
        right: &'a Dataset,
        options: &'a DiffOptions,
        interrupt: Interrupt,
    ) -> Self {
        let others = right.columns().extra.fields();
        let fields = left.columns().extra.fields().iter().enumerate();
        let of_both =
            fields.filter(|(_, field)| !locates_content(field)).filter_map(|(at, field)| {
                let other = others.iter().position(|other| {
                    other.name() == field.name() && other.data_type() == field.data_type()
                })?;
                Some((field.name().as_str(), at, other))
            });
        Self { left, right, options, interrupt, columns: of_both.collect() }
    }

    /// Compares pairs whose left samples are in one record batch.
    fn compare(&self, pairs: &[Pair]) -> Result<PairResults, Error> {
        let mut compared = PairResults::default();
        let mut columns = ExtraColumns::new(self);
        for pair in pairs {
            if self.interrupt.is_raised() {
                return Err(Error::Interrupted);
            }
            let mut what = Vec::new();
            let contents = self.contents(*pair)?;
            let is_other_form = contents == Contents::OtherForm;
            if let Contents::Changed(how) = contents {
                what.push(how);
            }
            if self.label(self.left, pair.left)? != self.label(self.right, pair.right)? {
                what.push("label".to_owned());
            }
            what.extend(columns.changed(*pair)?);
            if what.is_empty() {
                compared.same += 1;
                compared.other_form += u64::from(is_other_form);
            } else {
                let key = self.left.key(pair.left)?;
                let Pair { left, right } = *pair;
                compared.changed.push(Changed { left, right, key, what });
            }
        }
        Ok(compared)
    }

    fn contents(&self, pair: Pair) -> Result<Contents, Error> {
        let left = self.left.locate(pair.left)?;
        let right = self.right.locate(pair.right)?;
        let sums_match = (left.crc32c, left.bytes) == (right.crc32c, right.bytes);
        if sums_match && self.options.trust_checksums {
            return Ok(Contents::Same);
        }
        let read = |dataset: &Dataset, sample, location| {
            dataset.read_located(sample, location).map_err(|error| error.to_string())
        };
        let left = read(self.left, pair.left, &left);
        let right = read(self.right, pair.right, &right);
        Ok(match (left, right) {
            (Ok(left), Ok(right)) if left == right => Contents::Same,
            // The bytes of a file and of its coefficient forms differ.
            (Ok(left), Ok(right)) if [&left, &right].iter().any(|it| form_of(it) != Form::Jpeg) => {
                let original = |stored| original_until(stored, &self.interrupt);
                match (original(&left), original(&right)) {
                    (Err(PictureError::Interrupted), _) | (_, Err(PictureError::Interrupted)) => {
                        return Err(Error::Interrupted);
                    }
                    (Ok(left), Ok(right)) if left == right => Contents::OtherForm,
                    _ => Contents::Changed("content".to_owned()),
                }
            }
            (Ok(_), Ok(_)) => Contents::Changed("content".to_owned()),
            (Err(reason), _) | (_, Err(reason)) => Contents::Changed(reason),
        })
    }

    /// The name of a sample's label.
    fn label<'b>(&self, dataset: &'b Dataset, sample: u64) -> Result<Option<&'b str>, Error> {
        let label = dataset.locate(sample)?.label.and_then(|label| usize::try_from(label).ok());
        Ok(label.map(|label| dataset.manifest().labels[label].as_str()))
    }
}

#[derive(PartialEq, Eq)]
enum Contents {
    Same,
    OtherForm,
    Changed(String),
}

/// The further columns of the record batches that are being compared.
struct ExtraColumns<'a> {
    datasets: &'a DatasetPair<'a>,
    /// Of the first dataset, the record batch that was read last.
    left: Option<(usize, RecordBatch)>,
    /// Of the second, those that were read.
    rights: HashMap<usize, RecordBatch>,
}

impl<'a> ExtraColumns<'a> {
    /// Maximum number of record batches of the second dataset whose columns are cached.
    const RETAINED_MAX: usize = 4;

    fn new(datasets: &'a DatasetPair<'a>) -> Self {
        Self { datasets, left: None, rights: HashMap::new() }
    }

    /// The columns in which a pair differs.
    fn changed(&mut self, pair: Pair) -> Result<Vec<String>, Error> {
        let datasets = self.datasets;
        if datasets.columns.is_empty() {
            return Ok(Vec::new());
        }
        let (batch, left_row) = datasets.left.batch_of(pair.left)?;
        let left = match self.left.take() {
            Some((read, columns)) if read == batch => columns,
            _ => {
                let of_left: Vec<usize> = datasets.columns.iter().map(|(_, at, _)| *at).collect();
                datasets.left.extra(batch, Some(&of_left))?
            }
        };
        let (other, right_row) = datasets.right.batch_of(pair.right)?;
        if !self.rights.contains_key(&other) {
            if self.rights.len() == Self::RETAINED_MAX {
                self.rights.clear();
            }
            let of_right: Vec<usize> = datasets.columns.iter().map(|(_, _, at)| *at).collect();
            self.rights.insert(other, datasets.right.extra(other, Some(&of_right))?);
        }
        let right = &self.rights[&other];
        let differs = |column: usize| {
            left.column(column).slice(left_row, 1) != right.column(column).slice(right_row, 1)
        };
        let named = datasets.columns.iter().enumerate().filter(|(column, _)| differs(*column));
        let changed = named.map(|(_, (name, ..))| format!("column {name}")).collect();
        self.left = Some((batch, left));
        Ok(changed)
    }
}

/// Compares all pairs on several threads, a record batch of the first dataset at a time.
fn compare_all(
    datasets: &DatasetPair<'_>,
    pairs: &[Pair],
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
    found: &mut Difference,
) -> Result<(), Error> {
    let mut units: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    while start < pairs.len() {
        let (batch, _) = datasets.left.batch_of(pairs[start].left)?;
        let samples = datasets.left.samples_of(batch);
        let end = pairs.partition_point(|pair| pair.left < samples.end);
        units.push(start..end);
        start = end;
    }
    let mut done = Progress { samples: pairs.len() as u64, ..Progress::default() };
    progress(done);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel(16);
    std::thread::scope(|scope| {
        let threads = threads(datasets.options.threads)?.min(units.len());
        for number in 1..=threads {
            let (sender, next, units) = (sender.clone(), &next, &units);
            start_thread(scope, (number, threads), move || {
                while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let compared = datasets.compare(&pairs[unit.clone()]);
                    if sender.send((unit.len(), compared)).is_err() {
                        return;
                    }
                }
            })?;
        }
        drop(sender);
        for (samples, compared) in receiver {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let mut compared = compared?;
            found.same += compared.same;
            found.other_form += compared.other_form;
            found.changed += compared.changed.len() as u64;
            found.changed_named.append(&mut compared.changed);
            if found.changed_named.len() > 2 * datasets.options.named_max {
                found.changed_named.sort_unstable();
                found.changed_named.truncate(datasets.options.named_max);
            }
            done.samples_done += samples as u64;
            progress(done);
        }
        Ok(())
    })?;
    found.changed_named.sort_unstable();
    found.changed_named.truncate(datasets.options.named_max);
    Ok(())
}
