//! Writes a tensor as a NumPy `.npy` file, format version 1.0.
//!
//! The format is that of NumPy's documentation, `numpy.lib.format`: magic, version, a header that
//! is a Python dictionary padded so that the data begins at a multiple of 64 bytes, the data.

use meetpoint_format::recipe::Dtype;

const MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";
const ALIGNMENT: usize = 64;
/// NumPy leaves room for the first axis to grow to so many digits in place.
const GROWTH_DIGITS: usize = 21;

/// Type code in the header: little-endian where the element has an order of bytes.
fn descr(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Uint8 => "|u1",
        Dtype::Float16 => "<f2",
        Dtype::Float32 => "<f4",
    }
}

/// The bytes of a file that holds `data` (C order, little-endian) as an array of `shape`.
pub(crate) fn encode(shape: &[u32], dtype: Dtype, data: &[u8]) -> Vec<u8> {
    let elements: usize = shape.iter().map(|&axis| axis as usize).product();
    assert_eq!(data.len(), elements * dtype.bytes(), "the data fills the shape");
    let axes: Vec<String> = shape.iter().map(u32::to_string).collect();
    // A Python tuple of one element needs its comma.
    let tuple = if let [axis] = axes.as_slice() { format!("{axis},") } else { axes.join(", ") };
    let mut header =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({tuple}), }}", descr(dtype));
    let room = axes.first().map_or(0, |axis| GROWTH_DIGITS - axis.len());
    header.push_str(&" ".repeat(room));
    let unpadded = MAGIC.len() + 2 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(ALIGNMENT) - unpadded));
    header.push('\n');
    let header_bytes = u16::try_from(header.len()).expect("a header of a few axes is short");
    let mut file = Vec::with_capacity(MAGIC.len() + 2 + header.len() + data.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&header_bytes.to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

#[cfg(test)]
mod tests {
    use super::encode;
    use meetpoint_format::recipe::Dtype;

    /// Files written by NumPy; `golden/npy.py` tells which version and how.
    #[test]
    fn files_equal_those_that_numpy_writes() {
        let bytes: Vec<u8> = (0..24).collect();
        let halves: Vec<u8> = [0x3c00_u16, 0xc100].iter().flat_map(|h| h.to_le_bytes()).collect();
        let floats: Vec<u8> = [0.5_f32, -1.25, 3.0].iter().flat_map(|f| f.to_le_bytes()).collect();
        assert_eq!(
            encode(&[2, 4, 3], Dtype::Uint8, &bytes),
            include_bytes!("../golden/uint8_2x4x3.npy")
        );
        assert_eq!(
            encode(&[1, 2], Dtype::Float16, &halves),
            include_bytes!("../golden/float16_1x2.npy")
        );
        assert_eq!(
            encode(&[3], Dtype::Float32, &floats),
            include_bytes!("../golden/float32_3.npy")
        );
    }
}
