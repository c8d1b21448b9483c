//! Changes of the colours of pictures with 16-bit or float elements, with the arithmetic of
//! torchvision's functions on tensors, in float32 without fused operations.

use super::Change;
use super::gaussian::{mirrored, weights};
use crate::Error;
use crate::elements::Elements;
use crate::wide::Channel;

/// The weights of red, green and blue in torchvision's grayscale.
const LUMA: [f32; 3] = [0.2989, 0.587, 0.114];

/// The mean grey value of all pixels, rounded down for integers.
fn mean_grey(picture: &mut Elements<'_>) -> Result<f32, Error> {
    let (width, height) = picture.layers.size();
    let (mut sum, is_float) = (0.0_f64, picture.is_float());
    picture.each_row(|_, rows| {
        for x in 0..width {
            let grey = grey(rows, x);
            sum += f64::from(if is_float { grey } else { grey.floor() });
        }
    })?;
    Ok((sum / (width * height).max(1) as f64) as f32)
}

/// Blurs each channel by two passes with a kernel.
fn blur(picture: &mut Elements<'_>, (rows, columns): (u32, u32), sigma: f64) -> Result<(), Error> {
    let (across, down) = (weights(columns, sigma), weights(rows, sigma));
    let (width, height) = picture.layers.size();
    for index in 0..picture.channels() {
        let mut numbers = picture.channel(index)?;
        let mut line = vec![0.0; width];
        for (y, row) in numbers.chunks_exact_mut(width.max(1)).enumerate() {
            picture.poll(y)?;
            line.copy_from_slice(row);
            for (x, out) in row.iter_mut().enumerate() {
                *out = weighted(&across, x, width, |at| line[at]);
            }
        }
        for y in 0..height {
            picture.poll(y)?;
            for (x, out) in line.iter_mut().enumerate() {
                let sum = weighted(&down, y, height, |at| numbers[at * width + x]);
                *out = if picture.is_float() { sum } else { sum.round_ties_even() };
            }
            picture.layers.set_numbers(Channel::of(picture.mode, index), y, &line);
        }
    }
    Ok(())
}

/// Blends with a smoothed picture; the border does not change.
fn sharpen(picture: &mut Elements<'_>, factor: f32) -> Result<(), Error> {
    let (width, height) = picture.layers.size();
    if width <= 2 || height <= 2 {
        return Ok(());
    }
    let (centre, around) = (5.0_f32 / 13.0, 1.0_f32 / 13.0);
    for index in 0..picture.channels() {
        let numbers = picture.channel(index)?;
        let at = |x: usize, y: usize| numbers[y * width + x];
        let mut line = vec![0.0; width];
        for y in 0..height {
            picture.poll(y)?;
            line.copy_from_slice(&numbers[y * width..][..width]);
            let inside = if (1..height - 1).contains(&y) { 1..width - 1 } else { 0..0 };
            for x in inside {
                let mut sum = 0.0_f32;
                for (row, column) in (0..9).map(|tap| (tap / 3, tap % 3)) {
                    let weight = if (row, column) == (1, 1) { centre } else { around };
                    sum += weight * at(x + column - 1, y + row - 1);
                }
                let smooth = if picture.is_float() { sum } else { sum.round_ties_even() };
                let own = at(x, y);
                line[x] = own + (1.0 - factor) * (smooth - own);
            }
            line.iter_mut().for_each(|number| *number = picture.clamped(*number));
            picture.layers.set_numbers(Channel::of(picture.mode, index), y, &line);
        }
    }
    Ok(())
}

/// Stretches each channel to the full range.
fn autocontrast(picture: &mut Elements<'_>) -> Result<(), Error> {
    let mut ends = vec![(f32::INFINITY, f32::NEG_INFINITY); picture.channels()];
    picture.each_row(|_, rows| {
        for ((low, high), row) in ends.iter_mut().zip(rows) {
            *low = row.iter().copied().fold(*low, f32::min);
            *high = row.iter().copied().fold(*high, f32::max);
        }
    })?;
    let bound = picture.bound();
    picture.each_row(|it, rows| {
        for ((low, high), row) in ends.iter().zip(rows) {
            let (low, scale) = match low == high {
                true => (0.0, 1.0),
                false => (*low, (high - low) * (1.0 / bound)),
            };
            row.iter_mut().for_each(|number| *number = it.clamped((*number - low) / scale));
        }
    })
}

/// The grey of a pixel of a row.
fn grey(rows: &[Vec<f32>], x: usize) -> f32 {
    match rows {
        [red, green, blue] => red[x] * LUMA[0] + green[x] * LUMA[1] + blue[x] * LUMA[2],
        rows => rows[0][x],
    }
}

/// The weighted sum of the values around a position, mirrored beyond the ends.
fn weighted(weights: &[f32], at: usize, length: usize, of: impl Fn(usize) -> f32) -> f32 {
    let radius = weights.len() / 2;
    let mut sum = 0.0;
    for (tap, weight) in weights.iter().enumerate() {
        sum += weight * of(mirrored(at as i64 + tap as i64 - radius as i64, length));
    }
    sum
}

impl Change {
    /// Changes a picture of elements. The declarations of operations determine which changes are
    /// possible.
    pub(crate) fn apply_elements(self, picture: &mut Elements<'_>) -> Result<(), Error> {
        let bound = picture.bound();
        match self {
            Self::Brightness(factor) => {
                let factor = factor as f32;
                picture.each(|it, number| it.clamped(number * factor))
            }
            Self::Contrast(factor) => {
                let (mean, factor, rest) =
                    (mean_grey(picture)?, factor as f32, (1.0 - factor) as f32);
                picture.each(|it, number| it.clamped(number * factor + rest * mean))
            }
            Self::Saturation(_) | Self::Grey if picture.channels() == 1 => Ok(()),
            Self::Saturation(factor) => {
                let (factor, rest) = (factor as f32, (1.0 - factor) as f32);
                picture.each_row(|it, rows| {
                    for x in 0..rows[0].len() {
                        let grey = grey(rows, x);
                        let grey = if it.is_float() { grey } else { grey.floor() };
                        for row in &mut *rows {
                            row[x] = it.clamped(row[x] * factor + rest * grey);
                        }
                    }
                })
            }
            Self::Grey => picture.each_row(|it, rows| {
                for x in 0..rows[0].len() {
                    let grey = it.stored(grey(rows, x));
                    rows.iter_mut().for_each(|row| row[x] = grey);
                }
            }),
            Self::Sharpness(factor) => sharpen(picture, factor as f32),
            Self::Autocontrast => autocontrast(picture),
            Self::Invert => picture.each(|_, number| bound - number),
            Self::Posterize(bits) => match picture.is_float() {
                true => {
                    let levels = (1_u32 << bits) as f32;
                    picture.each(|_, number| {
                        (number * levels).floor().clamp(0.0, levels - 1.0) * (1.0 / levels)
                    })
                }
                false => {
                    let lower = 0xffff_u32.checked_shr(bits).unwrap_or(0);
                    picture.each(|_, number| (number as u32 & !lower) as f32)
                }
            },
            Self::Solarize(threshold) => {
                let threshold = threshold as f32;
                picture.each(|_, number| if number >= threshold { bound - number } else { number })
            }
            Self::Gamma { gamma, gain } => picture.each(|it, number| {
                let most = f64::from(bound);
                let power = libm::pow(f64::from(number) / most, gamma);
                let power = if gain == 1.0 { power } else { (power * gain).clamp(0.0, 1.0) };
                match it.is_float() {
                    true => power as f32,
                    false => (power * (most + 1.0 - 1e-3)).min(most).trunc() as f32,
                }
            }),
            Self::Blur { kernel, sigma } => blur(picture, kernel, sigma),
            Self::Channels(order) => picture.each_row(|_, rows| {
                if let [red, green, blue] = rows {
                    let from = [red.clone(), green.clone(), blue.clone()];
                    [red, green, blue].into_iter().zip(order).for_each(|(row, channel)| {
                        row.copy_from_slice(&from[channel]);
                    });
                }
            }),
            Self::Hue(_)
            | Self::Equalize
            | Self::SolarizeAdd { .. }
            | Self::PillowBlur(_)
            | Self::SigmoidContrast(_)
            | Self::Tone { .. } => unreachable!("its operations take pictures of 8 bits"),
        }
    }

    /// Whether it changes alpha like the colours.
    pub(crate) fn changes_alpha(self) -> bool {
        match self {
            Self::Equalize
            | Self::Invert
            | Self::Posterize(_)
            | Self::Solarize(_)
            | Self::Gamma { .. }
            | Self::PillowBlur(_)
            | Self::Blur { .. } => true,
            Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Sharpness(_)
            | Self::Autocontrast
            | Self::SolarizeAdd { .. }
            | Self::SigmoidContrast(_)
            | Self::Tone { .. }
            | Self::Grey
            | Self::Channels(_) => false,
        }
    }
}
