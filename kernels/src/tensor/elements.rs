//! Operations on the elements of a stored tensor, with the rounding of [`ElementTable`].

use super::{ElementTable, VALUES};
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout, TensorSpec};

/// The index of the element of a channel of a pixel.
fn position(spec: &TensorSpec, pixels: usize, channel: usize, pixel: usize) -> usize {
    match spec.layout {
        Layout::Nhwc | Layout::Nt | Layout::Ntc => pixel * spec.channels as usize + channel,
        Layout::Nchw | Layout::Nct => channel * pixels + pixel,
    }
}

fn read(dtype: Dtype, data: &[u8], at: usize) -> f32 {
    match dtype {
        Dtype::Uint8 => f32::from(data[at]),
        Dtype::Uint16 => f32::from(u16::from_le_bytes([data[2 * at], data[2 * at + 1]])),
        Dtype::Int32 => {
            let bytes = data[4 * at..].first_chunk().expect("the tensor has the element");
            i32::from_le_bytes(*bytes) as f32
        }
        Dtype::Float16 => f16::from_le_bytes([data[2 * at], data[2 * at + 1]]).to_f32(),
        Dtype::Float32 => {
            let bytes = data[4 * at..].first_chunk().expect("the tensor has the element");
            f32::from_le_bytes(*bytes)
        }
    }
}

fn write(dtype: Dtype, data: &mut [u8], at: usize, value: f32) {
    match dtype {
        // An integer in its range: no operation converts another type back to this one.
        Dtype::Uint8 => data[at] = value as u8,
        Dtype::Uint16 => data[2 * at..2 * at + 2].copy_from_slice(&(value as u16).to_le_bytes()),
        Dtype::Int32 => data[4 * at..4 * at + 4].copy_from_slice(&(value as i32).to_le_bytes()),
        Dtype::Float16 => {
            data[2 * at..2 * at + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
        }
        Dtype::Float32 => data[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes()),
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
            for (at, value) in values[..count].iter_mut().enumerate() {
                *value = read(from.dtype, data, position(from, pixels, channel, first + at));
            }
        }
        fold(&mut table);
        for (channel, values) in table.values.iter().enumerate().take(channels) {
            for (at, &value) in values[..count].iter().enumerate() {
                write(to.dtype, out, position(to, pixels, channel, first + at), value);
            }
        }
    }
}
