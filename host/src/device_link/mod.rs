//! The link to a device: one thread that opens it, maintains it, and reports when it is lost.
//!
//! In reading order: this file (opening and closing), `session` (what the rest of the host sends),
//! `events` (what it receives), `reopen` (lost links, in the background), `spawn` (a child
//! process), `shared` (one for several loaders), `connect` (the calls), `stream` (messages to
//! events), `pieces` (slots that a device sends).

mod connect;
mod events;
mod pieces;
mod reopen;
mod session;
mod shared;
mod spawn;
mod stopped;
mod stream;

pub(crate) use events::LinkEvents;
pub(crate) use reopen::Reopening;
pub(crate) use session::{Session, SlotContents, SlotLease};
pub use shared::SharedDevice;

use crate::causes::{Loss, LossCause};
use crate::config::{DeviceSource, SpoolConfig};
use crate::limits::SpoolLimits;
use crate::spool::Spool;
use crate::stop::WAIT_SLICE;
use crate::{DeviceName, Error, StopHandle};
use connect::{CALL_LIMIT, Connection};
use meetpoint_diagnose::Remedy;
use meetpoint_format::wire::{
    LoadRequest, NamedDataset, PROTOCOL_VERSION, Sampler as SamplerMessage, SpoolKind, sampler_data,
};
use meetpoint_link::fd_channel::{self, HandOverError};
use meetpoint_link::{DeviceInfo, Endpoint, Target};
use meetpoint_prepare::Job;
use meetpoint_scheduler::DeviceId;
use meetpoint_storage::open_files_limit;
use spawn::DeviceProcess;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use stopped::{if_stopped, listener};
use tokio::runtime::Runtime;

/// Time limit until a device process listens.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How often to try to connect until then.
const TRY_EVERY: Duration = Duration::from_millis(5);

/// How long to wait for the process of a lost link to end, so that its exit status can be reported.
const ENDING_LIMIT: Duration = Duration::from_millis(300);

/// What is needed to open a link, at first and again.
#[derive(Debug, Clone)]
pub(crate) struct LinkSetup {
    /// The device.
    pub(crate) device: DeviceId,
    pub(crate) source: DeviceSource,
    pub(crate) job: Job,
    /// Batches of an epoch.
    pub(crate) batches: u32,
    /// Of these, the batches that the device can prepare.
    pub(crate) held: u32,
    pub(crate) spool: SpoolConfig,
    pub(crate) limits: SpoolLimits,
    /// Batches that may be retained for another epoch.
    pub(crate) retained_most: u32,
    /// The device's part of the memory for decoding, if it is on this machine.
    pub(crate) decode_bytes: u64,
    pub(crate) stop: StopHandle,
    /// Cores for the link's thread; a device process that it starts is not bound to them.
    pub(crate) cores: Option<Vec<usize>>,
    /// Whether the spool is created before connecting to the device: true for the first attempt, so
    /// that invalid settings are reported, but not later, because the device may be absent for
    /// long.
    pub(crate) begins_with_spool: bool,
}

/// An open link. Dropping it closes it, and ends the device process if this process started it.
#[derive(Debug)]
pub(crate) struct DeviceLink {
    session: Arc<Session>,
    info: DeviceInfo,
    thread: Option<JoinHandle<()>>,
}

/// What the thread sends once the link is open.
#[derive(Debug)]
struct Opened {
    session: Arc<Session>,
    info: DeviceInfo,
}

impl DeviceLink {
    /// Opens links and sends the jobs; blocks until each is open or has failed. Links to running
    /// devices are opened concurrently, within the time limits of one link. Each open link reports
    /// what happens on it to `events`.
    pub(crate) fn open_all(
        setups: Vec<LinkSetup>,
        events: &Arc<dyn LinkEvents>,
    ) -> Vec<Result<Self, Error>> {
        let begin = |setup: LinkSetup| Opening::begin(setup, Arc::clone(events));
        // Processes that start at the same time would delay each other.
        let runs = |setup: &LinkSetup| !matches!(setup.source, DeviceSource::Spawn(_));
        let begun: Vec<Option<Result<Opening, Error>>> =
            setups.iter().map(|setup| runs(setup).then(|| begin(setup.clone()))).collect();
        let finish = |(setup, opening): (LinkSetup, Option<Result<Opening, Error>>)| {
            opening.unwrap_or_else(|| begin(setup)).and_then(Opening::finish)
        };
        setups.into_iter().zip(begun).map(finish).collect()
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Whether the link is still open, as far as is known.
    pub(crate) fn is_alive(&self) -> bool {
        !self.session.is_closed() && self.thread.as_ref().is_some_and(|it| !it.is_finished())
    }
}

/// A link that is being opened. It must be finished.
struct Opening {
    stop: StopHandle,
    opened: Receiver<Result<Opened, Error>>,
    thread: JoinHandle<()>,
}

impl Opening {
    /// Starts the thread of a link.
    fn begin(setup: LinkSetup, events: Arc<dyn LinkEvents>) -> Result<Self, Error> {
        let stop = setup.stop.clone();
        let (sender, opened) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("device-link".to_owned())
            .spawn(move || keep(&setup, &*events, &sender))
            .map_err(Error::Thread)?;
        Ok(Self { stop, opened, thread })
    }

    /// Blocks until the link is open, within time limits.
    fn finish(self) -> Result<DeviceLink, Error> {
        let Self { stop, opened: receiver, thread } = self;
        // All waits of the thread are bounded, and it always answers.
        let opened = loop {
            match receiver.recv_timeout(WAIT_SLICE) {
                Ok(opened) => break opened,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Err(Error::Panicked),
            }
            if stop.is_stopped() && thread.is_finished() {
                break Err(Error::Interrupted);
            }
        };
        match opened {
            Ok(Opened { session, info }) => Ok(DeviceLink { session, info, thread: Some(thread) }),
            Err(error) => {
                // The thread ends by itself; a panic was reported where it happened.
                let _ = thread.join();
                Err(error)
            }
        }
    }
}

impl Drop for DeviceLink {
    fn drop(&mut self) {
        self.session.close();
        if let Some(thread) = self.thread.take() {
            // Its waits are bounded; a panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

/// The thread: opens the link and serves it.
fn keep(setup: &LinkSetup, events: &dyn LinkEvents, opened: &SyncSender<Result<Opened, Error>>) {
    let answer = |result| {
        // The opener waits for exactly one answer.
        let _ = opened.send(result);
    };
    match Established::open(setup) {
        Ok(link) => {
            answer(Ok(link.opened()));
            link.serve(setup, events);
        }
        Err(error) => answer(Err(error)),
    }
}

/// A link that is open, in the thread that serves it.
struct Established {
    runtime: Runtime,
    session: Arc<Session>,
    info: DeviceInfo,
    inbound: Inbound,
    process: Option<DeviceProcess>,
}

impl Established {
    /// Opens a link, within time limits.
    fn open(setup: &LinkSetup) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::Thread)?;
        let mut process = None;
        match open(setup, &runtime, &mut process) {
            Ok((session, info, inbound)) => {
                session.retain_at_most(setup.retained_most);
                Ok(Self { runtime, session, info, inbound, process })
            }
            Err(error) => {
                // The process ends before the error is reported, so that nothing is left behind.
                // Only name resolution, which cannot be interrupted, may still be running.
                drop(process);
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    fn opened(&self) -> Opened {
        Opened { session: Arc::clone(&self.session), info: self.info.clone() }
    }

    /// Serves the link until it ends, and ends the process.
    fn serve(self, setup: &LinkSetup, events: &dyn LinkEvents) {
        let Self { runtime, session, inbound, mut process, .. } = self;
        if let Some(cores) = &setup.cores {
            // Binding was tested when the loader was opened; a core may have gone offline since.
            let _ = crate::cores::bind(cores);
        }
        let ending = runtime.block_on(stream::serve(inbound, &session, events));
        session.close();
        // Ends the connection even if leases are still held: the device notices and disconnects.
        drop(runtime);
        if let Some(cause) = ending {
            let process = process.as_mut().and_then(|it| it.ending(ENDING_LIMIT));
            events.lost(&session, Loss { cause, process });
        }
        if let Some(mut process) = process {
            process.end(&setup.stop);
        }
    }
}

type Inbound = tonic::Streaming<meetpoint_format::wire::DeviceMessage>;

/// Starts or connects to the device and makes the calls.
fn open(
    setup: &LinkSetup,
    runtime: &Runtime,
    process: &mut Option<DeviceProcess>,
) -> Result<(Arc<Session>, DeviceInfo, Inbound), Error> {
    let stop = &setup.stop;
    let create = || Spool::create(&setup.spool, setup.limits);
    let created = setup.begins_with_spool.then(create).transpose()?;
    let paths: Vec<&Path> = setup.job.dataset.paths().collect();
    let datasets = absolute(&paths)?;
    let target = match &setup.source {
        DeviceSource::Connect { socket } => Target::Socket(socket.clone()),
        DeviceSource::Remote(device) => Target::Remote(Box::new(device.located()?)),
        DeviceSource::Lost { loss } => {
            return Err(Error::DeviceLost { device: DeviceName::OfRank, loss: loss.clone() });
        }
        DeviceSource::Spawn(spawn) => {
            let started = process.insert(DeviceProcess::start(spawn, &datasets, 1)?);
            Target::Socket(started.socket().to_path_buf())
        }
    };
    let mut has_answered = false;
    let opened = runtime.block_on(async {
        let mut connection = match process.as_mut() {
            None => Connection::open(&target, stop).await?,
            Some(process) => first_connection(process, &target, stop).await?,
        };
        let info = connection.describe().await?;
        has_answered = true;
        let spool = match created {
            Some(spool) => spool,
            None => create()?,
        };
        if let Target::Socket(socket) = &target {
            let (token, file) = (spool.token(), spool.file().as_fd());
            let handed =
                fd_channel::hand_over(socket, token, file, CALL_LIMIT, &mut || stop.is_stopped());
            handed.map_err(|error| not_handed_over(socket, &error))?;
        }
        let request = load_request(setup, &target, &datasets, &spool);
        let is_stream = matches!(target, Target::Remote(_));
        let (session, outbound) = Session::new(setup.device, spool, is_stream);
        let lists = sampler_data(setup.job.batching.sampling().sampler());
        connection.load(request, lists, setup.batches, setup.held).await?;
        let inbound = connection.run(outbound).await?;
        Ok((session, info, inbound))
    });
    if let Some(process) = process {
        let has_failed = matches!(
            opened,
            Err(Error::DeviceUnreachable { .. }
                | Error::DeviceUnresponsive { .. }
                | Error::NotADevice { .. })
        );
        if has_failed {
            // If the device process ended because of the request, its exit explains more than the
            // failed call.
            process.wait(ENDING_LIMIT);
            process.check_alive(has_answered)?;
        }
        process.forget_socket();
    }
    let is_silent = matches!(
        opened,
        Err(Error::DeviceUnreachable { .. }
            | Error::DeviceUnresponsive { .. }
            | Error::DeviceTimeout { .. })
    );
    if is_silent && let Target::Socket(socket) = &target {
        let process_id = process.as_ref().map(DeviceProcess::id).or_else(|| listener(socket));
        if let Some(loss) = process_id.and_then(if_stopped) {
            let device = DeviceName::At(target.endpoint());
            return Err(Error::DeviceLost { device, loss });
        }
    }
    match opened {
        Err(Error::DeviceUnreachable { endpoint, problem, limit: None }) if has_answered => {
            let cause = "device_unreachable".to_owned();
            let loss = LossCause::NotOpened { cause, detail: problem }.into();
            Err(Error::DeviceLost { device: DeviceName::At(endpoint), loss })
        }
        Err(error) => Err(match process {
            Some(process) => error.of_process(|| process.name()),
            None => error,
        }),
        opened => opened,
    }
}

/// Waits until a process that was just started listens.
async fn first_connection<'a>(
    process: &mut DeviceProcess,
    target: &Target,
    stop: &'a StopHandle,
) -> Result<Connection<'a>, Error> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        process.check_alive(false)?;
        match Connection::open(target, stop).await {
            Err(
                Error::DeviceUnreachable { limit: None, .. } | Error::DeviceUnresponsive { .. },
            ) if Instant::now() < deadline => {
                stop.check()?;
                tokio::time::sleep(TRY_EVERY).await;
            }
            Err(Error::DeviceUnreachable { endpoint, limit: None, .. }) => {
                let problem = format!("it did not listen within {START_LIMIT:?}");
                return Err(Error::DeviceUnresponsive { endpoint, problem });
            }
            outcome => return outcome,
        }
    }
}

fn load_request(
    setup: &LinkSetup,
    target: &Target,
    datasets: &[PathBuf],
    spool: &Spool,
) -> LoadRequest {
    let Job { dataset: opened, recipe, batching, columns, .. } = &setup.job;
    let (options, rank, sampling) = (batching.options(), batching.rank(), batching.sampling());
    let limits = spool.limits();
    let kind = match (target, &setup.spool.kind) {
        (Target::Remote(_), _) => SpoolKind::Stream,
        (Target::Socket(_), crate::SpoolKind::Memory) => SpoolKind::Memory,
        (Target::Socket(_), crate::SpoolKind::File { .. }) => SpoolKind::File,
    };
    let paths = datasets.iter().map(|path| path.as_os_str().as_bytes().to_vec());
    let (datasets, named, spool_token) = match target {
        Target::Socket(_) => (paths.collect(), Vec::new(), spool.token()),
        Target::Remote(device) => {
            let root = device.root.as_deref().unwrap_or_default();
            let named = opened.manifests_sha256().map(|sha256| NamedDataset {
                root: root.to_owned(),
                manifest_sha256: sha256.to_vec(),
            });
            (Vec::new(), named.collect(), 0)
        }
    };
    LoadRequest {
        protocol_version: PROTOCOL_VERSION,
        datasets,
        named,
        manifest_sha256: opened.manifest_sha256().to_vec(),
        recipe_toml: recipe.to_toml(),
        recipe_hash: recipe.hash().0.to_vec(),
        seed: options.seed,
        batch_size: options.batch_size,
        drop_last: options.drop_last,
        spool_token,
        spool_slots: limits.slots,
        spool_slot_bytes: limits.slot_bytes,
        spool_kind: kind.into(),
        rank: rank.rank,
        ranks: rank.ranks,
        // If all devices hold the same samples, each is treated as the only one.
        device: if batching.devices() > 1 { setup.device.0.into() } else { 0 },
        devices: batching.devices(),
        part_holders: batching.holders().of_part().to_vec(),
        columns: columns.to_vec(),
        collate: Some(columns.collate().into()),
        sampler: Some(SamplerMessage::of(sampling.sampler(), sampling.checksum())),
        decode_bytes: match target {
            Target::Socket(_) => setup.decode_bytes,
            Target::Remote(_) => 0,
        },
    }
}

/// The dataset's folders as absolute paths, since the device may have another working directory.
fn absolute<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>, Error> {
    let absolute = |path: &P| {
        path.as_ref().canonicalize().map_err(|source| {
            let path = path.as_ref().to_path_buf();
            meetpoint_prepare::Error::Open { path, source }.into()
        })
    };
    paths.iter().map(absolute).collect()
}

/// Why a device did not accept the spool.
fn not_handed_over(socket: &Path, error: &HandOverError) -> Error {
    let (endpoint, step) = (Endpoint::Socket(socket.to_path_buf()), "take the spool");
    match error {
        HandOverError::Stopped => Error::Interrupted,
        HandOverError::TimedOut(limit) => Error::DeviceTimeout { endpoint, step, limit: *limit },
        HandOverError::Busy => {
            let reason = "its limit of unused spools is reached; it drops them after 10 s";
            let remedy = Remedy::advice("try again then").or("end the processes that offer them");
            let (reason, remedy) = (reason.to_owned(), Some(remedy));
            Error::DeviceRefused { endpoint, step, reason, is_temporary: true, remedy }
        }
        HandOverError::Connection(source) => {
            let limit = open_files_limit(source);
            Error::DeviceUnreachable { endpoint, problem: error.to_string(), limit }
        }
        HandOverError::UnknownAnswer => {
            Error::DeviceUnreachable { endpoint, problem: error.to_string(), limit: None }
        }
    }
}
