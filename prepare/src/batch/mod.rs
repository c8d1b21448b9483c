//! Prepares batches in one thread, with an engine, a preparer, and reused buffers.
//!
//! In reading order: this file (the course of a batch), `reading` (reading ahead), `decoding` (from
//! bytes to a place in the batch), `pictures` (the positions of the images of a sample), `cached`
//! (samples in memory), `small` (small samples), `table` (the columns other than images),
//! `collated` (pictures of different sizes), `offloaded` (pictures that a GPU prepares), `damaged`
//! (damaged samples).

mod cached;
mod collated;
mod damaged;
mod decoding;
mod offloaded;
mod pictures;
mod reading;
mod small;
mod table;

use crate::buffers::BufferPool;
use crate::cache::SampleCache;
use crate::contents::OpenContents;
use crate::encoded::decodes_regions;
use crate::job::Job;
use crate::prefetch;
use crate::preparer::{Pace, PrepareStats, PreparedBatch, Preparer};
use crate::read_limits::ReadPatience;
use crate::resume::Resumer;
use crate::shape::collated_shape;
use crate::{BatchMemory, DecodeMemory, Error, Replacement};
use cached::CachedSamples;
use meetpoint_format::batching::Entry;
use meetpoint_format::column::{BatchColumns, BatchLayout, ColumnSource, TargetColumn};
use meetpoint_format::dataset::{ENTRY_POINTS_BYTES_MAX, SampleLocation};
use meetpoint_format::recipe::TensorSpec;
use meetpoint_format::sampler::EpochOrder;
use meetpoint_kernels::{
    BatchId, BatchMixer, BatchTensors, Cpu, Interrupt, SamplePreparer, TargetSpec,
};
use meetpoint_storage::{Access, Completion, Counters, Engine, FileId};
use offloaded::Offloading;
use pictures::Pictures;
use small::SmallReads;
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::Table;

/// How long a wait lasts before the caller is asked whether to continue.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// Prepares batches with the CPU. Belongs to one thread.
///
/// ```
/// use meetpoint_format::batching::{Batching, BatchOptions};
/// use meetpoint_format::recipe::Recipe;
/// use meetpoint_format::sampler::Sampling;
/// use meetpoint_kernels::Cpu;
/// use meetpoint_prepare::{BatchMemory, CpuPreparer, Dataset, Job, MemoryKind, OnError, Preparer};
/// use meetpoint_storage::{EngineKind, open_engine};
/// use std::sync::Arc;
///
/// /// Memory of the host.
/// struct Host(Vec<u8>);
///
/// impl BatchMemory for Host {
///     fn kind(&self) -> MemoryKind {
///         MemoryKind::Host
///     }
///
///     fn bytes_mut(&mut self) -> &mut [u8] {
///         &mut self.0
///     }
/// }
///
/// let dataset = Arc::new(Dataset::open("../datasets/tests/golden/version-3".as_ref())?);
/// let recipe =
///     "operation = [{name = 'decode'}, {name = 'center_crop', size = 8}]";
/// let options = BatchOptions { batch_size: 4, drop_last: false, seed: 1 };
/// let job = Job {
///     batching: Batching::alone(options, Sampling::shuffled(dataset.len())),
///     dataset,
///     recipe: Arc::new(Recipe::from_toml(recipe)?),
///     on_error: OnError::default(),
///     columns: vec!["image".to_owned()].into(),
/// };
/// let engine = open_engine(EngineKind::Auto, 8)?.engine;
/// let mut preparer = CpuPreparer::new(job, engine, Cpu::detect())?;
/// let mut memory = Host(vec![0; 4 * 8 * 8 * 3]);
/// let batch = preparer.prepare(0, 0, &mut memory, &mut |_| true)?;
/// assert_eq!(batch.samples.len(), 4);
/// // The same batch of the same epoch has the same bytes.
/// let first = memory.0.clone();
/// preparer.prepare(0, 0, &mut memory, &mut |_| true)?;
/// assert_eq!(memory.0, first);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CpuPreparer {
    job: Job,
    engine: Box<dyn Engine>,
    files: Vec<FileId>,
    /// Files outside of the parts, by folder of the dataset.
    contents: Vec<OpenContents>,
    preparer: SamplePreparer,
    /// Where samples are prepared by the first operations of the recipe.
    resumer: Option<Resumer>,
    /// Where samples are cached.
    cached: Option<CachedSamples>,
    /// Where the recipe has operations on batches.
    mixer: Option<BatchMixer>,
    /// Where some of the pictures are prepared elsewhere.
    offload: Option<Offloading>,
    small: SmallReads,
    interrupt: Interrupt,
    cpu: Cpu,
    memory: Option<Arc<DecodeMemory>>,
    spec: TensorSpec,
    pictures: Pictures,
    table: Table,
    /// The order of the last requested epoch.
    order: Option<(u32, EpochOrder)>,
    /// The samples of the current batch, in batch order.
    samples: Vec<(u64, SampleLocation)>,
    /// The key of the random parameters of each.
    keys: Vec<u64>,
    /// The damaged samples of the current batch, by position.
    replacements: Vec<Replacement>,
    pool: BufferPool,
    completions: Vec<Completion>,
    /// Number of the call, the upper half of each token: tells a late read of an earlier batch.
    call: u32,
}

/// Progress within one batch.
struct BatchProgress<'a> {
    epoch: u32,
    batch: u32,
    memory: &'a mut dyn BatchMemory,
    pace: Pace<'a>,
    stats: PrepareStats,
    /// Next sample to be read.
    next: usize,
    /// Bytes that are being read or wait to be decoded.
    bytes_ahead: u64,
    is_given_up: bool,
}

impl BatchProgress<'_> {
    /// Asks whether to continue; an error once the batch was cancelled.
    fn ask(&mut self) -> Result<(), Error> {
        self.is_given_up |= !(self.pace)(self.stats.samples);
        if self.is_given_up { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl CpuPreparer {
    /// Opens the parts with `engine`. Reads are kept in flight up to the engine's depth.
    ///
    /// If the recipe decodes regions, the dataset caches entry points from now on, in at most
    /// [`ENTRY_POINTS_BYTES_MAX`] for all of its preparers together.
    pub fn new(job: Job, engine: Box<dyn Engine>, cpu: Cpu) -> Result<Self, Error> {
        let mut engine = job.dataset.engine(engine);
        let collate = job.columns.collate();
        let spec = collated_shape(&job.recipe, collate)?;
        let columns = job.batch_columns()?;
        let targets = job.dataset.targets(&columns, &job.recipe, collate)?;
        let resumer = job.dataset.start(&job.recipe)?.map(|start| Resumer::new(start, cpu));
        let mut preparer = SamplePreparer::new(&job.recipe, cpu);
        preparer.set_columns(Pictures::of_recipe(&columns));
        preparer.set_targets(targets.iter().map(target_spec).collect());
        let collated = collate.takes_sizes().then_some((collate, &*job.recipe));
        let table = Table::new(Arc::new(columns), (targets, job.recipe.labels()), collated);
        let files = (0..job.dataset.manifest().parts.len())
            .map(|part| engine.open(&job.dataset.part_path(part), Access::Read))
            .collect::<Result<_, _>>()?;
        let contents = (0..job.dataset.folders()).map(|_| OpenContents::default()).collect();
        if resumer.is_none() && decodes_regions(&job.recipe) {
            job.dataset.keep_entry_points(ENTRY_POINTS_BYTES_MAX);
        }
        Ok(Self {
            preparer,
            resumer,
            cached: None,
            mixer: BatchMixer::new(&job.recipe, spec),
            offload: None,
            small: SmallReads::default(),
            interrupt: Interrupt::default(),
            cpu,
            memory: Some(DecodeMemory::of_this_process()),
            job,
            engine,
            files,
            contents,
            spec,
            pictures: Pictures::new(Arc::clone(table.columns())),
            table,
            order: None,
            samples: Vec::new(),
            keys: Vec::new(),
            replacements: Vec::new(),
            pool: BufferPool::default(),
            completions: Vec::new(),
            call: 0,
        })
    }

    /// Shares memory for decoding large samples with others; without it, the process's is used.
    pub fn set_decode_memory(&mut self, memory: Arc<DecodeMemory>) {
        self.memory = Some(memory);
    }

    /// Takes samples from a cache that is shared with others, and adds samples to it.
    pub fn set_cache(&mut self, cache: Arc<SampleCache>) {
        let mut cached = CachedSamples::new(cache, &self.job.recipe, self.cpu);
        cached.set_interrupt(self.interrupt.clone());
        self.cached = Some(cached);
    }

    /// Shape of each picture of a sample; of the first view, if the recipe has views. Height and
    /// width are 0 if pictures may have different sizes.
    pub fn spec(&self) -> TensorSpec {
        self.spec
    }

    /// Finds the samples of a batch and where they lie.
    fn locate(&mut self, epoch: u32, batch: u32) -> Result<(), Error> {
        let batching = &self.job.batching;
        let batches = batching.batches();
        if u64::from(batch) >= batches {
            return Err(Error::NoSuchBatch { batch, batches });
        }
        if self.order.as_ref().is_none_or(|(of, _)| *of != epoch) {
            self.order = Some((epoch, batching.order(epoch)));
        }
        let (_, order) = self.order.as_ref().expect("it was just made");
        self.samples.clear();
        self.keys.clear();
        if self.job.dataset.is_remote() {
            let samples = batching.samples_of(order, batch).collect::<Vec<_>>();
            prefetch::begin_tables(&self.job.dataset, &samples);
        }
        for Entry { sample, key } in batching.entries_of(order, batch) {
            self.samples.push((sample, self.job.dataset.locate(sample)?));
            self.keys.push(key);
        }
        Ok(())
    }

    fn run(&mut self, progress: &mut BatchProgress<'_>) -> Result<(), Error> {
        if !self.table.has_images() {
            return self.run_without_images(progress);
        }
        let mut patience = ReadPatience::new(self.job.dataset.is_remote());
        while (progress.stats.samples as usize) < self.samples.len() {
            progress.ask()?;
            self.interrupt.check().map_err(|_| Error::Interrupted)?;
            self.read_ahead(progress)?;
            if self.completions.is_empty() && self.engine.in_flight() > 0 {
                let started = Instant::now();
                self.engine.wait(WAIT_SLICE, &mut self.completions)?;
                let took = started.elapsed();
                progress.stats.read_wait_ns += nanoseconds(took);
                if self.completions.is_empty() && patience.is_exhausted_by(took, WAIT_SLICE) {
                    let path = self.job.dataset.path().to_path_buf();
                    return Err(Error::ReadTimeout { path, seconds: patience.limit.as_secs() });
                }
            } else if !self.completions.is_empty() {
                // Takes in what has arrived meanwhile, so that the next reads can go out.
                self.engine.wait(Duration::ZERO, &mut self.completions)?;
            }
            let Some(completion) = self.completions.pop() else { continue };
            self.decode(completion, progress)?;
            patience.renew();
        }
        self.finish_offload(progress)
    }

    /// Closes a batch up whose samples are all prepared, writes its further columns, and mixes what
    /// it then holds.
    fn finish(&mut self, progress: &mut BatchProgress<'_>) -> Result<PreparedBatch, Error> {
        if !self.replacements.is_empty() {
            self.replacements.sort_by_key(|replacement| replacement.position);
            self.close_up(progress.memory);
        }
        let (layout, samples) = self.table.finish(progress.memory)?;
        self.mix(&layout, samples.len(), progress)?;
        let replacements = std::mem::take(&mut self.replacements);
        Ok(PreparedBatch { layout, samples, replacements, stats: progress.stats })
    }

    /// Executes the operations on batches on the columns that there are.
    fn mix(
        &mut self,
        layout: &BatchLayout,
        samples: usize,
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        let Some(mixer) = &mut self.mixer else { return Ok(()) };
        let started = Instant::now();
        let (images, others) = progress.memory.bytes_mut().split_at_mut(self.pictures.end(samples));
        let label = self.table.columns().position_of(ColumnSource::Label);
        // Labels that the operations leave unchanged are indices, not rows of numbers.
        let label = label.filter(|_| mixer.labels().is_some());
        let labels = label.map_or(0..0, |index| {
            let extent = layout.extent(index);
            let start = usize::try_from(extent.offset).expect("inside the memory") - images.len();
            start..start + usize::try_from(extent.bytes).expect("inside the memory")
        });
        let labels = &mut others[labels];
        let batching = &self.job.batching;
        let (seed, number) = (batching.seed(), batching.number(progress.batch));
        let id = BatchId { seed, epoch: progress.epoch, batch: number };
        let (pace, done) = (&mut progress.pace, progress.stats.samples);
        let is_given_up = &mut progress.is_given_up;
        let pause = &mut || *is_given_up |= !pace(done);
        let mixed = mixer.mix(id, BatchTensors { samples, images, labels }, pause);
        progress.stats.compute_ns += nanoseconds(started.elapsed());
        // Mixing itself fails only where it is interrupted.
        if mixed.is_err() || progress.is_given_up { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Takes the columns of all samples, where nothing has to be decoded.
    fn run_without_images(&mut self, progress: &mut BatchProgress<'_>) -> Result<(), Error> {
        for position in 0..self.samples.len() {
            progress.ask()?;
            self.interrupt.check().map_err(|_| Error::Interrupted)?;
            let (sample, location) = self.samples[position].clone();
            let outcome = self.take_columns(position, (sample, &location), progress);
            outcome.or_else(|error| self.replace_damaged(position, error, progress))?;
        }
        Ok(())
    }

    fn take_columns(
        &mut self,
        position: usize,
        sample: (u64, &SampleLocation),
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        self.table.take(position, sample, &self.job.dataset)?;
        progress.stats.samples += 1;
        Ok(())
    }
}

impl Preparer for CpuPreparer {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn columns(&self) -> &Arc<BatchColumns> {
        self.table.columns()
    }

    fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.preparer.set_interrupt(interrupt.clone());
        if let Some(resumer) = &mut self.resumer {
            resumer.set_interrupt(interrupt.clone());
        }
        if let Some(cached) = &mut self.cached {
            cached.set_interrupt(interrupt.clone());
        }
        if let Some(mixer) = &mut self.mixer {
            mixer.set_interrupt(interrupt.clone());
        }
        if let Some(offload) = &mut self.offload {
            offload.set_interrupt(interrupt.clone());
        }
        self.interrupt = interrupt;
    }

    /// Samples are decoded as their reads arrive, each into its position in the batch. When this
    /// returns, no read is in flight.
    fn prepare(
        &mut self,
        epoch: u32,
        batch: u32,
        memory: &mut dyn BatchMemory,
        pace: Pace<'_>,
    ) -> Result<PreparedBatch, Error> {
        // Until it is dropped, the batch counts as being read.
        let _active = prefetch::Active::begin(&self.job, epoch, batch);
        self.locate(epoch, batch)?;
        self.pictures.begin(self.samples.len());
        let (got, needed) = (memory.bytes_mut().len(), self.pictures.end(self.samples.len()));
        if got < needed {
            return Err(Error::OutputTooSmall { got, needed });
        }
        self.table.begin(self.samples.len());
        self.call = self.call.wrapping_add(1);
        self.replacements.clear();
        self.begin_offload(memory)?;
        self.begin_small(epoch)?;
        let mut progress = BatchProgress {
            epoch,
            batch,
            memory,
            pace,
            stats: PrepareStats::default(),
            next: 0,
            bytes_ahead: 0,
            is_given_up: false,
        };
        let outcome = self.run(&mut progress).and_then(|()| self.finish(&mut progress));
        self.drain();
        outcome
    }

    fn counters(&self) -> Counters {
        self.engine.counters()
    }
}

/// The token of a read: the number of the call, and a position of its batch.
fn read_token(call: u32, position: usize) -> u64 {
    let position = u32::try_from(position).expect("a batch has less than 2^32 samples");
    u64::from(call) << 32 | u64::from(position)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The shapes of the pictures of a recipe that makes one.
fn of_one(spec: TensorSpec) -> Vec<Vec<TensorSpec>> {
    vec![vec![spec]]
}

/// What a preparer of samples has to know of a target.
fn target_spec(target: &TargetColumn) -> TargetSpec {
    let TargetColumn { name, target: kind, stored, is_file_per_object, prepared, .. } =
        target.clone();
    TargetSpec { column: name, kind, stored, is_file_per_object, prepared }
}
