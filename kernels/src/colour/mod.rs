//! Changes of the colours of a picture, with the arithmetic of Pillow.
//!
//! `docs/formats.md` has each definition. In reading order: [`Change`], `blend` (brightness,
//! contrast, saturation, sharpness) with `between`, [`luma`] and `smooth`, `hue`, `tables` (each
//! value by itself) with `look_up`, `box_blur` (Pillow's) and `gaussian` (torchvision's blur),
//! `spaces` (OpenCV's), `elements` (of 16 bits and floats), `record` (changes as data).

mod between;
mod blend;
mod box_blur;
mod elements;
mod gaussian;
mod hue;
mod look_up;
pub(crate) mod luma;
mod record;
mod smooth;
mod spaces;
mod tables;

pub(crate) use gaussian::buffer_bytes as blur_buffer_bytes;
pub(crate) use spaces::Converter;

use crate::pixels::Pixels;
use crate::recording::Recording;
use crate::tensor::{Bits, ChangeBits};
use crate::vector::{Change as PixelChange, Changed, run};
use crate::{Cpu, Error};

/// Number of values counted in separate histograms.
const NEIGHBOURS: usize = 4;

/// A change of the colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Change {
    /// Multiplies the brightness by a factor.
    Brightness(f64),
    /// Multiplies the contrast by a factor.
    Contrast(f64),
    /// Multiplies the saturation by a factor.
    Saturation(f64),
    /// Shifts the hue by a fraction of the circle.
    Hue(f64),
    /// Multiplies the sharpness by a factor.
    Sharpness(f64),
    /// Stretches each channel to the full range.
    Autocontrast,
    /// Equalises the histogram of each channel.
    Equalize,
    /// Every value subtracted from 255.
    Invert,
    /// Retains this number of upper bits.
    Posterize(u32),
    /// Subtracts values from this threshold on from 255.
    Solarize(f64),
    /// Adds a number to values below a threshold.
    SolarizeAdd {
        /// The number.
        addend: u8,
        /// The threshold.
        threshold: f64,
    },
    /// Pillow's blur with a radius in pixels.
    PillowBlur(f64),
    /// torchvision's blur.
    Blur {
        /// Height and width of the kernel.
        kernel: (u32, u32),
        /// Standard deviation in pixels.
        sigma: f64,
    },
    /// Raises every value to a power.
    Gamma {
        /// The exponent.
        gamma: f64,
        /// The factor.
        gain: f64,
    },
    /// Strength of a sigmoid curve; if negative, of its inverse.
    SigmoidContrast(f64),
    /// Applies a sigmoid curve, then raises every value to a power.
    Tone {
        /// Strength of the curve; if negative, of its inverse.
        contrast: f64,
        /// The exponent of each channel.
        gammas: [f64; 3],
    },
    /// Every channel becomes the luma.
    Grey,
    /// Replaces channel c by the channel at index c of the list.
    Channels([usize; 3]),
}

impl Change {
    /// Changes a picture.
    pub(crate) fn apply(self, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        if pixels.is_alpha() && !self.changes_alpha() {
            return Ok(());
        }
        if let Some(recording) = pixels.recording() {
            self.record(recording);
            return Ok(());
        }
        if let Some(mut elements) = pixels.elements() {
            return self.apply_elements(&mut elements);
        }
        if let Some(change) = self.of_rows() {
            let cpu = pixels.cpu();
            return pixels.each_row(|row| change.apply(cpu, row));
        }
        match self {
            Self::Contrast(factor) => {
                let mean = blend::mean_luma(pixels)?;
                let table = blend::table(mean, factor);
                let (cpu, change) = (pixels.cpu(), RowChange::Table(table));
                pixels.each_row(|row| change.apply(cpu, row))
            }
            Self::Sharpness(factor) => blend::sharpen(factor, pixels),
            Self::Autocontrast => {
                let histograms = histograms(pixels)?;
                look_up(pixels, |channel| tables::autocontrast(&histograms[channel]))
            }
            Self::Equalize => {
                let histograms = histograms(pixels)?;
                look_up(pixels, |channel| tables::equalize(&histograms[channel]))
            }
            Self::PillowBlur(radius) => box_blur::blur(radius, pixels),
            Self::Blur { kernel, sigma } => gaussian::blur(kernel, sigma, pixels),
            Self::Tone { contrast, gammas } => {
                look_up(pixels, |channel| tables::tone(contrast, gammas[channel]))
            }
            Self::Brightness(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Invert
            | Self::Posterize(_)
            | Self::Solarize(_)
            | Self::SolarizeAdd { .. }
            | Self::Gamma { .. }
            | Self::SigmoidContrast(_)
            | Self::Grey
            | Self::Channels(_) => unreachable!("these are changes of rows"),
        }
    }

    /// The change as one of single rows; `None` if it needs other rows, or the whole picture.
    pub(crate) fn of_rows(self) -> Option<RowChange> {
        let table = RowChange::Table;
        Some(match self {
            Self::Brightness(factor) => table(blend::table(0, factor)),
            Self::Invert => RowChange::Bits(tables::invert()),
            Self::Posterize(bits) => RowChange::Bits(tables::posterize(bits)),
            Self::Solarize(threshold) => table(tables::solarize(threshold)),
            Self::SolarizeAdd { addend, threshold } => {
                table(tables::solarize_add(addend, threshold))
            }
            Self::Gamma { gamma, gain } => table(tables::gamma(gamma, gain)),
            Self::SigmoidContrast(contrast) => table(tables::tone(contrast, 1.0)),
            Self::Saturation(factor) => RowChange::Saturation(blend::Saturate::by(factor)),
            Self::Hue(factor) => RowChange::Hue(hue::HueRotation::by(factor)),
            Self::Grey => RowChange::Grey,
            Self::Channels(order) => RowChange::Channels(Permute { order }),
            Self::Contrast(_)
            | Self::Sharpness(_)
            | Self::Autocontrast
            | Self::Equalize
            | Self::PillowBlur(_)
            | Self::Blur { .. }
            | Self::Tone { .. } => return None,
        })
    }

    /// Whether it holds a second picture of the same size.
    pub(crate) fn needs_copy(self) -> bool {
        matches!(self, Self::Sharpness(_) | Self::PillowBlur(_) | Self::Blur { .. })
    }
}

/// Maximum number of consecutive changes of rows without a picture in memory.
const ROW_CHANGES_MAX: usize = 8;

/// Consecutive changes of single rows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RowChanges {
    changes: [Option<Change>; ROW_CHANGES_MAX],
    count: usize,
}

impl RowChanges {
    /// Adds a change; `false` if it needs the whole picture, or there are too many.
    pub(crate) fn add(&mut self, change: Change) -> bool {
        if self.count == ROW_CHANGES_MAX || change.of_rows().is_none() {
            return false;
        }
        self.changes[self.count] = Some(change);
        self.count += 1;
        true
    }

    /// Records the changes.
    pub(crate) fn record(&self, recording: &mut Recording<'_>) {
        self.changes.iter().flatten().for_each(|change| change.record(recording));
    }

    /// Prepares the changes for execution.
    pub(crate) fn prepare(&self, ready: &mut Vec<RowChange>) {
        ready.clear();
        ready.extend(self.changes.iter().flatten().filter_map(|change| change.of_rows()));
    }
}

/// A change of the colours of single rows.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "few of them, in memory that is reused")]
pub(crate) enum RowChange {
    /// Replaces each value by its entry in a table.
    Table(tables::Table),
    /// Changes the bits of each value.
    Bits(Bits),
    /// See [`Change::Saturation`].
    Saturation(blend::Saturate),
    /// See [`Change::Hue`].
    Hue(hue::HueRotation),
    /// See [`Change::Grey`].
    Grey,
    /// See [`Change::Channels`].
    Channels(Permute),
}

impl RowChange {
    /// Changes a row: red, green and blue, of equal length.
    pub(crate) fn apply(&self, cpu: Cpu, planes: [&mut [u8]; 3]) {
        match self {
            Self::Table(table) => {
                planes.into_iter().for_each(|plane| look_up::look_up(cpu, table, plane));
            }
            Self::Bits(bits) => {
                planes.into_iter().for_each(|bytes| run(cpu, ChangeBits { bits: *bits, bytes }));
            }
            Self::Saturation(change) => run(cpu, Changed { change: *change, planes }),
            Self::Hue(change) => run(cpu, Changed { change: *change, planes }),
            Self::Grey => run(cpu, Changed { change: luma::MakeGrey, planes }),
            Self::Channels(change) => run(cpu, Changed { change: *change, planes }),
        }
    }
}

/// Replaces every value of each channel by its entry in a table.
fn look_up(
    pixels: &mut Pixels<'_>,
    table_of: impl Fn(usize) -> tables::Table,
) -> Result<(), Error> {
    let (cpu, tables) = (pixels.cpu(), [0, 1, 2].map(table_of));
    pixels.each_row(|row| {
        for (channel, table) in row.into_iter().zip(&tables) {
            look_up::look_up(cpu, table, channel);
        }
    })
}

/// The histogram of each channel.
fn histograms(pixels: &mut Pixels<'_>) -> Result<[[u32; 256]; 3], Error> {
    // A picture has at most 2^28 pixels. Neighbouring pixels are counted in separate histograms,
    // since equal neighbours, which are frequent, would otherwise wait for one another.
    let mut counts = [[[0; 256]; NEIGHBOURS]; 3];
    pixels.each_row(|row| {
        for (channel, counts) in row.into_iter().zip(&mut counts) {
            let (groups, rest) = channel.as_chunks::<NEIGHBOURS>();
            for group in groups {
                for (counts, value) in counts.iter_mut().zip(group) {
                    counts[usize::from(*value)] += 1;
                }
            }
            for value in rest {
                counts[0][usize::from(*value)] += 1;
            }
        }
    })?;
    let sum = |counts: [[u32; 256]; NEIGHBOURS]| {
        std::array::from_fn(|value| counts.iter().map(|counts| counts[value]).sum())
    };
    Ok(counts.map(sum))
}

/// Permutes the channels of a pixel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permute {
    order: [usize; 3],
}

impl PixelChange for Permute {
    #[inline(always)]
    fn pixel(&self, colour: [u8; 3]) -> [u8; 3] {
        let [first, second, third] = self.order;
        [pick(first, colour), pick(second, colour), pick(third, colour)]
    }
}

/// Selects a channel without a look-up in memory.
#[inline(always)]
fn pick(channel: usize, [red, green, blue]: [u8; 3]) -> u8 {
    match channel {
        0 => red,
        1 => green,
        _ => blue,
    }
}
