//! Starts SPDK's thread, and opens devices on it.
#![expect(unsafe_code, reason = "registers a function for the end of the process")]

use crate::ending::{Ending, Requests};
use crate::reactor::{self, Command, DeviceId, Geometry};
use crate::transfer::{Done, Failure, Transfer};
use crate::{Error, Options, Source};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The release of SPDK that this program was built with.
pub const RELEASE: &str = env!("MEETPOINT_SPDK_RELEASE");

/// Commands that wait for the thread; more block their senders.
const COMMANDS_MAX: usize = 1024;

/// Longest time for SPDK's start, and for opening a device.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Longest time that the end of the process waits for SPDK's end.
const END_MAX: Duration = Duration::from_secs(10);

/// SPDK in this process. Clones share it.
#[derive(Debug, Clone)]
pub struct Spdk {
    commands: SyncSender<Command>,
    has_ended: Arc<AtomicBool>,
}

/// An open device. Dropping it closes it after its transfers have ended.
#[derive(Debug)]
pub struct Device {
    spdk: Spdk,
    geometry: Geometry,
}

static STARTED: OnceLock<Result<Spdk, Error>> = OnceLock::new();

/// The thread, until its end is awaited.
static THREAD: Mutex<Option<(Ending, Requests)>> = Mutex::new(None);

/// Ends SPDK's thread, before the end of the process frees what the thread uses.
extern "C" fn end() {
    let thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((ending, requests)) = thread {
        requests.stop();
        ending.wait(END_MAX);
    }
}

fn start(options: Options) -> Result<Spdk, Error> {
    let failed = |reason| Error::Start { step: "its thread", reason };
    let (commands, to_do) = sync_channel(COMMANDS_MAX);
    let (started, answer) = sync_channel(1);
    let (requests, has_ended) = (Requests::default(), Arc::default());
    let own = requests.clone();
    let body = move || reactor::run(&options, &to_do, &own, &started);
    let ending = Ending::start(requests.clone(), Arc::clone(&has_ended), body)
        .map_err(|error| failed(format!("no thread could be started: {error}")))?;
    let answer = answer_of(&answer);
    *THREAD.lock().unwrap_or_else(PoisonError::into_inner) = Some((ending, requests));
    // SAFETY: the function has no arguments and does not unwind.
    unsafe { libc::atexit(end) };
    answer??;
    Ok(Spdk { commands, has_ended })
}

/// The answer of the thread, within the time limit.
fn answer_of<T>(answer: &Receiver<T>) -> Result<T, Error> {
    answer.recv_timeout(ANSWER_MAX).map_err(|error| match error {
        RecvTimeoutError::Timeout => Error::Timeout(ANSWER_MAX),
        RecvTimeoutError::Disconnected => Error::Ended,
    })
}

impl Spdk {
    /// SPDK, which the first call in a process starts; later calls return the same one, or the same
    /// error, whatever their options.
    pub fn get(options: impl FnOnce() -> Result<Options, Error>) -> Result<Self, Error> {
        STARTED.get_or_init(|| start(options()?)).clone()
    }

    /// Whether its thread has ended, so that no transfer ends any longer.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Opens a device. Takes at most a minute.
    pub fn open(&self, source: Source, writable: bool) -> Result<Arc<Device>, Error> {
        let (reply, answer) = sync_channel(1);
        let command = Command::Open { source, writable, reply };
        self.commands.send(command).map_err(|_| Error::Ended)?;
        let geometry = answer_of(&answer)??;
        Ok(Arc::new(Device { spdk: self.clone(), geometry }))
    }
}

impl Device {
    /// Its name in SPDK.
    pub fn bdev(&self) -> &str {
        &self.geometry.bdev
    }

    /// Bytes of a block: offsets and lengths of transfers are multiples of it.
    pub fn block_bytes(&self) -> u32 {
        self.geometry.block_bytes
    }

    /// Length in bytes, a whole number of blocks.
    pub fn bytes(&self) -> u64 {
        self.geometry.blocks * u64::from(self.geometry.block_bytes)
    }

    /// Starts a transfer. Its [`Done`] always arrives, unless SPDK's thread ends.
    pub fn submit(&self, transfer: Transfer) {
        let command = Command::Transfer(DeviceId(self.geometry.id.0), transfer);
        if let Err(refused) = self.spdk.commands.send(command)
            && let Command::Transfer(_, Transfer { token, reply, .. }) = refused.0
        {
            let _ = reply.try_send(Done { token, result: Err(Failure::Os(libc::ESHUTDOWN)) });
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The thread has ended otherwise, and closed every device.
        let _ = self.spdk.commands.send(Command::Close(self.geometry.id));
    }
}
