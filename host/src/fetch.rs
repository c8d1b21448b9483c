//! Brings published slots into host memory and checks them before they are used: the threads that
//! do for the batches of devices what workers do for those of the host.
//!
//! A slot in memory is checked and used in place. A slot in a file is read into a slot of the ring,
//! bypassing the page cache if the file system allows it, and released at once.

use crate::batch::{Memory, Table};
use crate::causes::SlotRefusal;
use crate::clock::monotonic_ns;
use crate::config::LoaderConfig;
use crate::device_link::{Session, SlotContents, SlotLease};
use crate::driver::{Driver, FetchTask, Prepared};
use crate::ring::Ring;
use crate::worker::{ContentsReader, FailOnPanic, grown};
use crate::{Error, cores};
use meetpoint_diagnose::{Diagnose, Remedy};
use meetpoint_format::column::{BatchColumns, BatchLayout};
use meetpoint_format::recipe::RecipeHash;
use meetpoint_format::slot::{HEADER_BYTES, SlotExpectation, SlotHeader};
use meetpoint_prepare::Job;
use meetpoint_storage::{
    AlignedBuffer, BLOCK_BYTES, Completion, Counters, Engine, EngineKind, FileId, Request,
    RequestKind, open_engine, open_files_limit,
};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit for reading a slot, after which the host prepares the batch instead.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// How often a waiting read checks whether the batch is still wanted.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// What one thread needs to fetch slots.
pub(crate) struct Fetcher {
    contents: ContentsReader,
    columns: Arc<BatchColumns>,
    recipe: RecipeHash,
    ring: Ring,
    /// For spool files; one for each session that is still in use.
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
    pub(crate) fn new(
        config: &LoaderConfig,
        job: &Job,
        columns: &Arc<BatchColumns>,
        ring: &Ring,
    ) -> Self {
        Self {
            contents: ContentsReader { job: job.clone(), verifies: config.verify_samples },
            columns: Arc::clone(columns),
            recipe: job.recipe.hash(),
            ring: ring.clone(),
            readers: Vec::new(),
            engine: config.engine,
        }
    }

    /// Starts a fetching thread, bound to `cores` if given.
    pub(crate) fn start(
        mut self,
        number: usize,
        driver: &Arc<Driver>,
        cores: Option<Vec<usize>>,
    ) -> Result<JoinHandle<()>, Error> {
        let driver = Arc::clone(driver);
        let body = move || {
            if let Some(cores) = cores {
                // Binding was tested when the loader was opened; a core may have gone offline
                // since.
                let _ = cores::bind(&cores);
            }
            while let Some(mut task) = driver.next_fetch() {
                let guard = FailOnPanic { driver: &driver, serial: task.serial };
                self.work(&mut task, &driver);
                drop(guard);
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
            // The run is over, and the batch is not needed.
            Ok(None) => {}
            Err(refusal) => driver.fetched(task, Err(refusal), read),
        }
    }

    /// `None` if the run is over.
    fn bring(
        &mut self,
        task: &FetchTask,
        lease: SlotLease,
        driver: &Driver,
    ) -> Result<Option<Prepared>, SlotRefusal> {
        let begun_ns = monotonic_ns();
        let batch = task.batch.0;
        let payload_bytes_max = payload_bytes_max(&lease);
        let (mut memory, mut beside) = if lease.bytes().is_some() {
            (Memory::Slot(lease), None)
        } else {
            match self.read_slot(task, &lease, driver)? {
                Some((buffer, start)) => (Memory::Fetched { buffer, start }, Some(lease)),
                None => return Ok(None),
            }
        };
        let expected = self.expectation(task, payload_bytes_max);
        let layout = check(&memory, &expected)?;
        let table = Table::new(&self.columns, layout);
        if let Memory::Slot(lease) = &mut memory {
            lease.retain(task.published.contents);
        }
        if let Some(lease) = &mut beside {
            lease.retain(task.published.contents);
        }
        let batching = &self.contents.job.batching;
        let samples = batching.samples_of(&batching.order(task.epoch), batch).collect();
        let (contents, verify_ns) = self
            .contents
            .read(&table, memory.payload(table.bytes()), samples, Vec::new())
            .map_err(SlotRefusal::from)?;
        let SlotContents { start_ns, end_ns, .. } = task.published.contents;
        let (stats, bring_ns) = (None, monotonic_ns().saturating_sub(begun_ns));
        Ok(Some(Prepared { memory, table, contents, start_ns, end_ns, stats, verify_ns, bring_ns }))
    }

    /// What the slot of a task must contain.
    fn expectation(&self, task: &FetchTask, payload_bytes_max: u64) -> SlotExpectation<'_> {
        // A slot that was retained from an earlier epoch has the numbers of that epoch.
        let written = &task.published.contents;
        let batching = &self.contents.job.batching;
        SlotExpectation {
            epoch: written.epoch,
            batch: task.batch.0,
            generation: written.generation,
            samples: batching.batch_len(task.batch.0),
            seed: batching.seed(),
            recipe: self.recipe,
            columns: &self.columns,
            payload_bytes_max,
        }
    }

    /// Reads a slot of a spool file into a slot of the ring. `None` if the run is over.
    fn read_slot(
        &mut self,
        task: &FetchTask,
        lease: &SlotLease,
        driver: &Driver,
    ) -> Result<Option<(AlignedBuffer, usize)>, SlotRefusal> {
        let Some(place) = driver.wait_for_slot(&self.ring, task.serial) else {
            return Ok(None);
        };
        // For columns of variable length, only the header states the length.
        let samples = self.contents.job.batching.batch_len(task.batch.0);
        let bytes = match self.columns.are_variable() {
            true => payload_bytes_max(lease),
            false => BatchLayout::bytes_max(&self.columns, samples, &vec![0; self.columns.len()]),
        };
        // Slots consist of whole blocks, which can be read directly.
        let bytes = usize::try_from(bytes).expect("a slot was planned to fit memory");
        let bytes = (HEADER_BYTES + bytes).next_multiple_of(BLOCK_BYTES);
        // Drops the readers of sessions that have ended.
        self.readers.retain(|reader| reader.session.strong_count() > 0);
        let session = lease.session();
        let known = self.readers.iter().position(|reader| reader.has_open(session));
        let number = match known {
            Some(number) => number,
            None => {
                self.readers.push(
                    SlotReader::open(self.engine, session).map_err(|error| unreadable(&error))?,
                );
                self.readers.len() - 1
            }
        };
        let reader = &mut self.readers[number];
        let offset = session.spool().offset(lease.slot());
        let wanted = || driver.is_current(task.serial);
        reader.read(offset, bytes, place.into_buffer(), wanted).map_err(|error| unreadable(&error))
    }
}

impl SlotReader {
    fn open(kind: EngineKind, session: &Arc<Session>) -> Result<Self, Error> {
        let mut engine = open_engine(kind, 4)?.engine;
        let file = session.spool().file().try_clone().map_err(|source| Error::Spool {
            bytes: session.spool().limits().bytes(),
            place: "a descriptor of its own".to_owned(),
            remedy: open_files_limit(&source)
                .map_or_else(|| "restart the job".into(), Remedy::from),
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

    /// Reads a range; `None` if it is not needed any more. An abandoned read completes together
    /// with a later one, which returns its memory to the ring.
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

/// Bytes of a slot after its header.
fn payload_bytes_max(lease: &SlotLease) -> u64 {
    lease.session().spool().limits().slot_bytes.saturating_sub(HEADER_BYTES as u64)
}

/// A slot that cannot be read.
fn unreadable(error: &Error) -> SlotRefusal {
    SlotRefusal::NotRead { cause: error.cause().to_owned(), detail: error.to_string() }
}

/// Compares header and payload with what was granted, and returns the positions of the columns.
fn check(memory: &Memory, expected: &SlotExpectation<'_>) -> Result<BatchLayout, SlotRefusal> {
    let header = match memory {
        Memory::Slot(lease) => {
            lease.bytes().expect("this kind of memory is mapped").first_chunk::<HEADER_BYTES>()
        }
        Memory::Fetched { buffer, start } => buffer.as_slice()[*start..].first_chunk(),
        Memory::Ring(_) | Memory::Divided { .. } | Memory::Own(_) => {
            unreachable!("that is what the host prepared into")
        }
    };
    let header = header.expect("a slot begins with a whole header");
    let header = SlotHeader::decode(header)?;
    let layout = header.check(expected)?;
    let bytes = usize::try_from(layout.bytes()).expect("no longer than its slot");
    let payload = memory.payload(bytes);
    header.check_payload(expected.columns, &layout, payload)?;
    Ok(layout)
}
