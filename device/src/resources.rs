//! What all jobs of a device share: roots, datasets, options and memory.

use crate::extents::ServedExtents;
use crate::job_refusal::Refusal;
use crate::roots::Roots;
use crate::shown_paths::ShownPaths;
use crate::{ServeOptions, memory};
use meetpoint_format::wire::LoadRequest;
use meetpoint_link::Emulation;
use meetpoint_prepare::{Dataset, DecodeMemory, ExtentFolder, PreparerFactory};
use meetpoint_storage::slow::Pace;
use meetpoint_storage::{EngineKind, MemoryLimit};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Memory that the workers of a job use once they prepare batches. It is counted from the load on,
/// because the kernel provides memory only when it is first used.
pub(crate) struct Reservation {
    bytes: u64,
    /// Sum over all jobs.
    reserved: Arc<AtomicU64>,
}

impl Reservation {
    fn new(bytes: u64, reserved: &Arc<AtomicU64>) -> Self {
        reserved.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes, reserved: Arc::clone(reserved) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The resources and options of the device that jobs use.
#[derive(Debug, Clone)]
pub(crate) struct DeviceResources {
    pub(crate) roots: Arc<Roots>,
    pub(crate) extents: Arc<ServedExtents>,
    /// Whether hosts are on other machines, and name datasets by root and checksum.
    pub(crate) is_remote: bool,
    /// What paths are called in messages to hosts; nothing for those of this machine.
    pub(crate) shown_paths: Arc<ShownPaths>,
    pub(crate) engine: EngineKind,
    pub(crate) emulation: Emulation,
    /// Batches that are prepared at the same time.
    pub(crate) threads: u32,
    pub(crate) preparers: Arc<dyn PreparerFactory>,
    pub(crate) datasets: Arc<Datasets>,
    /// Memory reserved by jobs, in bytes.
    reserved: Arc<AtomicU64>,
}

/// Datasets of current jobs, so that jobs on the same dataset share its index.
#[derive(Debug, Default)]
pub(crate) struct Datasets(Mutex<Vec<Weak<Dataset>>>);

impl Datasets {
    pub(crate) fn open(&self, paths: &[PathBuf]) -> Result<Arc<Dataset>, meetpoint_prepare::Error> {
        self.open_by(paths, || Dataset::open_all(paths))
    }

    pub(crate) fn open_extents(
        &self,
        folders: &[Arc<ExtentFolder>],
    ) -> Result<Arc<Dataset>, meetpoint_prepare::Error> {
        let paths: Vec<_> = folders.iter().map(|folder| folder.path().to_path_buf()).collect();
        self.open_by(&paths, || Dataset::open_extents(folders))
    }

    fn open_by(
        &self,
        paths: &[PathBuf],
        open: impl FnOnce() -> Result<Dataset, meetpoint_prepare::Error>,
    ) -> Result<Arc<Dataset>, meetpoint_prepare::Error> {
        let is_it = |dataset: &Arc<Dataset>| dataset.paths().eq(paths) && dataset.is_unchanged();
        if let Some(dataset) = self.lock().iter().filter_map(Weak::upgrade).find(is_it) {
            return Ok(dataset);
        }
        let dataset = Arc::new(open()?);
        let mut datasets = self.lock();
        datasets.retain(|other| other.strong_count() > 0);
        datasets.push(Arc::downgrade(&dataset));
        Ok(dataset)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Dataset>>> {
        // A panic cannot leave the state inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceResources {
    pub(crate) fn new(
        options: &ServeOptions,
        (roots, extents): (Roots, ServedExtents),
        is_remote: bool,
    ) -> Self {
        let shown_paths = match is_remote {
            true => ShownPaths::new(&roots, &extents),
            false => ShownPaths::default(),
        };
        Self {
            shown_paths: Arc::new(shown_paths),
            roots: Arc::new(roots),
            extents: Arc::new(extents),
            is_remote,
            engine: options.engine,
            emulation: options.emulation,
            threads: options.threads,
            preparers: Arc::clone(&options.preparers),
            datasets: Arc::default(),
            reserved: Arc::default(),
        }
    }

    /// The pace of reading the dataset.
    pub(crate) fn read_pace(&self) -> Pace {
        Pace {
            latency: self.emulation.targets.latency().unwrap_or_default(),
            read_bytes_per_second: self.emulation.targets.read_bytes_per_second,
            write_bytes_per_second: None,
        }
    }

    /// The pace of writing to the spool.
    pub(crate) fn write_pace(&self) -> Pace {
        Pace {
            write_bytes_per_second: self.emulation.targets.write_bytes_per_second,
            read_bytes_per_second: None,
            ..self.read_pace()
        }
    }

    /// Counts memory that the workers of a job will use.
    pub(crate) fn reserve(&self, bytes: u64) -> Reservation {
        Reservation::new(bytes, &self.reserved)
    }

    /// Memory that is neither used nor reserved, in bytes.
    pub(crate) fn memory_left(&self) -> u64 {
        self.memory_limit().saturating_sub(self.memory_used())
    }

    /// Refuses batches and samplers that do not fit the memory of the emulated device or of this
    /// process.
    pub(crate) fn check_memory(&self, payload: u64) -> Result<(), Refusal> {
        let limit = self.memory_limit();
        let needed = self.memory_used().saturating_add(payload);
        // Only what other jobs use becomes free by itself.
        let is_temporary = payload <= limit && self.reserved.load(Ordering::Relaxed) > 0;
        if needed > limit { Err(Refusal::Memory { needed, limit, is_temporary }) } else { Ok(()) }
    }

    /// The memory that this process uses, or that its jobs will use.
    fn memory_used(&self) -> u64 {
        memory::own_memory_bytes().max(self.reserved.load(Ordering::Relaxed))
    }

    /// The memory of the emulated device, or of this process.
    fn memory_limit(&self) -> u64 {
        let present = MemoryLimit::of_this_process().bytes;
        self.emulation.memory_bytes_max.map_or(present, |limit| limit.min(present))
    }

    /// The memory for decoding large samples: what the emulated device or this process may use for
    /// it, and no more than the host's part for this device.
    pub(crate) fn decode_memory(&self, request: &LoadRequest, payload: u64) -> Arc<DecodeMemory> {
        let mut limit = MemoryLimit::of_this_process();
        if let Some(bytes) = self.emulation.memory_bytes_max {
            let used = memory::own_memory_bytes().saturating_add(payload);
            limit.bytes = limit.bytes.min(bytes.saturating_sub(used));
        }
        match request.decode_bytes {
            0 => DecodeMemory::of_limit(&limit, 1),
            bytes => DecodeMemory::of_budget(bytes, 1, &limit, 1),
        }
    }
}
