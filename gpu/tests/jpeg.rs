//! The kernels decode JPEGs to the pixels of the CPU, or report a problem.
#![cfg(feature = "shim")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use meetpoint_gpu::jpeg::{JpegBatch, JpegError, JpegLimits, PictureStatus};
use meetpoint_jpeg::entry_points::{decode, encode as encode_entries};
use meetpoint_jpeg::{
    DecodeOptions, DecodePlan, Form, OutputColour, Planner, Region, Restarts, Rewrite, Spacing,
    rewrite, to_form,
};
use proptest::prelude::*;
use support::{Case, SAMPLINGS, Setup, encode, golden, repetitive};

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

/// Where decoding can begin in the file of a case.
#[derive(Debug, Clone, Copy)]
enum Starts {
    Nowhere,
    Entries(u16),
    Markers(u16),
    Both(u16),
}

fn any_case() -> impl Strategy<Value = Case> {
    let starts = prop_oneof![
        Just(Starts::Nowhere),
        (0..4_u16).prop_map(Starts::Entries),
        (1..6_u16).prop_map(Starts::Markers),
        (1..6_u16).prop_map(Starts::Both),
    ];
    let size = (1..50_u16, 1..50_u16);
    let region = [any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()];
    let how = (0..SAMPLINGS.len(), any::<u32>(), 1..=100_u8, any::<bool>());
    (size, region, how, starts).prop_map(|((w, h), [x, y, wide, high], how, starts)| {
        let (sampling, seed, quality, is_grey) = how;
        let mut file = encode(SAMPLINGS[sampling], seed, w, h, quality);
        if let Starts::Markers(every) | Starts::Both(every) = starts {
            file = restarts(&file, Restarts::EveryMcus(every));
        }
        let mut case = match starts {
            Starts::Nowhere | Starts::Markers(_) => Case::whole(file),
            Starts::Entries(0) => Case::with_entry_points(file, Spacing::McuRow),
            Starts::Entries(every) | Starts::Both(every) => {
                Case::with_entry_points(file, Spacing::Mcus(every))
            }
        };
        if is_grey {
            case.options.colour = OutputColour::Grey;
        }
        let (w, h) = (u32::from(w), u32::from(h));
        let (x, y) = (x % w, y % h);
        let (width, height) = (1 + wide % (w - x), 1 + high % (h - y));
        case.of(Region { x, y, width, height })
    })
}

/// A case, and what is wrong with its file or its entry points.
fn any_damaged_case() -> impl Strategy<Value = Case> {
    let flips = prop::collection::vec(any::<(u16, u8)>(), 1..4);
    (any_case(), flips, 0..6_u8, any::<u16>()).prop_map(|(case, flips, damage, at)| {
        let mut file = case.file.clone();
        let header = file.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap() + 14;
        let length = file.len();
        let place = |at: u16| header + usize::from(at) % (length - header).max(1);
        match damage {
            0 => file.truncate(place(at)),
            1 => drop(file.drain(place(at)..(place(at) + 3).min(length))),
            2 => file[place(at).min(length - 1)] = 0xff,
            3 => return with_moved_entries(case, &flips),
            4 => flips.iter().for_each(|(at, bit)| {
                file[usize::from(*at) % length] ^= 1 << (bit & 7);
            }),
            _ => flips.iter().for_each(|(at, bit)| {
                file[place(*at).min(length - 1)] ^= 1 << (bit & 7);
            }),
        }
        case.changed_to(file)
    })
}

/// Changes entry points, and computes their checksum again.
fn with_moved_entries(case: Case, changes: &[(u16, u8)]) -> Case {
    let mut entries = Vec::new();
    let Ok(head) = decode(&case.entry_points, &mut entries) else { return case };
    for (at, change) in changes {
        let count = entries.len().max(1);
        let Some(entry) = entries.get_mut(usize::from(*at) % count) else { continue };
        match change % 3 {
            0 => entry.dc[usize::from(change / 3 % 3)] ^= 1 << (change / 9 % 16),
            1 => entry.bits ^= 1,
            _ => entry.offset = entry.offset.saturating_add(u32::from(change / 3) % 8),
        }
    }
    entries.sort_by_key(|entry| (entry.offset, entry.bits));
    Case { entry_points: encode_entries(head, &entries), ..case }
}

#[test]
fn entry_points_away_from_their_restart_markers_are_refused() {
    let mut setup = Setup::start();
    let file = restarts(&encode(SAMPLINGS[0], 5, 1, 24, 13), Restarts::EveryMcus(2));
    let case = Case::with_entry_points(file, Spacing::Mcus(2));
    let mut entries = Vec::new();
    let head = decode(&case.entry_points, &mut entries).unwrap();
    let last = entries.len() - 1;
    let at = entries[last].offset;
    let mut cases = Vec::new();
    for offset in at - 4..at + 12 {
        for bits in 0..8 {
            (entries[last].offset, entries[last].bits) = (offset, bits);
            let entry_points = encode_entries(head, &entries);
            let case = Case { entry_points, ..case.clone() };
            for (y, height) in [(0, 24), (16, 8), (20, 3)] {
                cases.push(case.clone().of(Region { x: 0, y, width: 1, height }));
            }
        }
    }
    let outcome = setup.check(&cases);
    // Only the right position is valid, and others in the padding before the marker.
    assert!((3..=24).contains(&outcome.sound), "{outcome:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_batch_has_the_pixels_of_the_cpu(cases in prop::collection::vec(any_case(), 1..8)) {
        let outcome = Setup::start().check(&cases);
        prop_assert_eq!(outcome.sound, cases.len());
    }

    #[test]
    fn damaged_files_are_reported_or_have_the_pixels_of_the_cpu(
        cases in prop::collection::vec(any_damaged_case(), 1..8),
    ) {
        let outcome = Setup::start().check(&cases);
        let all = outcome.sound + outcome.refused + outcome.unplanned + outcome.flagged_needlessly;
        prop_assert_eq!(all, cases.len());
    }
}

/// Forms of a file, in both layouts.
fn forms(file: &[u8]) -> Vec<Vec<u8>> {
    [Form::Fast, Form::Compact].into_iter().filter_map(|form| to_form(file, form).ok()).collect()
}

#[test]
fn coefficient_forms_have_the_pixels_of_the_cpu() {
    let mut setup = Setup::start();
    let mut cases = Vec::new();
    for (sampling, seed) in SAMPLINGS.iter().zip(0..) {
        let file = encode(*sampling, seed, 61, 45, [40, 80, 98][seed as usize % 3]);
        cases.extend(forms(&file).into_iter().map(Case::whole));
    }
    // More blocks in a line than a warp has threads, and more than one group of DC differences.
    let wide = encode(SAMPLINGS[3], 5, 2300, 20, 70);
    cases.extend(forms(&wide).into_iter().map(Case::whole));
    cases.extend(forms(&repetitive(70, 50)).into_iter().map(Case::whole));
    let outcome = setup.check_once(&cases);
    assert_eq!(outcome.sound, cases.len(), "{outcome:?}");
    for colour in [OutputColour::Rgb, OutputColour::Grey] {
        let options = DecodeOptions { colour, ..DecodeOptions::default() };
        let files = golden().into_iter().flat_map(|(_, file)| forms(&file));
        let cases: Vec<Case> = files.map(|file| Case { options, ..Case::whole(file) }).collect();
        let outcome = setup.check_once(&cases);
        assert!(outcome.sound > 70, "{outcome:?}");
        assert_eq!(outcome.flagged_needlessly, 0);
    }
}

#[test]
fn regions_of_coefficient_forms_have_the_pixels_of_the_whole_picture() {
    let mut setup = Setup::start();
    let mut cases = Vec::new();
    for (sampling, seed) in SAMPLINGS.iter().zip(0..) {
        for file in forms(&encode(*sampling, seed, 61, 45, 80)) {
            for (x, width) in [(0, 17), (15, 2), (33, 28), (60, 1)] {
                for (y, height) in [(0, 1), (7, 2), (31, 14)] {
                    let region = Some(Region { x, y, width, height });
                    cases.push(Case { region, ..Case::whole(file.clone()) });
                }
            }
        }
    }
    let outcome = setup.check_once(&cases);
    assert_eq!(outcome.sound, cases.len(), "{outcome:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// `check_once` panics where the kernels accept what the CPU refuses, or where pixels differ.
    #[test]
    fn damaged_coefficient_forms_are_reported_or_have_the_pixels_of_the_cpu(
        (sampling, seed, quality) in (0..SAMPLINGS.len(), 0..8_u32, 20..99_u8),
        damages in proptest::collection::vec((any::<proptest::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let file = encode(SAMPLINGS[sampling], seed, 47, 33, quality);
        let mut cases = Vec::new();
        for mut stored in forms(&file) {
            for (at, flipped) in &damages {
                let at = at.index(stored.len());
                stored[at] ^= flipped;
                cases.push(Case::whole(stored.clone()));
            }
        }
        let outcome = Setup::start().check_once(&cases);
        let all = outcome.sound + outcome.refused + outcome.unplanned + outcome.flagged_needlessly;
        prop_assert_eq!(all, cases.len());
    }
}

#[test]
fn limits_of_a_batch_are_errors_with_the_limit() {
    let mut setup = Setup::start();
    let file = encode(SAMPLINGS[3], 1, 33, 33, 90);
    let case = Case::with_entry_points(file, Spacing::McuRow);
    let (mut planner, mut plan) = (Planner::default(), DecodePlan::default());
    case.plan(&mut planner, &mut plan).unwrap();
    let mut refused = |limits: JpegLimits| {
        let mut batch = JpegBatch::new(limits);
        let error = batch.add(&mut *setup.compute, &plan, &case.file).unwrap_err();
        assert!(batch.is_empty());
        error
    };
    let defaults = JpegLimits::default();
    let of_threads = JpegLimits { segment_bytes_long: usize::MAX, ..defaults };
    let error = refused(JpegLimits { segment_bytes_max: 100, ..of_threads });
    assert!(matches!(error, JpegError::LongSegment { limit: 100, .. }));
    let error = refused(JpegLimits { staging_bytes_max: 500, ..defaults });
    assert!(matches!(error, JpegError::Staging { limit: 500 }));
    let error = refused(JpegLimits { device_bytes_max: 500, ..defaults });
    assert!(matches!(error, JpegError::DeviceBytes { limit: 500 }) && error.is_full());
    let error = refused(JpegLimits { picture_bytes_max: 100, ..defaults });
    assert!(matches!(error, JpegError::LongPicture { limit: 100, .. }), "{error}");
    let error = refused(JpegLimits { picture_mcus_max: 3, ..defaults });
    assert!(matches!(error, JpegError::ManyMcus { limit: 3, .. }), "{error}");
    assert!(!error.is_full());
    Case::whole(case.file.clone()).plan(&mut planner, &mut plan).unwrap();
    let mut batch = JpegBatch::new(JpegLimits { stream_bytes_max: 100, ..defaults });
    let error = batch.add(&mut *setup.compute, &plan, &case.file).unwrap_err();
    assert!(matches!(error, JpegError::LongStream { limit: 100, .. }));
}

#[test]
fn a_second_batch_allocates_nothing() {
    let mut setup = Setup::start();
    let file = |seed| encode(SAMPLINGS[3], seed, 33, 33, 80);
    setup.check(&[Case::whole(file(2)), Case::whole(file(4))]);
    let bytes = setup.batches.each_ref().map(JpegBatch::bytes);
    assert!(bytes.iter().all(|bytes| bytes.host > 0 && bytes.device > 0));
    // A second run of a batch does not allocate either.
    setup.batches[0].run(&mut *setup.compute).unwrap();
    let outcome = setup.check(&[Case::whole(file(4)), Case::whole(file(2))]);
    assert_eq!(outcome.statuses, [PictureStatus::default(); 2]);
    assert_eq!(setup.batches.each_ref().map(JpegBatch::bytes), bytes);
}

#[test]
fn long_data_without_entry_points_are_decoded_in_several_steps() {
    let mut setup = Setup::start();
    // A block of threads takes 64 KiB at a time.
    let file = encode(SAMPLINGS[0], 7, 250, 230, 100);
    assert!(file.len() > 3 << 15, "{} bytes", file.len());
    let case = Case::whole(file);
    let bottom = case.clone().of(Region { x: 3, y: 215, width: 9, height: 9 });
    let outcome = setup.check(&[case, bottom]);
    assert_eq!(outcome.sound, 2);
}

#[test]
fn data_that_synchronise_late_are_decoded_all_the_same() {
    let mut setup = Setup::start();
    // If blocks repeat, wrong states may repeat as well; if all components share their tables, they
    // cannot be distinguished.
    let file = support::repetitive(512, 512);
    let rgb = golden().into_iter().find(|(name, _)| name == "rgb-ids.jpg").unwrap().1;
    // The same holds for a few details on white, with any sampling.
    let white = [0, 3].map(|sampling| Case::whole(support::white(SAMPLINGS[sampling], 640, 480)));
    let outcome = setup.check(&[Case::whole(file), Case::whole(rgb)]);
    assert_eq!(outcome.sound, 2);
    assert_eq!(setup.check(&white).sound, 2);
}
