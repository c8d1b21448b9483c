//! The thread that owns the loader, and the requests of other threads to it.
//!
//! An epoch borrows its loader, which Python objects cannot express, so both live on a separate
//! thread that answers one request at a time. A caller waits in slices, between which Python checks
//! its signals. A result that was requested but not waited for is returned to the next request.

use crate::batch::Batch;
use crate::gpu::{Gpu, GpuFailure, GpuSettings};
use meetpoint_format::batching::Batching;
use meetpoint_host::Notice;
use meetpoint_host::collective::{CollectiveError, Processes, RendezvousConfig};
use meetpoint_host::stats::{EpochStats, Event};
use meetpoint_host::{
    Batch as HostBatch, DeviceInfo, Epoch, Error, Loader, LoaderConfig, SpoolKind, StopHandle,
};
use meetpoint_metrics::ConsumedBatch;
use meetpoint_scheduler::{Level, Record};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread waits for a request before it checks again whether a batch is ready to be
/// copied to a GPU.
const AHEAD_SLICE: Duration = Duration::from_micros(500);

/// Properties of an open loader that do not change.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) batches: u32,
    /// How an epoch is divided into batches.
    pub(crate) batching: Batching,
    pub(crate) manifest_sha256: [u8; 32],
    pub(crate) labels: Vec<String>,
    pub(crate) devices: Vec<Option<DeviceInfo>>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) workers: u32,
    /// Bytes of the tensors of a whole batch.
    pub(crate) batch_bytes: u64,
    /// Whether slots of devices are written to a file.
    pub(crate) spool_on_flash: bool,
    /// Whether batches are consumed in the order of the host alone.
    pub(crate) has_host_order: bool,
}

/// An epoch to begin.
#[derive(Debug)]
pub(crate) struct EpochRequest {
    pub(crate) epoch: u32,
    /// Batches that were consumed earlier.
    pub(crate) consumed: Vec<Range<u32>>,
    /// The record that fixes the order of the remaining batches.
    pub(crate) record: Option<Record>,
    /// Damaged samples of the batches that were consumed.
    pub(crate) errors: u64,
}

/// A request to the thread.
#[derive(Debug)]
pub(crate) enum Request {
    /// Begin an epoch, and end the current one.
    Begin(EpochRequest),
    /// Return the next batch.
    Next,
    /// End the current epoch.
    End,
}

/// An answer: one for each request, and one when the loader has been opened.
#[derive(Debug)]
pub(crate) enum Answer {
    Opened(Result<Box<Opened>, Failure>),
    Begun(Result<(), Error>),
    Next(Result<Next, Failure>),
    Ended(Option<Box<EpochStats>>),
}

/// Why there is no loader, or no batch.
#[derive(Debug)]
pub(crate) enum Failure {
    Host(Error),
    Gpu(Box<GpuFailure>),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

impl From<GpuFailure> for Failure {
    fn from(failure: GpuFailure) -> Self {
        Self::Gpu(Box::new(failure))
    }
}

/// The next batch, or the end of the epoch.
#[derive(Debug)]
pub(crate) enum Next {
    Batch {
        batch: Box<Batch>,
        /// Its size, before its consumer has waited for it.
        handed: ConsumedBatch,
        /// Events since the previous batch.
        events: Vec<Event>,
        /// The record that fixes the order of the following batches, if there is one.
        record: Option<Record>,
    },
    End {
        stats: Box<EpochStats>,
        /// Events since the previous batch.
        events: Vec<Event>,
    },
}

/// The result of one slice of waiting.
#[derive(Debug)]
pub(crate) enum WaitResult {
    Answer(Answer),
    /// Nothing yet.
    Nothing,
    /// The thread has ended.
    Gone,
}

/// A loader on its thread.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The process that started it.
    process: u32,
    stop: StopHandle,
    /// `None` once the loader is closed.
    requests: Option<Sender<Request>>,
    answers: Receiver<Answer>,
    /// Requests that were not answered yet.
    pub(crate) unanswered: u32,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts the thread, which connects to the other ranks, if there are any, and opens the
    /// loader. Its first answer belongs to no request.
    pub(crate) fn start(
        config: LoaderConfig,
        meeting: Option<RendezvousConfig>,
        gpu: Option<GpuSettings>,
    ) -> std::io::Result<Self> {
        let stop = config.stop.clone();
        let (requests, asked) = channel();
        let (answer, answers) = channel();
        let body = move || serve(config, meeting, gpu, &asked, &answer);
        let thread = std::thread::Builder::new().name("meetpoint".to_owned()).spawn(body)?;
        let (requests, thread) = (Some(requests), Some(thread));
        let process = std::process::id();
        Ok(Self { process, stop, requests, answers, unanswered: 1, thread })
    }

    /// Sends a request; returns whether the thread is alive.
    pub(crate) fn ask(&mut self, request: Request) -> bool {
        let sent = self.requests.as_ref().is_some_and(|to| to.send(request).is_ok());
        self.unanswered += u32::from(sent);
        sent
    }

    /// Waits a while for an answer.
    pub(crate) fn wait(&mut self, limit: Duration) -> WaitResult {
        match self.answers.recv_timeout(limit) {
            Ok(answer) => {
                self.unanswered = self.unanswered.saturating_sub(1);
                WaitResult::Answer(answer)
            }
            Err(RecvTimeoutError::Timeout) => WaitResult::Nothing,
            Err(RecvTimeoutError::Disconnected) => WaitResult::Gone,
        }
    }

    /// Asks the thread to end; returns its handle to wait for.
    pub(crate) fn close(&mut self) -> Option<JoinHandle<()>> {
        self.stop.stop();
        self.requests = None;
        self.thread.take()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A forked child has no such thread, and a lock may be held forever.
            let (_, nobody) = channel();
            std::mem::forget(std::mem::replace(&mut self.answers, nobody));
            std::mem::forget((self.requests.take(), self.thread.take()));
        }
    }
}

/// The body of the thread.
fn serve(
    config: LoaderConfig,
    meeting: Option<RendezvousConfig>,
    gpu: Option<GpuSettings>,
    requests: &Receiver<Request>,
    answers: &Sender<Answer>,
) {
    // An answer is lost only if the loader was closed, and then there are no more requests.
    let answer = |answer| answers.send(answer).is_ok();
    let stop = config.stop.clone();
    // A GPU that cannot be used is reported before waiting for other ranks.
    let gpu = gpu.map(|settings| Gpu::open(settings, stop)).transpose().map_err(Failure::from);
    let both = gpu.and_then(|gpu| Ok((gpu, open(config, meeting)?)));
    let (mut gpu, mut loader) = match both {
        Ok(both) => both,
        Err(failure) => {
            answer(Answer::Opened(Err(failure)));
            return;
        }
    };
    let mut opened = opened(&loader);
    opened.notices.extend(gpu.iter().filter_map(Gpu::notice));
    let mut is_heard = answer(Answer::Opened(Ok(Box::new(opened))));
    let mut next = None;
    while is_heard && let Some(request) = next.take().or_else(|| requests.recv().ok()) {
        match request {
            Request::Begin(begin) => match begin_epoch(&mut loader, begin) {
                Ok(epoch) => {
                    is_heard = answer(Answer::Begun(Ok(())));
                    next = serve_epoch(epoch, gpu.as_mut(), requests, answers);
                }
                Err(error) => is_heard = answer(Answer::Begun(Err(error))),
            },
            Request::Next => is_heard = answer(Answer::Next(Err(Error::EpochFailed.into()))),
            Request::End => is_heard = answer(Answer::Ended(None)),
        }
    }
}

/// Connects to the other ranks, and opens the loader.
fn open(mut config: LoaderConfig, meeting: Option<RendezvousConfig>) -> Result<Loader, Error> {
    let Some(meeting) = meeting else { return Loader::open(config) };
    let met = Processes::meet(meeting, &config.stop).map_err(|error| match error {
        CollectiveError::Interrupted => Error::Interrupted,
        error => error.into(),
    })?;
    let met = Arc::new(met);
    config.collective = Some(Arc::clone(&met) as _);
    // The other ranks receive the reason before they wait for this rank.
    Loader::open(config).inspect_err(|error| met.give_up(&error.to_string()))
}

fn begin_epoch(loader: &mut Loader, begin: EpochRequest) -> Result<Epoch<'_>, Error> {
    let EpochRequest { epoch, consumed, record, errors } = begin;
    let mut begun = match consumed.is_empty() {
        true => loader.start_epoch(epoch),
        false => loader.resume_epoch(epoch, &consumed, record),
    }?;
    begun.count_errors_before(errors);
    Ok(begun)
}

/// Answers requests for batches of an epoch; returns the first other request.
fn serve_epoch(
    mut epoch: Epoch<'_>,
    mut gpu: Option<&mut Gpu>,
    requests: &Receiver<Request>,
    answers: &Sender<Answer>,
) -> Option<Request> {
    let ahead_max = gpu.as_ref().map_or(0, |gpu| gpu.ahead());
    gpu.iter_mut().for_each(|gpu| gpu.begin_epoch());
    let mut reported = 0;
    // Batches that are copied to the GPU before they are requested.
    let mut ahead: VecDeque<Result<Next, Failure>> = VecDeque::new();
    loop {
        let has_room = ahead.len() < ahead_max && ahead.back().is_none_or(Result::is_ok);
        let may_deliver =
            || epoch.is_next_ready() && gpu.as_ref().is_some_and(|gpu| gpu.has_room());
        let Some(request) = next_request(requests, has_room, may_deliver)? else {
            let next = next_batch(&mut epoch, &mut gpu, &mut reported);
            // At the end of the epoch nothing is ready.
            ahead.extend(next.transpose());
            continue;
        };
        match request {
            Request::Next => gpu.iter().for_each(|gpu| gpu.note_asked()),
            Request::End => {
                let stats = Some(Box::new(finish(epoch, &mut gpu)));
                answers.send(Answer::Ended(stats)).ok()?;
                return None;
            }
            begin @ Request::Begin(_) => return Some(begin),
        }
        let next = match ahead.pop_front() {
            Some(next) => next.map(Some),
            None => next_batch(&mut epoch, &mut gpu, &mut reported),
        };
        match next {
            Ok(Some(next)) => {
                if let (Some(gpu), Next::Batch { batch, .. }) = (&mut gpu, &next)
                    && let Some(memory) = batch.gpu()
                {
                    gpu.note_handed(memory);
                }
                answers.send(Answer::Next(Ok(next))).ok()?;
            }
            Ok(None) => {
                let stats = Box::new(finish(epoch, &mut gpu));
                let events = stats.events.get(reported..).unwrap_or_default().to_vec();
                answers.send(Answer::Next(Ok(Next::End { stats, events }))).ok()?;
                return None;
            }
            Err(error) => {
                drop(epoch);
                answers.send(Answer::Next(Err(error))).ok()?;
                return None;
            }
        }
    }
}

/// The next request. `Some(None)`: there is none yet, but a batch to copy to a GPU in advance.
/// `None`: the loader is closed, so no request follows.
fn next_request(
    requests: &Receiver<Request>,
    has_room: bool,
    is_ready: impl Fn() -> bool,
) -> Option<Option<Request>> {
    if !has_room {
        return requests.recv().ok().map(Some);
    }
    match requests.try_recv() {
        Ok(request) => return Some(Some(request)),
        Err(TryRecvError::Disconnected) => return None,
        Err(TryRecvError::Empty) => {}
    }
    loop {
        if is_ready() {
            return Some(None);
        }
        match requests.recv_timeout(AHEAD_SLICE) {
            Ok(request) => return Some(Some(request)),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The next batch, being copied to the GPU if one is used; `None` at the end of the epoch.
fn next_batch(
    epoch: &mut Epoch<'_>,
    gpu: &mut Option<&mut Gpu>,
    reported: &mut usize,
) -> Result<Option<Next>, Failure> {
    let Some(batch) = epoch.next_batch()? else { return Ok(None) };
    let events = epoch.events_from(*reported);
    *reported += events.len();
    let record = epoch.rest_record();
    let handed = ConsumedBatch::of(&batch, Duration::ZERO);
    let batch: Batch = match gpu {
        Some(gpu) => deliver(gpu, &batch)?,
        None => batch.into(),
    };
    Ok(Some(Next::Batch { batch: Box::new(batch), handed, events, record }))
}

fn deliver(gpu: &mut Gpu, batch: &HostBatch) -> Result<Batch, Failure> {
    Ok(Batch::on_gpu(batch, gpu.deliver(batch)?))
}

/// The measurements of an epoch.
fn finish(epoch: Epoch<'_>, gpu: &mut Option<&mut Gpu>) -> EpochStats {
    let mut stats = epoch.finish();
    stats.delivery = gpu.as_mut().and_then(|gpu| gpu.end_epoch());
    stats
}

fn opened(loader: &Loader) -> Opened {
    let job = loader.job();
    Opened {
        batches: loader.batches_per_epoch(),
        batching: job.batching.clone(),
        manifest_sha256: job.dataset.manifest_sha256(),
        labels: job.dataset.manifest().labels.clone(),
        devices: loader.devices().map(Option::<&_>::cloned).collect(),
        notices: loader.notices(),
        workers: loader.config().workers,
        batch_bytes: loader.batch_bytes_max(),
        has_host_order: loader.config().strategy.levels().contains(&Level::C4),
        spool_on_flash: matches!(loader.config().spool.kind, SpoolKind::File { .. }),
    }
}
