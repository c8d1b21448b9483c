//! The loader and its epochs: what a user holds.
//!
//! In reading order: this file ([`Loader`]: what lasts), `epoch` ([`Epoch`]: one pass over the
//! dataset), `settings` (what is refused before anything is opened).

mod epoch;
mod settings;

pub use epoch::Epoch;

use crate::batch::{Batch, Memory};
use crate::config::{DeviceSource, LoaderConfig};
use crate::cores::Bound;
use crate::device_link::fetch::Fetcher;
use crate::device_link::{DeviceInfo, DeviceLink, LinkSetup};
use crate::driver::{Driver, Prepared, RunSetup};
use crate::places::{DEVICE_AHEAD, Limits};
use crate::ring::Ring;
use crate::worker::HostPreparer;
use crate::{Error, StopHandle, clock, worker};
use meetpoint_format::recipe::TensorSpec;
use meetpoint_prepare::Job;
use meetpoint_scheduler::{BatchIndex, Config, DeviceConfig, Holders, Learned, Source};
use std::sync::Arc;
use std::thread::JoinHandle;

/// After this many stalls a device gets no more work in the epoch.
const STALLS_MAX: u32 = 3;

/// A dataset, a recipe and everything that turns them into batches.
///
/// Dropping it stops its threads, ends the link and the device process, and leaves nothing.
#[derive(Debug)]
pub struct Loader {
    config: LoaderConfig,
    job: Job,
    spec: TensorSpec,
    batches: u32,
    limits: Limits,
    ring: Ring,
    driver: Arc<Driver>,
    threads: Vec<JoinHandle<()>>,
    /// With no workers: the consumer's own.
    own: Option<HostPreparer>,
    link: Option<DeviceLink>,
    /// What the device said of itself when it was last there.
    device: Option<DeviceInfo>,
    notices: Vec<String>,
    next_generation: u32,
}

impl Loader {
    /// Opens dataset, memory, threads and device.
    pub fn open(config: LoaderConfig) -> Result<Self, Error> {
        settings::check(&config)?;
        let job = settings::open_job(&config)?;
        let spec = job.recipe.output().ok_or(meetpoint_prepare::Error::NoFixedShape)?;
        let batches = settings::count_batches(&config, &job)?;
        let samples = u64::from(config.batch_size).min(job.batching.samples);
        let batch_bytes = (spec.bytes() as u64).saturating_mul(samples);
        let limits = Limits::plan(&config, batch_bytes, batches)?;
        let ring = Ring::new(limits.place_payload, config.memory_budget_bytes, limits.places)?;
        let driver = Arc::new(Driver::new(config.stop.clone(), config.place_timeout));
        let mut loader = Self {
            job,
            spec,
            batches,
            ring,
            driver,
            threads: Vec::new(),
            own: None,
            link: None,
            device: None,
            notices: limits.notices.clone(),
            limits,
            // 0 is what a device starts with: nothing was granted under it.
            next_generation: 1,
            config,
        };
        // Tried once here, so that a wrong number is an error before anything is started.
        drop(meetpoint_scheduler::Epoch::new(loader.schedule_config())?);
        // Whatever fails from here on, dropping the loader takes back what was started.
        loader.start_threads()?;
        if loader.config.needs_device() {
            loader.open_link()?;
        }
        Ok(loader)
    }

    fn start_threads(&mut self) -> Result<(), Error> {
        if let Some(cores) = &self.config.host_cores {
            // Tried once here, so that a wrong core is an error before anything runs.
            drop(Bound::new(cores)?);
        }
        for number in 0..self.config.workers.max(1) {
            let (preparer, notes) = HostPreparer::open(&self.config, &self.job, &self.ring)?;
            for note in notes {
                if !self.notices.contains(&note) {
                    self.notices.push(note);
                }
            }
            if self.config.workers == 0 {
                self.own = Some(preparer);
            } else {
                let cores = self.config.host_cores.clone();
                self.threads.push(worker::start(number, preparer, &self.driver, cores)?);
            }
        }
        if self.config.needs_device() {
            let fetcher = Fetcher::new(&self.config, &self.job, self.spec, &self.ring);
            self.threads.push(fetcher.start(&self.driver, self.config.host_cores.clone())?);
        }
        Ok(())
    }

    fn open_link(&mut self) -> Result<(), Error> {
        // The old one, if any, is ended first: a device has one host at a time.
        self.link = None;
        let strategy = self.config.strategy.name();
        let source = self.config.device.clone().ok_or(Error::NoDevice { strategy })?;
        let limits = self.limits.spool.expect("a strategy with a device has a spool");
        let setup = LinkSetup {
            source,
            job: self.job.clone(),
            batches: self.batches,
            spool: self.config.spool.clone(),
            limits,
            stop: self.config.stop.clone(),
            cores: self.config.host_cores.clone(),
        };
        let link = DeviceLink::open(setup, Arc::clone(&self.driver))?;
        for notice in link.session().spool().notices() {
            if !self.notices.contains(notice) {
                self.notices.push(notice.clone());
            }
        }
        let info = link.info();
        if !info.storage_note.is_empty() {
            let notice = format!("device: {}", info.storage_note);
            if !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
        }
        self.device = Some(info.clone());
        self.link = Some(link);
        Ok(())
    }

    /// N: batches in every epoch.
    pub fn batches_per_epoch(&self) -> u32 {
        self.batches
    }

    /// What fixes the content of every batch.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Shape, type and layout of one sample.
    pub fn spec(&self) -> TensorSpec {
        self.spec
    }

    /// What it was opened with.
    pub fn config(&self) -> &LoaderConfig {
        &self.config
    }

    /// What the device says of itself; `None` where none is used.
    pub fn device(&self) -> Option<&DeviceInfo> {
        self.device.as_ref()
    }

    /// Slots of the spool; `None` where no device is used.
    pub fn spool_slots(&self) -> Option<u32> {
        self.limits.spool.map(|spool| spool.slots)
    }

    /// Fallbacks and limits that were reached, as sentences to be printed.
    pub fn notices(&self) -> Vec<String> {
        self.notices.clone()
    }

    /// A switch that ends every wait.
    pub fn stop_handle(&self) -> StopHandle {
        self.config.stop.clone()
    }

    /// Begins an epoch. A device that was lost in the one before is opened again, once; where that
    /// fails, this epoch is the host's alone and says so in its events.
    pub fn start_epoch(&mut self, epoch: u32) -> Result<Epoch<'_>, Error> {
        self.config.stop.check()?;
        let events = self.revive_link()?;
        let session = self.link.as_ref().map(|link| Arc::clone(link.session()));
        let setup = RunSetup { epoch, config: self.schedule_config(), session, events };
        Epoch::begin(self, setup)
    }

    /// Opens the link again if it is gone; returns what is to be noted of that.
    fn revive_link(&mut self) -> Result<Vec<String>, Error> {
        if !self.config.needs_device() || self.link.as_ref().is_some_and(DeviceLink::is_alive) {
            return Ok(Vec::new());
        }
        self.link = None;
        let again = match &self.config.device {
            Some(DeviceSource::Connect { .. }) => "connected to",
            _ => "started",
        };
        let mut events: Vec<String> = self
            .driver
            .take_lost_between()
            .map(|why| format!("the device was lost between epochs: {why}"))
            .into_iter()
            .collect();
        match self.open_link() {
            Ok(()) => events.push(format!("the device was {again} again")),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => events.push(format!(
                "the device could not be {again} again ({error}); the host goes on alone"
            )),
        }
        Ok(events)
    }

    fn schedule_config(&self) -> Config {
        let spool_slots = self.limits.spool.map_or(0, |spool| spool.slots_scheduled);
        let device = DeviceConfig {
            ahead: DEVICE_AHEAD.min(spool_slots.max(1)),
            spool_slots,
            first_generation: self.next_generation,
        };
        Config {
            batches: self.batches,
            strategy: self.config.strategy,
            host_ahead: self.limits.host_ahead,
            fetch_ahead: self.limits.fetch_ahead,
            devices: vec![device; usize::from(self.config.needs_device())],
            holders: Holders::Shared,
            stall_timeout_ns: clock::duration_ns(self.config.stall_timeout),
            stalls_max: STALLS_MAX,
            profile_batches: self.config.profile_batches,
            learned: Learned::from_profile(&self.config.profile.unwrap_or_default(), 1),
            replay: None,
            ranks: 1,
            costs: None,
        }
    }

    /// A batch as the consumer gets it. A consumer that keeps more slots than the spool has to
    /// spare would starve the device, so what it keeps beyond is copied while the ring has room.
    fn hand_over(&self, epoch: u32, batch: BatchIndex, source: Source, ready: Prepared) -> Batch {
        let len = self.job.batching.batch_len(batch.0);
        let payload_bytes = len as usize * self.spec.bytes();
        let mut memory = ready.memory;
        if let Memory::Slot(lease) = &mut memory {
            let spare = self.limits.spool.map_or(0, |spool| spool.slots - spool.slots_scheduled);
            let is_beyond = lease.session().kept() >= spare;
            match is_beyond.then(|| self.ring.take()).flatten() {
                Some(mut place) => {
                    place[..payload_bytes].copy_from_slice(memory.payload(payload_bytes));
                    memory = Memory::Place(place);
                }
                None => lease.keep(),
            }
        }
        Batch {
            index: batch.0,
            epoch,
            source,
            shape: self.spec.batch_shape(len),
            dtype: self.spec.dtype,
            contents: ready.contents,
            memory,
            payload_bytes,
            _kept: self.driver.keep(),
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.driver.close();
        // Ends the link and reaps the process, within its limits.
        self.link = None;
        for thread in self.threads.drain(..) {
            // A panic of its own was reported where it happened.
            let _ = thread.join();
        }
    }
}
