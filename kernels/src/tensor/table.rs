//! A table of the elements for the 256 values of a byte, per channel, into which operations are
//! folded.

use super::{Arithmetic, VALUES, tables};
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout, Scale};

/// Maximum number of channels of a picture.
const CHANNELS_MAX: usize = 4;

/// The factor of [`Scale::Multiply`], for the largest value of a type.
fn factor(largest: u32) -> f32 {
    (1.0 / f64::from(largest)) as f32
}

/// The divisor of [`Scale::Divide`], for the largest value of a type.
fn divisor(largest: u32) -> f32 {
    largest as f32
}

/// The element for each value of each channel, and how elements are stored.
#[derive(Debug)]
pub struct ElementTable {
    pub(super) values: [[f32; VALUES]; CHANNELS_MAX],
    pub(super) dtype: Dtype,
    pub(super) layout: Layout,
    /// Scale and normalisation, if the table consists only of one of each.
    pub(super) arithmetic: Arithmetic,
}

impl Default for ElementTable {
    /// The identity.
    fn default() -> Self {
        Self {
            values: [0; CHANNELS_MAX].map(|_: u8| std::array::from_fn(|value| value as f32)),
            dtype: Dtype::Uint8,
            layout: Layout::Nhwc,
            arithmetic: Arithmetic { scale: 1.0, divides: false, mean: [0.0; 3], std: [1.0; 3] },
        }
    }
}

impl ElementTable {
    /// Element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Order of the axes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The element for a value of a byte in one of the first three channels; for
    /// [`Dtype::Float16`], rounded to it.
    pub fn element(&self, channel: usize, byte: u8) -> f32 {
        self.values[..3][channel][usize::from(byte)]
    }

    /// The arithmetic that computes each float32 element bit for bit, if there is one.
    pub fn arithmetic(&self) -> Option<Arithmetic> {
        let [red, green, blue, _] = &self.values;
        let is_float32 = self.dtype == Dtype::Float32;
        let agrees = || self.arithmetic.agrees(&tables([red, green, blue], f32::to_le_bytes));
        (is_float32 && agrees()).then_some(self.arithmetic)
    }

    /// Sets the order of the axes.
    pub fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Converts to an element type.
    pub fn convert(&mut self, to: Dtype, scale: Scale) {
        let largest = self.dtype.largest().filter(|_| to.largest().is_none());
        match (scale, self.dtype.largest()) {
            (Scale::Multiply, Some(largest)) => self.arithmetic.scale = factor(largest),
            (Scale::Divide, Some(largest)) => {
                self.arithmetic.scale = divisor(largest);
                self.arithmetic.divides = true;
            }
            (Scale::Multiply | Scale::Divide | Scale::None, _) => (),
        }
        self.dtype = to;
        self.each(|_, value| {
            let scaled = match (scale, largest) {
                (Scale::Multiply, Some(largest)) => value * factor(largest),
                (Scale::Divide, Some(largest)) => value / divisor(largest),
                (Scale::Multiply | Scale::Divide | Scale::None, _) => value,
            };
            round_to(to, scaled)
        });
    }

    /// Subtracts a mean and divides by a deviation per channel, in the current type.
    pub fn normalize(&mut self, mean: [f32; CHANNELS_MAX], std: [f32; CHANNELS_MAX]) {
        let [of_mean, of_std] = [mean, std].map(|[red, green, blue, _]| [red, green, blue]);
        (self.arithmetic.mean, self.arithmetic.std) = (of_mean, of_std);
        let dtype = self.dtype;
        let [mean, std] = [mean, std].map(|by| by.map(|value| round_to(dtype, value)));
        // A loop for each type, so that those without rounding have vectors.
        match dtype {
            Dtype::Float16 => self.each(|channel, value| {
                let centred = f16::from_f32(value - mean[channel]).to_f32();
                f16::from_f32(centred / std[channel]).to_f32()
            }),
            Dtype::Uint8 | Dtype::Uint16 | Dtype::Int32 | Dtype::Float32 => {
                self.each(|channel, value| (value - mean[channel]) / std[channel]);
            }
        }
    }

    fn each(&mut self, to: impl Fn(usize, f32) -> f32) {
        for (channel, values) in self.values.iter_mut().enumerate() {
            for value in values {
                *value = to(channel, *value);
            }
        }
    }
}

/// The nearest value of a type; for integer types, values are already integers in range.
fn round_to(dtype: Dtype, value: f32) -> f32 {
    match dtype {
        Dtype::Uint8 | Dtype::Uint16 | Dtype::Int32 | Dtype::Float32 => value,
        Dtype::Float16 => f16::from_f32(value).to_f32(),
    }
}
