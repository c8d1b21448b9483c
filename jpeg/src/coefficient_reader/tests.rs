//! Compares coefficients with libjpeg's, round-trips random ones, and tests damage.

use super::read_coefficients;
use crate::Coefficients;
use crate::golden;
use crate::markers::Header;
use crate::random::shape;
use proptest::prelude::*;

/// Name, file and CRC-32 of its coefficients, from tests/golden/coefficients.c.
pub(crate) fn golden_files() -> Vec<(String, Vec<u8>, u32)> {
    golden::lines(include_str!("../../tests/golden/coefficients.txt"))
        .into_iter()
        .map(|(before, after)| {
            let crc = u32::from_str_radix(after[0], 16).unwrap();
            (before[0].to_owned(), golden::bytes(before[1]), crc)
        })
        .collect()
}

/// CRC-32 of the blocks that are not padding.
pub(crate) fn crc_of(file: &[u8], coefficients: &Coefficients) -> u32 {
    let mut header = Header::default();
    header.parse(file).unwrap();
    let mut crc = u32::MAX;
    for (component, plane) in header.frame.components().iter().zip(&coefficients.planes) {
        let (wide, high) = component.blocks_alone();
        let rows = plane.blocks.chunks(plane.blocks_wide as usize).take(high as usize);
        let blocks = rows.flat_map(|row| &row[..wide as usize]);
        for byte in blocks.flat_map(|block| block.0).flat_map(i16::to_le_bytes) {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            }
        }
    }
    !crc
}

#[test]
fn coefficients_are_those_of_libjpeg() {
    for (name, file, crc) in golden_files() {
        let coefficients = read_coefficients(&file).unwrap();
        assert_eq!(crc_of(&file, &coefficients), crc, "{name}");
    }
}

#[test]
fn a_file_truncated_anywhere_is_an_error() {
    for (name, file, _) in golden_files() {
        for length in 0..file.len() {
            assert!(read_coefficients(&file[..length]).is_err(), "{name} {length}");
        }
    }
}

#[test]
fn a_scan_truncated_anywhere_is_an_error() {
    for (name, file, _) in golden_files() {
        let mut header = Header::default();
        header.parse(&file).unwrap();
        for scan in &header.scans {
            for end in scan.data.clone() {
                let cut = [&file[..end], &file[scan.data.end..]].concat();
                assert!(read_coefficients(&cut).is_err(), "{name} {end}");
            }
        }
    }
}

#[test]
fn a_large_picture_without_data_is_refused_before_memory_is_allocated() {
    let (_, mut file, _) = golden_files().swap_remove(4);
    let frame = file.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    file[frame + 5..frame + 9].copy_from_slice(&[0x3f, 0xff, 0x3f, 0xff]);
    let error = read_coefficients(&file).unwrap_err().to_string();
    assert!(error.contains("cannot hold its blocks"), "{error}");
    file[frame + 5..frame + 9].fill(0xff);
    assert!(matches!(read_coefficients(&file), Err(crate::Error::TooLarge { .. })));
}

#[test]
fn scans_that_contradict_each_other_are_errors() {
    for (name, file, _) in golden_files() {
        let mut header = Header::default();
        header.parse(&file).unwrap();
        // The last scan repeated: its bits are already present.
        let last = header.segments.iter().rposition(|s| s.marker == 0xda).unwrap();
        let from = header.segments[last].bytes.start;
        let end = header.scans.last().unwrap().data.end;
        let twice = [&file[..end], &file[from..]].concat();
        let error = read_coefficients(&twice).unwrap_err().to_string();
        assert!(error.contains("does not continue"), "{name}: {error}");
    }
}

#[test]
fn a_restart_marker_out_of_order_is_an_error() {
    let (_, mut file, _) =
        golden_files().into_iter().find(|(name, ..)| name == "420-restarts").unwrap();
    let marker = file.windows(2).position(|two| two == [0xff, 0xd1]).unwrap();
    file[marker + 1] = 0xd2;
    let error = read_coefficients(&file).unwrap_err().to_string();
    assert!(error.contains(&format!("restart marker is not where it must be (byte {marker})")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn random_files_round_trip(shape in shape()) {
        let (file, coefficients) = shape.file();
        prop_assert_eq!(read_coefficients(&file).unwrap(), coefficients);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn flipped_bits_never_panic(
        file in 0..golden_files().len(),
        flips in prop::collection::vec((0.0..1.0f64, 0..8u32), 1..6),
    ) {
        let (_, mut file, _) = golden_files().swap_remove(file);
        let length = file.len() as f64;
        for (at, bit) in flips {
            file[(at * length) as usize] ^= 1 << bit;
        }
        // Any result is valid, but no panic.
        drop(read_coefficients(&file));
    }
}
