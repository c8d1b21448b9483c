//! A batch of pictures of any sizes and kinds is one copy and a fixed number of launches.
#![cfg(feature = "shim")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use meetpoint_gpu::jpeg::{JpegBatch, JpegLimits};
use meetpoint_gpu::{Compute, Error, Hooked, Hooks, Launch, subject};
use meetpoint_jpeg::{
    DecodeOptions, DecodePlan, Encoded, Form, OnDamage, Planner, Region, Spacing, entry_points,
    to_form,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// Counts what is started.
#[derive(Default)]
struct Counts {
    calls: u32,
    uploads: u32,
    fills: u32,
    /// Names of the kernels that have work.
    kernels: BTreeSet<&'static str>,
}

impl Hooks for Counts {
    fn upload(&mut self, _from: &[u8]) {
        self.uploads += 1;
    }

    fn fill(&mut self) {
        self.fills += 1;
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<bool, Error> {
        self.calls += 1;
        if !launch.grid.contains(&0) {
            self.kernels.insert(launch.kernel.name);
        }
        Ok(true)
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
    let mut compute = Hooked::new(inner, Counts::default());
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
        compute.hooks = Counts::default();
        batch.run(&mut compute).unwrap();
        compute.wait(Duration::from_secs(60)).unwrap();
        let Counts { calls, uploads, fills, kernels } = std::mem::take(&mut compute.hooks);
        counts.push((calls, uploads, fills, kernels));
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
