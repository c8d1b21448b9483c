//! Converts RGB bytes to the recipe's element type, normalisation and layout.
//!
//! A byte has 256 values, so each channel is a table of 256 elements, computed once with the
//! operations and roundings of torchvision.transforms.v2 on PyTorch's CPU tensors:
//!
//! - `to_dtype` with `scale`: the value times float32(1 / 255), like torchvision's `mul_(1.0 /
//!   255)`, or the value divided by 255, like the `div(255)` of its v1; for float16 that float32
//!   result is rounded to float16.
//! - `normalize`: `sub(mean)`, then `div_(std)`, with mean and std rounded to the element type
//!   (float64 to float32, from there to float16) and each result rounded to it.
//! - Rounding is to nearest, ties to even. Elements are written little-endian.
//!
//! The input is rows of planes. Their bytes are first put in the order of the tensor, then
//! converted to elements.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_floats;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod elements;
mod portable;
mod table;
#[cfg(test)]
mod tests;

use crate::Cpu;
use crate::picture_program::TensorProgram;
use crate::planes::Row;
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout};

pub(crate) use elements::convert_elements;
pub use table::ElementTable;

/// Number of values of a byte.
const VALUES: usize = 256;

/// Elements of `N` bytes for each value of each channel.
type Tables<const N: usize> = Box<[[[u8; N]; VALUES]; 3]>;

/// Writes rows as tensors of a type and layout, with a reused buffer of one row.
#[derive(Debug, Clone)]
pub struct TensorWriter {
    cpu: Cpu,
    elements: Elements,
    layout: Layout,
    /// Number of channels: 3 or 1.
    channels: usize,
    /// Bytes of a row in the order of the tensor.
    ordered: Vec<u8>,
    /// For elements of four bytes, the tables of each channel split by byte.
    #[cfg(target_arch = "x86_64")]
    byte_tables: Option<Box<[avx512::ByteTables; 3]>>,
}

#[derive(Debug, Clone)]
enum Elements {
    Uint8,
    Float16(Tables<2>),
    Float32(Tables<4>, Option<Arithmetic>),
}

/// The arithmetic of each channel's table: `(byte * scale - mean) / std`, with each step rounded to
/// float32. With `divides`, the first step is `byte / scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arithmetic {
    /// The factor or divisor.
    pub scale: f32,
    /// Whether bytes are divided by `scale`.
    pub divides: bool,
    /// The mean per channel, subtracted.
    pub mean: [f32; 3],
    /// The standard deviation per channel, a divisor.
    pub std: [f32; 3],
}

impl Arithmetic {
    /// Whether the tables agree with this arithmetic.
    fn agrees(&self, tables: &Tables<4>) -> bool {
        (0..3).all(|channel| {
            (0..=255u8).zip(&tables[channel]).all(|(byte, element)| {
                let value = f32::from(byte);
                let scaled = if self.divides { value / self.scale } else { value * self.scale };
                let centred = scaled - self.mean[channel];
                (centred / self.std[channel]).to_le_bytes() == *element
            })
        })
    }
}

/// The position of a row in a tensor.
#[derive(Debug, Clone, Copy)]
pub struct RowPosition {
    /// The row's index.
    pub y: usize,
    /// Number of rows of the tensor.
    pub height: usize,
    /// Whether the row is written mirrored left to right.
    pub mirrored: bool,
}

impl TensorWriter {
    /// Creates a writer of tensors of 3 channels, or of 1, which is the first plane. Panics if this
    /// machine lacks `cpu`.
    pub fn new(table: &ElementTable, channels: u32, cpu: Cpu) -> Self {
        assert!(cpu.is_available(), "this machine has no {}", cpu.name());
        assert!(channels == 1 || channels == 3, "a picture has 1 or 3 channels");
        let ElementTable { values, dtype, layout, arithmetic } = table;
        let [red, green, blue, _] = values;
        let values = [red, green, blue];
        let elements = match dtype {
            Dtype::Uint8 => Elements::Uint8,
            Dtype::Uint16 | Dtype::Int32 => panic!("a byte becomes no {}", dtype.name()),
            Dtype::Float16 => Elements::Float16(tables(values, |v| f16::from_f32(v).to_le_bytes())),
            Dtype::Float32 => {
                let tables = tables(values, f32::to_le_bytes);
                let arithmetic = arithmetic.agrees(&tables).then_some(*arithmetic);
                Elements::Float32(tables, arithmetic)
            }
        };
        Self {
            cpu,
            #[cfg(target_arch = "x86_64")]
            byte_tables: match &elements {
                Elements::Float32(tables, _) if cpu == Cpu::Avx512 => {
                    Some(Box::new(tables.each_ref().map(avx512::byte_tables)))
                }
                Elements::Float32(..) | Elements::Float16(_) | Elements::Uint8 => None,
            },
            elements,
            layout: *layout,
            channels: channels as usize,
            ordered: Vec::new(),
        }
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        match self.elements {
            Elements::Uint8 => Dtype::Uint8,
            Elements::Float16(_) => Dtype::Float16,
            Elements::Float32(..) => Dtype::Float32,
        }
    }

    /// The writer as data.
    pub(crate) fn export(&self) -> TensorProgram {
        fn bytes<const N: usize>(tables: &Tables<N>, channels: usize) -> Vec<u8> {
            tables[..channels].as_flattened().as_flattened().to_vec()
        }
        let elements = match &self.elements {
            Elements::Uint8 => (0..self.channels).flat_map(|_| 0..=255).collect(),
            Elements::Float16(tables) => bytes(tables, self.channels),
            Elements::Float32(tables, _) => bytes(tables, self.channels),
        };
        let channels = self.channels as u32;
        TensorProgram { dtype: self.dtype(), layout: self.layout, channels, elements }
    }

    /// Writes a row into `out`, which must have exactly the tensor's bytes.
    pub fn write_row(&mut self, row: Row<'_>, place: RowPosition, out: &mut [u8]) {
        let RowPosition { y, height, mirrored } = place;
        let bytes = self.dtype().bytes();
        let elements = self.channels * row.width * height;
        assert_eq!(out.len(), elements * bytes, "the output has the tensor's bytes");
        assert!(y < height, "the row is in the tensor");
        // A single channel is one plane in any layout.
        let layout = if self.channels == 1 { Layout::Nchw } else { self.layout };
        match layout {
            Layout::Nhwc | Layout::Nt | Layout::Ntc => {
                let out = &mut out[y * row.width * 3 * bytes..][..row.width * 3 * bytes];
                if let Elements::Uint8 = self.elements {
                    self.interleave(row, mirrored, out);
                } else {
                    let mut ordered = self.take_ordered(3 * row.width);
                    self.interleave(row, mirrored, &mut ordered);
                    self.convert(&ordered, [0, 1, 2], out);
                    self.ordered = ordered;
                }
            }
            Layout::Nchw | Layout::Nct => {
                let planes = out.chunks_exact_mut(row.width * height * bytes);
                for (channel, (out, from)) in planes.zip(row.planes).enumerate() {
                    let out = &mut out[y * row.width * bytes..][..row.width * bytes];
                    if let Elements::Uint8 = self.elements {
                        self.copy(&from[..row.width], mirrored, out);
                    } else if mirrored {
                        let mut ordered = self.take_ordered(row.width);
                        self.copy(&from[..row.width], mirrored, &mut ordered);
                        self.convert_plane(&ordered, channel, out);
                        self.ordered = ordered;
                    } else {
                        self.convert_plane(&from[..row.width], channel, out);
                    }
                }
            }
        }
    }

    /// Takes the buffer for the bytes of a row.
    fn take_ordered(&mut self, bytes: usize) -> Vec<u8> {
        let mut ordered = std::mem::take(&mut self.ordered);
        ordered.resize(bytes, 0);
        ordered
    }

    fn interleave(&self, row: Row<'_>, mirrored: bool, out: &mut [u8]) {
        match self.cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => avx2::interleave(row, mirrored, out),
            _ => portable::interleave(row, mirrored, out),
        }
    }

    fn copy(&self, from: &[u8], mirrored: bool, out: &mut [u8]) {
        if !mirrored {
            return out.copy_from_slice(from);
        }
        match self.cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => avx2::reverse(from, out),
            _ => portable::reverse(from, out),
        }
    }

    /// Converts bytes of a channel to elements.
    fn convert_plane(&self, from: &[u8], channel: usize, out: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(tables) = &self.byte_tables {
            return avx512::elements(from, &tables[channel], out);
        }
        self.convert(from, [channel; 3], out);
    }

    /// Converts bytes, whose channels alternate by three, to elements.
    fn convert(&self, from: &[u8], channels: [usize; 3], out: &mut [u8]) {
        match &self.elements {
            Elements::Uint8 => out.copy_from_slice(from),
            Elements::Float16(tables) => portable::look_up(from, tables, channels, out),
            Elements::Float32(tables, arithmetic) => {
                let done = match (self.cpu, arithmetic) {
                    #[cfg(target_arch = "x86_64")]
                    (Cpu::Avx2 | Cpu::Avx512, Some(arithmetic)) => {
                        avx2_floats::floats(from, arithmetic, channels, out)
                    }
                    _ => 0,
                };
                // A multiple of three, so that the order of channels continues.
                portable::look_up(&from[done..], tables, channels, &mut out[4 * done..]);
            }
        }
    }
}

fn tables<const N: usize>(
    values: [&[f32; VALUES]; 3],
    encode: impl Fn(f32) -> [u8; N],
) -> Tables<N> {
    Box::new(values.map(|channel| channel.map(&encode)))
}
