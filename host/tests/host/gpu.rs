//! Loaders whose preparers have a share of each batch prepared by the kernels of a GPU, which the
//! CPU executes here: the same batches, whatever the share and whatever fails.

use crate::support::device::{Behaviour, FakeDevice};
use crate::support::{config, consume, dataset, mixed, pack, picture, recipe, sorted, views};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::column::ColumnNames;
use meetpoint_format::recipe::Recipe;
use meetpoint_gpu::{Compute, Error as GpuError, Hooked, Hooks, Launch, subject};
use meetpoint_host::group::{self, GroupCallbacks, Progress};
use meetpoint_host::stats::{Event, EventKind, GpuUse};
use meetpoint_host::verify::{Reference, Verdict, verify};
use meetpoint_host::{
    Accelerator, Action, Error, GpuDecode, GpuIndex, Loader, LoaderConfig, Null, OnError,
    StopHandle,
};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::CpuPreparers;
use meetpoint_prepare::cache::CacheSettings;
use meetpoint_prepare::gpu::{
    Computes, GpuMemory, GpuPreparers, NotOffloaded, NotTaken, OpenError, ShareChoice,
};
use meetpoint_scheduler::{AnyStrategy, Level, Mte, Split, Tail};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What happens at a given launch of the simulated GPU, and from then on.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Launches fail with this error.
    Lost(&'static str),
    /// Launches never end.
    Hang,
}

/// The simulated GPU, which fails at a given launch and from then on.
#[derive(Debug, Clone)]
struct Subject {
    launches_left: Arc<AtomicU64>,
    fault: Fault,
    /// Allocations on the GPU that are still refused.
    refusals_left: Arc<AtomicU64>,
    /// A loader that is stopped by the first wait; the GPU never finishes then.
    hangs_and_stops: Option<StopHandle>,
}

impl Subject {
    fn sound() -> Arc<Self> {
        Self::failing_after(u64::MAX)
    }

    fn failing_after(launches: u64) -> Arc<Self> {
        Self::with_fault(Fault::Lost("CUDA_ERROR_ILLEGAL_ADDRESS"), launches)
    }

    fn with_fault(fault: Fault, launches: u64) -> Arc<Self> {
        Arc::new(Self {
            launches_left: Arc::new(launches.into()),
            fault,
            refusals_left: Arc::default(),
            hangs_and_stops: None,
        })
    }

    fn without_memory(allocations: u64) -> Arc<Self> {
        let refusals_left = Arc::new(allocations.into());
        Arc::new(Self { refusals_left, ..(*Self::sound()).clone() })
    }
}

impl Computes for Subject {
    fn name(&self) -> &str {
        "subject"
    }

    fn compute(&self) -> Result<Box<dyn Compute>, GpuError> {
        let inner = subject(env!("CARGO_TARGET_TMPDIR").as_ref())?;
        Ok(Box::new(Hooked::new(inner, Faults { how: self.clone(), is_hung: false })))
    }
}

/// One less than a number, unless it is 0: then it is not used.
fn take_one(number: &AtomicU64) -> bool {
    let one_less = |left: u64| left.checked_sub(1);
    number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
}

/// Fails as its subject says, all threads together.
struct Faults {
    how: Subject,
    is_hung: bool,
}

impl Hooks for Faults {
    fn allocate(&mut self, bytes: usize) -> Result<(), GpuError> {
        if take_one(&self.how.refusals_left) {
            let (bytes, free, total) = (bytes as u64, 0, 1 << 30);
            return Err(GpuError::OutOfMemory { bytes, free, total });
        }
        Ok(())
    }

    fn launch(&mut self, _launch: &Launch<'_>) -> Result<bool, GpuError> {
        if !take_one(&self.how.launches_left) {
            let (call, what) = ("cuLaunchKernel", "a made-up failure".to_owned());
            match self.how.fault {
                Fault::Lost(name) => {
                    return Err(GpuError::Driver { call, name: name.to_owned(), what });
                }
                Fault::Hang => self.is_hung = true,
            }
        }
        Ok(!self.is_hung)
    }

    fn is_hung(&self) -> bool {
        self.is_hung
    }

    fn wait(&mut self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), GpuError> {
        if let Some(stop) = &self.how.hangs_and_stops {
            stop.stop();
            // What is dropped is waited for shortly.
            assert!(is_stopped() || limit < Duration::from_secs(1), "a wait without an end");
            let hung = GpuError::Hung { seconds: limit.as_secs_f64() };
            return Err(if is_stopped() { GpuError::Stopped } else { hung });
        }
        if self.is_hung {
            assert!(limit <= Duration::from_secs(20), "an epoch would take too long");
            return Err(GpuError::Hung { seconds: limit.as_secs_f64() });
        }
        Ok(())
    }
}

fn on(gpu: Arc<Subject>, choice: ShareChoice, config: LoaderConfig) -> LoaderConfig {
    within(GpuMemory::default(), gpu, choice, config)
}

fn within(
    memory: GpuMemory,
    gpu: Arc<Subject>,
    choice: ShareChoice,
    config: LoaderConfig,
) -> LoaderConfig {
    let preparers = GpuPreparers::new(CpuPreparers::default(), gpu, choice, memory);
    LoaderConfig { preparers: Arc::new(preparers), ..config }
}

fn failures(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.kind, EventKind::GpuFailed { .. })).count()
}

#[test]
fn epochs_are_the_same_with_any_share_and_fulfil_the_reference() {
    let folder = dataset(14);
    let plain = config(folder.path());
    let mut expected = Loader::open(plain.clone()).unwrap();
    let reference =
        Reference::prepare(expected.job(), 0..2, plain.engine, Cpu::Portable, &plain.stop).unwrap();
    let shares = [0.0, 0.5, 1.0].map(ShareChoice::Fixed);
    let loaders: Vec<_> = shares.into_iter().chain([ShareChoice::Measured]).collect();
    let mut loaders: Vec<_> = loaders
        .into_iter()
        .map(|choice| {
            let config = LoaderConfig { workers: 2, ..plain.clone() };
            (choice, Loader::open(on(Subject::sound(), choice, config)).unwrap())
        })
        .collect();
    for epoch in 0..2 {
        let (batches, stats) = consume(expected.start_epoch(epoch).unwrap());
        assert_eq!(stats.gpu, None);
        for (choice, loader) in &mut loaders {
            let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
            assert_eq!(seen, batches, "{choice:?}");
            let runs = std::slice::from_ref(&stats);
            let verdicts = verify(plain.strategy, loader.job(), runs, &reference);
            let equal = verdicts.iter().find(|it| it.level == Level::C2).unwrap();
            assert!(matches!(equal.verdict, Verdict::Verified { .. }), "{choice:?}: {equal:?}");
            let gpu = stats.gpu.clone().unwrap();
            assert_eq!((gpu.threads, gpu.samples(), gpu.not_taken), (2, 14, 0), "{choice:?}");
            match choice {
                // The last batch has 2 samples, the others 4.
                ShareChoice::Fixed(share) => assert_eq!(gpu.prepared, (*share * 14.0) as u64),
                ShareChoice::Measured => assert!(gpu.prepared > 0, "{gpu:?}"),
            }
        }
    }
    for (choice, loader) in &loaders {
        let of_both = loader.gpu_use().unwrap();
        assert_eq!((of_both.samples(), of_both.failure), (28, None), "{choice:?}");
    }
}

#[test]
fn a_gpu_that_is_lost_or_hangs_is_one_event_and_the_batches_stay_the_same() {
    let folder = dataset(16);
    let lost = [
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "CUDA_ERROR_LAUNCH_FAILED",
    ];
    for fault in lost.map(Fault::Lost).into_iter().chain([Fault::Hang]) {
        for (workers, launches) in [(0, 0), (0, 17), (2, 30)] {
            let case = format!("{fault:?}, {workers} workers, {launches} launches");
            let config = LoaderConfig { workers, ..config(folder.path()) };
            let mut plain = Loader::open(config.clone()).unwrap();
            let gpu = Subject::with_fault(fault, launches);
            let mut loader = Loader::open(on(gpu, ShareChoice::Fixed(0.5), config)).unwrap();
            let mut details = Vec::new();
            for epoch in 0..2 {
                let (expected, _) = consume(plain.start_epoch(epoch).unwrap());
                let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
                assert_eq!(seen, expected, "{case}");
                details.extend(stats.events.into_iter().filter_map(|event| match event.kind {
                    EventKind::GpuFailed { cause, detail, .. } => Some((cause, detail)),
                    _ => None,
                }));
            }
            let [(cause, detail)] = &details[..] else { panic!("{case}: {details:?}") };
            match fault {
                Fault::Lost(name) => assert!(cause == "gpu_failed" && detail.contains(name)),
                Fault::Hang => assert_eq!(cause, "gpu_hung"),
            }
            let gpu = loader.gpu_use().unwrap();
            assert_eq!(gpu.samples(), 32, "{case}: {gpu:?}");
            assert!(gpu.after_failure > 0, "{case}: {gpu:?}");
            assert_eq!(&gpu.failure.unwrap().cause, cause);
            assert!((1..=workers.max(1)).contains(&gpu.threads_failed), "{case}");
        }
    }
}

#[test]
fn what_exceeds_the_memory_of_a_gpu_goes_to_the_cpu_and_the_limit_holds() {
    let folder = dataset(16);
    let config = config(folder.path());
    let (expected, _) = consume(Loader::open(config.clone()).unwrap().start_epoch(0).unwrap());
    let mut were_divided = 0;
    for kib in [1, 64, 200, 400, 600, 800, 1200, 16 << 10] {
        let memory = GpuMemory::of(kib << 10);
        let (gpu, all) = (Subject::sound(), ShareChoice::Fixed(1.0));
        let mut loader = Loader::open(within(memory, gpu, all, config.clone())).unwrap();
        let (seen, stats) = consume(loader.start_epoch(0).unwrap());
        assert_eq!(seen, expected, "{kib} KiB");
        let gpu = stats.gpu.unwrap();
        assert_eq!((gpu.prepared + gpu.not_taken, &gpu.failure), (16, &None), "{gpu:?}");
        assert_eq!(
            gpu.not_taken_because.get(&NotTaken::Memory).copied().unwrap_or(0),
            gpu.not_taken
        );
        assert_eq!(gpu.device_bytes_limit, kib << 10);
        assert_eq!(gpu.pinned_bytes_limit, kib << 7);
        assert!(gpu.device_bytes_max <= gpu.device_bytes_limit, "{gpu:?}");
        assert!(gpu.pinned_bytes_max <= gpu.pinned_bytes_limit, "{gpu:?}");
        were_divided += u32::from(gpu.prepared > 0 && gpu.not_taken > 0);
        assert!(kib < 16 << 10 || gpu.prepared == 16, "{gpu:?}");
        // The same batches again need no more memory.
        let (_, stats) = consume(loader.start_epoch(0).unwrap());
        assert!(kib < 16 << 10 || stats.gpu.unwrap().allocations == 0);
    }
    assert!(were_divided > 0);
}

#[test]
fn a_gpu_without_memory_for_a_batch_is_tried_again_with_less() {
    let folder = dataset(16);
    let config = config(folder.path());
    let mut plain = Loader::open(config.clone()).unwrap();
    let gpu = Subject::without_memory(3);
    let mut loader = Loader::open(on(gpu, ShareChoice::Fixed(0.5), config)).unwrap();
    let mut events = 0;
    for epoch in 0..4 {
        let (expected, _) = consume(plain.start_epoch(epoch).unwrap());
        let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
        assert_eq!(seen, expected);
        events += failures(&stats.events);
    }
    let gpu = loader.gpu_use().unwrap();
    assert_eq!((events, &gpu.failure, gpu.threads_failed), (0, &None, 0), "{gpu:?}");
    assert_eq!(gpu.out_of_memory_batches, 3);
    assert_eq!(gpu.device_bytes_limit, GpuMemory::DEFAULT_BYTES / 8);
    // The three batches, and those that passed behind each: one, two and four.
    assert_eq!(gpu.prepared, (16 - 3 - 7) * 2, "{gpu:?}");
    assert!(gpu.out_of_memory >= 7 * 4 + 3 * 2, "{gpu:?}");
    assert_eq!(gpu.samples(), 64);
}

#[test]
fn a_gpu_that_never_has_memory_is_given_up() {
    let folder = dataset(16);
    let config = LoaderConfig { batch_size: 1, ..config(folder.path()) };
    let mut plain = Loader::open(config.clone()).unwrap();
    let gpu = Subject::without_memory(u64::MAX);
    let mut loader = Loader::open(on(gpu, ShareChoice::Fixed(1.0), config)).unwrap();
    let mut events = 0;
    for epoch in 0..9 {
        let (expected, _) = consume(plain.start_epoch(epoch).unwrap());
        let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
        assert_eq!(seen, expected);
        events += failures(&stats.events);
    }
    let gpu = loader.gpu_use().unwrap();
    assert_eq!((events, gpu.threads_failed, gpu.out_of_memory_batches), (1, 1, 8), "{gpu:?}");
    assert_eq!(gpu.failure.clone().unwrap().cause, "gpu_out_of_memory");
    assert_eq!((gpu.samples(), gpu.prepared), (16 * 9, 0));
}

#[test]
fn a_request_to_stop_ends_the_wait_for_a_gpu_that_hangs() {
    let folder = dataset(16);
    for workers in [0, 1] {
        let stop = StopHandle::new();
        let config = LoaderConfig { workers, stop: stop.clone(), ..config(folder.path()) };
        let gpu = Subject { hangs_and_stops: Some(stop), ..(*Subject::sound()).clone() };
        let mut loader = Loader::open(on(Arc::new(gpu), ShareChoice::Fixed(1.0), config)).unwrap();
        let mut epoch = loader.start_epoch(0).unwrap();
        let ended = epoch.next_batch().map(|batch| batch.is_some());
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    }
}

/// Five crops of a whole picture.
fn crops() -> Arc<Recipe> {
    let text = "operation = [{name = 'decode'}, {name = 'resize', size = [20, 22]},
        {name = 'five_crop', size = 12}, {name = 'random_horizontal_flip'}]";
    Arc::new(Recipe::from_toml(text).unwrap())
}

#[test]
fn what_a_gpu_does_not_prepare_the_cpu_does() {
    let folder = mixed();
    for recipe in [recipe(), views(), crops()] {
        let config = LoaderConfig {
            on_error: OnError::Always(Action::Replace),
            workers: 2,
            columns: ColumnNames::of(&recipe),
            recipe,
            ..config(folder.path())
        };
        let mut plain = Loader::open(config.clone()).unwrap();
        let config = on(Subject::sound(), ShareChoice::Fixed(1.0), config);
        let mut loader = Loader::open(config).unwrap();
        for epoch in 0..2 {
            let (expected, _) = consume(plain.start_epoch(epoch).unwrap());
            let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
            assert_eq!(seen, expected);
            let gpu = stats.gpu.unwrap();
            assert_eq!((gpu.not_taken, gpu.given_back, gpu.prepared), (5, 1, 10), "{gpu:?}");
            assert_eq!(gpu.most_frequent_reason(), Some(NotTaken::Progressive));
            assert_eq!(stats.damage.replaced, 1);
        }
    }
}

#[test]
fn jpegs_of_12_bits_are_counted_by_that_reason_and_refused_by_the_cpu() {
    let mut images: Vec<Vec<u8>> = (0..8).map(picture).collect();
    let frame = images[3].windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    // An extended sequential frame, whose samples have 12 bits.
    images[3][frame + 1] = 0xc1;
    images[3][frame + 4] = 12;
    let folder = tempfile::tempdir().unwrap();
    pack(folder.path(), images);
    let on_error = OnError::Always(Action::Replace);
    let config = LoaderConfig { on_error, ..config(folder.path()) };
    let (expected, plain) = consume(Loader::open(config.clone()).unwrap().start_epoch(0).unwrap());
    let config = on(Subject::sound(), ShareChoice::Fixed(1.0), config);
    let (seen, stats) = consume(Loader::open(config).unwrap().start_epoch(0).unwrap());
    assert_eq!(seen, expected);
    assert_eq!((plain.damage.replaced, stats.damage.replaced), (1, 1));
    let gpu = stats.gpu.unwrap();
    assert_eq!((gpu.prepared, gpu.not_taken), (7, 1), "{gpu:?}");
    assert_eq!(gpu.not_taken_because, [(NotTaken::Precision, 1)].into());
}

#[test]
fn the_number_of_launches_does_not_depend_on_the_size_of_a_batch() {
    let folder = dataset(16);
    let launches = |batch_size: u32| {
        let gpu = Subject::sound();
        let config = LoaderConfig { batch_size, ..config(folder.path()) };
        let config = on(Arc::clone(&gpu), ShareChoice::Fixed(1.0), config);
        let (seen, stats) = consume(Loader::open(config).unwrap().start_epoch(0).unwrap());
        assert_eq!(stats.gpu.unwrap().prepared, 16);
        let launches = u64::MAX - gpu.launches_left.load(Ordering::Relaxed);
        (launches % seen.len() as u64, launches / seen.len() as u64)
    };
    let of_two = launches(2);
    assert!(of_two.0 == 0 && of_two.1 > 0, "{of_two:?}");
    assert_eq!([launches(4), launches(8), launches(16)], [of_two; 3]);
}

#[test]
fn a_host_with_a_gpu_shares_an_epoch_with_a_device() {
    let folder = dataset(40);
    let (expected, _) =
        consume(Loader::open(config(folder.path())).unwrap().start_epoch(0).unwrap());
    let device = FakeDevice::start(Behaviour::default());
    let config = LoaderConfig {
        strategy: AnyStrategy::Mte(Mte { split: Split::Fixed(5), tail: Tail::Descending }),
        devices: vec![device.source()],
        stall_timeout: Duration::from_secs(30),
        ..config(folder.path())
    };
    let config = on(Subject::sound(), ShareChoice::Fixed(0.5), config);
    let mut loader = Loader::open(config).unwrap();
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(sorted(seen), expected);
    assert_eq!((stats.schedule.host_batches, stats.schedule.device_batches), (5, 5));
    let gpu = stats.gpu.unwrap();
    assert_eq!((gpu.prepared, gpu.beyond_share), (10, 10));
}

/// A GPU that no thread can compute on.
#[derive(Debug)]
struct Full;

impl Computes for Full {
    fn name(&self) -> &str {
        "full"
    }

    fn compute(&self) -> Result<Box<dyn Compute>, GpuError> {
        Err(GpuError::OutOfMemory { bytes: 3, free: 2, total: 4 })
    }
}

#[test]
fn threads_that_get_no_memory_on_the_gpu_prepare_on_the_cpu() {
    let folder = dataset(8);
    let (expected, _) =
        consume(Loader::open(config(folder.path())).unwrap().start_epoch(0).unwrap());
    let (choice, memory) = (ShareChoice::Measured, GpuMemory::default());
    let preparers = GpuPreparers::new(CpuPreparers::default(), Arc::new(Full), choice, memory);
    let config = LoaderConfig { preparers: Arc::new(preparers), ..config(folder.path()) };
    let mut loader = Loader::open(config).unwrap();
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(seen, expected);
    assert_eq!(failures(&stats.events), 1);
    let gpu = stats.gpu.unwrap();
    assert_eq!((gpu.threads, gpu.threads_failed, gpu.prepared), (1, 1, 0));
    assert_eq!(gpu.failure.unwrap().cause, "gpu_out_of_memory");
}

/// Why the job of a configuration is prepared without the GPU.
fn unused(config: LoaderConfig) -> Option<NotOffloaded> {
    let config = on(Subject::sound(), ShareChoice::Fixed(1.0), config);
    let mut loader = Loader::open(config).unwrap();
    let (_, stats) = consume(loader.start_epoch(0).unwrap());
    let gpu = stats.gpu.unwrap();
    assert_eq!((gpu.prepared, gpu.threads, gpu.failure), (0, 0, None));
    gpu.unused_because
}

#[test]
fn a_job_that_no_gpu_prepares_runs_on_the_cpu_and_says_why() {
    let folder = dataset(4);
    let plain = config(folder.path());
    let cache = Some(CacheSettings { bytes: 32 << 20, operations: Some(1) });
    let cached = LoaderConfig { cache, ..plain.clone() };
    assert_eq!(unused(cached), Some(NotOffloaded::Cached));
    let labels = LoaderConfig { columns: vec!["label".to_owned()].into(), ..plain.clone() };
    assert_eq!(unused(labels), Some(NotOffloaded::NoPictures));
    let operations = "operation = [{name = 'decode', mode = 'rgba'}, \
                      {name = 'center_crop', size = 8}]";
    let recipe = Arc::new(Recipe::from_toml(operations).unwrap());
    let rgba = LoaderConfig { recipe, ..plain };
    assert!(matches!(unused(rgba), Some(NotOffloaded::Mode { .. })));
}

struct Ranks;

impl GroupCallbacks for Ranks {
    fn accelerator(&self, _: &Loader) -> Box<dyn Accelerator> {
        Box::new(Null)
    }

    fn before_epoch(&self, _: &mut Loader, _: u32) {}

    fn consumed(&self, _: Progress) {}
}

#[test]
fn each_rank_of_a_process_counts_its_own_samples() {
    let folder = dataset(16);
    let config = LoaderConfig { ranks: 2, ..config(folder.path()) };
    let config = on(Subject::sound(), ShareChoice::Fixed(1.0), config);
    let ranks = group::run(&config, 1, &Ranks).unwrap();
    let uses: Vec<GpuUse> = ranks.iter().map(|rank| rank.epochs[0].gpu.clone().unwrap()).collect();
    assert_eq!(uses.iter().map(|gpu| gpu.prepared).collect::<Vec<_>>(), [8, 8]);
    let mut both = uses[0].clone();
    both.add(&uses[1]);
    assert_eq!((both.prepared, both.threads), (16, 2));
}

#[test]
fn what_a_gpu_refuses_is_counted_by_reason() {
    let gpu =
        GpuUse { not_taken_because: [(NotTaken::Progressive, 3)].into(), ..GpuUse::default() };
    let json = serde_json::to_value(&gpu).unwrap();
    assert_eq!(json["not_taken_because"]["progressive"], 3);
    assert_eq!(serde_json::from_value::<GpuUse>(json).unwrap(), gpu);
}

#[test]
fn a_gpu_that_is_not_there_refuses_the_loader() {
    let folder = dataset(4);
    // Beyond the number of GPUs of any machine.
    let gpu_decode = Some(GpuDecode::new(GpuIndex(60_000)));
    let refused = Loader::open(LoaderConfig { gpu_decode, ..config(folder.path()) });
    let error = refused.unwrap_err();
    let remedy = error.remedy().unwrap();
    for (surface, off) in
        [(Surface::CommandLine, "--no-gpu-decode"), (Surface::Python, "gpu_decode=False")]
    {
        assert!(remedy.spelled(surface).ends_with(off), "{remedy:?}");
    }
    let Error::Gpu { gpu: GpuIndex(60_000), source } = error else {
        panic!("{error:?}");
    };
    let is_built = !matches!(source, OpenError::NotBuilt);
    assert_eq!(is_built, cfg!(feature = "cuda"));
}
