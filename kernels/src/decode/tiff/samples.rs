//! Stores samples of any size: converted to bytes like Pillow's modes and `convert("RGB")`, or
//! unchanged.

use super::layout::{Chunk, Layout, Meaning, Number};
use meetpoint_format::recipe::DecodeMode;

/// Writes a row of a strip or tile to its position in the picture, one byte per sample.
///
/// Grey of more than 8 bits is clipped at 255; of 16-bit colours the upper byte is used. Grey of
/// fewer than 8 bits is scaled to 0 to 255; palette indices do not change.
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
        (12, _) => put(&|index| twelve(row, index).min(255) as u8),
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
                // Pillow reads unsigned samples as signed, too.
                _ => put(&|index| value(index).cast_signed().clamp(0, 255) as u8),
            }
        }
    }
}

/// Whether samples have the type of a mode of 16 bits or floats.
pub(super) fn are_of(layout: &Layout<'_>, mode: DecodeMode) -> bool {
    let is_grey = matches!(layout.meaning, Meaning::Grey { .. }) && !layout.is_multiplied;
    let is_rgb = layout.meaning == Meaning::Rgb && !layout.is_multiplied;
    match mode {
        DecodeMode::Rgb | DecodeMode::Gray | DecodeMode::Rgba => false,
        DecodeMode::Gray16 => {
            is_grey && layout.number == Number::Unsigned && matches!(layout.bits, 12 | 16)
        }
        DecodeMode::Rgb16 => is_rgb && (layout.number, layout.bits) == (Number::Unsigned, 16),
        DecodeMode::Float => is_grey && (layout.number, layout.bits) == (Number::Float, 32),
    }
}

/// Like [`narrow`], but stores the unchanged numbers, little-endian: 12 or 16 bits as 2 bytes, 32
/// as 4.
pub(super) fn keep(layout: &Layout<'_>, chunk: &Chunk, y: usize, row: &[u8], picture: &mut [u8]) {
    let bytes = layout.bits.next_multiple_of(16) / 8;
    let pixel_bytes = layout.kept * bytes;
    let first = (chunk.y as usize + y) * layout.width as usize + chunk.x as usize;
    let out = &mut picture[first * pixel_bytes..][..chunk.columns as usize * pixel_bytes];
    let stored = layout.interleaved();
    let (kept, from) = match layout.is_planar {
        true => (1, chunk.plane),
        false => (layout.kept, 0),
    };
    for (x, pixel) in out.chunks_exact_mut(pixel_bytes).enumerate() {
        let samples = pixel[from * bytes..][..kept * bytes].chunks_exact_mut(bytes);
        for (index, sample) in samples.enumerate() {
            let index = x * stored + index;
            if layout.bits == 12 {
                sample.copy_from_slice(&twelve(row, index).to_le_bytes());
                continue;
            }
            sample.copy_from_slice(&row[index * bytes..][..bytes]);
            if layout.big_endian {
                sample.reverse();
            }
        }
    }
}

/// A sample of 12 bits.
fn twelve(row: &[u8], index: usize) -> u16 {
    let at = index / 2 * 3;
    match index % 2 {
        0 => u16::from(row[at]) << 4 | u16::from(row[at + 1]) >> 4,
        _ => u16::from(row[at + 1] & 15) << 8 | u16::from(row[at + 2]),
    }
}
