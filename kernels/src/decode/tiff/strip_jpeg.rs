//! JPEG strips and tiles: combined with the shared tables, and decoded.
//!
//! Adobe Photoshop TIFF Technical Note 2, "DRAFT TIFF Technical Note #2".

use super::damaged;
use super::layout::{Chunk, Layout};
use crate::Error;
use crate::decode::{Encoded, Region};
use meetpoint_jpeg::{DecodeOptions, Decoder as JpegDecoder};

const START: [u8; 2] = [0xff, 0xd8];
const SCAN: u8 = 0xda;
const END: u8 = 0xd9;
const ADOBE: [u8; 2] = [0xff, 0xee];

/// Assembles a complete JPEG. The TIFF determines its colours, so segments that could contradict it
/// are left out, and an Adobe segment is added.
pub(super) fn join(
    tables: &[u8],
    strip: &[u8],
    transform: u8,
    jpeg: &mut Vec<u8>,
) -> Result<(), Error> {
    jpeg.clear();
    jpeg.extend(START);
    jpeg.extend(ADOBE);
    jpeg.extend([0, 14]);
    jpeg.extend(b"Adobe");
    jpeg.extend([0, 100, 0, 0, 0, 0, transform]);
    if !tables.is_empty() {
        segments(tables, jpeg)?;
    }
    let data = segments(strip, jpeg)?;
    jpeg.extend(data);
    Ok(())
}

/// Copies the segments before a scan, except application segments and comments, and returns the
/// rest from the scan on; empty if there is no scan.
fn segments<'a>(file: &'a [u8], to: &mut Vec<u8>) -> Result<&'a [u8], Error> {
    let breaks_off = || damaged("a JPEG inside its header is truncateds");
    let mut rest = file.strip_prefix(&START).ok_or_else(|| damaged("a strip is not a JPEG"))?;
    loop {
        let [0xff, marker, after @ ..] = rest else {
            return if rest.is_empty() { Ok(rest) } else { Err(breaks_off()) };
        };
        match *marker {
            SCAN => return Ok(rest),
            END => return Ok(&[]),
            0xff => {
                rest = &rest[1..];
                continue;
            }
            _ => (),
        }
        let [high, low, ..] = after else { return Err(breaks_off()) };
        let length = 2 + usize::from(u16::from_be_bytes([*high, *low]));
        let (segment, behind) = rest.split_at_checked(length).ok_or_else(breaks_off)?;
        if !matches!(*marker, 0xe0..=0xef | 0xfe) {
            to.extend(segment);
        }
        rest = behind;
    }
}

/// Decodes a JPEG to the position of its strip or tile.
pub(super) fn decode(
    decoder: &mut JpegDecoder,
    jpeg: &[u8],
    layout: &Layout<'_>,
    chunk: &Chunk,
    picture: &mut [u8],
) -> Result<(), Error> {
    let options = DecodeOptions::default();
    let encoded = Encoded::from(jpeg);
    let (width, height) = decoder.open(encoded, options.on_damage)?;
    if width != layout.chunk_width || height < chunk.rows || height > layout.chunk_height {
        return Err(damaged(format_args!("a JPEG of {width}x{height} inside it does not fit")));
    }
    let region = Region { x: 0, y: 0, width: chunk.columns, height: chunk.rows };
    let (from, channels) = match layout.is_planar {
        true => (chunk.plane, 1),
        false => (0, layout.kept),
    };
    let mut y = chunk.y as usize;
    decoder.decode_opened(encoded, region, &options, &mut |stripe| {
        for row in 0..stripe.rows {
            let first = (y + row) * layout.width as usize + chunk.x as usize;
            let out = &mut picture[first * layout.kept..][..stripe.width * layout.kept];
            for channel in 0..channels {
                let values = &stripe.row(channel, row)[..stripe.width];
                let samples = out.iter_mut().skip(from + channel).step_by(layout.kept);
                for (sample, value) in samples.zip(values) {
                    *sample = *value;
                }
            }
        }
        y += stripe.rows;
    })?;
    Ok(())
}
