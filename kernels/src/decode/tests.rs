//! Decoding against Pillow, regions, limits, and the decoder with and without vector instructions.

use super::{Decoder, ImageFormat, PIXELS_MAX, Picture, Region, decode_into, probe};
use crate::{Cpu, Error, golden};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use proptest::prelude::*;

/// The files that make.py and tiffs.py wrote.
const PICTURES: [&str; 2] =
    [include_str!("../../tests/golden/pictures.txt"), include_str!("../../tests/golden/tiffs.txt")];

fn pictures() -> impl Iterator<Item = (Vec<&'static str>, Vec<&'static str>)> {
    PICTURES.into_iter().flat_map(golden::lines)
}

pub(super) fn decoded(encoded: &[u8]) -> Result<Picture, Error> {
    let mut picture = Picture::default();
    decode_into(encoded, None, &mut picture).map(|()| picture)
}

/// The golden files: name and encoded bytes.
pub(crate) fn golden_files() -> Vec<(&'static str, Vec<u8>)> {
    pictures().map(|(words, data)| (words[0], golden::bytes(data[0]))).collect()
}

pub(super) fn jpeg(picture: &Picture, sampling: SamplingFactor, progressive: bool) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut encoder = Encoder::new(&mut encoded, 85);
    encoder.set_sampling_factor(sampling);
    encoder.set_progressive(progressive);
    let (width, height) = (picture.width as u16, picture.height as u16);
    encoder.encode(&picture.pixels, width, height, ColorType::Rgb).unwrap();
    encoded
}

#[test]
fn pictures_equal_those_of_pillow_as_closely_as_the_format_allows() {
    for (words, data) in pictures() {
        let [name, width, height, most] = words[..] else { panic!("{words:?}") };
        let (encoded, expected) = (golden::bytes(data[0]), data[1]);
        let info = probe(&encoded).unwrap();
        assert_eq!((info.width, info.height), (golden::number(width), golden::number(height)));
        assert_eq!(Some(info.format), ImageFormat::of(&encoded));
        let picture = decoded(&encoded).unwrap();
        assert_eq!((picture.width, picture.height), (info.width, info.height), "{name}");
        if most == "0" {
            assert_eq!(golden::sha256(&picture.pixels), expected, "{name}");
            continue;
        }
        let expected = golden::bytes(expected);
        assert_eq!(picture.pixels.len(), expected.len(), "{name}");
        let values = picture.pixels.iter().zip(&expected);
        let differs = values.map(|(got, expected)| got.abs_diff(*expected)).max();
        assert!(differs <= Some(golden::number(most)), "{name}: {differs:?}");
    }
}

proptest! {
    #[test]
    fn a_region_holds_the_pixels_of_the_whole_picture(
        file in 0..golden_files().len(), at in (0.0..1.0f64, 0.0..1.0f64),
        part in (0.0..1.0f64, 0.0..1.0f64),
    ) {
        let (_, encoded) = &golden_files()[file];
        let whole = decoded(encoded).unwrap();
        let span = |length: u32, at: f64, part: f64| {
            let from = (at * f64::from(length)) as u32;
            (from, 1 + (part * f64::from(length - from)) as u32)
        };
        let (x, width) = span(whole.width, at.0, part.0);
        let (y, height) = span(whole.height, at.1, part.1);
        let (width, height) = (width.min(whole.width - x), height.min(whole.height - y));
        let mut picture = Picture::default();
        decode_into(encoded, Some(Region { x, y, width, height }), &mut picture).unwrap();
        prop_assert_eq!((picture.width, picture.height), (width, height));
        let from = |row: u32| ((y + row) * whole.width + x) as usize * 3;
        for (row, pixels) in picture.pixels.chunks_exact(width as usize * 3).enumerate() {
            prop_assert_eq!(pixels, &whole.pixels[from(row as u32)..][..pixels.len()]);
        }
    }
}

#[test]
fn one_decoder_serves_pictures_of_all_sizes_and_formats() {
    let mut decoder = Decoder::new(Cpu::detect());
    let mut picture = Picture::default();
    let files = golden_files();
    for (name, encoded) in files.iter().chain(files.iter().rev()) {
        decoder.decode_into(encoded.into(), None, &mut picture).unwrap();
        assert_eq!(decoded(encoded).unwrap(), picture, "{name}");
    }
}

#[test]
fn a_region_outside_the_picture_is_an_error() {
    let (_, encoded) = &golden_files()[0];
    let (width, height) = (13, 11);
    let outside = [
        Region { x: 0, y: 0, width: width + 1, height },
        Region { x: 1, y: 0, width, height },
        Region { x: 0, y: height, width: 1, height: 1 },
        Region { x: 0, y: 0, width: 0, height: 1 },
        Region { x: u32::MAX, y: 0, width: 2, height: 1 },
        Region { x: 0, y: 2, width: 1, height: u32::MAX },
    ];
    for region in outside {
        let refused = decode_into(encoded, Some(region), &mut Picture::default());
        assert_eq!(refused, Err(Error::Region { region, width, height }));
    }
}

/// A JPEG header that claims a size, and the shortest possible data.
fn claiming(width: u16, height: u16, scan_bytes: usize) -> Vec<u8> {
    let picture = golden::picture("wave", 0, 16, 16);
    let mut encoded = jpeg(&picture, SamplingFactor::F_1_1, false);
    let frame = encoded.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    encoded[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    encoded[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    let end = encoded.len() - 2;
    encoded.splice(end..end, std::iter::repeat_n(0x11, scan_bytes));
    encoded
}

#[test]
fn a_picture_of_too_many_pixels_is_refused_by_its_header() {
    for (width, height) in [(65_535, 65_535), (16_385, 16_384)] {
        let refused = decoded(&claiming(width, height, 0));
        let (width, height) = (u32::from(width), u32::from(height));
        assert_eq!(refused, Err(Error::TooLarge { width, height, limit: PIXELS_MAX }));
    }
    let refused = decoded(&bmp_claiming(60_000));
    let side = 60_000;
    assert_eq!(refused, Err(Error::TooLarge { width: side, height: side, limit: PIXELS_MAX }));
}

/// A BMP of 24 bits a pixel, header only.
fn bmp_claiming(side: u32) -> Vec<u8> {
    let mut bmp = b"BM".to_vec();
    bmp.extend([0; 8]);
    bmp.extend([54, 40, side, side].iter().flat_map(|word: &u32| word.to_le_bytes()));
    bmp.extend([1, 0, 24, 0]);
    bmp.extend([0; 24]);
    bmp
}

#[test]
fn a_file_too_small_for_its_size_is_refused_before_memory_is_taken() {
    let refused = decoded(&bmp_claiming(16_000)).unwrap_err();
    let Error::Decode { format: "BMP", reason } = refused else { panic!("{refused:?}") };
    assert!(reason.contains("cannot fill its size: 16000x16000 in 54 bytes"), "{reason}");
}

#[test]
fn a_jpeg_whose_data_cannot_fill_its_size_is_refused_before_memory_is_taken() {
    let refused = decoded(&claiming(16_000, 16_000, 1000)).unwrap_err();
    let Error::Decode { format: "JPEG", reason } = refused else { panic!("{refused:?}") };
    // 2000 * 2000 blocks of three components, two bits each.
    assert!(reason.contains("at least 3000000 are needed"), "{reason}");
}

#[test]
fn bytes_of_no_picture_format_are_an_unknown_format() {
    for bytes in [&b""[..], b"\xff", b"\xff\xd8", b"hello", b"RIFF\0\0\0\0WAVE", &[0; 100]] {
        assert_eq!(probe(bytes), Err(Error::UnknownFormat));
        assert_eq!(decoded(bytes), Err(Error::UnknownFormat));
    }
}
