//! TIFFs that are damaged, hostile or unsupported.

use crate::Error;
use crate::decode::tests::{decoded, golden_files};
use crate::decode::{ImageFormat, probe};

/// An uncompressed grey picture whose tags a test changes: tag to value.
fn grey(width: u32, height: u32, changes: &[(u16, u32)]) -> Vec<u8> {
    let mut tags = vec![(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8)];
    for (tag, value) in changes {
        tags.retain(|(known, _)| known != tag);
        tags.push((*tag, *value));
    }
    tags.sort_unstable();
    let data = [7; 64];
    let mut file = b"II*\0".to_vec();
    file.extend((8 + data.len() as u32).to_le_bytes());
    file.extend(data);
    file.extend((tags.len() as u16).to_le_bytes());
    for (tag, value) in tags {
        file.extend(tag.to_le_bytes());
        file.extend(4u16.to_le_bytes());
        file.extend([1, value].iter().flat_map(|word: &u32| word.to_le_bytes()));
    }
    file.extend([0; 4]);
    file
}

fn refusal(file: &[u8]) -> String {
    match decoded(file) {
        Err(Error::Decode { format: "TIFF", reason }) => reason,
        other => panic!("{:?}", other.map(|picture| (picture.width, picture.height))),
    }
}

#[test]
fn a_plain_grey_picture_decodes() {
    assert_eq!(decoded(&grey(8, 8, &[])).unwrap().pixels, [7; 8 * 8 * 3]);
}

#[test]
fn a_turned_picture_has_the_size_that_its_header_gives() {
    for (name, file) in golden_files() {
        if ImageFormat::of(&file) == Some(ImageFormat::Tiff) {
            let info = probe(&file).unwrap();
            let picture = decoded(&file).unwrap();
            assert_eq!((picture.width, picture.height), (info.width, info.height), "{name}");
        }
    }
    let info = probe(&grey(8, 4, &[(274, 6)])).unwrap();
    assert_eq!((info.width, info.height), (4, 8));
}

#[test]
fn an_unsupported_compression_is_named_with_a_remedy() {
    for (number, name) in [(6, "old-style JPEG"), (34_925, "LZMA"), (50_000, "Zstandard")] {
        let reason = refusal(&grey(8, 8, &[(259, number)]));
        assert!(reason.contains(name) && reason.contains("convert the file"), "{reason}");
    }
}

#[test]
fn samples_of_an_unsupported_kind_are_refused() {
    for changes in [
        &[(258, 24)][..],
        &[(258, 64), (339, 3)],
        &[(262, 8), (277, 3)],
        &[(262, 6), (277, 3)],
        &[(317, 2), (258, 4), (259, 5)],
        &[(339, 6)],
    ] {
        let reason = refusal(&grey(8, 8, changes));
        assert!(reason.contains("not supported"), "{changes:?}: {reason}");
    }
}

#[test]
fn tags_that_contradict_each_other_are_damage() {
    for changes in [
        &[(256, 0)][..],
        &[(257, 0)],
        &[(256, u32::MAX), (257, u32::MAX)],
        &[(277, 0)],
        &[(277, 65_535)],
        &[(278, 0)],
        &[(278, 1)],
        &[(322, 0), (323, 16), (324, 8)],
        &[(322, 16), (324, 8)],
        &[(322, 1 << 20), (323, 1 << 20), (324, 8)],
        &[(273, 1 << 20)],
        &[(273, u32::MAX)],
        &[(258, 1), (259, 4), (256, 100_000)],
        &[(262, 3)],
        &[(257, 100)],
    ] {
        let outcome = decoded(&grey(8, 8, changes));
        let is_refused = matches!(outcome, Err(Error::Decode { .. } | Error::TooLarge { .. }));
        assert!(is_refused, "{changes:?}");
    }
}

#[test]
fn strips_that_share_their_bytes_are_refused_before_they_are_decoded() {
    let count = 50_000;
    let mut file = grey(1, count, &[(259, 8), (278, 1)]);
    let entry = |file: &[u8], tag: u16| {
        let words = [tag.to_le_bytes(), 4u16.to_le_bytes()].concat();
        file.windows(4).position(|four| four == words).unwrap()
    };
    let at = entry(&file, 273);
    let place = file.len() as u32;
    file[at + 4..at + 8].copy_from_slice(&count.to_le_bytes());
    file[at + 8..at + 12].copy_from_slice(&place.to_le_bytes());
    for _ in 0..count {
        file.extend(8u32.to_le_bytes());
    }
    // Replaces the tag for rows per strip by that for bytes per strip.
    let at = entry(&file, 278);
    file[at..at + 2].copy_from_slice(&279u16.to_le_bytes());
    let counts = file.len() as u32;
    file[at + 4..at + 8].copy_from_slice(&count.to_le_bytes());
    file[at + 8..at + 12].copy_from_slice(&counts.to_le_bytes());
    for _ in 0..count {
        file.extend(400_000u32.to_le_bytes());
    }
    assert!(refusal(&file).contains("overlap"));
}

#[test]
fn fax_data_that_break_off_are_an_error() {
    for (compression, options) in [(2, 0), (3, 0), (4, 0), (3, 1)] {
        let fax = [(258, 1), (259, compression), (279, 64), (292, options)];
        let file = grey(64, 640, &fax);
        assert!(!refusal(&file).is_empty());
    }
}
