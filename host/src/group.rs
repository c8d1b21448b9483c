//! The ranks of a job as threads of one process, each with its own loader and accelerator.

use crate::collective::Threads;
use crate::config::{DeviceSource, LoaderConfig};
use crate::device_link::SharedDevice;
use crate::notice::Notice;
use crate::stats::EpochStats;
use crate::{Accelerator, Error, Loader, StopHandle};
use meetpoint_link::DeviceInfo;
use meetpoint_prepare::Job;
use std::any::Any;
use std::thread::{Builder, ScopedJoinHandle};

/// The result of one rank.
#[derive(Debug)]
pub struct RankOutcome {
    /// The rank, from 0.
    pub rank: u32,
    /// Its epochs. CPU time and memory are those of the process, that is, of all ranks.
    pub epochs: Vec<EpochStats>,
    /// The inputs that determine the content of its batches.
    pub job: Job,
    /// The description of each device; `None` for one that was never connected.
    pub devices: Vec<Option<DeviceInfo>>,
    /// Slots of its spools; `None` if no device is used.
    pub spool_slots: Option<u32>,
    /// Fallbacks and limits that were reached, as sentences.
    pub notices: Vec<Notice>,
}

/// The progress of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The rank, from 0.
    pub rank: u32,
    /// Its epoch.
    pub epoch: u32,
    /// Batches consumed in it.
    pub consumed: u32,
    /// Number of batches of the epoch.
    pub batches: u32,
}

/// The interface between a group and its caller. Every method is called in the thread of the rank.
pub trait GroupCallbacks: Sync {
    /// The separate devices of a rank; `None`: all ranks use those of the configuration.
    fn devices(&self, _rank: u32) -> Option<Vec<DeviceSource>> {
        None
    }

    /// The consumer of the batches of a loader's rank. [`Loader::stop_handle`] must interrupt its
    /// steps.
    fn accelerator(&self, loader: &Loader) -> Box<dyn Accelerator>;

    /// An epoch is about to begin.
    fn before_epoch(&self, loader: &mut Loader, epoch: u32);

    /// A batch was consumed.
    fn consumed(&self, progress: Progress);
}

/// Runs `epochs` epochs of a job with [`LoaderConfig::ranks`] ranks and returns the result of each
/// rank.
///
/// Memory budget and spool quotas are divided evenly. A device that this process starts is started
/// once for all ranks. If one rank fails, all are stopped, and the first error is returned.
pub fn run(
    config: &LoaderConfig,
    epochs: u32,
    callbacks: &dyn GroupCallbacks,
) -> Result<Vec<RankOutcome>, Error> {
    let ranks = config.ranks;
    if ranks == 0 {
        let expected = "at least 1";
        return Err(Error::Setting { field: "ranks", got: 0, expected });
    }
    let mut shared = config.clone();
    shared.stop = config.stop.child();
    shared.shares = ranks;
    shared.collective = Some(Threads::new(ranks));
    // Lives until every rank is done with it.
    let _devices = share_devices(&mut shared, callbacks)?;
    let results = std::thread::scope(|scope| {
        let start = |rank: u32| -> Result<ScopedJoinHandle<'_, _>, Error> {
            let mut config = LoaderConfig { rank, ..shared.clone() };
            if let Some(devices) = callbacks.devices(rank) {
                config.devices = devices;
            }
            let stop = shared.stop.clone();
            let body = move || {
                // Also on a panic, so that other ranks do not wait for this one.
                let mut guard = StopOnDrop { stop, is_armed: true };
                let result = run_rank(config, epochs, callbacks);
                guard.is_armed = result.is_err();
                result
            };
            Builder::new().name(format!("rank-{rank}")).spawn_scoped(scope, body).map_err(|error| {
                shared.stop.stop();
                Error::Thread(error)
            })
        };
        let started: Vec<_> = (0..ranks).map(start).collect();
        let join = |(rank, started): (u32, Result<ScopedJoinHandle<'_, _>, Error>)| {
            let panicked = |words| Err(Error::RankPanicked { rank, message: message_of(words) });
            started?.join().unwrap_or_else(panicked)
        };
        (0..ranks).zip(started).map(join).collect::<Vec<Result<RankOutcome, Error>>>()
    });
    let mut outcomes = Vec::new();
    let mut first: Option<Error> = None;
    for result in results {
        match result {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) if first.as_ref().is_none_or(|first| cause(&error) > cause(first)) => {
                first = Some(error);
            }
            Err(_) => {}
        }
    }
    first.map_or(Ok(outcomes), Err)
}

/// Starts every device that this process has to start, once, and lets all ranks connect to it.
fn share_devices(
    config: &mut LoaderConfig,
    callbacks: &dyn GroupCallbacks,
) -> Result<Vec<SharedDevice>, Error> {
    let mut started = Vec::new();
    let dataset = config.dataset.clone();
    let paths = || dataset.as_slice();
    let has_own = |rank| callbacks.devices(rank).is_some();
    if config.ranks == 1 || !config.uses_devices() || (0..config.ranks).all(has_own) {
        return Ok(started);
    }
    for source in &mut config.devices {
        if let DeviceSource::Spawn(spawn) = source {
            let start = || SharedDevice::start(spawn, paths(), config.ranks, &config.stop);
            // Retries once, as a loader does at its first epoch.
            let device = match start() {
                Err(error) if error.is_loss() => start(),
                device => device,
            };
            match device {
                Ok(device) => {
                    *source = device.source();
                    started.push(device);
                }
                Err(error) if error.is_loss() => {
                    *source = DeviceSource::Lost { loss: error.into_loss() };
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(started)
}

fn run_rank(
    config: LoaderConfig,
    epochs: u32,
    callbacks: &dyn GroupCallbacks,
) -> Result<RankOutcome, Error> {
    let rank = config.rank;
    let mut loader = Loader::open(config)?;
    let mut accelerator = callbacks.accelerator(&loader);
    let mut measured = Vec::new();
    for epoch in 0..epochs {
        callbacks.before_epoch(&mut loader, epoch);
        let stats = run_epoch(&mut loader, epoch, accelerator.as_mut(), callbacks);
        measured.push(stats.map_err(|error| of_rank(rank, error))?);
    }
    Ok(RankOutcome {
        rank,
        epochs: measured,
        job: loader.job().clone(),
        devices: loader.devices().map(Option::<&_>::cloned).collect(),
        spool_slots: loader.spool_slots(),
        notices: loader.notices(),
    })
}

fn run_epoch(
    loader: &mut Loader,
    epoch: u32,
    accelerator: &mut dyn Accelerator,
    callbacks: &dyn GroupCallbacks,
) -> Result<EpochStats, Error> {
    let (rank, batches) = (loader.config().rank, loader.batches_per_epoch());
    let mut running = loader.start_epoch(epoch)?;
    let mut consumed = 0;
    while let Some(batch) = running.next_batch()? {
        accelerator.step(&batch);
        consumed += 1;
        callbacks.consumed(Progress { rank, epoch, consumed, batches });
    }
    accelerator.finish();
    Ok(running.finish())
}

/// An error with the rank in which it occurred, unless it already names the rank.
fn of_rank(rank: u32, error: Error) -> Error {
    match error {
        Error::Interrupted | Error::Collective(_) => error,
        error => Error::OfRank { rank, source: Box::new(error) },
    }
}

/// How close an error is to the root cause: errors of ranks that are stopped because of it, or that
/// miss the failed rank, rank lower.
fn cause(error: &Error) -> u8 {
    match error {
        Error::Interrupted => 0,
        Error::Collective(_) => 1,
        Error::RankPanicked { .. } => 3,
        _ => 2,
    }
}

/// The message of a panic.
fn message_of(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => match panic.downcast_ref::<&str>() {
            Some(text) => (*text).to_owned(),
            None => "it says nothing".to_owned(),
        },
    }
}

/// Stops every rank when it is dropped, unless all went well.
struct StopOnDrop {
    stop: StopHandle,
    is_armed: bool,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if self.is_armed {
            self.stop.stop();
        }
    }
}
