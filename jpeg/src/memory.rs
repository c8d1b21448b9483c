//! How much memory decoding a JPEG takes, computed from its headers.

use super::lenient::Lenient;
use super::markers::Header;
use super::{Block, form, form_of};
use crate::{Error, OnDamage};

/// Bytes for each column of a row of MCUs between coefficients and pixels: the blocks of the row
/// (at most 10 per MCU), samples of each component, and pixels.
const ROW_BYTES_PER_COLUMN: u64 = 256;

/// Copies of a file, or of a part of it, while it is converted.
const FILES_IN_CONVERSION: u64 = 6;

/// Maximum bytes of memory that decoding a file or a coefficient form allocates besides the pixels,
/// by its headers.
pub fn decode_bytes(encoded: &[u8], on_damage: OnDamage) -> Result<u64, Error> {
    match form_of(encoded) {
        Some(_) => form_decode_bytes(encoded),
        None => file_decode_bytes(encoded, on_damage),
    }
}

fn file_decode_bytes(file: &[u8], on_damage: OnDamage) -> Result<u64, Error> {
    let mut header = Header::default();
    let (frame, has_one_scan) = match (header.parse_to_scan(file), on_damage) {
        (Ok(()), _) => (header.frame, header.has_one_sequential_scan()),
        (Err(Error::Damaged { .. }), OnDamage::FillIn) => {
            let lenient = Lenient::open(file)?;
            (*lenient.frame(), lenient.has_one_scan())
        }
        (Err(error), _) => return Err(error),
    };
    let rows = u64::from(frame.width) * ROW_BYTES_PER_COLUMN;
    if has_one_scan {
        return Ok(rows);
    }
    // All coefficients, and the data of a scan without stuffed bytes.
    let components = frame.components().iter();
    let blocks = components.map(|c| u64::from(c.blocks_wide) * u64::from(c.blocks_high));
    Ok(rows + blocks.sum::<u64>() * size_of::<Block>() as u64 + file.len() as u64)
}

/// Upper bound of the bytes of memory for rewriting a file, or for converting it to a coefficient
/// form and back, by its headers; the file itself is not counted.
///
/// All coefficients are held twice, when the result is compared with the file. Files are held as
/// bytes without stuffed bytes, as symbols, as the result, and as the file made from it.
pub fn conversion_bytes(file: &[u8]) -> Result<u64, Error> {
    let mut header = Header::default();
    header.parse_frame_only(file)?;
    let components = header.frame.components().iter();
    let blocks = components.map(|c| u64::from(c.blocks_wide) * u64::from(c.blocks_high));
    let coefficients = blocks.sum::<u64>() * size_of::<Block>() as u64;
    Ok(2 * coefficients + FILES_IN_CONVERSION * file.len() as u64)
}

/// A coefficient form is decoded row by row.
fn form_decode_bytes(stored: &[u8]) -> Result<u64, Error> {
    let (width, _) = form::size(stored)?;
    Ok(u64::from(width) * ROW_BYTES_PER_COLUMN + stored.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::{conversion_bytes, decode_bytes};
    use crate::{Error, OnDamage, golden};
    use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

    #[test]
    fn a_progressive_picture_takes_all_its_coefficients_and_a_baseline_one_some_rows() {
        let picture = golden::picture("wave", 3, 160, 160);
        let [baseline, progressive] = [false, true].map(|is_progressive| {
            let mut file = Vec::new();
            let mut encoder = Encoder::new(&mut file, 85);
            encoder.set_sampling_factor(SamplingFactor::F_2_2);
            encoder.set_progressive(is_progressive);
            encoder.encode(&picture.pixels, 160, 160, ColorType::Rgb).unwrap();
            file
        });
        let rows = 160 * 256;
        assert_eq!(decode_bytes(&baseline, OnDamage::Fail), Ok(rows));
        // 20 x 20 blocks of luma, 10 x 10 of each chroma.
        let coefficients = (400 + 2 * 100) * 128;
        let bytes = rows + coefficients + progressive.len() as u64;
        assert_eq!(decode_bytes(&progressive, OnDamage::Fail), Ok(bytes));
        for file in [&baseline, &progressive] {
            let bytes = 2 * coefficients + 6 * file.len() as u64;
            assert_eq!(conversion_bytes(file), Ok(bytes));
        }
        assert!(conversion_bytes(b"no file").is_err());
        // It reads only headers.
        assert_eq!(decode_bytes(&baseline[..baseline.len() / 2], OnDamage::Fail), Ok(rows));
        let mut damaged = progressive;
        // A table of an invalid width, which libjpeg reads nevertheless.
        let table = [&[0xff, 0xdb, 0, 131, 0x23][..], &[1; 128]].concat();
        damaged.splice(2..2, table);
        assert!(matches!(decode_bytes(&damaged, OnDamage::Fail), Err(Error::Damaged { .. })));
        assert_eq!(decode_bytes(&damaged, OnDamage::FillIn), Ok(bytes + 133));
    }
}
