//! Seeded random numbers and value noise in octaves, the texture of everything in a generated
//! picture.

use meetpoint_format::split_mix::{SplitMix64, mix};

/// The random numbers of one picture.
#[derive(Debug, Clone)]
pub(super) struct RandomNumbers {
    random: SplitMix64,
}

impl RandomNumbers {
    /// The stream of one picture.
    pub(super) fn new(seed: u64, picture: u64) -> Self {
        let seed = mix(seed ^ mix(picture.wrapping_add(0x5851_f42d_4c95_7f2d)));
        Self { random: SplitMix64::new(seed) }
    }

    fn next(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Uniform in [0, 1).
    pub(super) fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Uniform in [low, high).
    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.uniform()
    }

    /// Uniform in 0..limit; the bias of the multiplication does not matter here.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(limit) * (self.next() >> 32)) >> 32) as u32
    }

    /// Roughly normal with deviation 1: the sum of four bytes, centred and scaled.
    pub(super) fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum: u64 = (0..4).map(|byte| (bits >> (16 + byte * 8)) & 255).sum();
        // A byte's variance is (256² - 1) / 12; four of them have 4 times that.
        (sum as f32 - 510.0) / 147.8
    }
}

/// One value per pixel, about -1..1.
#[derive(Debug, Clone)]
pub(super) struct Field {
    width: usize,
    values: Vec<f32>,
}

impl Field {
    /// Octaves of smooth noise: cells of `coarsest` pixels, halved down to `finest`; each octave's
    /// strength is `roughness` of the one before (1/f pictures have about a half).
    pub(super) fn fractal(
        width: u32,
        height: u32,
        coarsest: u32,
        finest: u32,
        roughness: f32,
        random: &mut RandomNumbers,
    ) -> Self {
        let (width, height) = (width as usize, height as usize);
        let mut values = vec![0.0_f32; width * height];
        let mut cell = coarsest.max(1);
        let mut strength = 1.0;
        let mut total = 0.0;
        while cell >= finest.max(1) {
            add_octave(&mut values, width, cell as usize, strength, random);
            total += strength;
            strength *= roughness;
            cell /= 2;
        }
        // Octaves seldom peak together; their plain sum would leave the field too flat.
        let scale = 1.6 / total.max(f32::EPSILON);
        values.iter_mut().for_each(|value| *value *= scale);
        Self { width, values }
    }

    /// The value at a pixel.
    pub(super) fn at(&self, x: usize, y: usize) -> f32 {
        self.values[y * self.width + x]
    }
}

/// Adds noise between lattice points `cell` pixels apart, joined smoothly.
fn add_octave(
    values: &mut [f32],
    width: usize,
    cell: usize,
    strength: f32,
    random: &mut RandomNumbers,
) {
    let height = values.len() / width;
    let columns = width / cell + 2;
    let lattice: Vec<f32> =
        (0..columns * (height / cell + 2)).map(|_| random.between(-strength, strength)).collect();
    let eased: Vec<f32> = (0..cell).map(|i| ease(i as f32 / cell as f32)).collect();
    let mut knots = vec![0.0_f32; columns];
    for (y, row) in values.chunks_exact_mut(width).enumerate() {
        let above = &lattice[y / cell * columns..][..columns];
        let below = &lattice[(y / cell + 1) * columns..][..columns];
        let down = eased[y % cell];
        for (knot, (a, b)) in knots.iter_mut().zip(above.iter().zip(below)) {
            *knot = a + (b - a) * down;
        }
        for (chunk, pair) in row.chunks_mut(cell).zip(knots.windows(2)) {
            for (value, across) in chunk.iter_mut().zip(&eased) {
                *value += pair[0] + (pair[1] - pair[0]) * across;
            }
        }
    }
}

/// 3t² - 2t³: flat at both ends.
fn ease(t: f32) -> f32 {
    t * t * (3.0 - 2.0 * t)
}
