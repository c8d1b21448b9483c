//! Rows of datasets in any order, read by several threads in bounded memory.
//!
//! Rows are gathered one window at a time. Each record batch that a window needs is opened once,
//! whatever the order of the rows, so a random order costs little more than a sequential one. While
//! a window is passed on, the next one is read.

use super::copy_options::CopyOptions;
use crate::Error;
use crate::threads::{start_thread, threads};
use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take_record_batch;
use meetpoint_format::dataset::{Columns, Row, locates_content};
use meetpoint_prepare::Dataset;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// Maximum number of rows in a window, so that very small rows do not make it long.
const WINDOW_ROWS_MAX: usize = 1 << 16;
/// Bytes of memory per row in addition to its bytes in the part.
const ROW_BYTES: u64 = 256;

/// A dataset from which rows are taken, and how their keys and labels change.
pub(super) struct Input {
    pub(super) dataset: Dataset,
    /// Prefix of each key.
    pub(super) prefix: String,
    /// The label of the result for each label of the dataset; `None` if they are the same.
    pub(super) labels: Option<Vec<i32>>,
    /// The columns of its rows that are carried over.
    pub(super) columns: Columns,
    /// Indices of the further columns among these.
    carried: Vec<usize>,
    /// Mean bytes of a row in memory without its content: key, numbers, entry points, columns.
    beside_bytes: u64,
}

/// The columns of samples whose content is copied, and the indices of the further columns among
/// them: all except the one that locates content in place.
pub fn carried(columns: &Columns) -> (Columns, Vec<usize>) {
    let fields = columns.extra.fields();
    let carried: Vec<usize> =
        (0..fields.len()).filter(|column| !locates_content(&fields[*column])).collect();
    let extra = columns.extra.project(&carried).expect("they are columns of it");
    (Columns { extra: Arc::new(extra), ..columns.clone() }, carried)
}

impl Input {
    /// An input whose keys and labels do not change.
    pub(super) fn plain(dataset: Dataset) -> Self {
        let manifest = dataset.manifest();
        let file_bytes: u64 = manifest.parts.iter().map(|part| part.bytes).sum();
        let beside = file_bytes.saturating_sub(manifest.image_bytes);
        let beside_bytes = ROW_BYTES + beside / manifest.samples.max(1);
        let (columns, carried) = carried(dataset.columns());
        Self { dataset, prefix: String::new(), labels: None, columns, carried, beside_bytes }
    }
}

/// A sample of one of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InputSample {
    /// Index of the input.
    pub(super) input: usize,
    /// Its sample.
    pub(super) sample: u64,
}

/// The samples to read, in order.
pub(super) type InputSamples<'a> = dyn Iterator<Item = Result<InputSample, Error>> + Send + 'a;

/// Reads the rows that `picks` yields and passes them to `receive` in that order.
pub(super) fn each_row(
    inputs: &[Input],
    picks: &mut InputSamples<'_>,
    options: &CopyOptions,
    receive: &mut dyn FnMut(Row) -> Result<(), Error>,
) -> Result<(), Error> {
    // One window is read while another is passed on.
    let window_bytes = options.memory_bytes / 2;
    let threads = threads(options.threads)?;
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(0);
        start_thread(scope, (1, 1), move || {
            let mut picks = picks.peekable();
            while picks.peek().is_some() {
                let window = plan(inputs, &mut picks, window_bytes)
                    .and_then(|window| read(inputs, &window, threads));
                let is_last = window.is_err();
                if sender.send(window).is_err() || is_last {
                    return;
                }
            }
        })?;
        // When this returns, the receiver is dropped, and sending fails and ends the thread.
        for window in receiver {
            for row in window? {
                if options.stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                receive(row)?;
            }
        }
        Ok(())
    })
}

/// Takes samples until their rows fill the window, but at least one.
fn plan(
    inputs: &[Input],
    picks: &mut std::iter::Peekable<&mut InputSamples<'_>>,
    window_bytes: u64,
) -> Result<Vec<InputSample>, Error> {
    let mut window = Vec::new();
    let mut bytes = 0;
    while window.len() < WINDOW_ROWS_MAX && (window.is_empty() || bytes < window_bytes) {
        let Some(pick) = picks.next() else { break };
        let pick = pick?;
        let input = &inputs[pick.input];
        bytes += input.dataset.locate(pick.sample)?.bytes + input.beside_bytes;
        window.push(pick);
    }
    Ok(window)
}

/// Rows of a window that are in one record batch.
struct Unit<'a> {
    input: &'a Input,
    record_batch: usize,
    /// Position in the window, and row in the record batch.
    rows: Vec<(usize, usize)>,
}

/// Reads the rows of a window.
fn read(inputs: &[Input], window: &[InputSample], threads: usize) -> Result<Vec<Row>, Error> {
    let mut by_batch: BTreeMap<(usize, usize), Vec<(usize, usize)>> = BTreeMap::new();
    for (place, pick) in window.iter().enumerate() {
        let (record_batch, row) = inputs[pick.input].dataset.batch_of(pick.sample)?;
        by_batch.entry((pick.input, record_batch)).or_default().push((place, row));
    }
    let units: Vec<Unit<'_>> = by_batch
        .into_iter()
        .map(|((input, record_batch), rows)| Unit { input: &inputs[input], record_batch, rows })
        .collect();
    let next = AtomicUsize::new(0);
    let places: Vec<Option<Row>> = window.iter().map(|_| None).collect();
    let outcome = Mutex::new((places, None));
    std::thread::scope(|scope| {
        let threads = threads.min(units.len());
        for number in 1..=threads {
            let started = start_thread(scope, (number, threads), || {
                while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let read = unit.read();
                    let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                    match read {
                        Ok(rows) => {
                            rows.into_iter().for_each(|(at, row)| outcome.0[at] = Some(row));
                        }
                        Err(error) => {
                            outcome.1.get_or_insert(error);
                            next.store(units.len(), Ordering::Relaxed);
                        }
                    }
                }
            });
            if let Err(error) = started {
                // Running threads end after their current unit.
                next.store(units.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })?;
    let (rows, error) = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    match error {
        Some(error) => Err(error),
        None => Ok(rows.into_iter().map(|row| row.expect("each pick lies in one unit")).collect()),
    }
}

impl Unit<'_> {
    /// Its rows, each with its position in the window.
    fn read(&self) -> Result<Vec<(usize, Row)>, Error> {
        let dataset = &self.input.dataset;
        let keyed = dataset.keyed_rows(self.record_batch)?;
        let extra = self.extra()?;
        let mut read = Vec::with_capacity(self.rows.len());
        for (number, (place, row)) in self.rows.iter().enumerate() {
            let sample = keyed.first_sample + *row as u64;
            let location = dataset.locate(sample)?;
            let entry_points = keyed.entry_points.as_ref().and_then(|table| table.row(*row));
            read.push((
                *place,
                Row {
                    key: format!("{}{}", self.input.prefix, keyed.keys[*row]),
                    image: dataset.read_located(sample, &location)?,
                    label: location.label.map(|label| self.label(label)),
                    entry_points: entry_points.map(|points| points.as_ref().to_vec()),
                    extra: extra.as_ref().map(|batch| (Arc::clone(batch), number)),
                },
            ));
        }
        Ok(read)
    }

    /// The further columns of its rows only, in their order.
    fn extra(&self) -> Result<Option<Arc<RecordBatch>>, Error> {
        let dataset = &self.input.dataset;
        if self.input.carried.is_empty() {
            return Ok(None);
        }
        let batch = dataset.extra(self.record_batch, Some(&self.input.carried))?;
        let rows: UInt64Array = self.rows.iter().map(|(_, row)| *row as u64).collect();
        let taken = take_record_batch(&batch, &rows).expect("the rows are of the record batch");
        Ok(Some(Arc::new(taken)))
    }

    fn label(&self, label: i32) -> i32 {
        match &self.input.labels {
            // The index rejects labels that are not in the manifest.
            Some(labels) => labels[usize::try_from(label).expect("not negative")],
            None => label,
        }
    }
}
