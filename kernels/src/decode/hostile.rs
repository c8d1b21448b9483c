//! Damaged files of every format: an error or a picture, never a panic.

use super::tests::{decoded, golden_files, jpeg};
use super::{ImageFormat, probe};
use crate::{Error, golden};
use jpeg_encoder::SamplingFactor;
use proptest::prelude::*;

#[test]
fn a_jpeg_cut_short_anywhere_is_an_error() {
    let picture = golden::picture("wave", 3, 65, 47);
    for progressive in [false, true] {
        let encoded = jpeg(&picture, SamplingFactor::F_2_2, progressive);
        assert!(decoded(&encoded).is_ok());
        for length in 0..encoded.len() {
            assert!(decoded(&encoded[..length]).is_err(), "{length} of {}", encoded.len());
        }
    }
}

#[test]
fn a_jpeg_with_something_behind_its_end_decodes() {
    let picture = golden::picture("wave", 3, 20, 20);
    let mut encoded = jpeg(&picture, SamplingFactor::F_1_1, false);
    let expected = decoded(&encoded).unwrap();
    encoded.extend_from_slice(&encoded.clone());
    assert_eq!(decoded(&encoded).unwrap(), expected);
}

#[test]
fn a_file_cut_short_is_an_error_or_already_complete() {
    for (name, encoded) in golden_files() {
        let whole = decoded(&encoded).unwrap();
        for length in (0..encoded.len()).step_by(7) {
            match decoded(&encoded[..length]) {
                Err(_) => (),
                // Data that a decoder does not need (a checksum, a second frame) may be missing.
                Ok(picture) => assert_eq!(picture, whole, "{name} {length}"),
            }
        }
    }
}

#[test]
fn an_error_names_the_format_and_the_cause() {
    for (name, encoded) in golden_files() {
        let format = probe(&encoded).unwrap().format;
        let cut = decoded(&encoded[..encoded.len() / 2]).unwrap_err();
        match &cut {
            Error::Decode { format: named, reason } => {
                assert_eq!(*named, format.name(), "{name}");
                assert!(!reason.is_empty(), "{name}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_decoder_that_panics_has_found_a_damaged_file() {
    let panics: fn() -> image::ImageResult<()> = || panic!("index out of bounds");
    match super::other::contained(ImageFormat::WebP, panics) {
        Err(Error::Decode { format: "WebP", reason }) => {
            assert!(reason.contains("index out of bounds"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_jpeg_of_an_unsupported_kind_says_so() {
    let encoded = jpeg(&golden::picture("wave", 3, 20, 20), SamplingFactor::F_1_1, false);
    let frame = encoded.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    let changed = |at: usize, value: u8| {
        let mut encoded = encoded.clone();
        encoded[frame + at] = value;
        match decoded(&encoded) {
            Err(Error::Decode { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    for arithmetic in [0xc9, 0xca] {
        assert!(changed(1, arithmetic).contains("arithmetic coding"));
        assert!(changed(1, arithmetic).contains("jpegtran"), "names the remedy");
    }
    assert!(changed(1, 0xc3).contains("lossless coding"));
    assert!(changed(1, 0xc5).contains("hierarchical coding"));
    assert!(changed(4, 12).contains("8 bits"));
    assert!(changed(9, 2).contains("components"));
    assert!(changed(11, 0x51).contains("sampling factor"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn flipped_bits_never_panic(
        file in 0..golden_files().len(), near_the_head: bool,
        flips in prop::collection::vec((0.0..1.0f64, 0..8u32), 1..6),
    ) {
        let (_, mut encoded) = golden_files().swap_remove(file);
        let reach = if near_the_head { encoded.len().min(200) } else { encoded.len() };
        for (at, bit) in flips {
            encoded[(at * reach as f64) as usize] ^= 1 << bit;
        }
        // Any result is allowed, as long as there is no panic.
        drop(decoded(&encoded));
    }

    #[test]
    fn random_bytes_behind_a_magic_number_never_panic(
        format in 0..6usize, bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let magic: [&[u8]; 6] = [
            b"\xff\xd8\xff",
            b"\x89PNG\r\n\x1a\n",
            b"RIFF\x64\0\0\0WEBPVP8 ",
            b"BM",
            b"GIF89a",
            b"II*\0",
        ];
        let encoded = [magic[format], &bytes].concat();
        prop_assert!(ImageFormat::of(&encoded).is_some());
        drop(decoded(&encoded));
    }
}
