//! The loader and its epochs: the public API.
//!
//! In reading order: this file ([`Loader`]: the state that outlives epochs), `epoch` ([`Epoch`]:
//! one pass over the dataset), `gpu` (the use of a GPU in one), `resume` (the rest of one),
//! `reopening` (lost devices), `schedule` (the scheduler's configuration), `saving` (the choice of
//! batches for devices), `tuning` (workers that adapt), `settings` (validation before anything is
//! opened).

mod epoch;
mod gpu;
mod reopening;
mod resume;
mod saving;
mod schedule;
mod settings;
mod tuning;

pub use epoch::Epoch;
pub(crate) use schedule::holders;

use crate::batch::{Batch, Memory};
use crate::config::LoaderConfig;
use crate::cores::Bound;
use crate::damage::Quarantine;
use crate::device_link::{DeviceLink, LinkEvents, Reopening};
use crate::driver::{BatchOrder, Driver, Prepared, RunSetup};
use crate::events::DeviceLabel;
use crate::fetch::Fetcher;
use crate::limits::{DEVICE_AHEAD, Limits};
use crate::notice::Notice;
use crate::ring::{Ring, ring_slot_bytes};
use crate::worker::HostPreparer;
use crate::{Error, StopHandle, worker};
use gpu::GpuReportState;
use meetpoint_format::column::{BatchColumns, BatchLayout, ColumnSource};
use meetpoint_format::recipe::Dtype;
use meetpoint_kernels::{BatchId, Interrupt};
use meetpoint_link::DeviceInfo;
use meetpoint_prepare::cache::SampleCache;
use meetpoint_prepare::gpu::GpuUse;
use meetpoint_prepare::{DecodeMemory, Job, RemoteUse};
use meetpoint_scheduler::{
    BatchIndex, CommonTimes, Config, DeviceId, Learned, Level, Record, Source,
};
use meetpoint_storage::MemoryLimit;
use saving::BatchTimes;
use std::sync::Arc;
use std::thread::JoinHandle;
use tuning::Tuning;

/// Maximum number of threads that fetch from spools.
const FETCHERS_MAX: usize = 8;

/// A dataset, a recipe and everything that turns them into batches.
///
/// Dropping it stops its threads, and closes the link and ends the device process without leaving
/// anything behind.
///
/// ```
/// use meetpoint_format::recipe::Recipe;
/// use meetpoint_host::{Loader, LoaderConfig};
/// use std::sync::Arc;
///
/// let recipe =
///     "operation = [{name = 'decode'}, {name = 'center_crop', size = 8}]";
/// let recipe = Arc::new(Recipe::from_toml(recipe)?);
/// let dataset = "../datasets/tests/golden/version-3";
/// let config = LoaderConfig { workers: 2, ..LoaderConfig::new(dataset, recipe, 4) };
/// let mut loader = Loader::open(config)?;
/// let mut epoch = loader.start_epoch(0)?;
/// let mut samples = 0;
/// while let Some(batch) = epoch.next_batch()? {
///     assert_eq!(batch.shape()[1..], [8, 8, 3]);
///     samples += batch.shape()[0];
/// }
/// assert_eq!((samples, epoch.finish().samples), (6, 6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Loader {
    config: LoaderConfig,
    job: Job,
    /// Axes and element type of the first column of pictures that the recipe produces.
    picture: (Vec<u32>, Dtype),
    columns: Arc<BatchColumns>,
    batch_bytes_max: u64,
    batches: u32,
    /// Batches that each used device can prepare.
    held: Vec<u32>,
    limits: Limits,
    ring: Ring,
    driver: Arc<Driver>,
    /// Memory for decoding large pictures, shared by all threads.
    decode_memory: Arc<DecodeMemory>,
    threads: Vec<JoinHandle<()>>,
    /// The consumer's own preparer, if there are no workers.
    own: Option<HostPreparer>,
    /// The link of each used device; `None` if it is lost.
    links: Vec<Option<DeviceLink>>,
    /// For each used device, the attempts to reopen its lost link.
    reopening: Vec<Option<Reopening>>,
    /// The description of each device from its last connection.
    devices: Vec<Option<DeviceInfo>>,
    /// Devices that were lost before they served, and why; for the events of the first epoch.
    lost_at_start: Vec<(usize, Error)>,
    notices: Vec<Notice>,
    next_generation: u32,
    /// The times learned in earlier epochs.
    learned: Learned,
    /// The times common to all ranks one epoch earlier.
    known_before: Option<CommonTimes>,
    /// Measurements of batches by size, of host and devices.
    batch_times: BatchTimes,
    /// The file of damaged samples.
    quarantine: Option<Quarantine>,
    /// Prepared samples in memory.
    cache: Option<Arc<SampleCache>>,
    /// The tuner, if the numbers of workers and of batches ahead adapt.
    tuning: Option<Tuning>,
    /// The state of the GPU, if preparers use one.
    gpu: GpuReportState,
    /// Statistics of reads from stores until the last epoch ended.
    store_before: RemoteUse,
}

impl Loader {
    /// Opens dataset, memory, threads and device.
    pub fn open(mut config: LoaderConfig) -> Result<Self, Error> {
        settings::check(&config)?;
        config.preparers = gpu::preparers(&config)?;
        let job = settings::open_job(&config)?;
        let spec = meetpoint_prepare::collated_shape(&job.recipe, job.columns.collate())?;
        let picture = (job.recipe.images()[0].axes(&spec), spec.dtype);
        let batches = settings::count_batches(&job)?;
        let samples = u64::from(config.batch_size).min(job.batching.positions());
        let columns = Arc::new(job.batch_columns()?);
        let asked = config.stop.clone();
        let interrupt = Interrupt::when(move || asked.is_stopped());
        job.dataset.set_remote_interrupt(&interrupt);
        let longest = job.value_bytes_max(&columns, &interrupt)?;
        let samples = u32::try_from(samples).expect("no more than batch_size");
        let cache = settings::open_cache(&config, &job)?;
        let batch_bytes = BatchLayout::bytes_max(&columns, samples, &longest);
        let held = schedule::held(&config, &job, batches);
        let reserved = settings::reserved_for_small_samples(&config, &job);
        let limits = Limits::plan(&config, batch_bytes, &held, reserved)?;
        let budget_bytes = config.memory_budget_bytes / u64::from(config.shares);
        let ring_least = limits.places * ring_slot_bytes(limits.place_payload);
        let small = settings::small_samples(&config, &job, budget_bytes.saturating_sub(ring_least));
        job.dataset.keep_small_samples(small);
        let ring = Ring::new(limits.place_payload, budget_bytes - small, limits.places)?;
        let quarantine = config.quarantine.as_deref();
        let quarantine = quarantine.map(|path| Quarantine::open(path, &job.dataset)).transpose()?;
        let driver =
            Arc::new(Driver::new(config.stop.clone(), config.place_timeout, config.run_ahead));
        let mut loader = Self {
            job,
            picture,
            columns,
            batch_bytes_max: batch_bytes,
            batches,
            held,
            ring,
            driver,
            decode_memory: settings::decode_memory(&config, &MemoryLimit::of_this_process()),
            threads: Vec::new(),
            own: None,
            tuning: Tuning::new(&config, &limits),
            gpu: GpuReportState::default(),
            store_before: RemoteUse::default(),
            links: Vec::new(),
            reopening: Vec::new(),
            devices: Vec::new(),
            lost_at_start: Vec::new(),
            notices: limits.notices.clone(),
            limits,
            // Devices start with 0, under which nothing was granted.
            next_generation: 1,
            learned: config.learned.clone(),
            known_before: None,
            batch_times: BatchTimes::default(),
            quarantine,
            cache,
            config,
        };
        // Tried once here, so that an invalid number fails before anything is started.
        drop(meetpoint_scheduler::Epoch::new(loader.schedule_config())?);
        // From here on, dropping the loader on an error cleans up what was started.
        loader.start_threads()?;
        let devices = loader.limits.spools.len();
        loader.links.resize_with(devices, || None);
        loader.reopening.resize_with(devices, || None);
        loader.devices.resize(devices, None);
        for (number, opened) in loader.open_links().into_iter().enumerate() {
            match opened {
                // As with a later loss: the next epoch, which is the first, tries to open it again.
                Err(error) if error.is_loss() => {
                    loader.config.stop.check()?;
                    loader.lost_at_start.push((number, error));
                }
                opened => opened.map_err(|error| of_device(error, number, devices))?,
            }
            loader.note_reuse(number);
        }
        Ok(loader)
    }

    /// Reports devices where reuse retains no batches, and why.
    fn note_reuse(&mut self, number: usize) {
        if !self.config.reuse || self.retained_most(number) > 0 {
            return;
        }
        let (spool, config) = (self.limits.spools[number], self.config.spool_of(number));
        let device = DeviceLabel::new(number, self.limits.spools.len());
        let quota = spool.quota_for(config, self.config.shares, DEVICE_AHEAD + 2);
        let quota_bytes = (quota > config.quota_bytes).then_some(quota);
        self.notice(Notice::NothingReused { device, slots: spool.slots, quota_bytes });
    }

    /// Statistics of reads from stores since the previous epoch ended.
    fn store_use_of_epoch(&mut self) -> Option<RemoteUse> {
        let now = self.job.dataset.remote_use()?;
        let before = std::mem::replace(&mut self.store_before, now);
        Some(now - before)
    }

    fn start_threads(&mut self) -> Result<(), Error> {
        if let Some(cores) = &self.config.host_cores {
            // Tried once here, so that an invalid core fails before anything runs.
            drop(Bound::new(cores)?);
        }
        if let Some(tuning) = &self.tuning {
            self.driver.set_concurrency(tuning.concurrency());
        }
        match self.config.workers_at_start() {
            0 => self.own = Some(self.open_preparer()?),
            workers => (0..workers).try_for_each(|number| self.start_worker(number))?,
        }
        // A thread that waits for a hanging spool does not block those of other devices.
        for number in 0..self.limits.spools.len().min(FETCHERS_MAX) {
            let fetcher = Fetcher::new(&self.config, &self.job, &self.columns, &self.ring);
            let cores = self.config.host_cores.clone();
            self.threads.push(fetcher.start(number, &self.driver, cores)?);
        }
        Ok(())
    }

    fn start_worker(&mut self, number: u32) -> Result<(), Error> {
        let preparer = self.open_preparer()?;
        let cores = self.config.host_cores.clone();
        self.threads.push(worker::start(number, preparer, &self.driver, cores)?);
        Ok(())
    }

    fn open_preparer(&mut self) -> Result<HostPreparer, Error> {
        let of_loader = (&self.config, &self.job, &self.ring, &self.driver);
        let (preparer, notes) =
            HostPreparer::open(of_loader, &self.decode_memory, self.cache.as_ref())?;
        for note in notes {
            self.notice(Notice::Storage { device: None, note });
        }
        Ok(preparer)
    }

    /// Opens the links of all devices for the first time; returns a result for each.
    fn open_links(&mut self) -> Vec<Result<(), Error>> {
        let setups = (0..self.links.len()).map(|number| self.link_setup(number, true));
        let events: Arc<dyn LinkEvents> = Arc::clone(&self.driver) as _;
        let opened = DeviceLink::open_all(setups.collect(), &events);
        let use_it = |(number, opened): (usize, Result<DeviceLink, Error>)| {
            opened.map(|link| self.use_link(number, link))
        };
        opened.into_iter().enumerate().map(use_it).collect()
    }

    fn use_link(&mut self, number: usize, link: DeviceLink) {
        let notices = link.session().spool().notices().to_vec();
        notices.into_iter().for_each(|notice| self.notice(notice));
        let info = link.info().clone();
        if let Some(note) = info.storage_note.clone() {
            let device = Some(DeviceLabel::new(number, self.links.len()));
            self.notice(Notice::Storage { device, note });
        }
        self.devices[number] = Some(info);
        self.links[number] = Some(link);
    }

    /// Adds a notice, unless it is already present.
    fn notice(&mut self, notice: Notice) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// N: batches in every epoch.
    pub fn batches_per_epoch(&self) -> u32 {
        self.batches
    }

    /// The inputs that determine the content of every batch.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The columns of a batch, in order.
    pub fn columns(&self) -> &BatchColumns {
        &self.columns
    }

    /// Maximum bytes of a batch, all columns together.
    pub fn batch_bytes_max(&self) -> u64 {
        self.batch_bytes_max
    }

    /// Its configuration.
    pub fn config(&self) -> &LoaderConfig {
        &self.config
    }

    /// The description of each device from when its link was last opened; `None` if it was lost
    /// before it served. Empty without devices.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = Option<&DeviceInfo>> {
        self.devices.iter().map(Option::as_ref)
    }

    /// Slots of the spools of all devices; `None` if no device is used.
    pub fn spool_slots(&self) -> Option<u32> {
        let slots = self.limits.spools.iter().map(|spool| spool.slots);
        slots.reduce(u32::saturating_add)
    }

    /// For each device, the number of slots of its spool with batches that the host has not
    /// released; `None` if its link is lost.
    pub fn slots_in_use(&self) -> Vec<Option<u32>> {
        let alive = self.links.iter().map(|link| link.as_ref().filter(|it| it.is_alive()));
        alive.map(|link| link.map(|it| it.session().leased())).collect()
    }

    /// The times learned so far, with which the next epoch begins.
    pub fn learned(&self) -> &Learned {
        &self.learned
    }

    /// Fallbacks and limits that were reached.
    pub fn notices(&self) -> Vec<Notice> {
        let unused = self.gpu_use().and_then(|GpuUse { gpu, unused_because, .. }| {
            Some(Notice::NotDecodedOnGpu { gpu, reason: unused_because? })
        });
        self.notices.iter().cloned().chain(unused).collect()
    }

    /// A handle that ends every wait.
    pub fn stop_handle(&self) -> StopHandle {
        self.config.stop.clone()
    }

    /// The record that the next epochs replay; `None`: the strategy decides.
    pub fn set_replay(&mut self, record: Option<Record>) {
        self.config.replay = record;
    }

    /// Begins an epoch. The links of lost devices are reopened in the background: the epoch begins
    /// without these devices, and each joins it as soon as its link is open. Events report each
    /// reopened link, and for each device at most one failed attempt in an epoch.
    pub fn start_epoch(&mut self, epoch: u32) -> Result<Epoch<'_>, Error> {
        self.config.stop.check()?;
        let order = self.order(epoch)?;
        let config = self.schedule_config();
        self.begin(epoch, config, order)
    }

    fn begin(
        &mut self,
        epoch: u32,
        config: Config,
        order: Option<BatchOrder>,
    ) -> Result<Epoch<'_>, Error> {
        self.use_reopened();
        let events = self.losses_at_start();
        if let Some(notify) = &self.config.notify {
            events.iter().for_each(|event| notify.call(event));
        }
        self.begin_reopening()?;
        let session = |link: &DeviceLink| Arc::clone(link.session());
        let sessions = self.links.iter().map(|link| link.as_ref().map(session)).collect();
        let order = order.map(Arc::new);
        let known_before = self.learned.common;
        Epoch::begin(self, RunSetup { epoch, config, sessions, order, events, known_before })
    }

    /// The positions of the batches of an epoch, if batches are chosen for devices and the strategy
    /// does not fix an order.
    fn order(&self, epoch: u32) -> Result<Option<BatchOrder>, Error> {
        let keeps_order = self.config.strategy.levels().contains(&Level::C4);
        if !self.config.choose_by_saving || keeps_order || self.links.is_empty() {
            return Ok(None);
        }
        Ok(self.batch_times.order(&self.job, epoch)?)
    }

    /// A batch for the consumer. If the consumer holds more slots than the spool can spare, which
    /// would starve the device, further batches are copied while the ring has free slots.
    fn hand_over(&self, epoch: u32, batch: BatchIndex, source: Source, ready: Prepared) -> Batch {
        let payload_bytes = ready.table.bytes();
        let len = u32::try_from(ready.contents.samples.len()).expect("batches have 32 bits");
        let mut picture = self.picture.0.clone();
        if let Some(image) = self.columns.position_of(ColumnSource::Image) {
            picture = ready.table.layout.axes(&self.columns, image).to_vec();
        }
        let mut memory = ready.memory;
        if let Memory::Slot(lease) = &mut memory {
            let limits = lease.session().spool().limits();
            let spare = limits.slots - limits.slots_scheduled;
            let is_beyond = lease.session().in_use() >= spare;
            match is_beyond.then(|| self.ring.take()).flatten() {
                Some(mut place) => {
                    place[..payload_bytes].copy_from_slice(memory.payload(payload_bytes));
                    memory = Memory::Ring(place);
                }
                None => lease.keep(),
            }
        }
        let batching = &self.job.batching;
        Batch {
            index: batch.0,
            id: BatchId { seed: batching.seed(), epoch, batch: batching.number(batch.0) },
            source,
            shape: [&[len], &picture[..]].concat(),
            dtype: self.picture.1,
            contents: ready.contents,
            memory,
            table: ready.table,
            _kept: self.driver.keep(),
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.driver.close();
        self.job.dataset.set_remote_interrupt(&Interrupt::when(|| true));
        // Closes the links and reaps the processes all at once, within their time limits.
        self.reopening.iter().flatten().for_each(Reopening::stop);
        self.links.iter().flatten().for_each(|link| link.session().close());
        self.links.clear();
        self.reopening.clear();
        for thread in self.threads.drain(..) {
            // Its own panic was reported where it happened.
            let _ = thread.join();
        }
        // The dataset may be in use elsewhere.
        self.job.dataset.set_remote_interrupt(&Interrupt::default());
    }
}

fn device_id(number: usize) -> DeviceId {
    DeviceId(u16::try_from(number).expect("the number of devices was checked"))
}

/// An error of one device, with the device's number if there are several.
fn of_device(error: Error, number: usize, devices: usize) -> Error {
    match error {
        Error::Interrupted => Error::Interrupted,
        error if devices > 1 => Error::OfDevice { number, source: Box::new(error) },
        error => error,
    }
}
