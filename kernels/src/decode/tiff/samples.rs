//! Samples of any size to bytes, as Pillow's modes and its `convert("RGB")` take them.

use super::layout::{Chunk, Layout, Meaning, Number};

/// Writes a row of a strip or tile to where it belongs in the picture, a byte a sample.
///
/// A grey picture of more than 8 bits is clipped at 255; of colours of 16 bits the upper byte is
/// taken. Grey of fewer bits than 8 is spread over 0 to 255; indexes of a palette stay.
pub(super) fn narrow(layout: &Layout<'_>, chunk: &Chunk, y: usize, row: &[u8], picture: &mut [u8]) {
    let first = (chunk.y as usize + y) * layout.width as usize + chunk.x as usize;
    let columns = chunk.columns as usize;
    let out = &mut picture[first * layout.kept..][..columns * layout.kept];
    let stored = layout.interleaved();
    let (kept, from) = match layout.is_planar {
        true => (1, chunk.plane),
        false => (layout.kept, 0),
    };
    let mut put = |sample: &dyn Fn(usize) -> u8| {
        for (x, pixel) in out.chunks_exact_mut(layout.kept).enumerate() {
            for (index, value) in pixel[from..from + kept].iter_mut().enumerate() {
                *value = sample(x * stored + index);
            }
        }
    };
    let pair = |index: usize| -> [u8; 2] { row.as_chunks().0[index] };
    let four = |index: usize| -> [u8; 4] { row.as_chunks().0[index] };
    let is_palette = layout.meaning == Meaning::Palette;
    match (layout.bits, layout.number) {
        (8, _) if stored == layout.kept => out.copy_from_slice(&row[..out.len()]),
        (8, _) => put(&|index| row[index]),
        (bits @ (1 | 2 | 4), _) => {
            let most = (1u8 << bits) - 1;
            let spread = if is_palette { 1 } else { 255 / most };
            put(&|index| {
                let bit = index * bits;
                (row[bit / 8] >> (8 - bits - bit % 8) & most) * spread
            });
        }
        (12, _) => put(&|index| {
            let at = index / 2 * 3;
            let value = match index % 2 {
                0 => u16::from(row[at]) << 4 | u16::from(row[at + 1]) >> 4,
                _ => u16::from(row[at + 1] & 15) << 8 | u16::from(row[at + 2]),
            };
            value.min(255) as u8
        }),
        (16, number) => {
            let big = layout.big_endian;
            let value = |index| match big {
                true => u16::from_be_bytes(pair(index)),
                false => u16::from_le_bytes(pair(index)),
            };
            match number {
                Number::Signed => put(&|index| (value(index) as i16).clamp(0, 255) as u8),
                _ if layout.samples == 1 => put(&|index| value(index).min(255) as u8),
                _ => put(&|index| (value(index) >> 8) as u8),
            }
        }
        (_, number) => {
            let value = |index| match layout.big_endian {
                true => u32::from_be_bytes(four(index)),
                false => u32::from_le_bytes(four(index)),
            };
            match number {
                Number::Float => put(&|index| f32::from_bits(value(index)) as u8),
                // Pillow takes unsigned ones for signed ones, too.
                _ => put(&|index| value(index).cast_signed().clamp(0, 255) as u8),
            }
        }
    }
}
