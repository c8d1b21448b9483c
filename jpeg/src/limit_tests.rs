//! Files that would cost a decoder more time or memory than their size justifies.

use super::markers::{Header, SCANS_MAX, SEGMENTS_MAX, code};
use super::{DecodeOptions, Form, read_coefficients, to_form};
use crate::{Cpu, Decoder, Encoded, Error, OnDamage, Picture, golden};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

fn jpeg(is_progressive: bool) -> Vec<u8> {
    let Picture { width, height, pixels } = golden::picture("noise", 5, 24, 24);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, 85);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_progressive(is_progressive);
    encoder.encode(&pixels, width as u16, height as u16, ColorType::Rgb).unwrap();
    file
}

fn header(file: &[u8]) -> Result<Header, Error> {
    let mut header = Header::default();
    header.parse(file).map(|()| header)
}

/// The file with segments in front of all others.
fn with_segments(file: &[u8], segments: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let segments: Vec<u8> = segments.flatten().collect();
    [&file[..2], &segments, &file[2..]].concat()
}

/// A segment with a Huffman table of one symbol.
fn table(number: usize) -> Vec<u8> {
    let symbol = (number % 256) as u8;
    let mut segment = vec![0xff, code::DHT, 0, 20, 0x10 | (number / 256 % 4) as u8, 0, 1];
    segment.extend([0; 14]);
    segment.push(symbol);
    segment
}

#[test]
fn only_the_huffman_tables_that_scans_use_are_retained() {
    for is_progressive in [false, true] {
        let file = jpeg(is_progressive);
        let used = header(&file).unwrap().huffman;
        let crowded = header(&with_segments(&file, (0..1000).map(table))).unwrap();
        assert_eq!(crowded.huffman, used);
        assert_eq!(crowded.segments.len(), header(&file).unwrap().segments.len() + 1000);
        assert!(used.len() <= 8 * crowded.scans.len());
    }
}

#[test]
fn a_file_with_too_many_segments_is_refused() {
    let file = jpeg(false);
    let comment = || std::iter::repeat(vec![0xff, code::COM, 0, 2]);
    let free = SEGMENTS_MAX - header(&file).unwrap().segments.len();
    let most = with_segments(&file, comment().take(free));
    assert_eq!(header(&most).unwrap().segments.len(), SEGMENTS_MAX);
    let more = with_segments(&file, comment().take(free + 1));
    let refused = Error::TooMany { what: "segments", limit: SEGMENTS_MAX };
    assert_eq!(header(&more).unwrap_err(), refused);
    assert_eq!(to_form(&more, Form::Fast).unwrap_err(), refused);
    // Nothing could be filled in.
    let options = DecodeOptions { on_damage: OnDamage::FillIn, ..DecodeOptions::default() };
    let mut decoder = Decoder::with_cpu(Cpu::Portable);
    let decode = |file: &[u8]| {
        decoder.decode_into(Encoded::from(file), None, &options, &mut Picture::default())
    };
    assert_eq!([&most, &more].map(|file| file.as_slice()).map(decode), [Ok(()), Err(refused)]);
}

#[test]
fn a_file_with_too_many_scans_is_refused() {
    let file = jpeg(true);
    let parsed = header(&file).unwrap();
    let scan_header = parsed.segments.iter().rfind(|segment| segment.marker == code::SOS).unwrap();
    let last = parsed.scans.last().unwrap().data.end;
    let scan = &file[scan_header.bytes.start..last];
    let with_scans = |count: usize| {
        let scans = scan.repeat(count - parsed.scans.len());
        [&file[..last], &scans, &file[last..]].concat()
    };
    assert_eq!(header(&with_scans(SCANS_MAX)).unwrap().scans.len(), SCANS_MAX);
    let refused = Error::TooMany { what: "scans", limit: SCANS_MAX };
    let more = with_scans(SCANS_MAX + 1);
    assert_eq!(header(&more).unwrap_err(), refused);
    assert_eq!(read_coefficients(&more).unwrap_err(), refused);
    // A file that is damaged before its scans is read by other code.
    let width = [&[0xff, code::DQT, 0, 131, 0x23][..], &[1; 128]].concat();
    let damaged = with_segments(&more, std::iter::once(width));
    assert!(matches!(header(&damaged), Err(Error::Damaged { .. })));
    let options = DecodeOptions { on_damage: OnDamage::FillIn, ..DecodeOptions::default() };
    let decoded = Decoder::with_cpu(Cpu::Portable).decode_into(
        Encoded::from(&damaged),
        None,
        &options,
        &mut Picture::default(),
    );
    assert_eq!(decoded.unwrap_err(), refused);
}
