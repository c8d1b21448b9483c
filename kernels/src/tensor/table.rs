//! The elements that the 256 values of a byte become, per channel, while operations are folded in.

use super::{Arithmetic, VALUES};
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout, Scale};

/// What [`Scale::Multiply`] multiplies by.
const FACTOR: f32 = (1.0f64 / 255.0) as f32;

/// What [`Scale::Divide`] divides by.
const DIVISOR: f32 = 255.0;

/// The element of each value of each channel, and how elements are stored.
#[derive(Debug)]
pub struct ElementTable {
    pub(super) values: [[f32; VALUES]; 3],
    pub(super) dtype: Dtype,
    pub(super) layout: Layout,
    /// One scale and one normalisation, which may be all that the table holds.
    pub(super) arithmetic: Arithmetic,
}

impl Default for ElementTable {
    /// Each value as it is.
    fn default() -> Self {
        Self {
            values: [0; 3].map(|_: u8| std::array::from_fn(|value| value as f32)),
            dtype: Dtype::Uint8,
            layout: Layout::Nhwc,
            arithmetic: Arithmetic { scale: 1.0, divides: false, mean: [0.0; 3], std: [1.0; 3] },
        }
    }
}

impl ElementTable {
    /// Sets the order of the axes.
    pub fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Converts to an element type.
    pub fn convert(&mut self, to: Dtype, scale: Scale) {
        let is_scaled = self.dtype == Dtype::Uint8 && to != Dtype::Uint8;
        match scale {
            Scale::None => (),
            Scale::Multiply => self.arithmetic.scale = FACTOR,
            Scale::Divide => {
                self.arithmetic.scale = DIVISOR;
                self.arithmetic.divides = true;
            }
        }
        self.dtype = to;
        self.each(|_, value| {
            let scaled = match scale {
                Scale::Multiply if is_scaled => value * FACTOR,
                Scale::Divide if is_scaled => value / DIVISOR,
                Scale::None | Scale::Multiply | Scale::Divide => value,
            };
            round_to(to, scaled)
        });
    }

    /// Subtracts a mean and divides by a deviation per channel, in the current type.
    pub fn normalize(&mut self, mean: [f32; 3], std: [f32; 3]) {
        (self.arithmetic.mean, self.arithmetic.std) = (mean, std);
        let dtype = self.dtype;
        let [mean, std] = [mean, std].map(|by| by.map(|value| round_to(dtype, value)));
        self.each(|channel, value| {
            round_to(dtype, round_to(dtype, value - mean[channel]) / std[channel])
        });
    }

    fn each(&mut self, to: impl Fn(usize, f32) -> f32) {
        for (channel, values) in self.values.iter_mut().enumerate() {
            for value in values {
                *value = to(channel, *value);
            }
        }
    }
}

/// The nearest value of a type; uint8 values here are whole numbers in its range.
fn round_to(dtype: Dtype, value: f32) -> f32 {
    match dtype {
        Dtype::Uint8 | Dtype::Float32 => value,
        Dtype::Float16 => f16::from_f32(value).to_f32(),
    }
}
