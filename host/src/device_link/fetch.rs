//! Brings published slots into host memory and checks them before anybody sees them.
//!
//! A slot in memory is checked where it lies and used there. A slot in a file is read, past the
//! page cache where the file system allows, into a place of the ring, and released at once.

use super::{Session, SlotContents, SlotLease};
use crate::batch::Memory;
use crate::clock::monotonic_ns;
use crate::config::LoaderConfig;
use crate::driver::{Driver, FetchTask, Prepared};
use crate::ring::Ring;
use crate::worker::{Alarm, ContentsReader, grown};
use crate::{Error, cores};
use meetpoint_format::batching::Batching;
use meetpoint_format::recipe::{RecipeHash, TensorSpec};
use meetpoint_format::slot::{HEADER_BYTES, SlotExpectation, SlotHeader};
use meetpoint_prepare::Job;
use meetpoint_storage::{
    AlignedBuffer, BLOCK_BYTES, Completion, Counters, Engine, EngineKind, FileId, Request,
    RequestKind, open_engine, open_files_limit,
};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a slot may take to be read before the host prepares the batch instead.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// How long a wait for a read lasts before it is looked whether the batch is still wanted.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// One thread's means of fetching slots.
pub(crate) struct Fetcher {
    contents: ContentsReader,
    spec: TensorSpec,
    recipe: RecipeHash,
    ring: Ring,
    /// For spool files; one for each session that is still used.
    readers: Vec<SlotReader>,
    engine: EngineKind,
}

/// An engine that has the spool file of one session open.
struct SlotReader {
    engine: Box<dyn Engine>,
    file: FileId,
    session: Weak<Session>,
    counted: Counters,
    completions: Vec<Completion>,
    token: u64,
}

impl Fetcher {
    pub(crate) fn new(config: &LoaderConfig, job: &Job, spec: TensorSpec, ring: &Ring) -> Self {
        Self {
            contents: ContentsReader {
                job: job.clone(),
                sample_bytes: spec.bytes(),
                verifies: config.verify_samples,
            },
            spec,
            recipe: job.recipe.hash(),
            ring: ring.clone(),
            readers: Vec::new(),
            engine: config.engine,
        }
    }

    /// Starts a fetching thread, bound to `cores` where given.
    pub(crate) fn start(
        mut self,
        number: usize,
        driver: &Arc<Driver>,
        cores: Option<Vec<usize>>,
    ) -> Result<JoinHandle<()>, Error> {
        let driver = Arc::clone(driver);
        let body = move || {
            if let Some(cores) = cores {
                // They were tried when the loader was opened; a core may have gone since.
                let _ = cores::bind(&cores);
            }
            while let Some(mut task) = driver.next_fetch() {
                let alarm = Alarm { driver: &driver, serial: task.serial };
                self.work(&mut task, &driver);
                drop(alarm);
            }
        };
        std::thread::Builder::new()
            .name(format!("fetch-{number}"))
            .spawn(body)
            .map_err(Error::Thread)
    }

    fn work(&mut self, task: &mut FetchTask, driver: &Driver) {
        let lease = task.published.lease.take().expect("a task is worked on once");
        let result = self.bring(task, lease, driver);
        let mut read = Counters::default();
        for reader in &mut self.readers {
            let more = grown(reader.engine.counters(), &mut reader.counted);
            read.bytes_read += more.bytes_read;
            read.bytes_read_device += more.bytes_read_device;
            read.bytes_written += more.bytes_written;
        }
        match result {
            Ok(Some(prepared)) => driver.fetched(task, Ok(prepared), read),
            // The run is over: nobody waits for the batch.
            Ok(None) => {}
            Err(Refusal::Slot(why)) => driver.fetched(task, Err(why), read),
            Err(Refusal::Dataset(error)) => driver.fail(task.serial, *error),
        }
    }

    /// `None` when the run is over.
    fn bring(
        &mut self,
        task: &FetchTask,
        lease: SlotLease,
        driver: &Driver,
    ) -> Result<Option<Prepared>, Refusal> {
        let begun_ns = monotonic_ns();
        let batch = task.batch.0;
        let (mut memory, mut beside) = if lease.bytes().is_some() {
            (Memory::Slot(lease), None)
        } else {
            match self.read_slot(task, &lease, driver)? {
                Some((buffer, start)) => (Memory::Fetched { buffer, start }, Some(lease)),
                None => return Ok(None),
            }
        };
        let expected = expectation(task, &self.contents.job.batching, &self.spec, self.recipe);
        let bytes = expected.payload_bytes().and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.expect("a batch was planned to fit memory");
        check(&memory, &expected, bytes)?;
        if let Memory::Slot(lease) = &mut memory {
            lease.retain(task.published.contents);
        }
        if let Some(lease) = &mut beside {
            lease.retain(task.published.contents);
        }
        let payload = memory.payload(bytes);
        let (contents, verify_ns) = self
            .contents
            .read(task.epoch, batch, payload, &[])
            .map_err(|error| Refusal::Dataset(Box::new(error)))?;
        let SlotContents { start_ns, end_ns, .. } = task.published.contents;
        let (stats, bring_ns) = (None, monotonic_ns().saturating_sub(begun_ns));
        Ok(Some(Prepared { memory, contents, start_ns, end_ns, stats, verify_ns, bring_ns }))
    }

    /// Reads a slot of a spool file into a place of the ring. `None` when the run is over.
    fn read_slot(
        &mut self,
        task: &FetchTask,
        lease: &SlotLease,
        driver: &Driver,
    ) -> Result<Option<(AlignedBuffer, usize)>, Refusal> {
        let Some(place) = driver.wait_for_place(&self.ring, task.serial) else {
            return Ok(None);
        };
        let samples = self.contents.job.batching.batch_len(task.batch.0) as usize;
        let bytes = HEADER_BYTES + samples * self.spec.bytes();
        // Whole blocks, which every slot is made of, go directly.
        let bytes = bytes.next_multiple_of(BLOCK_BYTES);
        let unreadable = |error: Error| Refusal::Slot(error.to_string());
        let session = lease.session();
        let known = self.readers.iter().position(|reader| reader.has_open(session));
        let number = match known {
            Some(number) => number,
            None => {
                // Sessions that ended are read from no more.
                self.readers.retain(|reader| reader.session.strong_count() > 0);
                self.readers.push(SlotReader::open(self.engine, session).map_err(unreadable)?);
                self.readers.len() - 1
            }
        };
        let reader = &mut self.readers[number];
        let offset = session.spool().offset(lease.slot());
        let wanted = || driver.is_current(task.serial);
        reader.read(offset, bytes, place.into_buffer(), wanted).map_err(unreadable)
    }
}

impl SlotReader {
    fn open(kind: EngineKind, session: &Arc<Session>) -> Result<Self, Error> {
        let mut engine = open_engine(kind, 4)?.engine;
        let file = session.spool().file().try_clone().map_err(|source| Error::Spool {
            bytes: session.spool().limits().bytes(),
            place: "a descriptor of its own".to_owned(),
            remedy: open_files_limit(&source)
                .map_or_else(|| "restart the job".to_owned(), |limit| limit.to_string()),
            source,
        })?;
        let file = engine.adopt(file, "the spool")?;
        Ok(Self {
            engine,
            file,
            session: Arc::downgrade(session),
            counted: Counters::default(),
            completions: Vec::new(),
            token: 0,
        })
    }

    fn has_open(&self, session: &Arc<Session>) -> bool {
        std::ptr::eq(self.session.as_ptr(), Arc::as_ptr(session))
    }

    /// Reads a range; `None` when it is not wanted any more. A read that is given up comes back
    /// with a later one, and its memory then goes back to the ring.
    fn read(
        &mut self,
        offset: u64,
        bytes: usize,
        buffer: AlignedBuffer,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Option<(AlignedBuffer, usize)>, Error> {
        self.token += 1;
        let (token, file, kind) = (self.token, self.file, RequestKind::Read);
        let request = Request { token, file, kind, offset, bytes, buffer };
        self.engine.submit(request).map_err(|refused| refused.error)?;
        let deadline = Instant::now() + READ_LIMIT;
        loop {
            self.engine.wait(WAIT_SLICE, &mut self.completions)?;
            let ours = self.completions.drain(..).find(|done| done.token == token);
            if let Some(done) = ours {
                done.result?;
                return Ok(Some((done.buffer, done.start)));
            }
            if !is_wanted() {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                let source = std::io::ErrorKind::TimedOut.into();
                let path = "the spool".into();
                let late =
                    meetpoint_storage::Error::Io { action: "read", path, offset, bytes, source };
                return Err(late.into());
            }
        }
    }
}

/// Why a slot does not become a batch.
enum Refusal {
    /// The slot is not what it should be; the host prepares the batch.
    Slot(String),
    /// The host's own dataset does not read; the epoch ends.
    Dataset(Box<Error>),
}

fn expectation(
    task: &FetchTask,
    batching: &Batching,
    spec: &TensorSpec,
    recipe: RecipeHash,
) -> SlotExpectation {
    // One that was kept from an epoch before has that one's numbers.
    let written = &task.published.contents;
    SlotExpectation {
        epoch: written.epoch,
        batch: task.batch.0,
        generation: written.generation,
        seed: batching.seed(),
        recipe,
        dtype: spec.dtype,
        shape: spec.batch_shape(batching.batch_len(task.batch.0)),
    }
}

/// Holds header and payload against what was granted.
fn check(memory: &Memory, expected: &SlotExpectation, bytes: usize) -> Result<(), Refusal> {
    let header = match memory {
        Memory::Slot(lease) => {
            lease.bytes().expect("this kind of memory is mapped").first_chunk::<HEADER_BYTES>()
        }
        Memory::Fetched { buffer, start } => buffer.as_slice()[*start..].first_chunk(),
        Memory::Place(_) => unreachable!("a place is what the host prepared into"),
    };
    let refused = |error: meetpoint_format::slot::SlotError| Refusal::Slot(error.to_string());
    let header = header.expect("a slot begins with a whole header");
    let header = SlotHeader::decode(header).map_err(refused)?;
    header.check(expected).map_err(refused)?;
    header.check_payload(memory.payload(bytes)).map_err(refused)
}
