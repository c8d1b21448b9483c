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
use crate::vector::{BLOCK, Kernel, run};
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout};
use std::ops::Range;

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

/// A change of the bits of every byte: some are retained, then some are inverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bits {
    /// The bits that are retained; the others become 0.
    pub(crate) retained: u8,
    /// The bits that are inverted after that.
    pub(crate) inverted: u8,
}

impl Bits {
    /// No change.
    pub(crate) const NONE: Self = Self { retained: 0xff, inverted: 0 };

    /// A changed byte.
    #[inline(always)]
    pub(crate) fn of(self, byte: u8) -> u8 {
        (byte & self.retained) ^ self.inverted
    }
}

/// The part of a tensor's row that a row of pixels becomes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPart {
    /// The position of the tensor's row.
    pub(crate) place: RowPosition,
    /// First column of the part in the tensor.
    pub(crate) x: usize,
    /// Columns of the tensor.
    pub(crate) columns: usize,
}

/// Equally long pieces of memory at equal distances.
#[derive(Debug, Clone, Copy)]
struct Pieces {
    /// Offset of the first.
    first: usize,
    /// Bytes of each.
    bytes: usize,
    /// Bytes from the beginning of one to that of the next.
    step: usize,
    count: usize,
}

impl Pieces {
    fn range(self, index: usize) -> Range<usize> {
        let first = self.first + index * self.step;
        first..first + self.bytes
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
        self.write_part(row, RowPart { place, x: 0, columns: row.width }, Bits::NONE, out);
    }

    /// Whether [`Self::write_part`] can change bits.
    pub(crate) fn changes_bits(&self) -> bool {
        matches!(self.elements, Elements::Uint8)
    }

    /// Writes a row into a part of a tensor's row, after a change of the bits of its values, which
    /// requires [`Self::changes_bits`]. `out` must have exactly the tensor's bytes.
    pub(crate) fn write_part(&mut self, row: Row<'_>, part: RowPart, bits: Bits, out: &mut [u8]) {
        assert!(bits == Bits::NONE || self.changes_bits(), "elements have no bits of values");
        let (width, mirrored) = (row.width, part.place.mirrored);
        let pieces = self.pieces(&part, width, out.len());
        if pieces.count == 1 && self.channels == 3 {
            let out = &mut out[pieces.range(0)];
            if let Elements::Uint8 = self.elements {
                return self.interleave(row, mirrored, bits, out);
            }
            let mut ordered = self.take_ordered(3 * width);
            self.interleave(row, mirrored, bits, &mut ordered);
            self.convert(&ordered, [0, 1, 2], out);
            self.ordered = ordered;
            return;
        }
        for (channel, from) in row.planes.into_iter().enumerate().take(self.channels) {
            let (from, out) = (&from[..width], &mut out[pieces.range(channel)]);
            if let Elements::Uint8 = self.elements {
                self.copy(from, mirrored, bits, out);
            } else if mirrored {
                let mut ordered = self.take_ordered(width);
                self.copy(from, mirrored, bits, &mut ordered);
                self.convert_plane(&ordered, channel, out);
                self.ordered = ordered;
            } else {
                self.convert_plane(from, channel, out);
            }
        }
    }

    /// Copies a part of `width` columns of a tensor's row from the same columns of `row`, which is
    /// a tensor of one row.
    pub(crate) fn copy_part(&self, row: &[u8], part: RowPart, width: usize, out: &mut [u8]) {
        if width == 0 {
            return;
        }
        let own = RowPart { place: RowPosition { y: 0, height: 1, ..part.place }, ..part };
        let (from, to) =
            (self.pieces(&own, width, row.len()), self.pieces(&part, width, out.len()));
        for piece in 0..to.count {
            out[to.range(piece)].copy_from_slice(&row[from.range(piece)]);
        }
    }

    /// Bytes of a tensor of one row.
    pub(crate) fn row_bytes(&self, columns: usize) -> usize {
        self.channels * columns * self.dtype().bytes()
    }

    /// The pieces of memory of `width` columns of a row in a tensor of `bytes` bytes: one if all
    /// channels of a pixel are together.
    #[inline]
    fn pieces(&self, part: &RowPart, width: usize, bytes: usize) -> Pieces {
        let &RowPart { place: RowPosition { y, height, .. }, x, columns } = part;
        let (count, channels) = match self.layout {
            Layout::Nhwc | Layout::Nt | Layout::Ntc => (1, self.channels),
            Layout::Nchw | Layout::Nct => (self.channels, 1),
        };
        let pixel = channels * self.dtype().bytes();
        let step = height * columns * pixel;
        assert_eq!(bytes, count * step, "the output has the tensor's bytes");
        assert!(y < height, "the row is in the tensor");
        assert!(x + width <= columns, "the part is in the row");
        Pieces { first: (y * columns + x) * pixel, bytes: width * pixel, step, count }
    }

    /// Takes the buffer for the bytes of a row.
    fn take_ordered(&mut self, bytes: usize) -> Vec<u8> {
        let mut ordered = std::mem::take(&mut self.ordered);
        ordered.resize(bytes, 0);
        ordered
    }

    fn interleave(&self, row: Row<'_>, mirrored: bool, bits: Bits, out: &mut [u8]) {
        match self.cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => avx2::interleave(row, mirrored, bits, out),
            _ => portable::interleave(row, mirrored, bits, out),
        }
    }

    fn copy(&self, from: &[u8], mirrored: bool, bits: Bits, out: &mut [u8]) {
        if mirrored {
            match self.cpu {
                #[cfg(target_arch = "x86_64")]
                Cpu::Avx2 | Cpu::Avx512 => avx2::reverse(from, out),
                _ => portable::reverse(from, out),
            }
            if bits != Bits::NONE {
                run(self.cpu, ChangeBits { bits, bytes: out });
            }
        } else if bits == Bits::NONE {
            out.copy_from_slice(from);
        } else {
            run(self.cpu, CopyBits { bits, from, out });
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

/// Changes the bits of bytes in place.
pub(crate) struct ChangeBits<'a> {
    pub(crate) bits: Bits,
    pub(crate) bytes: &'a mut [u8],
}

impl Kernel for ChangeBits<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { bits, bytes } = self;
        let (blocks, rest) = bytes.as_chunks_mut::<BLOCK>();
        for block in blocks {
            *block = block.map(|byte| bits.of(byte));
        }
        rest.iter_mut().for_each(|byte| *byte = bits.of(*byte));
    }
}

/// Copies bytes and changes their bits.
struct CopyBits<'a> {
    bits: Bits,
    from: &'a [u8],
    out: &'a mut [u8],
}

impl Kernel for CopyBits<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { bits, from, out } = self;
        let ((blocks, rest), (out, last)) =
            (from.as_chunks::<BLOCK>(), out.as_chunks_mut::<BLOCK>());
        for (out, block) in out.iter_mut().zip(blocks) {
            *out = block.map(|byte| bits.of(byte));
        }
        last.iter_mut().zip(rest).for_each(|(out, byte)| *out = bits.of(*byte));
    }
}

fn tables<const N: usize>(
    values: [&[f32; VALUES]; 3],
    encode: impl Fn(f32) -> [u8; N],
) -> Tables<N> {
    Box::new(values.map(|channel| channel.map(&encode)))
}
