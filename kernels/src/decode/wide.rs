//! Decodes pictures whose pixels are not three bytes: with alpha, 16 bits or floats.
//!
//! Alpha is that of Pillow's `convert("RGBA")`. 16-bit and float numbers are those of the file. A
//! file whose element type differs from that of the mode is an error: values are neither widened
//! nor truncated.

use super::{Decoder, Encoded, ImageFormat, check_bytes, check_size, other, pnm, probe};
use crate::Error;
use meetpoint_format::recipe::DecodeMode;
use meetpoint_jpeg::{DecodeOptions, OutputColour};
use std::fmt::Display;

impl ImageFormat {
    /// The error of a file that a mode does not support.
    pub(super) fn not_of_mode(self, holds: &dyn Display, mode: DecodeMode) -> Error {
        Error::Mode { format: self.name(), holds: holds.to_string(), mode: mode.name() }
    }
}

impl Decoder {
    /// Decodes the whole picture to the bytes of its pixels; returns its columns and rows.
    pub(crate) fn decode_wide(
        &mut self,
        encoded: Encoded<'_>,
        mode: DecodeMode,
        options: &DecodeOptions,
        out: &mut Vec<u8>,
    ) -> Result<(u32, u32), Error> {
        let info = probe(encoded.bytes)?;
        check_size(info, None)?;
        if info.format.has_stripes() {
            return self.decode_wide_jpeg((encoded, info.format), mode, options, out);
        }
        self.is_jpeg = false;
        check_bytes(info, encoded.bytes)?;
        let file = (encoded.bytes, &self.interrupt);
        let decoded = match info.format {
            ImageFormat::Tiff => {
                self.tiff.decode_wide(file, mode, &mut self.jpeg, &mut self.picture, out)
            }
            ImageFormat::Pnm => pnm::decode_wide(encoded.bytes, mode, out),
            format => {
                let pixels = u64::from(info.width) * u64::from(info.height);
                other::decode_wide((format, pixels), file, mode, &mut self.scratch, out)
            }
        };
        // The decoder's error comes from the interrupted read, not from the picture.
        self.interrupt.check()?;
        decoded?;
        let pixels = u64::from(info.width) * u64::from(info.height);
        if out.len() as u64 != pixels * mode.pixel_bytes() as u64 {
            return Err(info.format.damaged(&"its data have another size than its header states"));
        }
        Ok((info.width, info.height))
    }

    fn decode_wide_jpeg(
        &mut self,
        (encoded, format): (Encoded<'_>, ImageFormat),
        mode: DecodeMode,
        options: &DecodeOptions,
        out: &mut Vec<u8>,
    ) -> Result<(u32, u32), Error> {
        if mode != DecodeMode::Rgba {
            return Err(format.not_of_mode(&"8 bits a channel", mode));
        }
        let options = DecodeOptions { colour: OutputColour::Rgb, ..*options };
        let mut picture = std::mem::take(&mut self.picture);
        let decoded = self.decode_into_with(encoded, None, &options, &mut picture);
        out.clear();
        let pixels = picture.pixels.as_chunks::<3>().0;
        out.extend(pixels.iter().flat_map(|[red, green, blue]| [*red, *green, *blue, 255]));
        let size = (picture.width, picture.height);
        self.picture = picture;
        decoded.map(|()| size)
    }
}
