//! A batch of pictures of any sizes and kinds is one copy and a fixed number of launches.
#![cfg(feature = "shim")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use meetpoint_gpu::jpeg::{JpegBatch, JpegLimits};
use meetpoint_gpu::{Compute, DeviceMemory, Error, Fence, HostMemory, Launch, PageLock, subject};
use meetpoint_jpeg::{
    DecodeOptions, DecodePlan, Encoded, Form, OnDamage, Planner, Region, Spacing, entry_points,
    to_form,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// Counts what is started.
struct Counted {
    inner: Box<dyn Compute>,
    calls: u32,
    uploads: u32,
    fills: u32,
    /// Names of the kernels that have work.
    kernels: BTreeSet<&'static str>,
}

impl Compute for Counted {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, Error> {
        self.inner.allocate(bytes)
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, Error> {
        self.inner.allocate_host(bytes)
    }

    fn lock_pages(&mut self, memory: &[u8]) -> Result<PageLock, Error> {
        self.inner.lock_pages(memory)
    }

    fn upload(&mut self, from: &[u8], to: &DeviceMemory, offset: usize) -> Result<(), Error> {
        self.uploads += 1;
        self.inner.upload(from, to, offset)
    }

    fn download(&mut self, from: &DeviceMemory, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        self.inner.download(from, offset, to)
    }

    fn copy(
        &mut self,
        from: &DeviceMemory,
        from_offset: usize,
        to: &DeviceMemory,
        to_offset: usize,
        bytes: usize,
    ) -> Result<(), Error> {
        self.inner.copy(from, from_offset, to, to_offset, bytes)
    }

    fn fence(&mut self) -> Result<Fence, Error> {
        self.inner.fence()
    }

    fn wait_for_fence(&mut self, fence: &Fence) -> Result<(), Error> {
        self.inner.wait_for_fence(fence)
    }

    fn fill(&mut self, m: &DeviceMemory, offset: usize, n: usize, value: u8) -> Result<(), Error> {
        self.fills += 1;
        self.inner.fill(m, offset, n, value)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Error> {
        self.calls += 1;
        if !launch.grid.contains(&0) {
            self.kernels.insert(launch.kernel.name);
        }
        self.inner.launch(launch)
    }

    fn is_done(&mut self) -> Result<bool, Error> {
        self.inner.is_done()
    }

    fn wait_unless(&mut self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        self.inner.wait_unless(limit, is_stopped)
    }
}

/// The golden files of the decoder as files, with entry points and as coefficient forms.
fn pictures() -> Vec<(Vec<u8>, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../jpeg/tests/golden/jpeg");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.iter().filter(|path| path.extension().is_some_and(|it| it == "jpg"));
    let files: Vec<_> = files.map(|path| std::fs::read(path).unwrap()).collect();
    let as_they_are = files.iter().map(|file| (file.clone(), Vec::new()));
    let with_entries = files
        .iter()
        .filter_map(|file| Some((file.clone(), entry_points(file, Spacing::McuRow).ok()??)));
    let forms = files.iter().filter_map(|file| Some((to_form(file, Form::Fast).ok()?, Vec::new())));
    as_they_are.chain(with_entries).chain(forms).collect()
}

#[test]
fn the_number_of_launches_and_copies_does_not_depend_on_the_size_of_the_batch() {
    let inner = subject(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap();
    let kernels = BTreeSet::new();
    let mut compute = Counted { inner, calls: 0, uploads: 0, fills: 0, kernels };
    // Segments for threads, warps and blocks of threads.
    let (segment_bytes_long, segment_bytes_huge) = (100, 1000);
    let limits = JpegLimits { segment_bytes_long, segment_bytes_huge, ..JpegLimits::default() };
    let mut batch = JpegBatch::new(limits);
    let (mut planner, mut plan) = (Planner::default(), DecodePlan::default());
    let pictures = pictures();
    let mut counts = Vec::new();
    for step in [1, 2, 5] {
        batch.clear();
        let mut sizes = BTreeSet::new();
        let mut added = 0;
        for (bytes, entry_points) in pictures.iter().step_by(step) {
            let encoded = Encoded { bytes, entry_points, crc32c: None };
            let Ok((width, height)) = planner.open(encoded, OnDamage::Fail) else { continue };
            let region = Region { x: 0, y: 0, width, height };
            let options = DecodeOptions::default();
            if planner.plan_opened(encoded, region, &options, &mut plan).is_ok() {
                batch.add(&mut compute, &plan, bytes).unwrap();
                sizes.insert((width, height));
                added += 1;
            }
        }
        assert!(added * step > 100 && sizes.len() > 3, "{added} pictures of {sizes:?}");
        (compute.calls, compute.uploads, compute.fills) = (0, 0, 0);
        compute.kernels.clear();
        batch.run(&mut compute).unwrap();
        compute.wait(Duration::from_secs(60)).unwrap();
        counts.push((compute.calls, compute.uploads, compute.fills, compute.kernels.clone()));
    }
    let kernels = [
        "jpeg_decode_segments",
        "jpeg_decode_by_warps",
        "jpeg_decode_by_blocks",
        "jpeg_decode_forms",
        "jpeg_transform",
        "jpeg_make_pixels",
    ];
    let (calls, uploads, fills, found) = &counts[0];
    assert_eq!((*calls, *uploads, found), (6, 1, &BTreeSet::from(kernels)));
    assert!(*fills <= 2, "{fills} fills");
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}
