//! Iterates over all samples of a dataset on several threads, one record batch at a time.
//!
//! Each thread holds one sample; results arrive in any order on the calling thread.

use crate::Error;
use crate::threads::start_thread;
use meetpoint_format::dataset::EntryPoints;
use meetpoint_prepare::Dataset;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Maximum number of results that wait for the calling thread.
const RESULTS_AHEAD_MAX: usize = 64;

/// One sample, before its image is read.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Index in the dataset.
    pub(crate) index: u64,
    /// Its key.
    pub(crate) key: String,
    /// Its entry points.
    pub(crate) entry_points: Option<EntryPoints>,
}

/// The result of one sample.
#[derive(Debug)]
pub(crate) struct VisitedSample<R> {
    /// The sample.
    pub(crate) sample: Sample,
    /// The return value of `visit`.
    pub(crate) result: R,
}

/// A record batch whose keys cannot be read.
#[derive(Debug)]
pub(crate) struct UnreadBatch {
    /// The error, with the rows of the batch.
    pub(crate) error: meetpoint_prepare::Error,
}

/// Passes every sample to `visit` on `threads` threads, and the results to `receive`.
///
/// Ends early if `receive` fails. `start` creates the state that a thread reuses from sample to
/// sample.
pub(crate) fn each_sample<S, R: Send>(
    dataset: &Dataset,
    threads: usize,
    start: &(dyn Fn() -> S + Sync),
    visit: &(dyn Fn(&mut S, &Sample) -> R + Sync),
    receive: &mut dyn FnMut(Result<VisitedSample<R>, UnreadBatch>) -> Result<(), Error>,
) -> Result<(), Error> {
    let batches = dataset.record_batches();
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel(RESULTS_AHEAD_MAX);
    std::thread::scope(|scope| {
        let threads = threads.clamp(1, batches.max(1));
        for number in 1..=threads {
            let (sender, next) = (sender.clone(), &next);
            start_thread(scope, (number, threads), move || {
                let mut state = start();
                loop {
                    let batch = next.fetch_add(1, Ordering::Relaxed);
                    if batch >= batches || !visit_batch(dataset, batch, &mut state, visit, &sender)
                    {
                        return;
                    }
                }
            })?;
        }
        drop(sender);
        // When this returns, the receiver is dropped, and sending fails and ends the threads.
        receiver.into_iter().try_for_each(receive)
    })
}

/// Visits the rows of a record batch; `false` if the receiver is gone.
fn visit_batch<S, R>(
    dataset: &Dataset,
    batch: usize,
    state: &mut S,
    visit: &(dyn Fn(&mut S, &Sample) -> R + Sync),
    sender: &mpsc::SyncSender<Result<VisitedSample<R>, UnreadBatch>>,
) -> bool {
    let rows = match dataset.keyed_rows(batch) {
        Ok(rows) => rows,
        Err(error) => return sender.send(Err(UnreadBatch { error })).is_ok(),
    };
    let table = rows.entry_points.as_ref();
    rows.keys.into_iter().enumerate().all(|(row, key)| {
        let entry_points = table.and_then(|table| table.row(row));
        let sample = Sample { index: rows.first_sample + row as u64, key, entry_points };
        let result = visit(state, &sample);
        sender.send(Ok(VisitedSample { sample, result })).is_ok()
    })
}
