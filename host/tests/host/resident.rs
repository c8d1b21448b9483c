//! Batches delivered to the GPU that prepared part of them: the same bytes as without a GPU, of
//! which only those that the CPU prepared are uploaded. The CPU executes the kernels here.

use crate::support::{BatchCopy, config, dataset, mixed};
use meetpoint_format::column::{Collate, ColumnNames, ColumnSource};
use meetpoint_format::recipe::Recipe;
use meetpoint_gpu::{Compute, Error as GpuError, Hooked, Hooks, Launch, Shim};
use meetpoint_host::delivery::{DeliveryLimits, DeliveryStage, DeliveryUse, Split};
use meetpoint_host::stats::{Downloaded, GpuUse};
use meetpoint_host::{Action, GpuIndex, Loader, LoaderConfig, OnError};
use meetpoint_prepare::CpuPreparers;
use meetpoint_prepare::gpu::{Computes, GpuMemory, GpuPreparers, ShareChoice};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A tensor of the recipe of the tests.
const TENSOR_BYTES: u64 = 16 * 16 * 3;

/// Bytes that the decoder may copy to the host for a sample: whether its data are sound.
const STATUS_BYTES_MAX: u64 = 16;

/// A GPU on which several threads compute.
struct Device {
    shim: Mutex<Shim>,
    /// Launches until decoding fails.
    launches_left: AtomicU64,
    /// Bytes that decoding copied to the host.
    downloaded: AtomicU64,
    allocations: AtomicU64,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Device").finish_non_exhaustive()
    }
}

impl Device {
    fn new(launches: u64) -> Arc<Self> {
        let shim = Shim::start(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap();
        Arc::new(Self {
            shim: Mutex::new(shim),
            launches_left: launches.into(),
            downloaded: 0.into(),
            allocations: 0.into(),
        })
    }

    fn queue(&self) -> Shim {
        self.shim.lock().unwrap().queue()
    }
}

/// The GPU for one thread that decodes.
#[derive(Debug)]
struct Subject(Arc<Device>);

impl Computes for Subject {
    fn name(&self) -> &str {
        "subject"
    }

    fn compute(&self) -> Result<Box<dyn Compute>, GpuError> {
        Ok(Box::new(Hooked::new(Box::new(self.0.queue()), Counts(Arc::clone(&self.0)))))
    }
}

/// Counts the calls of one thread for its device, which fails after a number of launches.
struct Counts(Arc<Device>);

impl Hooks for Counts {
    fn allocate(&mut self, _bytes: usize) -> Result<(), GpuError> {
        self.0.allocations.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn downloaded(&mut self, to: &mut [u8]) {
        self.0.downloaded.fetch_add(to.len() as u64, Ordering::Relaxed);
    }

    fn launch(&mut self, _launch: &Launch<'_>) -> Result<bool, GpuError> {
        let one_less = |left: u64| left.checked_sub(1);
        let left = &self.0.launches_left;
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Ok(true),
            Err(_) => Err(GpuError::Hung { seconds: 20.0 }),
        }
    }
}

/// A batch as the GPU has it.
#[derive(Debug, PartialEq, Eq)]
struct Delivered {
    index: u32,
    samples: Vec<u64>,
    pictures: Vec<u8>,
    labels: Vec<u8>,
}

/// A loader whose batches are delivered.
struct Subjects {
    loader: Loader,
    stage: DeliveryStage<Shim>,
    split: Split,
}

impl Subjects {
    /// Delivers to a device; decodes a share there if one is given.
    fn open(
        config: LoaderConfig,
        device: &Arc<Device>,
        decode: Option<(ShareChoice, u64)>,
    ) -> Self {
        let split = Split::of(&config.recipe, &Collate::Stack, 0);
        let recipe = Arc::new(split.head.clone());
        let mut config = LoaderConfig { verify_samples: false, recipe, ..config };
        if let Some((choice, tensors_bytes)) = decode {
            let gpu = Arc::new(Subject(Arc::clone(device)));
            let memory = GpuMemory::default();
            let preparers = GpuPreparers::new(CpuPreparers::default(), gpu, choice, memory);
            config.preparers = Arc::new(preparers.keeping_tensors(tensors_bytes));
            config.delivers_to = Some(GpuIndex(0));
        }
        let limits = DeliveryLimits::default();
        let stage = DeliveryStage::new(device.queue(), &split, limits).unwrap();
        Self { loader: Loader::open(config).unwrap(), stage, split }
    }

    /// Delivers an epoch. Returns its batches, what the delivery copied, and what the GPU prepared.
    fn epoch(&mut self, epoch: u32) -> (Vec<Delivered>, DeliveryUse, Option<GpuUse>) {
        let Self { loader, stage, split } = self;
        let before = stage.delivered().unwrap();
        let mut running = loader.start_epoch(epoch).unwrap();
        let mut seen = Vec::new();
        while let Some(batch) = running.next_batch().unwrap() {
            let on_gpu = stage.deliver(&batch, &|| false).unwrap();
            let count = batch.samples().len();
            let mut read = |offset: usize, bytes: usize| {
                let mut to = vec![0; bytes];
                on_gpu.memory.read(stage.streams(), offset, &mut to).unwrap();
                to
            };
            let mut pictures = Vec::new();
            for (column, place) in batch.columns().iter().zip(&on_gpu.columns) {
                if column.source.is_picture() {
                    let (place, axes) = (place.unwrap(), batch.axes(&column.name).unwrap());
                    let elements = axes.iter().product::<u32>() as usize;
                    pictures.extend(read(place.offset, count * elements * place.element.bytes()));
                }
            }
            // Two classes.
            let rows = batch.columns().iter().position(|it| it.source == ColumnSource::Label);
            let labels = match (on_gpu.labels, rows) {
                (Some([wide, _]), _) => read(wide, 8 * count),
                (None, rows) => read(on_gpu.columns[rows.unwrap()].unwrap().offset, 8 * count),
            };
            let (index, samples) = (batch.index(), batch.samples().to_vec());
            seen.push(Delivered { index, samples, pictures, labels });
        }
        let stats = running.finish();
        let after = stage.delivered().unwrap();
        let used = DeliveryUse::between("cuda:0".to_owned(), split, None, &before, &after);
        (seen, used, stats.gpu)
    }
}

const EPOCHS: u32 = 2;

/// Compares epochs with those of the host alone; checks that each byte is uploaded or resident.
/// Returns what the GPU did in all epochs.
fn compare(
    config: &LoaderConfig,
    launches: u64,
    choice: ShareChoice,
    tensors_bytes: u64,
) -> GpuUse {
    let device = Device::new(launches);
    let mut plain = Subjects::open(config.clone(), &device, None);
    let mut divided = Subjects::open(config.clone(), &device, Some((choice, tensors_bytes)));
    for epoch in 0..EPOCHS {
        let (expected, plainly, _) = plain.epoch(epoch);
        let (found, used, gpu) = divided.epoch(epoch);
        assert!(found == expected, "epoch {epoch} with {choice:?}");
        assert_eq!(plainly.resident_bytes, 0);
        assert_eq!(used.bytes + used.resident_bytes, plainly.bytes, "{used:?}");
        assert!(used.resident_bytes <= gpu.unwrap().resident * TENSOR_BYTES);
    }
    let gpu = divided.loader.gpu_use().unwrap();
    let copied = (gpu.prepared - gpu.resident) * TENSOR_BYTES;
    let downloaded = device.downloaded.load(Ordering::Relaxed);
    let statuses = STATUS_BYTES_MAX * (gpu.samples() + 1);
    assert!((copied..=copied + statuses).contains(&downloaded), "{downloaded} bytes: {gpu:?}");
    gpu
}

const ENOUGH: u64 = 1 << 20;

fn workers(folder: &Path, workers: u32) -> LoaderConfig {
    LoaderConfig { workers, ..config(folder) }
}

#[test]
fn any_share_gives_the_same_bytes_and_nothing_is_downloaded() {
    let folder = dataset(14);
    for (threads, share) in [(0, 1.0), (0, 0.5), (2, 0.5), (3, 1.0), (2, 0.0)] {
        let config = workers(folder.path(), threads);
        let gpu = compare(&config, u64::MAX, ShareChoice::Fixed(share), ENOUGH);
        assert_eq!(gpu.prepared, (share * 28.0) as u64);
        assert_eq!((gpu.resident, &gpu.downloaded_because), (gpu.prepared, &None), "{gpu:?}");
    }
    // Each epoch has another share.
    let gpu = compare(&workers(folder.path(), 2), u64::MAX, ShareChoice::Measured, ENOUGH);
    assert!(gpu.resident > 0 && gpu.resident == gpu.prepared, "{gpu:?}");
}

#[test]
fn bytes_become_elements_after_they_are_joined() {
    let folder = dataset(9);
    let text = "operation = [{name = 'decode'}, {name = 'random_resized_crop', size = 16},
        {name = 'to_dtype', dtype = 'float32', scale = true},
        {name = 'normalize', mean = [0.4, 0.5, 0.6], std = [0.2, 0.3, 0.4]},
        {name = 'layout', layout = 'NCHW'}]";
    let recipe = Arc::new(Recipe::from_toml(text).unwrap());
    let config = LoaderConfig { recipe, ..workers(folder.path(), 1) };
    let gpu = compare(&config, u64::MAX, ShareChoice::Fixed(0.5), ENOUGH);
    assert_eq!((gpu.resident, gpu.prepared), (10, 10));
}

#[test]
fn columns_of_views_stay_on_the_gpu() {
    let folder = mixed();
    // The pictures of a sample have TENSOR_BYTES together.
    let text = "operation = [{name = 'decode'}, {name = 'resize', size = [20, 22]}]
        [[views]]
        column = 'pair'
        count = 2
        operations = [{name = 'random_crop', size = 8}]
        [[views]]
        column = 'other'
        operations = [{name = 'random_crop', size = [8, 16]}]";
    let recipe = Arc::new(Recipe::from_toml(text).unwrap());
    let columns = ColumnNames::of(&recipe);
    let on_error = OnError::Always(Action::Skip);
    let config = LoaderConfig { recipe, columns, on_error, ..workers(folder.path(), 2) };
    let gpu = compare(&config, u64::MAX, ShareChoice::Fixed(1.0), ENOUGH);
    assert_eq!((gpu.not_taken, gpu.given_back, gpu.prepared), (10, 2, 20), "{gpu:?}");
    assert_eq!((gpu.resident, gpu.downloaded_because), (20, None));
}

#[test]
fn refused_and_damaged_samples_come_from_the_host() {
    let folder = mixed();
    for action in [Action::Replace, Action::Skip] {
        let on_error = OnError::Always(action);
        let config = LoaderConfig { on_error, ..workers(folder.path(), 2) };
        let gpu = compare(&config, u64::MAX, ShareChoice::Fixed(1.0), ENOUGH);
        assert_eq!((gpu.not_taken, gpu.given_back, gpu.prepared), (10, 2, 20), "{gpu:?}");
        assert_eq!(gpu.resident, 20);
    }
}

#[test]
fn a_gpu_that_fails_leaves_the_rest_to_the_cpu() {
    let folder = dataset(16);
    for (threads, launches) in [(0, 0), (0, 30), (2, 30)] {
        let config = workers(folder.path(), threads);
        let gpu = compare(&config, launches, ShareChoice::Fixed(0.5), ENOUGH);
        assert_eq!(gpu.samples(), 32);
        assert!(gpu.after_failure > 0 && gpu.failure.is_some(), "{gpu:?}");
        assert_eq!(gpu.resident, gpu.prepared);
        assert!(launches == 0 || gpu.resident > 0, "{gpu:?}");
    }
}

#[test]
fn tensors_beyond_their_memory_are_downloaded_and_the_reason_is_reported() {
    let folder = dataset(16);
    // A batch has 4 tensors.
    for (limit_bytes, may_stay) in [(TENSOR_BYTES, false), (5 * TENSOR_BYTES, true)] {
        let config = LoaderConfig { prefetch: 4, ..workers(folder.path(), 2) };
        let gpu = compare(&config, u64::MAX, ShareChoice::Fixed(1.0), limit_bytes);
        assert_eq!((gpu.prepared, gpu.resident > 0), (32, may_stay), "{gpu:?}");
        if gpu.resident < gpu.prepared {
            assert_eq!(gpu.downloaded_because, Some(Downloaded::Memory { limit_bytes }));
        }
        assert!(gpu.to_string().contains("copied to the host") == (gpu.resident < 32), "{gpu}");
    }
}

#[test]
fn nothing_is_allocated_after_the_first_epochs() {
    let folder = dataset(16);
    let device = Device::new(u64::MAX);
    let decode = Some((ShareChoice::Fixed(1.0), ENOUGH));
    // Without workers, one batch exists at a time.
    let mut loader = Subjects::open(workers(folder.path(), 0), &device, decode);
    let mut allocations = Vec::new();
    for epoch in 0..5 {
        loader.epoch(epoch);
        allocations.push(device.allocations.load(Ordering::Relaxed));
    }
    assert_eq!(allocations[3], allocations[4], "{allocations:?}");
    assert_eq!(loader.loader.gpu_use().unwrap().resident, 80);
}

fn mixing(folder: &Path) -> LoaderConfig {
    let text = "operation = [{name = 'decode'}, {name = 'center_crop', size = 16},
        {name = 'to_dtype', dtype = 'float32', scale = true}, {name = 'mix_up', num_classes = 2}]";
    let recipe = Arc::new(Recipe::from_toml(text).unwrap());
    LoaderConfig { recipe, ..config(folder) }
}

#[test]
fn tensors_that_stay_are_mixed_on_the_device() {
    let folder = dataset(14);
    let gpu = compare(&mixing(folder.path()), u64::MAX, ShareChoice::Fixed(0.5), ENOUGH);
    assert!(gpu.resident > 0 && gpu.downloaded_because.is_none(), "{gpu:?}");
}

#[test]
fn operations_on_batches_of_the_host_and_verification_get_whole_batches() {
    let folder = dataset(8);
    let mixing = mixing(folder.path());
    let cases = [(mixing, Some(Downloaded::Mixed)), (config(folder.path()), None)];
    for (config, reason) in cases {
        let gpu = Arc::new(Subject(Device::new(u64::MAX)));
        let (choice, memory) = (ShareChoice::Fixed(1.0), GpuMemory::default());
        let preparers = GpuPreparers::new(CpuPreparers::default(), gpu, choice, memory);
        let preparers = Arc::new(preparers.keeping_tensors(ENOUGH));
        let verify_samples = reason.is_none();
        let delivers_to = Some(GpuIndex(0));
        let plain = LoaderConfig { verify_samples, ..config };
        let config = LoaderConfig { preparers, delivers_to, ..plain.clone() };
        let (mut plain, mut loader) = (Loader::open(plain).unwrap(), Loader::open(config).unwrap());
        let (mut expected, mut found) =
            (plain.start_epoch(0).unwrap(), loader.start_epoch(0).unwrap());
        while let Some(batch) = found.next_batch().unwrap() {
            assert!(batch.resident().is_none());
            let expected = BatchCopy::from(&expected.next_batch().unwrap().unwrap());
            assert_eq!(BatchCopy::from(&batch), expected);
        }
        let gpu = found.finish().gpu.unwrap();
        assert_eq!((gpu.prepared, gpu.resident, gpu.downloaded_because), (8, 0, reason));
    }
}

#[test]
fn batches_that_are_dropped_return_their_tensors() {
    let folder = dataset(16);
    let device = Device::new(u64::MAX);
    let decode = Some((ShareChoice::Fixed(1.0), 5 * TENSOR_BYTES));
    let mut loader = Subjects::open(workers(folder.path(), 1), &device, decode);
    for _ in 0..3 {
        let mut epoch = loader.loader.start_epoch(0).unwrap();
        let batch = epoch.next_batch().unwrap().unwrap();
        assert!(batch.resident().is_some_and(|tensors| tensors.len() == 4));
        // The epoch is cancelled with batches ahead.
        drop(epoch);
        drop(batch);
    }
}
