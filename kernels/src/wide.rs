//! Whole pictures whose pixels are not three bytes: with alpha, 16 bits or floats.
//!
//! Such a picture is stored as layers of three planes. The bytes of a pixel are numbered as in a
//! tensor, channel by channel, each little-endian: byte i is in plane i % 3 of layer i / 3.
//! Operations that move pixels move each layer; those that mix pixels use the elements.

use crate::planes::Planes;
use meetpoint_format::recipe::{DecodeMode, Dtype};

/// Maximum number of layers of a picture, for 6 bytes per pixel.
pub(crate) const LAYERS_MAX: usize = 2;

/// Number of planes of a layer.
const PLANES: usize = 3;

/// A picture in layers that owns its memory and reuses it when the size changes.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    layers: [Planes; LAYERS_MAX],
}

/// The number of layers of a picture.
pub(crate) fn count(mode: DecodeMode) -> usize {
    mode.pixel_bytes().div_ceil(PLANES)
}

/// Whether a layer has a single plane.
pub(crate) fn is_single(mode: DecodeMode, layer: usize) -> bool {
    mode.pixel_bytes() - layer * PLANES == 1
}

/// One element of a pixel: the range and the type of its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channel {
    first: usize,
    dtype: Dtype,
}

impl Channel {
    /// A channel of a picture.
    pub(crate) fn of(mode: DecodeMode, channel: usize) -> Self {
        Self { first: channel * mode.dtype().bytes(), dtype: mode.dtype() }
    }
}

impl Layers {
    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.layers[0].size()
    }

    /// Sets the size. The pixels are unspecified.
    pub(crate) fn set_size(&mut self, mode: DecodeMode, (width, height): (usize, usize)) {
        for layer in &mut self.layers[..count(mode)] {
            layer.set_size(width, height);
        }
    }

    /// A layer.
    pub(crate) fn layer(&self, layer: usize) -> &Planes {
        &self.layers[layer]
    }

    /// A layer to change.
    pub(crate) fn layer_mut(&mut self, layer: usize) -> &mut Planes {
        &mut self.layers[layer]
    }

    /// Stores the pixels of a picture.
    pub(crate) fn put(&mut self, mode: DecodeMode, size: (usize, usize), pixels: &[u8]) {
        let bytes = mode.pixel_bytes();
        self.set_size(mode, size);
        for (y, row) in pixels.chunks_exact((size.0 * bytes).max(1)).enumerate() {
            for byte in 0..bytes {
                let out = self.layers[byte / PLANES].row_mut(byte % PLANES, y);
                for (out, pixel) in out.iter_mut().zip(row.chunks_exact(bytes)) {
                    *out = pixel[byte];
                }
            }
        }
    }

    /// Copies all pixels to `pixels`.
    pub(crate) fn take(&self, mode: DecodeMode, pixels: &mut Vec<u8>) {
        let (width, height) = self.size();
        let bytes = mode.pixel_bytes();
        pixels.clear();
        pixels.resize(width * height * bytes, 0);
        for (y, row) in pixels.chunks_exact_mut((width * bytes).max(1)).enumerate() {
            for byte in 0..bytes {
                let from = self.layers[byte / PLANES].row(byte % PLANES, y);
                for (pixel, value) in row.chunks_exact_mut(bytes).zip(from) {
                    pixel[byte] = *value;
                }
            }
        }
    }

    /// The numbers of a channel in a row, which are exact in float32.
    pub(crate) fn numbers(&self, channel: Channel, y: usize, out: &mut [f32]) {
        let row = |byte: usize| {
            let byte = channel.first + byte;
            self.layers[byte / PLANES].row(byte % PLANES, y)
        };
        match channel.dtype {
            Dtype::Uint8 => {
                out.iter_mut().zip(row(0)).for_each(|(out, byte)| *out = f32::from(*byte));
            }
            Dtype::Uint16 => {
                let bytes = row(0).iter().zip(row(1));
                for (out, (low, high)) in out.iter_mut().zip(bytes) {
                    *out = f32::from(u16::from_le_bytes([*low, *high]));
                }
            }
            Dtype::Int32 | Dtype::Float16 => unreachable!("a picture of 16 bits or floats"),
            Dtype::Float32 => {
                let rows = [0, 1, 2, 3].map(row);
                for (x, out) in out.iter_mut().enumerate() {
                    *out = f32::from_le_bytes(rows.map(|row| row[x]));
                }
            }
        }
    }

    /// Sets the numbers of a channel in a row, which must be valid for the picture's type.
    pub(crate) fn set_numbers(&mut self, channel: Channel, y: usize, numbers: &[f32]) {
        let mut put = |byte: usize, of: &dyn Fn(f32) -> u8| {
            let at = channel.first + byte;
            let out = self.layers[at / PLANES].row_mut(at % PLANES, y);
            out.iter_mut().zip(numbers).for_each(|(out, number)| *out = of(*number));
        };
        for byte in 0..channel.dtype.bytes() {
            match channel.dtype {
                Dtype::Uint8 => put(byte, &|number| number as u8),
                Dtype::Uint16 => put(byte, &|number| (number as u16).to_le_bytes()[byte]),
                Dtype::Int32 | Dtype::Float16 => unreachable!("a picture of 16 bits or floats"),
                Dtype::Float32 => put(byte, &|number| number.to_le_bytes()[byte]),
            }
        }
    }

    /// Premultiplies the colours of a picture by its alpha: Pillow's `convert("RGBa")`.
    pub(crate) fn multiply(&mut self) {
        self.each_pixel(|colour, alpha| {
            let product = u32::from(colour) * u32::from(alpha) + 128;
            (((product >> 8) + product) >> 8) as u8
        });
    }

    /// Divides the colours of a picture by its alpha: Pillow's `convert("RGBA")` of mode `RGBa`.
    pub(crate) fn divide(&mut self) {
        self.each_pixel(|colour, alpha| match alpha {
            0 | 255 => colour,
            _ => (255 * u32::from(colour) / u32::from(alpha)).min(255) as u8,
        });
    }

    /// Changes each colour of each pixel, given the colour and its alpha.
    fn each_pixel(&mut self, change: impl Fn(u8, u8) -> u8) {
        let [colours, alphas] = &mut self.layers;
        let (_, height) = colours.size();
        for y in 0..height {
            let alpha = alphas.row(0, y);
            for plane in colours.pixels_mut(y) {
                for (colour, alpha) in plane.iter_mut().zip(alpha) {
                    *colour = change(*colour, *alpha);
                }
            }
        }
    }
}
