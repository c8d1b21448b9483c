//! Encodings of values in a sample, by their names in the `streaming` library.

use crate::message::Message;
use crate::source::rows::picture::png;
use crate::source::rows::value::{self, Axes, Kind, Value, is_shape_of, width};
use arrow_schema::DataType;

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    encoding: Encoding,
    /// Bytes of each value, if fixed.
    size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Encoding {
    Bytes,
    Text,
    Number(DataType),
    DigitsInt,
    DigitsFloat,
    Array {
        dtype: Option<DataType>,
        shape: Option<Vec<usize>>,
    },
    /// A picture file.
    File,
    /// Pixels.
    Pixels,
    /// Consecutive pictures; whether four reserved bytes precede them.
    Files {
        is_list: bool,
    },
    PixelsList,
}

impl Column {
    pub(super) fn new(name: &str, encoding: &str, size: Option<u64>) -> Result<Self, Message> {
        let (kind, arguments) = encoding.split_once(':').unwrap_or((encoding, ""));
        let number = |dtype| Encoding::Number(dtype);
        let encoding = match kind {
            "bytes" => Encoding::Bytes,
            "str" | "str_decimal" | "json" => Encoding::Text,
            "int" => number(DataType::Int64),
            "str_int" => Encoding::DigitsInt,
            "str_float" => Encoding::DigitsFloat,
            "ndarray" => array(arguments)?,
            "pil" => Encoding::Pixels,
            "jpeg" | "png" => Encoding::File,
            "jpeg_array" | "jpegarray" => Encoding::Files { is_list: false },
            "list[jpeg]" | "list[png]" => Encoding::Files { is_list: true },
            "list[pil]" => Encoding::PixelsList,
            "pkl" => {
                let problem = format!(
                    "column {name:?} contains pickled objects, and reading them would execute \
                         code"
                );
                return Err(Message::from(problem).remedy("write it with another encoding"));
            }
            other => match dtype(other) {
                Some(dtype) => number(dtype),
                None => {
                    return Err(format!("column {name:?} has an unknown encoding {other:?}").into());
                }
            },
        };
        Ok(Self { name: name.to_owned(), encoding, size })
    }

    /// The type of the column; [`Kind::Null`] if each value has its own type.
    pub(super) fn kind(&self) -> Kind {
        match &self.encoding {
            Encoding::Bytes | Encoding::File | Encoding::Pixels => Kind::Bytes,
            Encoding::Text => Kind::Text,
            Encoding::Number(dtype) => Kind::Number(dtype.clone()),
            Encoding::DigitsInt => Kind::Int,
            Encoding::DigitsFloat => Kind::Float,
            Encoding::Array { dtype: Some(dtype), shape: Some(shape) } => {
                Kind::Tensor(dtype.clone(), Axes::Fixed(shape.clone()))
            }
            Encoding::Array { .. } => Kind::Null,
            Encoding::Files { .. } | Encoding::PixelsList => Kind::List(Box::new(Kind::Bytes)),
        }
    }

    /// Whether each value is one picture.
    pub(super) fn is_image(&self) -> bool {
        matches!(self.encoding, Encoding::File | Encoding::Pixels)
    }
}

fn dtype(name: &str) -> Option<DataType> {
    Some(match name {
        "uint8" => DataType::UInt8,
        "int8" => DataType::Int8,
        "uint16" => DataType::UInt16,
        "int16" => DataType::Int16,
        "float16" => DataType::Float16,
        "uint32" => DataType::UInt32,
        "int32" => DataType::Int32,
        "float32" => DataType::Float32,
        "uint64" => DataType::UInt64,
        "int64" => DataType::Int64,
        "float64" => DataType::Float64,
        _ => return None,
    })
}

/// `ndarray`, `ndarray:uint8`, `ndarray:uint8:3,224,224`.
fn array(arguments: &str) -> Result<Encoding, String> {
    let mut parts = arguments.split(':').filter(|part| !part.is_empty());
    let name = parts.next();
    let shape = parts.next();
    let fault = || format!("an array of encoding {arguments:?}");
    let dtype = name.map(|name| dtype(name).ok_or_else(fault)).transpose()?;
    let shape = shape
        .map(|shape| {
            shape.split(',').map(|axis| axis.trim().parse().map_err(|_| fault())).collect()
        })
        .transpose()?;
    if let (Some(dtype), Some(shape)) = (&dtype, &shape) {
        let shape: &Vec<usize> = shape;
        let bytes = shape.iter().try_fold(width(dtype), |product, axis| product.checked_mul(*axis));
        if !bytes.is_some_and(|bytes| is_shape_of(shape, dtype, bytes)) {
            return Err(fault());
        }
    }
    Ok(Encoding::Array { dtype, shape })
}

/// The type of an array's numbers by its byte in the file.
fn dtype_of_byte(byte: u8) -> Option<DataType> {
    Some(match byte {
        8 => DataType::UInt8,
        9 => DataType::Int8,
        16 => DataType::UInt16,
        17 => DataType::Int16,
        18 => DataType::Float16,
        32 => DataType::UInt32,
        33 => DataType::Int32,
        34 => DataType::Float32,
        64 => DataType::UInt64,
        65 => DataType::Int64,
        66 => DataType::Float64,
        _ => return None,
    })
}

/// The values of a sample that starts at offset `at` of its file.
pub(super) fn sample(
    columns: &[Column],
    bytes: &[u8],
    at: u64,
) -> Result<Vec<(String, Value)>, String> {
    let mut next = 0;
    let mut sizes = Vec::with_capacity(columns.len());
    for column in columns {
        sizes.push(match column.size {
            Some(size) => size,
            None => u64::from(word(bytes, &mut next)?),
        });
    }
    let mut fields = Vec::with_capacity(columns.len());
    for (column, size) in columns.iter().zip(sizes) {
        let name = &column.name;
        let end = usize::try_from(size).ok().and_then(|size| next.checked_add(size));
        let value = end.and_then(|end| bytes.get(next..end));
        let value = value
            .ok_or_else(|| format!("column {name:?} of {size} bytes extends beyond the sample"))?;
        let decoded = decode(&column.encoding, value, at + next as u64)
            .map_err(|text| format!("column {name:?}: {text}"))?;
        fields.push((name.clone(), decoded));
        next += value.len();
    }
    if next != bytes.len() {
        return Err(format!("{} bytes after its last column", bytes.len() - next));
    }
    Ok(fields)
}

fn word(bytes: &[u8], next: &mut usize) -> Result<u32, String> {
    let word = bytes.get(*next..*next + 4).ok_or("it ends within a length")?;
    *next += 4;
    Ok(u32::from_le_bytes(word.try_into().expect("four bytes were taken")))
}

fn decode(encoding: &Encoding, bytes: &[u8], at: u64) -> Result<Value, String> {
    let text = || std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8".to_owned());
    Ok(match encoding {
        Encoding::Bytes | Encoding::File => Value::Bytes { bytes: bytes.to_vec(), at: Some(at) },
        Encoding::Text => Value::Text(text()?.to_owned()),
        Encoding::Number(dtype) if bytes.len() == width(dtype) => value::number(dtype, bytes),
        Encoding::Number(dtype) => {
            return Err(format!("{} bytes for a number of type {dtype}", bytes.len()));
        }
        Encoding::DigitsInt => {
            let text = text()?;
            Value::Int(text.parse().map_err(|_| format!("{text:?} is not a 64-bit integer"))?)
        }
        Encoding::DigitsFloat => {
            let text = text()?;
            Value::Float(text.parse().map_err(|_| format!("{text:?} is not a number"))?)
        }
        Encoding::Array { dtype, shape } => tensor(dtype.as_ref(), shape.as_deref(), bytes)?,
        Encoding::Pixels => Value::Bytes { bytes: pixels(bytes)?, at: None },
        Encoding::Files { is_list } => {
            let each = |bytes: &[u8]| Ok(bytes.to_vec());
            pictures(bytes, if *is_list { 4 } else { 0 }, each)?
        }
        Encoding::PixelsList => pictures(bytes, 4, pixels)?,
    })
}

fn tensor(
    dtype: Option<&DataType>,
    shape: Option<&[usize]>,
    bytes: &[u8],
) -> Result<Value, String> {
    let cut = || "an array that ends within its header".to_owned();
    let mut rest = bytes;
    let mut take = |count: usize| {
        let (head, tail) = rest.split_at_checked(count).ok_or_else(cut)?;
        rest = tail;
        Ok::<&[u8], String>(head)
    };
    let dtype = match dtype {
        Some(dtype) => dtype.clone(),
        None => {
            let byte = take(1)?[0];
            dtype_of_byte(byte).ok_or_else(|| format!("an array of type {byte}"))?
        }
    };
    let shape = match shape {
        Some(shape) => shape.to_vec(),
        None => {
            let head = take(1)?[0];
            let (axes, bytes) = (usize::from(head >> 2), 1usize << (head & 3));
            let axis = |axis: &[u8]| {
                let mut wide = [0; 8];
                wide[..axis.len()].copy_from_slice(axis);
                usize::try_from(u64::from_le_bytes(wide)).unwrap_or(usize::MAX)
            };
            take(axes * bytes)?.chunks_exact(bytes).map(axis).collect()
        }
    };
    if !is_shape_of(&shape, &dtype, rest.len()) {
        return Err(format!("{} bytes for an array of {dtype} of shape {shape:?}", rest.len()));
    }
    Ok(Value::Tensor { dtype, shape, bytes: rest.to_vec() })
}

/// Width, height and length of the mode as u32, the mode as text, the pixels.
fn pixels(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut next = 0;
    let (width, height) = (word(bytes, &mut next)?, word(bytes, &mut next)?);
    let length = word(bytes, &mut next)? as usize;
    let mode = bytes.get(next..next.saturating_add(length)).ok_or("pixels without a mode")?;
    let mode = std::str::from_utf8(mode).map_err(|_| "a mode that is not UTF-8".to_owned())?;
    png(mode, width, height, &bytes[next + length..])
}

/// A count, the sizes, the pictures.
fn pictures(
    bytes: &[u8],
    skipped: usize,
    picture: impl Fn(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<Value, String> {
    let mut next = skipped;
    let count = word(bytes, &mut next)? as usize;
    let cut = || "pictures that extend beyond their value".to_owned();
    if count > bytes.len() / 4 {
        return Err(cut());
    }
    let sizes: Vec<u32> = (0..count).map(|_| word(bytes, &mut next)).collect::<Result<_, _>>()?;
    let mut list = Vec::with_capacity(count);
    for size in sizes {
        let end = next.saturating_add(size as usize);
        let value = bytes.get(next..end).ok_or_else(cut)?;
        list.push(Value::Bytes { bytes: picture(value)?, at: None });
        next = end;
    }
    Ok(Value::List(list))
}
