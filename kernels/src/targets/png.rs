//! Decodes a mask in a PNG to its stored elements, palette indices or grey values.

use crate::decode::PIXELS_MAX;
use crate::target_problem::TargetProblem;
use meetpoint_format::recipe::MaskType;
use png::{BitDepth, ColorType, Decoder, Limits, Transformations};
use std::io::Cursor;

/// Memory limit of the decoder besides the pixels.
const SCRATCH_BYTES: usize = 64 << 20;

/// Columns, rows and elements, little-endian.
pub(super) struct Elements {
    pub(super) size: (u32, u32),
    pub(super) bytes: Vec<u8>,
}

/// Decodes a mask with an element type, for a picture of this size.
pub(super) fn decode(
    encoded: &[u8],
    dtype: MaskType,
    picture: (u32, u32),
) -> Result<Elements, TargetProblem> {
    let broken = |error: png::DecodingError| TargetProblem::MaskPng { reason: error.to_string() };
    let limits = Limits { bytes: SCRATCH_BYTES };
    let mut decoder = Decoder::new_with_limits(Cursor::new(encoded), limits);
    decoder.set_transformations(Transformations::IDENTITY);
    let mut reader = decoder.read_info().map_err(broken)?;
    let info = reader.info();
    let size = (info.width, info.height);
    if size != picture || u64::from(size.0) * u64::from(size.1) > PIXELS_MAX {
        return Err(TargetProblem::MaskSize { mask: size, picture });
    }
    let (colours, depth) = (info.color_type, info.bit_depth);
    let wanted = match dtype {
        MaskType::Uint8 => "a palette, or grey of 1 or 8 bits (dtype = \"uint16\" for 16)",
        MaskType::Uint16 => "a palette, or grey of 1, 8 or 16 bits",
    };
    let fits = match (colours, depth) {
        (ColorType::Indexed, _) => true,
        (ColorType::Grayscale, BitDepth::One | BitDepth::Eight) => true,
        (ColorType::Grayscale, BitDepth::Sixteen) => dtype == MaskType::Uint16,
        (ColorType::Grayscale, BitDepth::Two | BitDepth::Four) => false,
        (ColorType::GrayscaleAlpha | ColorType::Rgb | ColorType::Rgba, _) => false,
    };
    if !fits {
        let found = format!("{} of {} bits", name(colours), depth as u8);
        return Err(TargetProblem::MaskColours { found, wanted });
    }
    let row_bytes = reader.output_line_size(size.0).unwrap_or(usize::MAX);
    let needed = reader.output_buffer_size();
    let mut packed = vec![0; needed.unwrap_or_else(|| row_bytes.saturating_mul(size.1 as usize))];
    reader.next_frame(&mut packed).map_err(broken)?;
    let width = size.0 as usize;
    let mut bytes = Vec::with_capacity(width * size.1 as usize * 2);
    for row in packed.chunks_exact(row_bytes.max(1)).take(size.1 as usize) {
        let bits = depth as usize;
        for x in 0..width {
            let value = match depth {
                BitDepth::Sixteen => u16::from_be_bytes([row[2 * x], row[2 * x + 1]]),
                BitDepth::One | BitDepth::Two | BitDepth::Four | BitDepth::Eight => {
                    let shift = 8 - bits - (x * bits) % 8;
                    let mask = ((1_u16 << bits) - 1) as u8;
                    u16::from((row[x * bits / 8] >> shift) & mask)
                }
            };
            match dtype {
                MaskType::Uint8 => bytes.push(value as u8),
                MaskType::Uint16 => bytes.extend_from_slice(&value.to_le_bytes()),
            }
        }
    }
    Ok(Elements { size, bytes })
}

fn name(colours: ColorType) -> &'static str {
    match colours {
        ColorType::Grayscale => "grey",
        ColorType::GrayscaleAlpha => "grey and alpha",
        ColorType::Rgb => "RGB colours",
        ColorType::Rgba => "RGB colours and alpha",
        ColorType::Indexed => "a palette",
    }
}
