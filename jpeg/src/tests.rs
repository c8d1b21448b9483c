//! Compares regions and entry points with whole pictures; tests/corpus.rs compares whole pictures
//! with libjpeg-turbo.

use super::markers::Header;
use super::{
    DecodeOptions, DecodeScale, Decoder, Form, HuffmanTables, Process, Restarts, Rewrite, Spacing,
    entry_points, rewrite, to_form,
};
use crate::{Cpu, Encoded, Error, OnDamage, Region, golden};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use proptest::prelude::*;

/// Rows of a region, three planes each.
type Rows = Vec<[Vec<u8>; 3]>;

fn decode(
    decoder: &mut Decoder,
    encoded: Encoded<'_>,
    region: Region,
    options: &DecodeOptions,
) -> Result<Rows, Error> {
    let mut rows = Vec::new();
    decoder.open(encoded, options.on_damage)?;
    decoder.decode_opened(encoded, region, options, &mut |stripe| {
        assert_eq!(stripe.width, region.width as usize);
        for y in 0..stripe.rows {
            rows.push([0, 1, 2].map(|plane| stripe.row(plane, y)[..stripe.width].to_vec()));
        }
    })?;
    Ok(rows)
}

fn slice(rows: &Rows, region: Region) -> Rows {
    let columns = region.x as usize..(region.x + region.width) as usize;
    let part = &rows[region.y as usize..(region.y + region.height) as usize];
    part.iter().map(|row| row.each_ref().map(|plane| plane[columns.clone()].to_vec())).collect()
}

const SAMPLINGS: [SamplingFactor; 7] = [
    SamplingFactor::F_1_1,
    SamplingFactor::F_2_1,
    SamplingFactor::F_1_2,
    SamplingFactor::F_2_2,
    SamplingFactor::F_4_1,
    SamplingFactor::F_4_2,
    SamplingFactor::F_1_4,
];

fn scans(file: &[u8]) -> usize {
    let mut header = Header::default();
    header.parse(file).unwrap();
    header.scans.len()
}

#[derive(Debug, Clone)]
struct Case {
    width: u32,
    height: u32,
    seed: u32,
    sampling: usize,
    quality: u8,
    restarts: Option<u16>,
    kind: u8,
    region: Region,
}

impl Case {
    fn file(&self) -> Vec<u8> {
        let picture = golden::picture("noise", self.seed, self.width, self.height);
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, self.quality);
        encoder.set_sampling_factor(SAMPLINGS[self.sampling]);
        // With both, this encoder panics.
        encoder.set_optimized_huffman_tables(self.kind & 1 == 1 && self.restarts.is_none());
        encoder.set_progressive(self.kind & 6 == 6);
        if let Some(restarts) = self.restarts {
            encoder.set_restart_interval(restarts);
        }
        let (width, height) = (self.width as u16, self.height as u16);
        if self.kind & 8 == 0 {
            encoder.encode(&picture.pixels, width, height, ColorType::Rgb).unwrap();
        } else {
            let grey = &picture.pixels[..picture.pixels.len() / 3];
            encoder.encode(grey, width, height, ColorType::Luma).unwrap();
        }
        file
    }

    fn whole(&self) -> Region {
        Region { x: 0, y: 0, width: self.width, height: self.height }
    }
}

fn any_case() -> impl Strategy<Value = Case> {
    let size = (1..90_u32, 1..90_u32);
    let file = (any::<u32>(), 0..SAMPLINGS.len(), 5..=100_u8, prop::option::of(1..9_u16), 0..16_u8);
    (size, file).prop_flat_map(|((width, height), (seed, sampling, quality, restarts, kind))| {
        (0..width, 0..height).prop_flat_map(move |(x, y)| {
            (1..=width - x, 1..=height - y).prop_map(move |(w, h)| Case {
                width,
                height,
                seed,
                sampling,
                quality,
                restarts,
                kind,
                region: Region { x, y, width: w, height: h },
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn a_region_equals_that_part_of_the_whole(case in any_case(), spacing in 0..6_u16) {
        let file = case.file();
        let exact = DecodeOptions::default();
        let mut portable = Decoder::with_cpu(Cpu::Portable);
        let whole = decode(&mut portable, Encoded::from(&file), case.whole(), &exact).unwrap();
        let expected = slice(&whole, case.region);
        let spacing = if spacing == 0 { Spacing::McuRow } else { Spacing::Mcus(spacing) };
        let points = entry_points(&file, spacing).unwrap();
        prop_assert_eq!(points.is_none(), case.kind & 6 == 6 || scans(&file) > 1);
        let points = points.unwrap_or_default();
        for cpu in Cpu::available() {
            let mut decoder = Decoder::with_cpu(cpu);
            for entry_points in [&[][..], &points] {
                let encoded = Encoded { entry_points, ..Encoded::from(&file) };
                let rows = decode(&mut decoder, encoded, case.region, &exact).unwrap();
                prop_assert!(rows == expected, "{} {case:?}", cpu.name());
            }
        }
    }

    #[test]
    fn a_region_at_a_lower_resolution_equals_that_part_of_the_whole(
        case in any_case(), scale in 0..4_usize,
    ) {
        let file = case.file();
        let scale =
            [DecodeScale::One, DecodeScale::Two, DecodeScale::Four, DecodeScale::Eight][scale];
        let on_damage = OnDamage::Fail;
        let options = DecodeOptions { scale, on_damage, ..DecodeOptions::default() };
        let (width, height) = (scale.scaled(case.width), scale.scaled(case.height));
        let (x, y) = (case.region.x % width, case.region.y % height);
        let region = Region {
            x,
            y,
            width: case.region.width.min(width - x),
            height: case.region.height.min(height - y),
        };
        let whole = Region { x: 0, y: 0, width, height };
        let mut portable = Decoder::with_cpu(Cpu::Portable);
        let whole = decode(&mut portable, Encoded::from(&file), whole, &options).unwrap();
        for cpu in Cpu::available() {
            let mut decoder = Decoder::with_cpu(cpu);
            let rows = decode(&mut decoder, Encoded::from(&file), region, &options).unwrap();
            prop_assert!(rows == slice(&whole, region), "{} {case:?}", cpu.name());
        }
    }

    #[test]
    fn entry_points_that_are_stale_or_damaged_are_refused(case in any_case(), at: usize) {
        // The encoder writes factors above 2, and optimised tables, in a scan for each component.
        let file = Case { kind: case.kind & 8, sampling: case.sampling % 4, ..case.clone() }.file();
        let points = entry_points(&file, Spacing::McuRow).unwrap().unwrap();
        let mut decoder = Decoder::new();
        let mut refused = |file: &[u8], entry_points: &[u8]| {
            let encoded = Encoded { entry_points, ..Encoded::from(file) };
            let outcome = decode(&mut decoder, encoded, case.region, &DecodeOptions::default());
            matches!(outcome, Err(Error::EntryPoints { .. }))
        };
        let mut damaged = points.clone();
        let bit = at % (points.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(refused(&file, &damaged));
        prop_assert!(refused(&file, &points[..at % points.len()]) || at % points.len() == 0);
        // A comment after the start marker shifts all offsets and changes no pixel.
        let other = [&file[..2], &[0xff, 0xfe, 0, 3, at as u8], &file[2..]].concat();
        prop_assert!(refused(&other, &points));
    }
}

/// Bits of a scan that are changed or cut give other pixels or an error, never a panic.
#[test]
fn damaged_files_give_an_error_or_pixels() {
    let case = Case {
        width: 70,
        height: 50,
        seed: 3,
        sampling: 3,
        quality: 80,
        restarts: Some(4),
        kind: 0,
        region: Region { x: 20, y: 30, width: 40, height: 15 },
    };
    for (kind, restarts) in [(0, None), (1, Some(4)), (6, None), (6, Some(3)), (8, None)] {
        let file = Case { kind, restarts, ..case.clone() }.file();
        let points = entry_points(&file, Spacing::Mcus(2)).unwrap().unwrap_or_default();
        let mut decoder = Decoder::new();
        let options = DecodeOptions::default();
        for bit in (0..file.len() * 8).step_by(5) {
            let mut file = file.clone();
            file[bit / 8] ^= 1 << (bit % 8);
            drop(decode(&mut decoder, Encoded::from(&file), case.whole(), &options));
            // As if the damage had not been detected.
            let sum = crate::checksum::crc32c(&case.file());
            let encoded = Encoded { bytes: &file, entry_points: &points, crc32c: Some(sum) };
            drop(decode(&mut decoder, encoded, case.region, &options));
        }
        for length in 0..file.len() {
            let cut = Encoded::from(&file[..length]);
            assert!(decode(&mut decoder, cut, case.whole(), &options).is_err(), "{length}");
        }
    }
}

/// A progressive file of which only the first scan is there: libjpeg would smooth it.
#[test]
fn a_progressive_file_without_all_scans_is_refused() {
    let case = Case {
        width: 40,
        height: 30,
        seed: 1,
        sampling: 0,
        quality: 80,
        restarts: None,
        kind: 6,
        region: Region { x: 0, y: 0, width: 40, height: 30 },
    };
    let file = case.file();
    let mut header = Header::default();
    header.parse(&file).unwrap();
    let cut = [&file[..header.scans[2].data.end], &[0xff, 0xd9]].concat();
    let mut decoder = Decoder::with_cpu(Cpu::Portable);
    let options = DecodeOptions::default();
    let error = decode(&mut decoder, Encoded::from(&cut), case.region, &options).unwrap_err();
    assert!(error.to_string().contains("without all of its scans"), "{error}");
    // As a coefficient form it would decode, to other pixels than libjpeg's.
    assert!(to_form(&cut, Form::Fast).is_err());
    let baseline = Rewrite {
        restarts: Restarts::Keep,
        tables: HuffmanTables::Optimise,
        process: Process::Baseline,
    };
    assert!(rewrite(&cut, &baseline).is_err());
}
