//! Executes `random_sensor_noise`.

use super::PixelOperation;
use crate::picture_program::{NoiseRange, PictureChange};
use crate::pixels::Pixels;
use crate::random::Field;
use crate::{Cpu, Error};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::RandomSensorNoise;

/// A coarse grid of random integers, resized to the size of a picture.
struct Noise {
    cpu: Cpu,
    field: Field,
    channel: usize,
    range: NoiseRange,
    /// Size of the grid, and that of the picture.
    coarse: (usize, usize),
    size: (usize, usize),
    words: Vec<u32>,
    /// The numbers of two rows of the grid, and their indices.
    rows: [Vec<f64>; 2],
    held: [usize; 2],
    /// For each column of the picture, the grid column before it and the distance to it.
    columns: Vec<(usize, f64)>,
    /// The noise of a row of the picture.
    row: Vec<i32>,
}

/// The numbers of a strength from 0 to 1.
fn range(strength: f64) -> NoiseRange {
    // The casts truncate.
    let (low, high) = ((-256.0 * strength) as i32, (255.0 * strength) as i32);
    NoiseRange { low, count: (high - low).cast_unsigned() }
}

/// The grid position before a position of the picture, and the distance to it.
fn position(at: usize, length: usize, coarse: usize) -> (usize, f64) {
    let position = (at as f64 + 0.5) * (coarse as f64 / length as f64) - 0.5;
    let position = position.clamp(0.0, (coarse - 1) as f64);
    (position as usize, position - position.floor())
}

impl Noise {
    fn new(
        cpu: Cpu,
        field: Field,
        channel: usize,
        range: NoiseRange,
        coarse: (usize, usize),
        size: (usize, usize),
    ) -> Self {
        let rows = [vec![0.0; coarse.1], vec![0.0; coarse.1]];
        let (words, row) = (vec![0; coarse.1], vec![0; size.1]);
        let held = [usize::MAX; 2];
        let columns = (0..size.1).map(|x| position(x, size.1, coarse.1)).collect();
        Self { cpu, field, channel, range, coarse, size, words, rows, held, columns, row }
    }

    /// Draws the numbers of two rows, unless they are the current ones.
    fn take(&mut self, wanted: [usize; 2]) {
        if self.held[1] == wanted[0] {
            self.rows.swap(0, 1);
            self.held.swap(0, 1);
        }
        for (index, row) in self.rows.iter_mut().enumerate() {
            if self.held[index] != wanted[index] {
                self.held[index] = wanted[index];
                self.field.row(self.cpu, self.channel, wanted[index], &mut self.words);
                for (number, word) in row.iter_mut().zip(&self.words) {
                    let NoiseRange { low, count } = self.range;
                    let drawn = (u64::from(*word) * u64::from(count)) >> 32;
                    *number = f64::from(low) + drawn as f64;
                }
            }
        }
    }

    /// The noise of a row of the picture.
    fn row(&mut self, y: usize) -> &[i32] {
        if self.coarse == self.size {
            // The grid is as fine as the picture, so no interpolation is needed.
            self.take([y, self.held[1]]);
            for (out, number) in self.row.iter_mut().zip(&self.rows[0]) {
                *out = *number as i32;
            }
            return &self.row;
        }
        let (first, below) = position(y, self.size.0, self.coarse.0);
        self.take([first, (first + 1).min(self.coarse.0 - 1)]);
        let [first, second] = &self.rows;
        for (out, (left, behind)) in self.row.iter_mut().zip(&self.columns) {
            let right = (left + 1).min(self.coarse.1 - 1);
            let between = |row: &[f64]| row[*left] * (1.0 - behind) + row[right] * behind;
            let (above, under) = (between(first), between(second));
            *out = (above * (1.0 - below) + under * below).round_ties_even() as i32;
        }
        &self.row
    }
}

impl PixelOperation for RandomSensorNoise {
    fn is_applied(&self, draws: &mut Draws) -> bool {
        draws.chance(self.p)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        draws.chance(self.p);
        let strength = draws.uniform_in(self.strength.0, self.strength.1);
        let field = Field::drawn(draws);
        let (width, height) = pixels.size();
        let size = (height as usize, width as usize);
        let half = ((size.0 / 2).max(1), (size.1 / 2).max(1));
        let (cpu, is_grey) = (pixels.cpu(), pixels.is_grey());
        let coarse = range(strength);
        let fine = if is_grey { coarse } else { range(strength * 0.5) };
        if let Some(recording) = pixels.recording() {
            let key = field.key();
            recording.push(PictureChange::SensorNoise { key, coarse, fine, is_grey });
            return Ok(());
        }
        let mut noise = [0, 1, 2].map(|channel| {
            let (range, coarse) = match channel {
                0 | 2 if !is_grey => (coarse, half),
                _ => (fine, size),
            };
            // A grey picture uses the random words of the first channel.
            Noise::new(cpu, field, if is_grey { 0 } else { channel }, range, coarse, size)
        });
        let mut y = 0;
        pixels.each_row(|planes| {
            for (plane, noise) in planes.into_iter().zip(&mut noise) {
                for (value, noise) in plane.iter_mut().zip(noise.row(y)) {
                    *value = (i32::from(*value) + noise).clamp(0, 255) as u8;
                }
            }
            y += 1;
        })
    }
}
