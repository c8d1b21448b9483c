//! Preparation on the host: one preparer for each thread, in the background or in the consumer's.

use crate::batch::{Contents, Memory, Table};
use crate::causes::LabelError;
use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::config::LoaderConfig;
use crate::driver::{Driver, HostTask, Prepared};
use crate::ring::{Ring, RingSlot};
use crate::{Error, cores};
use meetpoint_format::column::ColumnSource;
use meetpoint_gpu::resident::ResidentTensors;
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::cache::SampleCache;
use meetpoint_prepare::{
    BatchMemory, DecodeMemory, Error as PrepareError, Job, MemoryKind, PreparedBatch, Preparer,
    Replacement, Resources, abandoning,
};
use meetpoint_scheduler::BatchIndex;
use meetpoint_storage::{AlignedBuffer, Counters, EngineNote, open_engine};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// What one thread needs to prepare batches in the ring.
pub(crate) struct HostPreparer {
    preparer: Box<dyn Preparer>,
    contents: ContentsReader,
    ring: Ring,
    /// The run that a batch is being prepared for; decoding is interrupted when it ends.
    serial: Arc<AtomicU64>,
    /// The engine's counters at the previous reading.
    counted: Counters,
    /// Maximum bytes of a batch that is larger than a slot of the ring.
    own_bytes_max: u64,
    /// Whether tensors may stay on a GPU.
    keeps_tensors: bool,
}

/// A slot of the ring, or separate memory if a batch is larger.
struct HostMemory {
    place: RingSlot,
    own: Option<AlignedBuffer>,
    /// Maximum bytes of the separate memory.
    limit: u64,
    /// Whether tensors may stay on a GPU, and those that do.
    keeps_tensors: bool,
    resident: Option<ResidentTensors>,
}

impl BatchMemory for HostMemory {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.own {
            Some(own) => own.as_mut_slice(),
            None => &mut self.place,
        }
    }

    fn on_gpu(&mut self) -> Option<&mut Option<ResidentTensors>> {
        self.keeps_tensors.then_some(&mut self.resident)
    }

    fn may_grow(&self) -> bool {
        true
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let fits = bytes as u64 <= self.limit;
        if fits {
            self.own = Some(AlignedBuffer::zeroed(bytes));
        }
        fits
    }
}

impl From<HostMemory> for Memory {
    fn from(memory: HostMemory) -> Self {
        match (memory.own, memory.resident) {
            (Some(own), _) => Self::Own(own),
            (None, None) => Self::Ring(memory.place),
            (None, Some(tensors)) => Self::Divided { slot: memory.place, tensors },
        }
    }
}

/// Reads the values of a batch that the runtime itself uses.
#[derive(Debug, Clone)]
pub(crate) struct ContentsReader {
    pub(crate) job: Job,
    /// Whether the checksum of every sample is needed.
    pub(crate) verifies: bool,
}

impl ContentsReader {
    /// The contents of a batch of these samples, and the CPU time that checksums took.
    pub(crate) fn read(
        &self,
        table: &Table,
        payload: &[u8],
        samples: Vec<u64>,
        replacements: Vec<Replacement>,
    ) -> Result<(Contents, u64), LabelError> {
        let labels = self.labels(table, payload)?;
        let start_ns = thread_cpu_ns();
        let crc32c = self.verifies.then(|| table.sample_checksums(payload));
        let verify_ns = thread_cpu_ns() - start_ns;
        Ok((Contents { samples, labels, crc32c, replacements }, verify_ns))
    }

    /// Labels, if the batch has the column.
    fn labels(&self, table: &Table, payload: &[u8]) -> Result<Vec<Option<i32>>, LabelError> {
        let Some(index) = table.columns.position_of(ColumnSource::Label) else {
            return Ok(Vec::new());
        };
        if self.job.recipe.labels().is_some() {
            return soft_labels(table.column(index, payload).values());
        }
        let labels = self.job.dataset.manifest().labels.len();
        let bytes = table.column(index, payload).values();
        let read = |bytes: &[u8]| {
            let got = i64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes"));
            let known = usize::try_from(got).is_ok_and(|label| label < labels);
            match i32::try_from(got) {
                Ok(-1) => Ok(None),
                Ok(label) if known => Ok(Some(label)),
                _ => Err(LabelError::Unknown { got, labels }),
            }
        };
        bytes.chunks_exact(8).map(read).collect()
    }
}

/// Checks rows of soft labels, which are not indices.
fn soft_labels(bytes: &[u8]) -> Result<Vec<Option<i32>>, LabelError> {
    let elements = bytes.as_chunks::<4>().0.iter().copied().map(f32::from_le_bytes);
    // Two weights with the exact sum 1 may exceed it by rounding.
    let mut others = elements.filter(|it| !(0.0..=1.0 + 2.0 * f32::EPSILON).contains(it));
    others.next().map_or(Ok(Vec::new()), |got| Err(LabelError::NotAShare { got: got.to_string() }))
}

impl std::fmt::Debug for HostPreparer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostPreparer({})", self.preparer.name())
    }
}

impl HostPreparer {
    /// Opens the parts of the dataset with a separate engine; also returns which features the
    /// engine lacks.
    pub(crate) fn open(
        (config, job, ring, driver): (&LoaderConfig, &Job, &Ring, &Arc<Driver>),
        memory: &Arc<DecodeMemory>,
        cache: Option<&Arc<SampleCache>>,
    ) -> Result<(Self, Vec<EngineNote>), Error> {
        let chosen = open_engine(config.engine, config.read_depth)?;
        let notes = chosen.engine.notes().iter().cloned().chain(chosen.note).collect();
        let decode_memory = Some(Arc::clone(memory));
        let cache = cache.map(Arc::clone);
        let resources = Resources { engine: chosen.engine, decode_memory, cache };
        let mut preparer = config.preparers.preparer(job, resources)?;
        let serial = Arc::new(AtomicU64::new(0));
        let (wanted, asked) = (Arc::clone(&serial), Arc::clone(driver));
        preparer.set_interrupt(abandoning(Interrupt::when(move || {
            !asked.is_current(wanted.load(Ordering::Relaxed))
        })));
        let contents = ContentsReader { job: job.clone(), verifies: config.verify_samples };
        let counted = Counters::default();
        let own_bytes_max = config.memory_budget_bytes / u64::from(config.shares);
        let ring = ring.clone();
        let keeps_tensors = config.delivers_to.is_some() && !config.verify_samples;
        let own = Self { preparer, contents, ring, serial, counted, own_bytes_max, keeps_tensors };
        Ok((own, notes))
    }

    /// Prepares a batch and reports it; calls `at_work` between samples and while it reads.
    pub(crate) fn work(&mut self, task: HostTask, driver: &Driver, at_work: &mut dyn FnMut()) {
        let HostTask { serial, batch, .. } = task;
        let result = self.prepare(task, driver, at_work);
        let read = grown(self.preparer.counters(), &mut self.counted);
        driver.host_finished(serial, batch, result, read);
    }

    fn prepare(
        &mut self,
        task: HostTask,
        driver: &Driver,
        at_work: &mut dyn FnMut(),
    ) -> Result<Option<Prepared>, Error> {
        let HostTask { serial, epoch, batch: BatchIndex(batch) } = task;
        let Some(place) = driver.wait_for_slot(&self.ring, serial) else {
            return Ok(None);
        };
        let start_ns = monotonic_ns();
        let mut is_wanted = |_| {
            at_work();
            driver.is_current(serial)
        };
        self.serial.store(serial, Ordering::Relaxed);
        let Self { own_bytes_max: limit, keeps_tensors, .. } = *self;
        let mut memory = HostMemory { place, own: None, limit, keeps_tensors, resident: None };
        let prepared = self.preparer.prepare(epoch, batch, &mut memory, &mut is_wanted);
        let PreparedBatch { layout, samples, replacements, stats } = match prepared {
            Err(PrepareError::Interrupted) => return Ok(None),
            Err(error) if error.is_interrupted() => return Err(Error::Interrupted),
            prepared => prepared?,
        };
        let end_ns = monotonic_ns();
        let table = Table::new(self.preparer.columns(), layout);
        let memory = Memory::from(memory);
        let (contents, verify_ns) = self
            .contents
            .read(&table, memory.payload(table.bytes()), samples, replacements)
            .expect("the dataset's index has checked its labels");
        let stats = Some(stats);
        let bring_ns = 0;
        Ok(Some(Prepared { memory, table, contents, start_ns, end_ns, stats, verify_ns, bring_ns }))
    }
}

/// The increase of a counter since the previous reading.
pub(crate) fn grown(now: Counters, counted: &mut Counters) -> Counters {
    let before = std::mem::replace(counted, now);
    Counters {
        bytes_read: now.bytes_read - before.bytes_read,
        bytes_read_device: now.bytes_read_device - before.bytes_read_device,
        bytes_written: now.bytes_written - before.bytes_written,
        ..Counters::default()
    }
}

/// Starts a background worker, bound to `cores` if given.
pub(crate) fn start(
    number: u32,
    mut preparer: HostPreparer,
    driver: &Arc<Driver>,
    cores: Option<Vec<usize>>,
) -> Result<JoinHandle<()>, Error> {
    let driver = Arc::clone(driver);
    let body = move || {
        if let Some(cores) = cores {
            // Binding was tested when the loader was opened; a core may have gone offline since.
            let _ = cores::bind(&cores);
        }
        while let Some(task) = driver.next_for_host(number) {
            let guard = FailOnPanic { driver: &driver, serial: task.serial };
            preparer.work(task, &driver, &mut || {});
            drop(guard);
        }
    };
    std::thread::Builder::new().name(format!("prepare-{number}")).spawn(body).map_err(Error::Thread)
}

/// Ends the run with an error when its thread panics, so that no other thread waits for it.
pub(crate) struct FailOnPanic<'d> {
    pub(crate) driver: &'d Driver,
    pub(crate) serial: u64,
}

impl Drop for FailOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.driver.fail(self.serial, Error::Panicked);
        }
    }
}
