//! Prefetches the batches of a job whose dataset is in a store, and predicts when bytes will be
//! needed.
//!
//! One thread for each dataset walks the order of the epoch ahead of the preparers. It holds no
//! dataset while it waits, and ends with it.

use crate::remote::{NextUse, Reading};
use crate::{Dataset, Job};
use meetpoint_format::batching::{Batching, Rank};
use meetpoint_format::sampler::EpochOrder;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Bytes of batches whose ranges are gathered before they are fetched, so that requests are long.
const GATHERED_BYTES: u64 = 8 << 20;
/// How long one wait lasts.
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// Steps that are left out after a failure.
const PAUSE_STEPS: u32 = 20;
/// Bytes at the start of a record batch that contain its message and the first columns.
const TABLE_HEAD_BYTES: u64 = 64 << 10;
/// Bytes at its end that contain the columns after the images, if there are no further ones.
const TABLE_TAIL_BYTES: u64 = 16 << 10;
/// Maximum number of later batches whose tables are fetched while those of a batch are awaited: in
/// a shuffled order, each batch needs others.
const TABLES_AHEAD: u64 = 4;
/// Maximum number of samples for which the batch that needs each is retained in memory.
const SAMPLES_MAX: u64 = 1 << 25;
/// The next use of bytes of which nothing is known.
const UNKNOWN: u64 = u64::MAX >> 1;

/// A batch that is being read, until this is dropped.
pub(crate) struct Active(Option<(Arc<Reading>, u32, u32)>);

impl Active {
    /// Records the start of a batch, and starts to prefetch the batches after it. Does nothing if
    /// the dataset is on this machine.
    pub(crate) fn begin(job: &Job, epoch: u32, batch: u32) -> Self {
        let Some(reading) = job.dataset.reading() else { return Self(None) };
        reading.begin(epoch, batch);
        if reading.starts_thread() {
            let (dataset, reading) = (Arc::downgrade(&job.dataset), Arc::clone(reading));
            let batching = job.batching.clone();
            let thread = std::thread::Builder::new().name("prefetch".to_owned());
            // Without a thread, ranges are fetched when they are read.
            let _ = thread.spawn(move || Ahead::new(dataset, reading, batching).run());
        }
        Self(Some((Arc::clone(reading), epoch, batch)))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if let Some((reading, epoch, batch)) = &self.0 {
            reading.end(*epoch, *batch);
        }
    }
}

/// Reads the footers that samples need, together, then begins to fetch the tables of their record
/// batches, also together.
pub(crate) fn begin_tables(dataset: &Dataset, samples: &[u64]) {
    if dataset.read_footers_of(samples).is_err() {
        // The reader of the samples gets the error.
        return;
    }
    let mut ranges: Vec<(usize, Range<u64>)> = Vec::new();
    let mut tables: Vec<(usize, Range<u64>)> = Vec::new();
    for sample in samples {
        let Some((part, range)) = dataset.unread_table(*sample) else { continue };
        if tables.last().is_some_and(|last| *last == (part, range.clone())) {
            continue;
        }
        tables.push((part, range));
    }
    tables.sort_by_key(|(part, range)| (*part, range.start));
    tables.dedup();
    for (part, Range { start, end }) in tables {
        ranges.push((part, start..end.min(start + TABLE_HEAD_BYTES)));
        ranges.push((part, start.max(end.saturating_sub(TABLE_TAIL_BYTES))..end));
    }
    if !ranges.is_empty() {
        dataset.prefetch(&ranges);
    }
}

/// The thread that prefetches.
struct Ahead {
    dataset: Weak<Dataset>,
    reading: Arc<Reading>,
    batching: Batching,
    /// The epoch, and its order.
    epoch: Option<(u32, EpochOrder)>,
    /// The next batch to prefetch.
    next: u32,
    /// Prefetched batches that are not read yet, and their bytes.
    queued: VecDeque<(u32, u64)>,
    /// Ranges that have no space yet.
    left: Vec<(usize, Range<u64>)>,
    uses: Option<Arc<Uses>>,
    /// Steps to leave out after a failure.
    pause: u32,
}

impl Ahead {
    fn new(dataset: Weak<Dataset>, reading: Arc<Reading>, batching: Batching) -> Self {
        Self {
            dataset,
            reading,
            batching,
            epoch: None,
            next: 0,
            queued: VecDeque::new(),
            left: Vec::new(),
            uses: None,
            pause: 0,
        }
    }

    fn run(mut self) {
        while !self.reading.is_over() {
            let Some(dataset) = self.dataset.upgrade() else { return };
            let worked = self.step(&dataset);
            drop(dataset);
            if !worked {
                self.reading.wait(WAIT_SLICE);
            }
        }
    }

    /// Prefetches some batches; `false` if nothing can be done before there is progress.
    fn step(&mut self, dataset: &Arc<Dataset>) -> bool {
        let Some((epoch, first)) = self.reading.now() else { return false };
        if self.epoch.as_ref().is_none_or(|(of, _)| *of != epoch) {
            self.epoch = Some((epoch, self.batching.order(epoch)));
            self.next = first;
            self.queued.clear();
            self.left.clear();
            self.follow(dataset, epoch);
        }
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        self.next = self.next.max(first);
        while self.queued.front().is_some_and(|(batch, _)| *batch < first) {
            self.queued.pop_front();
        }
        if !self.left.is_empty() {
            // They are those of the batches that were queued last.
            if self.queued.is_empty() {
                self.left.clear();
                return true;
            }
            let taken = dataset.prefetch(&self.left);
            self.left.drain(..taken);
            return self.left.is_empty();
        }
        self.gather(dataset)
    }

    /// Gathers the ranges of some batches and begins to fetch them.
    fn gather(&mut self, dataset: &Dataset) -> bool {
        let (_, order) = self.epoch.as_ref().expect("it was set before");
        let window = dataset.remotes().map(|(_, folder)| folder.window_bytes()).min();
        let window = window.unwrap_or(0);
        let queued: u64 = self.queued.iter().map(|(_, bytes)| bytes).sum();
        let (mut ranges, mut gathered) = (Vec::new(), 0);
        while u64::from(self.next) < self.batching.batches()
            && queued + gathered < window
            && gathered < GATHERED_BYTES
            && !self.reading.is_over()
        {
            let samples: Vec<u64> = self.batching.samples_of(order, self.next).collect();
            let tables = samples.len() as u64 * (TABLE_HEAD_BYTES + TABLE_TAIL_BYTES);
            let later = (window / 4 / tables.max(1)).min(TABLES_AHEAD);
            let last = (u64::from(self.next) + later).min(self.batching.batches() - 1);
            let batches = self.next..=u32::try_from(last).unwrap_or(self.next);
            let near = batches.flat_map(|batch| self.batching.samples_of(order, batch));
            begin_tables(dataset, &near.collect::<Vec<_>>());
            let mut bytes = 0;
            for sample in samples {
                let Ok(location) = dataset.locate(sample) else {
                    // The reader of the sample gets the error.
                    self.pause = PAUSE_STEPS;
                    break;
                };
                bytes += location.bytes;
                ranges.push((location.part, location.offset..location.offset + location.bytes));
            }
            self.queued.push_back((self.next, bytes));
            gathered += bytes;
            if self.pause > 0 {
                break;
            }
            self.next += 1;
        }
        if ranges.is_empty() {
            return false;
        }
        let taken = dataset.prefetch(&ranges);
        ranges.drain(..taken);
        self.left = ranges;
        self.left.is_empty()
    }

    /// Makes the order of the epoch known to caches that evict.
    fn follow(&mut self, dataset: &Arc<Dataset>, epoch: u32) {
        if !dataset.remotes().any(|(_, folder)| folder.evicts()) {
            return;
        }
        let uses = self.uses.get_or_insert_with(|| {
            let uses = Arc::new(Uses::new(Arc::downgrade(dataset), Arc::clone(&self.reading)));
            for (first_part, folder) in dataset.remotes() {
                folder.follow(Arc::new(UsesOfFolder { uses: Arc::clone(&uses), first_part }));
            }
            uses
        });
        uses.set_epoch(&self.batching, epoch);
    }
}

/// The batch of an epoch that needs each sample; `u32::MAX` for none.
type Table = Arc<[u32]>;

/// When samples are needed next: in the current epoch or, by its order, in the one after.
#[derive(Debug)]
struct Uses {
    dataset: Weak<Dataset>,
    reading: Arc<Reading>,
    tables: Mutex<Option<Tables>>,
}

#[derive(Debug, Clone)]
struct Tables {
    epoch: u32,
    batches: u64,
    now: Table,
    after: Table,
}

impl Uses {
    fn new(dataset: Weak<Dataset>, reading: Arc<Reading>) -> Self {
        Self { dataset, reading, tables: Mutex::new(None) }
    }

    /// Computes the tables of an epoch and of the next one.
    fn set_epoch(&self, batching: &Batching, epoch: u32) {
        if batching.samples() > SAMPLES_MAX {
            return;
        }
        let before = self.tables();
        let now = match before {
            Some(Tables { epoch: of, after, .. }) if of.checked_add(1) == Some(epoch) => after,
            _ => table(batching, epoch),
        };
        let after = table(batching, epoch.saturating_add(1));
        let tables = Tables { epoch, batches: batching.batches(), now, after };
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = Some(tables);
    }

    fn tables(&self) -> Option<Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next_use(&self, samples: Range<u64>) -> u64 {
        let Some(tables) = self.tables() else { return UNKNOWN };
        let first = match self.reading.now() {
            Some((epoch, first)) if epoch == tables.epoch => first,
            // The next epoch has begun.
            _ => u32::MAX,
        };
        let of_sample = |sample: u64| {
            let sample = usize::try_from(sample).ok()?;
            match tables.now.get(sample).filter(|batch| **batch >= first && **batch != u32::MAX) {
                Some(batch) => Some(u64::from(*batch)),
                None => {
                    let batch = tables.after.get(sample).filter(|batch| **batch != u32::MAX)?;
                    Some(tables.batches + u64::from(*batch))
                }
            }
        };
        samples.filter_map(of_sample).min().unwrap_or(UNKNOWN)
    }
}

/// The batch of an epoch, of any rank, that first needs each sample.
fn table(batching: &Batching, epoch: u32) -> Table {
    let samples = usize::try_from(batching.samples()).expect("at most SAMPLES_MAX");
    let mut table = vec![u32::MAX; samples];
    let ranks = batching.rank().ranks;
    for rank in 0..ranks {
        let Ok(of_rank) = batching.of_rank(Rank { rank, ranks }) else { continue };
        let order = of_rank.order(epoch);
        for batch in 0..u32::try_from(of_rank.batches()).unwrap_or(u32::MAX) {
            for sample in of_rank.samples_of(&order, batch) {
                let first = &mut table[usize::try_from(sample).expect("below samples")];
                *first = batch.min(*first);
            }
        }
    }
    table.into()
}

/// The uses of one folder, whose parts count from 0.
#[derive(Debug)]
struct UsesOfFolder {
    uses: Arc<Uses>,
    first_part: usize,
}

impl NextUse for UsesOfFolder {
    fn next_use(&self, part: usize, range: Range<u64>) -> u64 {
        let Some(dataset) = self.uses.dataset.upgrade() else { return UNKNOWN };
        self.uses.next_use(dataset.samples_of_bytes(self.first_part + part, &range))
    }
}
