//! Lossless operations: a rewritten file, and its coefficient form.

use crate::{assert_part, choice_of, decoded, is_small_jpeg, region_of, tally};
use meetpoint_jpeg as jpeg;
use meetpoint_jpeg::{
    Form, HuffmanTables, Process, Restarts, Rewrite, from_form, read_coefficients, to_form,
};
use meetpoint_kernels::{Error, ImageFormat, Picture, probe};

type Outcome = Result<Picture, Error>;

const PROCESSES: [Process; 3] = [Process::Keep, Process::Baseline, Process::Progressive];
const TABLES: [HuffmanTables; 2] = [HuffmanTables::Keep, HuffmanTables::Optimise];
const RESTARTS: [Restarts; 4] =
    [Restarts::Keep, Restarts::Remove, Restarts::EveryMcus(2), Restarts::EveryMcuRows(1)];

/// A JPEG that can be rewritten keeps its coefficients and pixels; rewriting it again does not
/// change it.
pub fn rewrite(data: &[u8]) {
    if !is_small_jpeg(data) {
        return tally::add("no JPEG, or too large");
    }
    let before = read_coefficients(data);
    let picture = decoded(data.into(), None);
    tally::add(if before.is_ok() { "read" } else { "refused" });
    for process in PROCESSES {
        for tables in TABLES {
            for restarts in RESTARTS {
                let how = Rewrite { restarts, tables, process };
                let Ok(written) = jpeg::rewrite(data, &how) else { continue };
                tally::add("rewritten");
                let before = before.as_ref().expect("a rewritten file was read");
                let after = read_coefficients(&written).expect("what was written reads");
                // Padding has no place in scans of one component.
                if process == Process::Progressive {
                    let sizes = |plane: &jpeg::CoefficientPlane| {
                        (plane.blocks_wide, plane.blocks_high, plane.blocks.len())
                    };
                    assert!(after.planes.iter().map(sizes).eq(before.planes.iter().map(sizes)));
                } else {
                    assert!(after == *before, "{how:?} changes coefficients");
                }
                let again = decoded((&written).into(), None);
                assert_same(&picture, &again, &how);
                let twice = jpeg::rewrite(&written, &how).expect("it was just written");
                assert!(twice == written, "{how:?} twice gives another file");
            }
        }
    }
}

/// The coefficient form of a JPEG restores the file and has the same pixels.
pub fn form(data: &[u8]) {
    if !is_small_jpeg(data) {
        return tally::add("no JPEG, or too large");
    }
    let picture = decoded(data.into(), None);
    for form in [Form::Fast, Form::Compact] {
        let Ok(stored) = to_form(data, form) else {
            tally::add("no form");
            continue;
        };
        tally::add("form");
        let back = from_form(&stored);
        assert!(back.as_deref() == Ok(data), "{form:?} leads to another file or none");
        let (info, file) = (probe(&stored), probe(data).expect("it was read"));
        let info = info.expect("a form has a header");
        assert_eq!(info.format, ImageFormat::Coefficients);
        assert_eq!((info.width, info.height), (file.width, file.height));
        let again = decoded((&stored).into(), None);
        assert_same(&picture, &again, &form);
        if let Ok(whole) = &picture {
            let region = region_of(choice_of(data), (whole.width, whole.height));
            let part = decoded((&stored).into(), Some(region)).expect("the whole form decodes");
            assert_part(&part, region, whole);
        }
    }
}

/// Panics unless both are the same picture, or both are errors, which may name different offsets.
/// The decoder of sequential files refuses bytes in a scan that encode nothing, which may be lost
/// here.
fn assert_same(file: &Outcome, other: &Outcome, how: &dyn std::fmt::Debug) {
    match (file, other) {
        (Err(_), Err(_)) => (),
        (Ok(file), Ok(other)) => {
            let pixels = file.pixels.iter().zip(&other.pixels);
            let first = pixels.enumerate().find(|(_, (one, other))| one != other);
            assert!(file == other, "{how:?}: other pixels, first {first:?}");
        }
        (Ok(_), Err(error)) => panic!("{how:?}: no picture: {error}"),
        (Err(_), Ok(_)) => tally::add("a picture, where the file has none"),
    }
}
