//! Raw pixels: binary 8-bit PGM and PPM (Netpbm's `P5` and `P6`).
//!
//! The header is the magic number, width, height and largest value as decimal numbers, separated by
//! white space and comments from `#` to the end of the line; one character of white space follows,
//! then the pixels, row by row (<https://netpbm.sourceforge.net/doc/ppm.html>). As in Pillow, bytes
//! after the pixels are ignored. A largest value other than 255 is an error.

use super::{ImageFormat, Picture};
use crate::{Error, Interrupt};
use meetpoint_format::recipe::DecodeMode;

/// Digits of a number in a header.
const DIGITS_MAX: usize = 10;

/// The content of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    /// 1 or 3.
    channels: usize,
    width: u32,
    height: u32,
    /// Offset of the pixels.
    data: usize,
}

/// Whether bytes start like such a file.
pub(super) fn begins(encoded: &[u8]) -> bool {
    let is_separator = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'#';
    matches!(encoded, [b'P', b'5' | b'6', separator, ..] if is_separator(separator))
}

/// Reads the size from the header.
pub(super) fn size(encoded: &[u8]) -> Result<(u32, u32), Error> {
    header(encoded).map(|header| (header.width, header.height))
}

/// Upper bound of the bytes for decoding: the pixels as RGB.
pub(super) fn decode_bytes(encoded: &[u8]) -> Result<u64, Error> {
    let (width, height) = size(encoded)?;
    Ok(u64::from(width) * u64::from(height) * 3)
}

/// Decodes the whole picture to RGB.
pub(super) fn decode(
    encoded: &[u8],
    out: &mut Picture,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let (header, pixels) = read(encoded)?;
    out.set_size(header.width, header.height);
    let width = (header.width as usize).max(1);
    let rows = pixels.chunks_exact(width * header.channels);
    for (out, row) in out.pixels.chunks_exact_mut(3 * width).zip(rows) {
        interrupt.check()?;
        if header.channels == 3 {
            out.copy_from_slice(row);
        } else {
            for (out, grey) in out.as_chunks_mut::<3>().0.iter_mut().zip(row) {
                *out = [*grey; 3];
            }
        }
    }
    Ok(())
}

/// Decodes the whole picture to the bytes of its pixels, in a mode that is not RGB or grey of
/// bytes.
pub(super) fn decode_wide(
    encoded: &[u8],
    mode: DecodeMode,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let (header, pixels) = read(encoded)?;
    if mode != DecodeMode::Rgba {
        let plural = if header.channels == 1 { "" } else { "s" };
        let holds = format_args!("{} channel{plural} of 8 bits", header.channels);
        return Err(ImageFormat::Pnm.not_of_mode(&holds, mode));
    }
    out.clear();
    match header.channels {
        3 => out.extend(pixels.as_chunks::<3>().0.iter().flat_map(|&[r, g, b]| [r, g, b, 255])),
        _ => out.extend(pixels.iter().flat_map(|&grey| [grey, grey, grey, 255])),
    }
    Ok(())
}

/// The header, and the pixels as they are stored.
fn read(encoded: &[u8]) -> Result<(Header, &[u8]), Error> {
    let header = header(encoded)?;
    let pixels = u64::from(header.width) * u64::from(header.height) * header.channels as u64;
    let data = &encoded[header.data..];
    match usize::try_from(pixels).ok().and_then(|bytes| data.get(..bytes)) {
        Some(pixels) => Ok((header, pixels)),
        None => {
            let bytes = data.len();
            Err(damaged(&format_args!("it is truncated after {bytes} of {pixels} bytes of pixels")))
        }
    }
}

fn header(encoded: &[u8]) -> Result<Header, Error> {
    let channels = if encoded.starts_with(b"P6") { 3 } else { 1 };
    let mut at = 2;
    let [width, height, most] = [(); 3].map(|()| number(encoded, &mut at));
    let (width, height, most) = (width?, height?, most?);
    if most != 255 {
        return Err(damaged(&format_args!(
            "its largest value is {most}, and only 255 is supported"
        )));
    }
    match encoded.get(at) {
        Some(byte) if byte.is_ascii_whitespace() => {
            Ok(Header { channels, width, height, data: at + 1 })
        }
        Some(_) => Err(damaged(&"its header ends without white space")),
        None => Err(damaged(&"its header is truncated")),
    }
}

/// Reads a number after white space and comments, and advances past it.
fn number(encoded: &[u8], at: &mut usize) -> Result<u32, Error> {
    loop {
        match encoded.get(*at) {
            None => return Err(damaged(&"its header is truncated")),
            Some(b'#') => {
                let rest = &encoded[*at..];
                let line = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                *at += line.unwrap_or(rest.len());
            }
            Some(byte) if byte.is_ascii_whitespace() => *at += 1,
            Some(_) => break,
        }
    }
    let no_number = || damaged(&"a number is missing in its header");
    let digits = encoded[*at..].iter().take(DIGITS_MAX + 1).take_while(|it| it.is_ascii_digit());
    let mut number = None;
    for digit in digits {
        let before: u64 = number.unwrap_or(0);
        // At most 11 digits.
        number = Some(10 * before + u64::from(digit - b'0'));
        *at += 1;
    }
    number.and_then(|number| u32::try_from(number).ok()).ok_or_else(no_number)
}

fn damaged(reason: &impl ToString) -> Error {
    ImageFormat::Pnm.damaged(reason)
}

#[cfg(test)]
mod tests {
    use super::{begins, size};
    use crate::Error;
    use crate::decode::{Decoder, Picture, decode_into, probe};
    use meetpoint_format::recipe::DecodeMode;
    use meetpoint_jpeg::DecodeOptions;

    fn decoded(encoded: &[u8]) -> Result<Picture, Error> {
        let mut picture = Picture::default();
        decode_into(encoded, None, &mut picture).map(|()| picture)
    }

    #[test]
    fn headers_have_any_white_space_and_comments() {
        for header in ["P6\n2 1\n255\n", "P6 2\t1 255 ", "P6#a\n#b 7\r2 #1\n1\n# \n255\r"] {
            let file = [header.as_bytes(), &[1, 2, 3, 4, 5, 6], b"more"].concat();
            let picture = decoded(&file).unwrap();
            assert_eq!((picture.width, picture.height), (2, 1), "{header:?}");
            assert_eq!(picture.pixels, [1, 2, 3, 4, 5, 6], "{header:?}");
        }
    }

    #[test]
    fn grey_has_three_equal_channels_and_alpha_is_full() {
        let file = b"P5 2 1 255\n\x07\xc8";
        assert_eq!(decoded(file).unwrap().pixels, [7, 7, 7, 200, 200, 200]);
        let mut decoder = Decoder::new(crate::Cpu::Portable);
        let mut out = Vec::new();
        let mut wide = |mode| {
            let options = DecodeOptions::default();
            decoder.decode_wide(file[..].into(), mode, &options, &mut out).map(|_| out.clone())
        };
        assert_eq!(wide(DecodeMode::Rgba).unwrap(), [7, 7, 7, 255, 200, 200, 200, 255]);
        for mode in [DecodeMode::Gray16, DecodeMode::Rgb16, DecodeMode::Float] {
            assert!(matches!(wide(mode), Err(Error::Mode { format: "PNM", .. })));
        }
    }

    #[test]
    fn damaged_files_are_refused_with_the_reason() {
        for (file, reason) in [
            (&b"P6"[..], ""),
            (b"P6 ", "its header is truncated"),
            (b"P6 2 1", "its header is truncated"),
            (b"P6 2 1 255", "its header is truncated"),
            (b"P6 2 1 255x", "white space"),
            (b"P6 2 1 255\n12345", "5 of 6 bytes"),
            (b"P5 -2 1 255\n12", "a number is missing"),
            (b"P5 99999999999 1 255\n", "a number is missing"),
            (b"P5 2 1 65535\n1234", "largest value is 65535"),
            (b"P5 0 1 255\n", "no pixels"),
            (b"P5 #", "its header is truncated"),
            (b"P5 4000000000 4000000000 255\n", ""),
        ] {
            let error = decoded(file).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert!(!begins(b"P4 8 8 255\n") && !begins(b"P55 8") && !begins(b"P6"));
        assert_eq!(size(b"P6 4000000000 7 255\n").unwrap(), (4_000_000_000, 7));
        assert!(matches!(probe(b"P7 1"), Err(Error::UnknownFormat)));
    }
}
