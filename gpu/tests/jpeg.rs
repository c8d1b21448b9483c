//! JPEGs decoded by the kernels are those that the CPU decodes, or are reported.
#![cfg(feature = "shim")]

mod support;

use meetpoint_gpu::jpeg::{JpegBatch, JpegError, JpegLimits};
use meetpoint_jpeg::{
    DecodeOptions, DecodePlan, OutputColour, Planner, Region, Restarts, Rewrite, Spacing, rewrite,
};
use proptest::prelude::*;
use support::{Case, SAMPLINGS, Setup, encode, golden};

fn restarts(file: &[u8], restarts: Restarts) -> Vec<u8> {
    rewrite(file, &Rewrite { restarts, ..Rewrite::default() }).unwrap()
}

#[test]
fn golden_files_of_every_kind_have_the_pixels_of_the_cpu() {
    let mut setup = Setup::start();
    for colour in [OutputColour::Rgb, OutputColour::Grey] {
        let options = DecodeOptions { colour, ..DecodeOptions::default() };
        let case = |(_, file)| Case { options, ..Case::whole(file) };
        let cases: Vec<Case> = golden().into_iter().map(case).collect();
        let outcome = setup.check(&cases);
        assert!(outcome.sound > 70, "{outcome:?}");
        assert_eq!(outcome.flagged_needlessly, 0);
    }
}

#[test]
fn entry_points_and_restart_markers_change_no_pixel() {
    let mut setup = Setup::start();
    let mut cases = Vec::new();
    for (sampling, seed) in SAMPLINGS.iter().zip(0..) {
        let file = encode(*sampling, seed, 61, 45, 90);
        for spacing in [Spacing::McuRow, Spacing::Mcus(1), Spacing::Mcus(3)] {
            cases.push(Case::with_entry_points(file.clone(), spacing));
        }
        for every in [1, 3, 7] {
            let file = restarts(&file, Restarts::EveryMcus(every));
            cases.push(Case::whole(file.clone()));
            cases.push(Case::with_entry_points(file, Spacing::Mcus(2)));
        }
    }
    let outcome = setup.check(&cases);
    assert_eq!(outcome.sound, cases.len(), "{outcome:?}");
}

#[test]
fn regions_at_all_edges_have_the_pixels_of_the_whole_picture() {
    let mut setup = Setup::start();
    let mut cases = Vec::new();
    for (sampling, seed) in SAMPLINGS.iter().zip(0..) {
        let file = encode(*sampling, seed, 61, 45, 80);
        let spacing = if seed % 2 == 0 { Spacing::McuRow } else { Spacing::Mcus(2) };
        let case = Case::with_entry_points(file, spacing);
        for (x, width) in [(0, 1), (0, 17), (15, 2), (16, 16), (33, 28), (60, 1)] {
            for (y, height) in [(0, 1), (0, 16), (7, 2), (16, 8), (31, 14), (44, 1)] {
                cases.push(case.clone().of(Region { x, y, width, height }));
            }
        }
    }
    let outcome = setup.check(&cases);
    assert_eq!(outcome.sound, cases.len(), "{outcome:?}");
}
