//! Writes what the JPEG decoder gives without vector instructions: `cargo run > ../jpegs.txt`.
//!
//! A line for each file: its name, then its bytes, the hash of its pixels, and the beginning of the
//! hash for each of a hundred copies with a flipped bit, whose wild coefficients reach what sound
//! ones do not (`-` where it does not decode).

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use sha2::{Digest, Sha256};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

const WIDTH: u16 = 41;
const HEIGHT: u16 = 35;

const SAMPLINGS: [(&str, SamplingFactor); 8] = [
    ("1x1", SamplingFactor::F_1_1),
    ("2x1", SamplingFactor::F_2_1),
    ("1x2", SamplingFactor::F_1_2),
    ("2x2", SamplingFactor::F_2_2),
    ("4x1", SamplingFactor::F_4_1),
    ("4x2", SamplingFactor::F_4_2),
    ("1x4", SamplingFactor::F_1_4),
    ("2x4", SamplingFactor::F_2_4),
];

fn main() {
    for (number, (name, sampling)) in SAMPLINGS.into_iter().enumerate() {
        for progressive in [false, true] {
            let encoded = encode(number as u32, sampling, progressive);
            let kind = if progressive { "progressive" } else { "baseline" };
            let pixels = decode(&encoded).expect("it has just been encoded");
            let mut line = format!("{name} {kind} : {} {}", hex(&encoded), hash(&pixels));
            for flip in 0..100 {
                let short = decode(&flipped(&encoded, flip)).map(|p| hash(&p)[..8].to_owned());
                line += " ";
                line += short.as_deref().unwrap_or("-");
            }
            println!("{line}");
        }
    }
}

/// A step of a linear congruential generator, its upper half.
fn step(state: &mut u32) -> usize {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (*state >> 16) as usize
}

/// Ramps with noise on them.
fn encode(number: u32, sampling: SamplingFactor, progressive: bool) -> Vec<u8> {
    let mut state = number;
    let mut pixels = Vec::new();
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            for channel in 0..3 {
                let ramp = x * 5 + y * 3 + channel * 60 + (step(&mut state) % 64) as u16;
                pixels.push((ramp % 512).min(511 - ramp % 512) as u8);
            }
        }
    }
    let mut encoded = Vec::new();
    let mut encoder = Encoder::new(&mut encoded, 75);
    encoder.set_sampling_factor(sampling);
    encoder.set_progressive(progressive);
    encoder.encode(&pixels, WIDTH, HEIGHT, ColorType::Rgb).expect("memory takes it all");
    encoded
}

/// The same rule is in the test that reads the list.
fn flipped(encoded: &[u8], number: u32) -> Vec<u8> {
    let mut state = number;
    let mut damaged = encoded.to_vec();
    let (at, bit) = (step(&mut state), step(&mut state));
    damaged[at % encoded.len()] ^= 1 << (bit % 8);
    damaged
}

fn decode(encoded: &[u8]) -> Option<Vec<u8>> {
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(4096)
        .set_max_height(4096)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    JpegDecoder::new_with_options(ZCursor::new(encoded), options).decode().ok()
}

fn hash(pixels: &[u8]) -> String {
    hex(&Sha256::digest(pixels))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
