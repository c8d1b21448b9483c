//! Merges several datasets into one.

use super::copy::{CopySummary, DatasetWrite};
use super::copy_options::{CopyOptions, Progress};
use super::gather::{Input, InputSample};
use crate::error::OperationError;
use crate::{Error, natural_order};
use meetpoint_format::dataset::{Columns, ContentKind, EntryPointSpacing, Form};
use meetpoint_prepare::Dataset;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The order of the samples of several datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeOrder {
    /// One dataset after another.
    #[default]
    Concat,
    /// Each dataset spread evenly over the result, in its own order.
    Interleave,
}

impl MergeOrder {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Concat => "concat",
            Self::Interleave => "interleave",
        }
    }
}

/// Writes all samples of the datasets `from` to `to`.
///
/// Columns must be the same. Labels are merged by name: in natural order if each dataset lists them
/// in natural order, otherwise in order of first appearance. A key must not occur twice;
/// `prefixes`, one for each dataset, are prepended to the keys of the datasets.
pub fn merge(
    from: &[PathBuf],
    to: &Path,
    order: MergeOrder,
    prefixes: &[String],
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<CopySummary, Error> {
    if !prefixes.is_empty() && prefixes.len() != from.len() {
        let (given, datasets) = (prefixes.len(), from.len());
        return Err(OperationError::Prefixes { given, datasets }.into());
    }
    let mut inputs = Vec::with_capacity(from.len());
    for (number, path) in from.iter().enumerate() {
        let mut input = Input::plain(Dataset::open(path)?);
        input.prefix = prefixes.get(number).cloned().unwrap_or_default();
        inputs.push(input);
    }
    check_columns(&inputs)?;
    check_forms(&inputs)?;
    let labels = unite_labels(&mut inputs);
    refuse_duplicates(&inputs)?;
    let samples = inputs.iter().map(|input| input.dataset.len()).sum();
    if samples == 0 {
        let what = "all datasets together".to_owned();
        return Err(OperationError::Empty { what, remedy: "name some that have".into() }.into());
    }
    let mut said = vec![("order", order.name().to_owned())];
    if !prefixes.is_empty() {
        said.push(("prefix", prefixes.join(",")));
    }
    let write = DatasetWrite { name: "merge", options: said, inputs: &inputs, samples, labels };
    let lengths: Vec<u64> = inputs.iter().map(|input| input.dataset.len()).collect();
    match order {
        MergeOrder::Concat => write.copy(to, &mut concat(&lengths), options, progress),
        MergeOrder::Interleave => write.copy(to, &mut interleave(lengths), options, progress),
    }
}

fn concat(lengths: &[u64]) -> impl Iterator<Item = Result<InputSample, Error>> + Send + '_ {
    lengths.iter().enumerate().flat_map(|(input, length)| {
        (0..*length).map(move |sample| Ok(InputSample { input, sample }))
    })
}

/// Samples are ordered by the position `(2 s + 1) / 2 n`, for sample `s` of a dataset of `n`; ties
/// go to the first dataset.
fn interleave(lengths: Vec<u64>) -> impl Iterator<Item = Result<InputSample, Error>> + Send {
    let mut taken = vec![0_u64; lengths.len()];
    std::iter::from_fn(move || {
        let comes_before = |left: usize, right: usize| {
            let moment = |of: usize, other: usize| {
                (2 * u128::from(taken[of]) + 1) * u128::from(lengths[other])
            };
            moment(left, right) < moment(right, left)
        };
        let open = (0..lengths.len()).filter(|input| taken[*input] < lengths[*input]);
        let input =
            open.reduce(|first, other| if comes_before(other, first) { other } else { first })?;
        taken[input] += 1;
        Some(Ok(InputSample { input, sample: taken[input] - 1 }))
    })
}

/// Refuses datasets whose columns differ, and names the first that differs.
fn check_columns(inputs: &[Input]) -> Result<(), OperationError> {
    let [first, others @ ..] = inputs else { return Ok(()) };
    for other in others {
        if let Some(difference) = difference(&first.columns, &other.columns) {
            let [left, right] = [first, other].map(|input| input.dataset.path().to_path_buf());
            return Err(OperationError::Columns { left, right, difference });
        }
    }
    Ok(())
}

/// Refuses datasets with different coefficient forms or different spacings of entry points, since a
/// manifest can record only one of each.
fn check_forms(inputs: &[Input]) -> Result<(), OperationError> {
    let form = |input: &&Input| input.dataset.manifest().form();
    let refused = |left: &Input, right: &Input, difference: String| {
        let [left, right] = [left, right].map(|input| input.dataset.path().to_path_buf());
        Err(OperationError::Forms { left, right, difference })
    };
    let mut converted = inputs.iter().filter(|input| form(input) != Form::Jpeg);
    if let Some(first) = converted.next()
        && let Some(other) = converted.find(|other| form(other) != form(&first))
    {
        let (left, right) = (form(&first).name(), form(&other).name());
        return refused(first, other, format!("their forms are {left} and {right}"));
    }
    let spacing = |input: &Input| {
        let stored = input.dataset.manifest().stored.as_ref();
        stored.and_then(|stored| stored.entry_points.spacing)
    };
    let words = |input: &Input| match spacing(input) {
        None => "none".to_owned(),
        Some(EntryPointSpacing::McuRow) => "one a row".to_owned(),
        Some(EntryPointSpacing::Mcus(count)) => format!("one every {count} MCUs"),
    };
    let [first, others @ ..] = inputs else { return Ok(()) };
    let is_image = first.dataset.columns().kind == ContentKind::Image;
    match others.iter().find(|other| is_image && spacing(other) != spacing(first)) {
        None => Ok(()),
        Some(other) => {
            let (left, right) = (words(first), words(other));
            refused(first, other, format!("their entry points are {left} and {right}"))
        }
    }
}

/// The first column in which two datasets differ, as text; `None` if their columns are equal.
pub(super) fn difference(left: &Columns, right: &Columns) -> Option<String> {
    if left.kind != right.kind {
        return Some(format!("content is {} and {}", left.kind.name(), right.kind.name()));
    }
    if left.content_name() != right.content_name() {
        let (left, right) = (left.content_name(), right.content_name());
        return Some(format!("the content's column is `{left}` and `{right}`"));
    }
    if left.prepared != right.prepared {
        return Some("they were prepared differently".to_owned());
    }
    let (lefts, rights) = (left.extra.fields(), right.extra.fields());
    for at in 0..lefts.len().max(rights.len()) {
        let words = |field: Option<&arrow_schema::FieldRef>| match field {
            None => "absent".to_owned(),
            Some(field) => {
                let nullable = if field.is_nullable() { "nullable " } else { "" };
                format!("`{}` {nullable}{}", field.name(), field.data_type())
            }
        };
        let (left, right) = (lefts.get(at), rights.get(at));
        if words(left) != words(right) {
            return Some(format!("column {at} is {} and {}", words(left), words(right)));
        }
        let metadata = |field: Option<&arrow_schema::FieldRef>| field.map(|f| f.metadata().clone());
        if metadata(left) != metadata(right) {
            let said = words(left);
            return Some(format!("column {at}, {said}, has different metadata (kind or labels)"));
        }
    }
    None
}

/// Unites the labels by name, and sets the mapping of each input's labels.
fn unite_labels(inputs: &mut [Input]) -> Vec<String> {
    let natural =
        |labels: &[String]| labels.windows(2).all(|pair| natural_order(&pair[0], &pair[1]).is_le());
    let mut united: Vec<String> = Vec::new();
    let mut all_natural = true;
    let mut known = HashMap::new();
    for input in &*inputs {
        let labels = &input.dataset.manifest().labels;
        all_natural &= natural(labels);
        for label in labels {
            known.entry(label.clone()).or_insert_with(|| united.push(label.clone()));
        }
    }
    if all_natural {
        united.sort_by(|left, right| natural_order(left, right));
    }
    let index: HashMap<&String, i32> = united.iter().zip(0..).collect();
    for input in inputs {
        let labels = &input.dataset.manifest().labels;
        input.labels =
            (*labels != united).then(|| labels.iter().map(|label| index[label]).collect());
    }
    united
}

/// The location of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KeyLocation {
    hash: u64,
    /// Index of the sample, counted through all inputs.
    sample: u64,
}

/// Refuses a key that would occur twice. Uses 16 bytes of memory per sample during the check.
fn refuse_duplicates(inputs: &[Input]) -> Result<(), Error> {
    let mut all = Vec::new();
    let mut before = 0;
    let mut name = String::new();
    for input in inputs {
        for batch in 0..input.dataset.record_batches() {
            let rows = input.dataset.keyed_rows(batch)?;
            for (sample, key) in (before + rows.first_sample..).zip(&rows.keys) {
                name.clear();
                name.push_str(&input.prefix);
                name.push_str(key);
                let mut hasher = DefaultHasher::new();
                name.hash(&mut hasher);
                all.push(KeyLocation { hash: hasher.finish(), sample });
            }
        }
        before += input.dataset.len();
    }
    all.sort_unstable();
    for group in all.chunk_by(|one, next| one.hash == next.hash).filter(|group| group.len() > 1) {
        let mut named: HashMap<String, (usize, u64)> = HashMap::new();
        for keyed in group {
            let (input, sample) = located(inputs, keyed.sample);
            let own = inputs[input].dataset.key(sample)?;
            let name = format!("{}{own}", inputs[input].prefix);
            if let Some((first, first_sample)) = named.insert(name.clone(), (input, sample)) {
                let path = |input: usize| inputs[input].dataset.path().to_path_buf();
                return Err(OperationError::DuplicateKey {
                    key: name,
                    first: path(first),
                    first_sample,
                    second: path(input),
                    second_sample: sample,
                }
                .into());
            }
        }
    }
    Ok(())
}

/// Converts a sample index counted through all inputs to an input and an index in it.
fn located(inputs: &[Input], mut sample: u64) -> (usize, u64) {
    for (number, input) in inputs.iter().enumerate() {
        match sample.checked_sub(input.dataset.len()) {
            Some(rest) => sample = rest,
            None => return (number, sample),
        }
    }
    unreachable!("a sample is counted among those of the inputs")
}
