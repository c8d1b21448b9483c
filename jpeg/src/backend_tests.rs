//! The numeric back end as a whole against libjpeg-turbo: from coefficients to pixels.

use super::idct::{self, Dequantiser, Scale};
use super::upsample::{SampleSpan, Side, Upsampling, h1v2, h2v1, h2v2, replicate};
use super::{Block, QuantTable, colour};
use crate::{Cpu, golden};

/// Natural-order index of each zigzag position.
pub(super) const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// The extent of a block.
pub(super) fn extent(block: &Block) -> u8 {
    ZIGZAG.iter().rposition(|at| block.0[*at] != 0).unwrap_or(0) as u8
}

/// The random numbers of tests/golden/jpeg_backend.c.
struct Random(u32);

impl Random {
    fn next(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % below
    }

    fn table(&mut self, kind: u32) -> QuantTable {
        let below = [24, 255, 65_535, 65_535][kind as usize];
        QuantTable(std::array::from_fn(|_| 1 + self.next(below) as u16))
    }

    fn block(&mut self, kind: u32) -> Block {
        let mut block = Block([0; 64]);
        let end = 1 + if self.next(2) == 1 { self.next(64) } else { self.next(10) };
        for (k, at) in ZIGZAG.into_iter().enumerate().take(end as usize) {
            let most = if kind == 0 { 400 / (1 + 2 * k as i16) + 1 } else { 1_023 };
            let value = self.next(2 * most as u32 + 1) as i16 - most;
            let dropped = self.next(3) == 0 && kind != 1 || kind == 3 && at >= 8;
            block.0[at] = if dropped { 0 } else { value };
        }
        block
    }
}

/// A component at its own resolution.
struct Samples {
    rows: Vec<Vec<u8>>,
    width: usize,
    height: usize,
}

/// How a picture is decoded.
struct Decoding {
    cpu: Cpu,
    eighths: usize,
    fancy: bool,
}

impl Decoding {
    /// The samples of a component of `wide` times `high` blocks.
    fn samples(&self, kind: u32, random: &mut Random, wide: usize, high: usize) -> Vec<Vec<u8>> {
        let dequantiser = Dequantiser::new(&random.table(kind));
        let (cpu, side) = (self.cpu, self.eighths);
        let mut rows = Vec::new();
        for _ in 0..high {
            let blocks: Vec<Block> = (0..wide).map(|_| random.block(kind)).collect();
            let extents: Vec<u8> = blocks.iter().map(extent).collect();
            let stride = wide * side;
            let mut out = vec![0; side * stride];
            let scaled = |scale, out: &mut [u8]| {
                idct::scaled(cpu, scale, &dequantiser, &blocks, &extents, out, stride);
            };
            match side {
                8 => {
                    idct::islow(cpu, &dequantiser, &blocks, &extents, &mut out, stride);
                }
                4 => scaled(Scale::Four, &mut out),
                2 => scaled(Scale::Two, &mut out),
                _ => scaled(Scale::One, &mut out),
            }
            rows.extend(out.chunks_exact(stride).map(<[u8]>::to_vec));
        }
        rows
    }

    /// A row of a component at full resolution.
    fn full_row(&self, from: &Samples, how: Upsampling, y: usize, columns: usize) -> Vec<u8> {
        let mut out = vec![0; columns];
        let (factor, rows) = how.factors();
        let sample = y / rows as usize;
        let near = &from.rows[sample];
        let (side, far) = match y % 2 {
            0 => (Side::Upper, &from.rows[sample.saturating_sub(1)]),
            _ => (Side::Lower, &from.rows[(sample + 1).min(from.height - 1)]),
        };
        let span = SampleSpan { first: 0, width: from.width };
        match how {
            Upsampling::None => out.copy_from_slice(&near[..columns]),
            Upsampling::FancyH2V1 => h2v1(self.cpu, near, span, 0..columns, &mut out),
            Upsampling::FancyH2V2 => h2v2(self.cpu, near, far, span, 0..columns, &mut out),
            Upsampling::FancyH1V2 => {
                h1v2(self.cpu, &near[..columns], &far[..columns], side, &mut out);
            }
            Upsampling::Replicate { .. } => {
                replicate(self.cpu, near, 0, factor as usize, 0..columns, &mut out);
            }
        }
        out
    }

    /// All rows of a picture: grey, or red, green and blue in turn.
    fn picture(&self, kind: u32, seed: u32, size: [usize; 2], factors: &[[usize; 2]]) -> Vec<u8> {
        let mut random = Random(seed);
        let [width, height] = size;
        let [h_max, v_max] = [0, 1].map(|side| factors.iter().map(|f| f[side]).max().unwrap());
        let mut components = Vec::new();
        for [h, v] in factors {
            let wide = (width * h).div_ceil(8 * h_max);
            let high = (height * v).div_ceil(8 * v_max);
            let rows = self.samples(kind, &mut random, wide, high);
            let [across, down] = [(width * h, h_max), (height * v, v_max)]
                .map(|(size, max)| (size * self.eighths).div_ceil(8 * max));
            components.push(Samples { rows, width: across, height: down });
        }
        let [width, height] = size.map(|side| (side * self.eighths).div_ceil(8));
        let mut pixels = Vec::new();
        for y in 0..height {
            let rows: Vec<Vec<u8>> = components
                .iter()
                .zip(factors)
                .map(|(from, [h, v])| {
                    let [h, v, h_max, v_max] = [*h, *v, h_max, v_max].map(|side| side as u32);
                    let columns = from.width as u32;
                    let how = Upsampling::choose(h, v, h_max, v_max, columns, self.fancy).unwrap();
                    self.full_row(from, how, y, width)
                })
                .collect();
            match &rows[..] {
                [grey] => pixels.extend_from_slice(grey),
                [y, cb, cr] => {
                    let mut planes = [vec![0; width], vec![0; width], vec![0; width]];
                    let to = planes.each_mut().map(|plane| &mut plane[..]);
                    colour::ycc_to_rgb(self.cpu, [y, cb, cr], to);
                    let at = pixels.len();
                    pixels.resize(at + 3 * width, 0);
                    let planes = planes.each_ref().map(|plane| &plane[..]);
                    colour::interleave(self.cpu, planes, &mut pixels[at..]);
                }
                other => panic!("{} components", other.len()),
            }
        }
        pixels
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn pixels_are_those_of_libjpeg_turbo() {
    for (words, expected) in golden::lines(include_str!("../tests/golden/jpeg_backend.txt")) {
        let ["islow", eighths, fancy, kind, seed, width, height, _, factors @ ..] = &words[..]
        else {
            panic!("{words:?}")
        };
        let factors: Vec<[usize; 2]> = factors
            .chunks(2)
            .map(|pair| [golden::number(pair[0]), golden::number(pair[1])])
            .collect();
        let size = [golden::number(width), golden::number(height)];
        for cpu in golden::instruction_sets() {
            let eighths = golden::number(eighths);
            let decoding = Decoding { cpu, eighths, fancy: *fancy == "1" };
            let pixels =
                decoding.picture(golden::number(kind), golden::number(seed), size, &factors);
            assert_eq!(format!("{:016x}", fnv1a(&pixels)), expected[0], "{} {words:?}", cpu.name());
        }
    }
}
