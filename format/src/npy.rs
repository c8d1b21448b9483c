//! Tensors as NumPy `.npy` files, format version 1.0.
//!
//! The format is that of NumPy's documentation, `numpy.lib.format`: magic, version, a header that
//! is a Python dictionary padded so that the data begins at a multiple of 64 bytes, the data.

use crate::recipe::Dtype;
use std::ops::Range;

const MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";
const ALIGNMENT: usize = 64;
/// Digits that NumPy reserves in the header for the first axis, so that it can grow in place.
const GROWTH_DIGITS: usize = 21;

/// Type code in the header: little-endian if the element has a byte order.
fn descr(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Uint8 => "|u1",
        Dtype::Uint16 => "<u2",
        Dtype::Int32 => "<i4",
        Dtype::Float16 => "<f2",
        Dtype::Float32 => "<f4",
    }
}

/// Maximum bytes of a header that is read; [`encode`] writes shorter ones.
const HEADER_BYTES_MAX: usize = 1 << 10;
/// Maximum number of axes of an array that is read.
const AXES_MAX: usize = 4;

/// The bytes of a file that holds `data` (C order, little-endian) as an array of `shape`.
pub fn encode(shape: &[u32], dtype: Dtype, data: &[u8]) -> Vec<u8> {
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

/// The description of the array in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Axes, outermost first.
    pub shape: Vec<u32>,
    /// Element type.
    pub dtype: Dtype,
    /// The position of the data in the file: C order, little-endian.
    pub data: Range<usize>,
}

/// Element type of an array of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Unsigned, 8 bits.
    Uint8,
    /// Signed, 16 bits.
    Int16,
    /// Unsigned, 16 bits.
    Uint16,
    /// Signed, 32 bits.
    Int32,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
}

impl Element {
    const ALL: [Self; 6] =
        [Self::Uint8, Self::Int16, Self::Uint16, Self::Int32, Self::Float32, Self::Float64];

    /// Type code in the header.
    fn descr(self) -> &'static str {
        match self {
            Self::Uint8 => "|u1",
            Self::Int16 => "<i2",
            Self::Uint16 => "<u2",
            Self::Int32 => "<i4",
            Self::Float32 => "<f4",
            Self::Float64 => "<f8",
        }
    }

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }
}

/// The description of an array of measurements in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measurements {
    /// Axes, outermost first.
    pub shape: Vec<u32>,
    /// Element type.
    pub element: Element,
    /// The position of the data in the file: C order, little-endian.
    pub data: Range<usize>,
}

/// Reads the header of a file of version 1.0 in C order with at most four axes; the error is the
/// problem.
pub fn decode(file: &[u8]) -> Result<Header, String> {
    let dtypes = Dtype::ALL;
    let find = |code: &str| dtypes.iter().copied().find(|dtype| descr(*dtype) == code);
    let (shape, dtype, data) = read_header(file, find, Dtype::bytes)?;
    Ok(Header { shape, dtype, data })
}

/// As [`decode`], for the element types of measurements.
pub fn read(file: &[u8]) -> Result<Measurements, String> {
    let find = |code: &str| Element::ALL.into_iter().find(|element| element.descr() == code);
    let (shape, element, data) = read_header(file, find, Element::bytes)?;
    Ok(Measurements { shape, element, data })
}

/// Axes, element type and range of the data.
fn read_header<T: Copy>(
    file: &[u8],
    find: impl Fn(&str) -> Option<T>,
    element_bytes: impl Fn(T) -> usize,
) -> Result<(Vec<u32>, T, Range<usize>), String> {
    let rest = file.strip_prefix(MAGIC).ok_or("it does not begin as a .npy file of version 1.0")?;
    let (length, rest) = rest.split_at_checked(2).ok_or("it ends within its header")?;
    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
    if length > HEADER_BYTES_MAX {
        return Err(format!("its header has {length} bytes"));
    }
    let text = rest.get(..length).ok_or("it ends within its header")?;
    let text = std::str::from_utf8(text).map_err(|_| "its header is not UTF-8")?;
    let value = |key: &str| {
        let (_, after) = text.split_once(&format!("'{key}':"))?;
        Some(after.trim_start())
    };
    let descr = value("descr").and_then(|it| it.strip_prefix('\'')?.split_once('\''));
    let (descr, _) = descr.ok_or("its header has no `descr`")?;
    let element = find(descr).ok_or_else(|| format!("its elements are {descr:?}"))?;
    if !value("fortran_order").is_some_and(|it| it.starts_with("False")) {
        return Err("its elements are not in C order".to_owned());
    }
    let shape = value("shape").and_then(|it| it.strip_prefix('(')?.split_once(')'));
    let (shape, _) = shape.ok_or("its header has no `shape`")?;
    let axes = shape.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let shape: Vec<u32> = axes
        .take(AXES_MAX + 1)
        .map(|axis| axis.parse().map_err(|_| format!("its axes are ({shape})")))
        .collect::<Result<_, _>>()?;
    if shape.len() > AXES_MAX {
        return Err(format!("it has more than {AXES_MAX} axes"));
    }
    let elements = shape.iter().try_fold(1usize, |all, axis| all.checked_mul(*axis as usize));
    let bytes = elements.and_then(|elements| elements.checked_mul(element_bytes(element)));
    let start = MAGIC.len() + 2 + length;
    match bytes {
        Some(bytes) if bytes == file.len() - start => Ok((shape, element, start..file.len())),
        _ => Err(format!("it has {} bytes of data for a shape of {shape:?}", file.len() - start)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Header, decode, encode};
    use crate::recipe::Dtype;

    /// Files written by NumPy; `npy.py` beside them says which version and how.
    #[test]
    fn files_equal_those_that_numpy_writes() {
        let bytes: Vec<u8> = (0..24).collect();
        let halves: Vec<u8> = [0x3c00_u16, 0xc100].iter().flat_map(|h| h.to_le_bytes()).collect();
        let floats: Vec<u8> = [0.5_f32, -1.25, 3.0].iter().flat_map(|f| f.to_le_bytes()).collect();
        assert_eq!(
            encode(&[2, 4, 3], Dtype::Uint8, &bytes),
            include_bytes!("../tests/golden/npy/uint8_2x4x3.npy")
        );
        assert_eq!(
            encode(&[1, 2], Dtype::Float16, &halves),
            include_bytes!("../tests/golden/npy/float16_1x2.npy")
        );
        assert_eq!(
            encode(&[3], Dtype::Float32, &floats),
            include_bytes!("../tests/golden/npy/float32_3.npy")
        );
    }

    #[test]
    fn headers_of_files_that_numpy_wrote_are_read() {
        let of = |shape: &[u32], dtype, file: &[u8]| {
            let header = decode(file).unwrap();
            let data = file.len() - header.data.len()..file.len();
            assert_eq!(header, Header { shape: shape.to_vec(), dtype, data });
        };
        of(&[2, 4, 3], Dtype::Uint8, include_bytes!("../tests/golden/npy/uint8_2x4x3.npy"));
        of(&[1, 2], Dtype::Float16, include_bytes!("../tests/golden/npy/float16_1x2.npy"));
        of(&[3], Dtype::Float32, include_bytes!("../tests/golden/npy/float32_3.npy"));
    }

    #[test]
    fn a_damaged_file_is_refused_and_never_panics() {
        let file = encode(&[2, 4, 3], Dtype::Uint8, &[7; 24]);
        for end in 0..file.len() {
            decode(&file[..end]).unwrap_err();
        }
        for at in 0..file.len() - 24 {
            for byte in [0, b'9', b'(', 0xff] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                if let Ok(header) = decode(&damaged) {
                    assert_eq!(header.data.len(), 24, "byte {at} is {byte}");
                }
            }
        }
    }
}
