//! The engines under test, their files, and helper functions of all tests.
#![expect(unsafe_code, reason = "tracked buffers lie in memory of their owner")]

use crate::drive::Drive;
use meetpoint_storage::faulty::{Fault, FaultPlan, FaultyEngine};
use meetpoint_storage::memory::{MemoryEngine, MemoryFiles, Order};
use meetpoint_storage::nvme::NvmeEngine;
use meetpoint_storage::slow::{Pace, SlowEngine};
use meetpoint_storage::threads::ThreadsEngine;
use meetpoint_storage::uring::UringEngine;
use meetpoint_storage::{
    Access, AlignedBuffer, BLOCK_BYTES, Completion, Engine, Error, FileId, RefusedRequest, Request,
    RequestKind,
};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// A limit that no test reaches, even on the slowest machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

type EngineFactory = Box<dyn Fn(usize) -> Box<dyn Engine>>;

/// An engine under test and where its files are.
pub(crate) struct Subject {
    pub(crate) name: String,
    make: EngineFactory,
    folder: PathBuf,
    files: Files,
}

/// Where the files of a subject are.
enum Files {
    Disk,
    Memory(MemoryFiles),
    /// Extents of a namespace, whose blocks are also read and written through its block device.
    Namespace(Drive),
}

impl Subject {
    pub(crate) fn engine(&self, depth: usize) -> Box<dyn Engine> {
        (self.make)(depth)
    }

    /// Whether its files are those of the machine, including devices and pipes.
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self.files, Files::Disk)
    }

    /// Whether its files have a fixed length and a name, such as extents of a drive.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self.files, Files::Namespace(_))
    }

    /// Creates a file.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.join(name);
        match &self.files {
            Files::Memory(files) => files.put(&path, bytes.to_vec()),
            Files::Disk => std::fs::write(&path, bytes).unwrap(),
            Files::Namespace(drive) => return drive.put(bytes),
        }
        path
    }

    /// The content of a file.
    pub(crate) fn contents(&self, path: &Path) -> Vec<u8> {
        match &self.files {
            Files::Memory(files) => files.contents(path).unwrap(),
            Files::Disk => std::fs::read(path).unwrap(),
            Files::Namespace(drive) => drive.contents(path),
        }
    }
}

/// Runs a test on every engine, alone and under the decorators.
pub(crate) fn each(test: impl Fn(&Subject)) {
    run(true, test);
}

/// Runs a test on every engine alone.
pub(crate) fn each_alone(test: impl Fn(&Subject)) {
    run(false, test);
}

fn run(decorated: bool, test: impl Fn(&Subject)) {
    let disk = tempfile::tempdir().unwrap();
    let shared = tempfile::tempdir_in("/dev/shm")
        .inspect_err(|error| eprintln!("skipped: files in /dev/shm: {error}"));
    // With a namespace to test, the engines over files are left out: they run elsewhere.
    let is_elsewhere = Drive::of_environment().is_some();
    #[cfg(feature = "spdk")]
    let is_elsewhere = is_elsewhere || Drive::of_spdk().is_some();
    let folders = [Some(&disk), shared.as_ref().ok()].map(|it| it.filter(|_| !is_elsewhere));
    let decorators: &[Decorate] = if decorated { &DECORATORS } else { &DECORATORS[..1] };
    let mut ran = 0;
    for (label, decorate) in decorators {
        for folder in folders.into_iter().flatten() {
            for (name, make) in disk_engines() {
                let name = format!("{label} {name} in {}", folder.path().display());
                let make: EngineFactory = Box::new(move |depth| decorate(make(depth)));
                let folder = folder.path().to_path_buf();
                test(&Subject { name, make, folder, files: Files::Disk });
                ran += 1;
            }
        }
        for (direct, order) in [(false, Order::Submission), (true, Order::Shuffled(11))] {
            let name = format!("{label} memory, direct {direct}, {order:?}");
            let files = MemoryFiles::default();
            let shown = files.clone();
            let make: EngineFactory = Box::new(move |depth| {
                decorate(Box::new(MemoryEngine::new(files.clone(), depth, direct, order)))
            });
            let files = Files::Memory(shown);
            test(&Subject { name, make, folder: "memory".into(), files });
            ran += 1;
        }
        #[cfg(feature = "spdk")]
        run_spdk(label, *decorate, &folders, &test);
        if let Some(drive) = Drive::of_environment() {
            let name = format!("{label} nvme on {}", drive.namespace().display());
            let make: EngineFactory =
                Box::new(move |depth| decorate(Box::new(NvmeEngine::new(depth).unwrap())));
            let files = Files::Namespace(drive);
            test(&Subject { name, make, folder: "/dev".into(), files });
        }
    }
    assert!(ran >= 2 * decorators.len(), "at least the engines in memory ran");
}

/// Runs a test on SPDK: on the device of the environment or, without one, on files.
#[cfg(feature = "spdk")]
fn run_spdk(
    label: &str,
    decorate: fn(Box<dyn Engine>) -> Box<dyn Engine>,
    folders: &[Option<&tempfile::TempDir>],
    test: &impl Fn(&Subject),
) {
    use meetpoint_storage::spdk::SpdkEngine;
    let make = || -> EngineFactory {
        Box::new(move |depth| decorate(Box::new(SpdkEngine::new(depth).unwrap())))
    };
    if let Some(drive) = Drive::of_spdk() {
        let name = format!("{label} {}", drive.namespace().display());
        let files = Files::Namespace(drive);
        test(&Subject { name, make: make(), folder: "/dev".into(), files });
    }
    for folder in folders.iter().flatten() {
        for module in ["aio", "uring"] {
            let drive = Drive::of_file(module, folder.path());
            let mut engine = SpdkEngine::new(1).unwrap();
            if let Err(error) = engine.open(drive.namespace(), Access::Read) {
                // SPDK may have been configured without liburing.
                assert_eq!(module, "uring", "{error}");
                eprintln!("skipped: {error}");
                continue;
            }
            let name = format!("{label} spdk {module} in {}", folder.path().display());
            let files = Files::Namespace(drive);
            test(&Subject { name, make: make(), folder: "/dev".into(), files });
        }
    }
}

type MakeAny = fn(usize) -> Box<dyn Engine>;

/// The engines over files that this machine has.
fn disk_engines() -> Vec<(&'static str, MakeAny)> {
    let mut engines: Vec<(&'static str, MakeAny)> =
        vec![("threads", |depth| Box::new(ThreadsEngine::new(depth).unwrap()))];
    match UringEngine::new(1) {
        Ok(_) => {
            engines.push(("io_uring", |depth| Box::new(UringEngine::new(depth).unwrap())));
            engines.push(("io_uring without registered buffers", |depth| {
                Box::new(UringEngine::with_registered(depth, 0).unwrap())
            }));
        }
        Err(refusal) => eprintln!("skipped: io_uring: {refusal}"),
    }
    engines
}

/// io_uring, or `None` and a message on standard error.
pub(crate) fn uring(depth: usize) -> Option<UringEngine> {
    let engine = UringEngine::new(depth);
    engine.inspect_err(|refusal| eprintln!("skipped: io_uring: {refusal}")).ok()
}

type Decorate = (&'static str, fn(Box<dyn Engine>) -> Box<dyn Engine>);

/// Decorators that may delay results, but must not change them.
const DECORATORS: [Decorate; 5] = [
    ("plain", |engine| engine),
    ("slow", |engine| Box::new(SlowEngine::new(engine, PACE))),
    ("faulty without faults", |engine| Box::new(FaultyEngine::new(engine, FaultPlan::none()))),
    ("faulty with delays", |engine| Box::new(FaultyEngine::new(engine, delays()))),
    ("slow over delays", |engine| {
        Box::new(SlowEngine::new(Box::new(FaultyEngine::new(engine, delays())), PACE))
    }),
];

const PACE: Pace = Pace {
    latency: Duration::from_micros(20),
    read_bytes_per_second: Some(2_000_000_000),
    write_bytes_per_second: Some(1_000_000_000),
};

fn delays() -> FaultPlan {
    let delay = |micros| Fault::Slow(Duration::from_micros(micros));
    FaultPlan::none()
        .and(RequestKind::Read, 0, delay(300))
        .and(RequestKind::Read, 2, delay(100))
        .and(RequestKind::Write, 0, delay(200))
        .and(RequestKind::Sync, 0, delay(50))
}

/// Bytes in which no two blocks are equal.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| (place ^ (place >> 8) ^ (place >> 16).wrapping_mul(7)) as u8).collect()
}

/// A request whose buffer has space for the surrounding blocks.
pub(crate) fn request(
    engine: &mut dyn Engine,
    file: FileId,
    kind: RequestKind,
    offset: u64,
    bytes: usize,
) -> Request {
    let buffer = engine.buffer(bytes + 2 * BLOCK_BYTES);
    Request { token: offset ^ (bytes as u64) << 40, file, kind, offset, bytes, buffer }
}

pub(crate) fn submit(
    engine: &mut dyn Engine,
    file: FileId,
    kind: RequestKind,
    offset: u64,
    bytes: usize,
) -> Result<(), Box<RefusedRequest>> {
    let request = request(engine, file, kind, offset, bytes);
    engine.submit(request)
}

/// Waits until nothing is in flight.
pub(crate) fn drain(engine: &mut dyn Engine) -> Vec<Completion> {
    let mut out = Vec::new();
    while engine.in_flight() > 0 {
        let count = engine.wait(LONG, &mut out).unwrap();
        assert!(count > 0, "a minute is enough");
    }
    out
}

/// One read from submission to the bytes of the range.
pub(crate) fn read(
    engine: &mut dyn Engine,
    file: FileId,
    offset: u64,
    bytes: usize,
) -> Result<Vec<u8>, Error> {
    submit(engine, file, RequestKind::Read, offset, bytes).map_err(|refused| refused.error)?;
    let completion = drain(engine).pop().unwrap();
    let moved = completion.result?;
    assert_eq!(moved, bytes);
    Ok(completion.buffer.as_slice()[completion.start..completion.start + bytes].to_vec())
}

/// One write from submission to its end.
pub(crate) fn write(
    engine: &mut dyn Engine,
    file: FileId,
    offset: u64,
    bytes: &[u8],
) -> Result<(), Error> {
    let mut request = request(engine, file, RequestKind::Write, offset, bytes.len());
    request.buffer.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
    engine.submit(request).map_err(|refused| refused.error)?;
    let completion = drain(engine).pop().unwrap();
    assert_eq!((completion.result?, completion.start), (bytes.len(), 0));
    Ok(())
}

pub(crate) fn open(engine: &mut dyn Engine, path: &Path) -> FileId {
    engine.open(path, Access::Read).unwrap()
}

/// A buffer that shows whether it has been freed: the reference count is then one.
pub(crate) fn tracked(bytes: usize, tracker: &Arc<()>) -> AlignedBuffer {
    let mut memory = AlignedBuffer::zeroed(bytes);
    let capacity = memory.capacity();
    let start = NonNull::from(memory.as_mut_slice()).cast();
    let owner = Box::new((memory, Arc::clone(tracker)));
    // SAFETY: the owner holds the memory, and nobody else can reach it.
    unsafe { AlignedBuffer::from_owner(start, capacity, owner) }
}
