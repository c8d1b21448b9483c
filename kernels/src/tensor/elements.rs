//! Operations on the elements of a stored tensor, with the rounding of [`ElementTable`].

use super::{ElementTable, VALUES};
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout, TensorSpec};

/// Index of the element of a channel of a pixel, and the distance to that of the next pixel, both
/// counted in elements.
fn elements_of(spec: &TensorSpec, pixels: usize, channel: usize, pixel: usize) -> (usize, usize) {
    let channels = spec.channels as usize;
    match spec.layout {
        Layout::Nhwc | Layout::Nt | Layout::Ntc => (pixel * channels + channel, channels),
        Layout::Nchw | Layout::Nct => (channel * pixels + pixel, 1),
    }
}

/// Reads every element from an index on, at a distance.
fn read(dtype: Dtype, data: &[u8], at: (usize, usize), values: &mut [f32]) {
    fn each<const N: usize>(
        data: &[u8],
        (first, distance): (usize, usize),
        values: &mut [f32],
        decode: impl Fn([u8; N]) -> f32,
    ) {
        let elements = data.as_chunks().0[first..].iter().step_by(distance);
        values.iter_mut().zip(elements).for_each(|(value, bytes)| *value = decode(*bytes));
    }
    match dtype {
        Dtype::Uint8 => each(data, at, values, |[byte]| f32::from(byte)),
        Dtype::Uint16 => each(data, at, values, |bytes| f32::from(u16::from_le_bytes(bytes))),
        Dtype::Int32 => each(data, at, values, |bytes| i32::from_le_bytes(bytes) as f32),
        Dtype::Float16 => each(data, at, values, |bytes| f16::from_le_bytes(bytes).to_f32()),
        Dtype::Float32 => each(data, at, values, f32::from_le_bytes),
    }
}

/// Writes every element from an index on, at a distance.
fn write(dtype: Dtype, data: &mut [u8], at: (usize, usize), values: &[f32]) {
    fn each<const N: usize>(
        data: &mut [u8],
        (first, distance): (usize, usize),
        values: &[f32],
        encode: impl Fn(f32) -> [u8; N],
    ) {
        let elements = data.as_chunks_mut().0[first..].iter_mut().step_by(distance);
        elements.zip(values).for_each(|(bytes, value)| *bytes = encode(*value));
    }
    match dtype {
        // An integer in its range: no operation converts another type back to this one.
        Dtype::Uint8 => each(data, at, values, |value| [value as u8]),
        Dtype::Uint16 => each(data, at, values, |value| (value as u16).to_le_bytes()),
        Dtype::Int32 => each(data, at, values, |value| (value as i32).to_le_bytes()),
        Dtype::Float16 => each(data, at, values, |value| f16::from_f32(value).to_le_bytes()),
        Dtype::Float32 => each(data, at, values, f32::to_le_bytes),
    }
}

/// Applies the operations that `fold` adds to a table to every element of a tensor.
///
/// The table, normally for the 256 values of a byte, is filled with 256 pixels at a time, so that
/// the results are bit-identical to those of the table. Panics if the tensors do not match their
/// types, or differ in height, width or channels.
pub(crate) fn convert_elements(
    (from, data): (&TensorSpec, &[u8]),
    (to, out): (&TensorSpec, &mut [u8]),
    fold: &dyn Fn(&mut ElementTable),
) {
    assert_eq!((data.len(), out.len()), (from.bytes(), to.bytes()), "bytes of the tensors");
    let shape = |spec: &TensorSpec| (spec.height, spec.width, spec.channels);
    assert_eq!(shape(from), shape(to), "operations on elements leave the shape");
    let pixels = from.height as usize * from.width as usize;
    let channels = from.channels as usize;
    for first in (0..pixels).step_by(VALUES) {
        let count = VALUES.min(pixels - first);
        let mut table =
            ElementTable { dtype: from.dtype, layout: from.layout, ..ElementTable::default() };
        for (channel, values) in table.values.iter_mut().enumerate().take(channels) {
            let at = elements_of(from, pixels, channel, first);
            read(from.dtype, data, at, &mut values[..count]);
        }
        fold(&mut table);
        for (channel, values) in table.values.iter().enumerate().take(channels) {
            write(to.dtype, out, elements_of(to, pixels, channel, first), &values[..count]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_type_move_with_the_order_of_the_axes() {
        // More pixels than a table holds, and no multiple of it.
        let (height, width, pixels) = (23, 13, 299_usize);
        let types = [Dtype::Uint8, Dtype::Uint16, Dtype::Int32, Dtype::Float16, Dtype::Float32];
        for dtype in types {
            for channels in [1, 3, 4] {
                let of = |layout| TensorSpec { dtype, layout, height, width, channels };
                let (from, to) = (of(Layout::Nhwc), of(Layout::Nchw));
                let values: Vec<f32> =
                    (0..pixels * channels as usize).map(|index| (index * 7 % 251) as f32).collect();
                let mut data = vec![0; from.bytes()];
                write(dtype, &mut data, (0, 1), &values);
                let mut moved = vec![0; to.bytes()];
                let fold = |table: &mut ElementTable| table.set_layout(Layout::Nchw);
                convert_elements((&from, &data), (&to, &mut moved), &fold);
                let mut found = vec![0.0; values.len()];
                read(dtype, &moved, (0, 1), &mut found);
                for (index, value) in values.iter().enumerate() {
                    let (pixel, channel) = (index / channels as usize, index % channels as usize);
                    let found = found[channel * pixels + pixel];
                    assert_eq!(found.to_bits(), value.to_bits(), "{dtype:?} {channels}");
                }
                let mut back = vec![0; from.bytes()];
                let fold = |table: &mut ElementTable| table.set_layout(Layout::Nhwc);
                convert_elements((&to, &moved), (&from, &mut back), &fold);
                assert_eq!(back, data, "{dtype:?} {channels}");
            }
        }
    }
}
