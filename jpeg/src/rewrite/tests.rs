//! Rewriting preserves coefficients and all segments, in every combination.

use super::{HuffmanTables, Process, Restarts, Rewrite, rewrite};
use crate::Error;
use crate::coefficient_reader::tests::{crc_of, golden_files};
use crate::markers::Header;
use crate::random::shape;
use crate::read_coefficients;
use proptest::prelude::*;

const PROCESSES: [Process; 3] = [Process::Keep, Process::Baseline, Process::Progressive];
const RESTARTS: [Restarts; 4] =
    [Restarts::Keep, Restarts::Remove, Restarts::EveryMcus(2), Restarts::EveryMcuRows(1)];

fn parsed(file: &[u8]) -> Header {
    let mut header = Header::default();
    header.parse(file).unwrap();
    header
}

#[test]
fn every_rewrite_preserves_the_coefficients_of_libjpeg() {
    for (name, file, crc) in golden_files() {
        for process in PROCESSES {
            for restarts in RESTARTS {
                let how = Rewrite { process, restarts, ..Rewrite::default() };
                let written = rewrite(&file, &how).unwrap();
                let coefficients = read_coefficients(&written).unwrap();
                assert_eq!(crc_of(&written, &coefficients), crc, "{name} {how:?}");
            }
        }
    }
}

#[test]
fn a_rewrite_without_changes_returns_the_file() {
    let how = Rewrite { tables: HuffmanTables::Keep, ..Rewrite::default() };
    for (name, file, _) in golden_files() {
        assert_eq!(rewrite(&file, &how).unwrap(), file, "{name}");
    }
}

#[test]
fn optimising_again_gives_the_same_file() {
    for (name, file, _) in golden_files() {
        for process in PROCESSES {
            let how = Rewrite { process, ..Rewrite::default() };
            let once = rewrite(&file, &how).unwrap();
            assert_eq!(rewrite(&once, &how).unwrap(), once, "{name} {process:?}");
        }
    }
}

#[test]
fn baseline_has_one_scan_and_no_progression() {
    for (name, file, _) in golden_files() {
        let how = Rewrite { process: Process::Baseline, ..Rewrite::default() };
        let header = parsed(&rewrite(&file, &how).unwrap());
        assert_eq!(header.scans.len(), 1, "{name}");
        assert_eq!((header.scans[0].first, header.scans[0].last), (0, 63), "{name}");
    }
}

#[test]
fn restart_markers_are_written_as_requested() {
    for (name, file, _) in golden_files() {
        for process in PROCESSES {
            let restarts = Restarts::EveryMcuRows(1);
            let how = Rewrite { process, restarts, ..Rewrite::default() };
            let written = rewrite(&file, &how).unwrap();
            let header = parsed(&written);
            for scan in &header.scans {
                let order = crate::coefficient_reader::order(&header.frame, scan);
                assert_eq!(scan.restart_interval as usize, order.mcus_wide, "{name}");
                let data = &written[scan.data.clone()];
                let is_marker = |two: &&[u8]| two[0] == 0xff && (0xd0..=0xd7).contains(&two[1]);
                let markers = data.windows(2).filter(is_marker).count();
                assert_eq!(markers, order.mcus_high - 1, "{name}");
            }
        }
    }
}

#[test]
fn segments_and_bytes_after_the_end_are_retained() {
    let (_, file, _) = golden_files().swap_remove(6);
    let comment = b"\xff\xfe\x00\x07hello".as_slice();
    let exif = b"\xff\xe1\x00\x0aExif\0\0MM".as_slice();
    let behind = b"behind \xff\xd8\xff".as_slice();
    // One before all others, one before the scan.
    let scan = file.windows(2).position(|two| two == [0xff, 0xda]).unwrap();
    let file = [&file[..2], exif, &file[2..scan], comment, &file[scan..], behind].concat();
    for process in PROCESSES {
        let written = rewrite(&file, &Rewrite { process, ..Rewrite::default() }).unwrap();
        assert!(written[2..].starts_with(exif));
        assert!(written.windows(comment.len()).any(|bytes| bytes == comment));
        assert!(written.ends_with(&[b"\xff\xd9", behind].concat()));
    }
}

#[test]
fn a_file_that_would_lose_its_signature_is_refused() {
    let (_, file, _) = golden_files().swap_remove(6);
    let table = file.windows(2).position(|two| two == [0xff, 0xc4]).unwrap();
    let end = table + 2 + usize::from(u16::from_be_bytes([file[table + 2], file[table + 3]]));
    // The table is removed, the byte after it is retained.
    let odd = [&file[..2], &file[table..end], b"!", &file[2..]].concat();
    assert!(read_coefficients(&odd).is_ok());
    assert!(matches!(rewrite(&odd, &Rewrite::default()), Err(Error::Rewrite { .. })));
    let kept = Rewrite { tables: HuffmanTables::Keep, ..Rewrite::default() };
    assert_eq!(rewrite(&odd, &kept).unwrap(), odd);
}

#[test]
fn tables_of_other_scans_are_refused() {
    let tables = HuffmanTables::Keep;
    for (_, file, _) in golden_files() {
        let how = Rewrite { tables, process: Process::Progressive, ..Rewrite::default() };
        assert!(matches!(rewrite(&file, &how), Err(Error::Rewrite { .. })));
    }
}

#[test]
fn a_retained_table_without_the_code_is_an_error() {
    let optimised = |name: &str| {
        let (_, file, _) = golden_files().into_iter().find(|(n, ..)| n == name).unwrap();
        rewrite(&file, &Rewrite::default()).unwrap()
    };
    let how = Rewrite {
        tables: HuffmanTables::Keep,
        restarts: Restarts::EveryMcus(1),
        ..Rewrite::default()
    };
    // Predictions of 0 make differences that did not occur.
    let refused = ["grey", "444", "420", "three"]
        .map(optimised)
        .into_iter()
        .filter(|file| matches!(rewrite(file, &how), Err(Error::Rewrite { .. })))
        .count();
    assert!(refused > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn chains_of_rewrites_preserve_the_coefficients(
        shape in shape(),
        ways in prop::collection::vec((0..3usize, 0..4usize), 1..5),
    ) {
        let (mut file, _) = shape.file();
        let crc = crc_of(&file, &read_coefficients(&file).unwrap());
        for (process, restarts) in ways {
            let (process, restarts) = (PROCESSES[process], RESTARTS[restarts]);
            file = rewrite(&file, &Rewrite { process, restarts, ..Rewrite::default() }).unwrap();
            prop_assert_eq!(crc_of(&file, &read_coefficients(&file).unwrap()), crc);
        }
    }
}
