//! Plans name the parts of files that the decoder reads.

use super::{DecodePlan, PlanError, Planner, SegmentEnd};
use crate::{DecodeOptions, DecodeScale, Encoded, Error, Region, Restarts, Rewrite, Spacing};
use crate::{entry_points, rewrite, to_form};
use proptest::prelude::*;

fn plan(encoded: Encoded<'_>, region: Option<Region>) -> Result<DecodePlan, PlanError> {
    let (mut planner, mut plan) = (Planner::default(), DecodePlan::default());
    let options = DecodeOptions::default();
    let (width, height) = planner.open(encoded, options.on_damage)?;
    let region = region.unwrap_or(Region { x: 0, y: 0, width, height });
    planner.plan_opened(encoded, region, &options, &mut plan)?;
    Ok(plan)
}

/// 33x47 pixels, 4:2:0: 3 MCUs in each of 3 rows.
fn file() -> &'static [u8] {
    include_bytes!("../../tests/golden/jpeg/420-33x47.jpg")
}

#[test]
fn a_file_without_entry_points_is_one_segment() {
    let plan = plan(file().into(), None).unwrap();
    assert_eq!((plan.size, plan.region, plan.mcus), ((33, 47), (33, 47), (3, 3)));
    assert!(plan.is_unsegmented);
    assert_eq!(plan.segments.len(), 1);
    let segment = plan.segments[0];
    assert_eq!((segment.mcu, segment.mcu_end, segment.end), (0, 9, SegmentEnd::Any));
    assert_eq!(plan.data, segment.offset..segment.offset_end);
}

#[test]
fn only_segments_with_needed_mcus_are_planned() {
    let points = entry_points(file(), Spacing::Mcus(1)).unwrap().unwrap();
    let encoded = Encoded { entry_points: &points, ..file().into() };
    let region = Region { x: 4, y: 20, width: 8, height: 4 };
    let middle = plan(encoded, Some(region)).unwrap();
    assert_eq!((middle.mcu_columns.clone(), middle.mcu_rows.clone()), (0..1, 1..2));
    let mcus: Vec<_> = middle.segments.iter().map(|it| (it.mcu, it.mcu_end)).collect();
    assert_eq!(mcus, [(3, 4)]);
    let whole = plan(encoded, None).unwrap();
    assert_eq!(whole.segments.len(), 9);
    assert!(whole.data.start < middle.data.start && middle.data.end < whole.data.end);
    // The end of each is the beginning of the next one.
    for pair in whole.segments.windows(2) {
        let (offset, bits, dc) = (pair[1].offset, pair[1].bits, pair[1].dc);
        assert_eq!(pair[0].end, SegmentEnd::EntryPoint { offset, bits, dc });
    }
    assert_eq!(whole.segments[8].end, SegmentEnd::Any);
}

#[test]
fn a_segment_that_ends_in_the_middle_of_a_row_has_no_expected_end() {
    let points = entry_points(file(), Spacing::McuRow).unwrap().unwrap();
    let encoded = Encoded { entry_points: &points, ..file().into() };
    let region = Region { x: 0, y: 0, width: 8, height: 47 };
    let plan = plan(encoded, Some(region)).unwrap();
    let parts: Vec<_> = plan.segments.iter().map(|it| (it.mcu, it.mcu_end, it.end)).collect();
    let expected = [0, 3, 6].map(|mcu| (mcu, mcu + 1, SegmentEnd::Any));
    assert_eq!(parts, expected);
}

#[test]
fn restart_markers_divide_the_data_and_come_before_entry_points() {
    let restarts = Restarts::EveryMcus(2);
    let file = rewrite(file(), &Rewrite { restarts, ..Rewrite::default() }).unwrap();
    let without = plan((&file).into(), None).unwrap();
    assert!(!without.is_unsegmented);
    let mcus = |plan: &DecodePlan| -> Vec<_> { plan.segments.iter().map(|it| it.mcu).collect() };
    assert_eq!(mcus(&without), [0, 2, 4, 6, 8]);
    for pair in without.segments.windows(2) {
        let offset = pair[1].offset - 2;
        assert_eq!(pair[0].end, SegmentEnd::RestartMarker { offset });
        assert_eq!((file[offset], pair[1].dc), (0xff, [0; 3]));
    }
    let points = entry_points(&file, Spacing::McuRow).unwrap().unwrap();
    let both = plan(Encoded { entry_points: &points, ..(&file).into() }, None).unwrap();
    assert_eq!(mcus(&both), [0, 2, 3, 4, 6, 8]);
    assert!(matches!(both.segments[3].end, SegmentEnd::RestartMarker { .. }));
}

#[test]
fn files_of_other_kinds_are_refused_with_the_reason() {
    let golden = |name: &str| {
        let path = format!("{}/tests/golden/jpeg/{name}.jpg", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(path).unwrap()
    };
    let refused = |file: &[u8]| plan(file.into(), None).unwrap_err();
    assert_eq!(refused(&golden("progressive-420")), PlanError::Progressive);
    assert_eq!(refused(&golden("scans-three")), PlanError::SeveralScans);
    assert_eq!(refused(&golden("cmyk-420")), PlanError::FourComponents);
    let cut_form = to_form(file(), crate::Form::Compact).unwrap();
    let cut_form = &cut_form[..cut_form.len() - 1];
    assert!(matches!(refused(cut_form), PlanError::Refused(Error::Form(_))));
    let cut = &file()[..file().len() / 2];
    assert!(matches!(refused(cut), PlanError::Refused(Error::Damaged { .. })));
    let outside = Region { x: 30, y: 0, width: 8, height: 8 };
    let error = plan(file().into(), Some(outside)).unwrap_err();
    assert!(matches!(error, PlanError::Refused(Error::Region { .. })));
    let (mut planner, mut plan) = (Planner::default(), DecodePlan::default());
    let options = DecodeOptions { scale: DecodeScale::Four, ..DecodeOptions::default() };
    let region = Region { x: 0, y: 0, width: 4, height: 4 };
    let not_open = planner.plan_opened(file().into(), region, &DecodeOptions::default(), &mut plan);
    assert_eq!(not_open, Err(PlanError::NotOpen));
    planner.open(file().into(), options.on_damage).unwrap();
    let scaled = planner.plan_opened(file().into(), region, &options, &mut plan);
    assert_eq!(scaled, Err(PlanError::Scaled));
}

#[test]
fn the_plan_of_a_form_has_the_rows_of_the_region() {
    let region = Region { x: 3, y: 17, width: 8, height: 8 };
    let of_file = plan(file().into(), Some(region)).unwrap();
    for (form, lanes) in [(crate::Form::Fast, 0), (crate::Form::Compact, 1)] {
        let stored = to_form(file(), form).unwrap();
        let found = plan((&stored).into(), Some(region)).unwrap();
        assert_eq!(found.components, of_file.components);
        assert_eq!((found.mcus, &found.mcu_rows), (of_file.mcus, &of_file.mcu_rows));
        assert!(found.segments.is_empty() && found.units.is_empty());
        let planned = found.form.unwrap();
        assert!(planned.lanes == lanes || planned.lanes == 6 * lanes, "{planned:?}");
        assert_eq!(planned.codes.len(), if lanes == 0 { 0 } else { 2 });
        assert_eq!(planned.rows.len(), found.mcu_rows.len());
        for pair in planned.rows.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
        }
        assert_eq!(found.data, planned.rows[0].start..planned.rows.last().unwrap().end);
    }
}

#[test]
fn entry_points_of_another_file_are_refused() {
    let other = include_bytes!("../../tests/golden/jpeg/444-17x33.jpg").as_slice();
    let points = entry_points(other, Spacing::McuRow).unwrap().unwrap();
    let error = plan(Encoded { entry_points: &points, ..file().into() }, None).unwrap_err();
    assert!(matches!(error, PlanError::Refused(Error::EntryPoints { .. })));
}

#[test]
fn entry_points_apart_from_their_restart_markers_are_refused() {
    use crate::entry_points::{decode, encode};
    let restarts = Restarts::EveryMcus(3);
    let file = rewrite(file(), &Rewrite { restarts, ..Rewrite::default() }).unwrap();
    let points = entry_points(&file, Spacing::McuRow).unwrap().unwrap();
    let mut entries = Vec::new();
    let head = decode(&points, &mut entries).unwrap();
    for moved in [false, true] {
        if moved {
            entries[0].offset += 1;
        }
        let entry_points = encode(head, &entries);
        let planned = plan(Encoded { entry_points: &entry_points, ..(&file).into() }, None);
        let expected = moved.then_some(PlanError::ContradictoryEntryPoints);
        assert_eq!(planned.err(), expected);
    }
}

proptest! {
    #[test]
    fn changed_files_and_entry_points_are_planned_within_their_bytes_or_refused(
        restarts in 0..6_u16, step in 1..4_u16, (x, y) in (0..33_u32, 0..47_u32),
        flips in prop::collection::vec((any::<u16>(), 0..8), 0..4),
        points_flips in prop::collection::vec((16..60_usize, 0..8), 0..3),
    ) {
        let restarts = Restarts::EveryMcus(restarts);
        let mut file = rewrite(file(), &Rewrite { restarts, ..Rewrite::default() }).unwrap();
        let mut points = entry_points(&file, Spacing::Mcus(step)).unwrap().unwrap();
        let crc32c = Some(u32::from_le_bytes([4, 5, 6, 7].map(|at| points[at])));
        for (at, bit) in flips {
            let at = usize::from(at) % file.len();
            file[at] ^= 1_u8 << bit;
        }
        // With the right checksum, as a hostile writer would make it.
        points.truncate(points.len() - 4);
        for (at, bit) in points_flips {
            let at = at % points.len();
            points[at] ^= 1_u8 << bit;
        }
        points.extend(crate::checksum::crc32c(&points).to_le_bytes());
        let region = Region { x, y, width: 33 - x, height: 47 - y };
        let encoded = Encoded { bytes: &file, entry_points: &points, crc32c };
        if let Ok(plan) = plan(encoded, Some(region)) {
            prop_assert!(plan.data.start <= plan.data.end && plan.data.end <= file.len());
            prop_assert!(!plan.segments.is_empty());
            let mut mcu = 0;
            for segment in &plan.segments {
                prop_assert!(mcu <= segment.mcu && segment.mcu < segment.mcu_end);
                prop_assert!(segment.offset_end <= plan.data.end);
                prop_assert!(segment.offset >= plan.data.start);
                mcu = segment.mcu_end;
            }
            prop_assert!(mcu <= plan.mcus.0 * plan.mcus.1);
            prop_assert!(plan.huffman.len() <= 6 && plan.units.len() <= 10);
        }
    }
}
