//! From RGB bytes to the recipe's element type, normalisation and layout.
//!
//! A byte has 256 values, so each channel is a table of 256 elements, computed once with the
//! operations and roundings of torchvision.transforms.v2 on PyTorch's CPU tensors:
//!
//! - `to_dtype` with `scale`: the value times float32(1 / 255), as torchvision's `mul_(1.0 / 255)`;
//!   for float16 that float32 product is rounded to float16.
//! - `normalize`: `sub(mean)`, then `div_(std)`, with mean and std rounded to the element type
//!   (float64 to float32, from there to float16) and each result rounded to it.
//! - Rounding is to nearest, ties to even. Elements are written little-endian.

use crate::view::View;
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout, Operation};

/// Values of a byte.
const VALUES: usize = 256;

/// Elements of `N` bytes for each value of each channel.
type Tables<const N: usize> = Box<[[[u8; N]; VALUES]; 3]>;

/// Writes pictures as tensors of a recipe's type and layout.
#[derive(Debug, Clone)]
pub struct TensorWriter {
    elements: Elements,
    layout: Layout,
}

#[derive(Debug, Clone)]
enum Elements {
    Uint8,
    Float16(Tables<2>),
    Float32(Tables<4>),
}

impl TensorWriter {
    /// Takes the operations on elements from those of a recipe; the others don't matter here.
    pub fn new(operations: &[Operation]) -> Self {
        let mut layout = Layout::Nhwc;
        let mut dtype = Dtype::Uint8;
        let mut values = [0; 3].map(|_: u8| std::array::from_fn(|value| value as f32));
        for operation in operations {
            match *operation {
                Operation::Layout { layout: to } => layout = to,
                Operation::ToDtype { dtype: to, scale } => {
                    if scale && dtype == Dtype::Uint8 && to != Dtype::Uint8 {
                        each(&mut values, |_, value| value * (1.0f64 / 255.0) as f32);
                    }
                    dtype = to;
                    each(&mut values, |_, value| round_to(dtype, value));
                }
                Operation::Normalize { mean, std } => {
                    let [mean, std] = [mean, std].map(|by| by.map(|v| round_to(dtype, v as f32)));
                    each(&mut values, |channel, value| {
                        round_to(dtype, round_to(dtype, value - mean[channel]) / std[channel])
                    });
                }
                _ => (),
            }
        }
        let elements = match dtype {
            Dtype::Uint8 => Elements::Uint8,
            Dtype::Float16 => {
                Elements::Float16(tables(&values, |v| f16::from_f32(v).to_le_bytes()))
            }
            Dtype::Float32 => Elements::Float32(tables(&values, f32::to_le_bytes)),
        };
        Self { elements, layout }
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        match self.elements {
            Elements::Uint8 => Dtype::Uint8,
            Elements::Float16(_) => Dtype::Float16,
            Elements::Float32(_) => Dtype::Float32,
        }
    }

    /// Order of the axes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Writes all of `from`, mirrored left to right if asked for, into `out`, which must have
    /// exactly the tensor's bytes.
    pub fn write(&self, from: View<'_>, mirrored: bool, out: &mut [u8]) {
        let elements = from.width() as usize * from.height() as usize * 3;
        assert_eq!(out.len(), elements * self.dtype().bytes(), "the output has the tensor's bytes");
        match &self.elements {
            Elements::Uint8 if self.layout == Layout::Nhwc && !mirrored => {
                let row_bytes = from.width() as usize * 3;
                for (y, out) in out.chunks_exact_mut(row_bytes).enumerate() {
                    out.copy_from_slice(from.row(y));
                }
            }
            Elements::Uint8 => write_as(self.layout, from, mirrored, out, |_, value| [value]),
            Elements::Float16(tables) => {
                let element = |channel: usize, value| tables[channel][usize::from(value)];
                write_as(self.layout, from, mirrored, out, element);
            }
            Elements::Float32(tables) => {
                let element = |channel: usize, value| tables[channel][usize::from(value)];
                write_as(self.layout, from, mirrored, out, element);
            }
        }
    }
}

fn each(values: &mut [[f32; VALUES]; 3], to: impl Fn(usize, f32) -> f32) {
    for (channel, values) in values.iter_mut().enumerate() {
        for value in values {
            *value = to(channel, *value);
        }
    }
}

/// The nearest value of a type; uint8 values here are whole numbers in its range.
fn round_to(dtype: Dtype, value: f32) -> f32 {
    match dtype {
        Dtype::Uint8 | Dtype::Float32 => value,
        Dtype::Float16 => f16::from_f32(value).to_f32(),
    }
}

fn tables<const N: usize>(
    values: &[[f32; VALUES]; 3],
    encode: impl Fn(f32) -> [u8; N],
) -> Tables<N> {
    Box::new(values.map(|channel| channel.map(&encode)))
}

fn write_as<const N: usize>(
    layout: Layout,
    from: View<'_>,
    mirrored: bool,
    out: &mut [u8],
    element: impl Fn(usize, u8) -> [u8; N],
) {
    let row_bytes = from.width() as usize * N;
    match layout {
        Layout::Nhwc => {
            for (y, out) in out.chunks_exact_mut(row_bytes * 3).enumerate() {
                let out = out.as_chunks_mut::<N>().0.as_chunks_mut::<3>().0;
                for_each_pixel(from.row(y), mirrored, out, |out, pixel| {
                    *out = [element(0, pixel[0]), element(1, pixel[1]), element(2, pixel[2])];
                });
            }
        }
        Layout::Nchw => {
            let plane_bytes = row_bytes * from.height() as usize;
            for (channel, plane) in out.chunks_exact_mut(plane_bytes).enumerate() {
                for (y, out) in plane.chunks_exact_mut(row_bytes).enumerate() {
                    let out = out.as_chunks_mut::<N>().0;
                    for_each_pixel(from.row(y), mirrored, out, |out, pixel| {
                        *out = element(channel, pixel[channel]);
                    });
                }
            }
        }
    }
}

/// Pairs the places of a row of the result with the pixels that belong there.
fn for_each_pixel<T>(row: &[u8], mirrored: bool, out: &mut [T], write: impl Fn(&mut T, &[u8; 3])) {
    let pixels = row.as_chunks::<3>().0.iter();
    if mirrored {
        out.iter_mut().rev().zip(pixels).for_each(|(out, pixel)| write(out, pixel));
    } else {
        out.iter_mut().zip(pixels).for_each(|(out, pixel)| write(out, pixel));
    }
}

#[cfg(test)]
mod tests {
    use super::TensorWriter;
    use crate::view::View;
    use crate::{Picture, Region, golden};
    use meetpoint_format::recipe::{Dtype, Layout, Operation};

    fn written(operations: &[Operation], from: View<'_>, mirrored: bool) -> Vec<u8> {
        let writer = TensorWriter::new(operations);
        let elements = (from.width() * from.height() * 3) as usize;
        let mut out = vec![0xaa; elements * writer.dtype().bytes()];
        writer.write(from, mirrored, &mut out);
        out
    }

    #[test]
    fn every_value_of_a_byte_becomes_what_numpy_computes() {
        let pixels = (0..=255u8).flat_map(|value| [value; 3]).collect();
        let picture = Picture { width: 256, height: 1, pixels };
        for (words, expected) in golden::lines(include_str!("../tests/golden/tensors.txt")) {
            let [dtype, scale, numbers @ ..] = &words[..] else { panic!("{words:?}") };
            let dtype = match *dtype {
                "float16" => Dtype::Float16,
                "float32" => Dtype::Float32,
                other => panic!("no type {other}"),
            };
            let mut operations = vec![Operation::ToDtype { dtype, scale: *scale == "True" }];
            if *numbers != ["none"] {
                let [mean, std] = [0, 3]
                    .map(|from| [0, 1, 2].map(|channel| golden::number(numbers[from + channel])));
                operations.push(Operation::Normalize { mean, std });
            }
            let made = written(&operations, View::whole(&picture), false);
            // A few elements in full, so that a failure can be read.
            let bytes = 3 * dtype.bytes();
            let some: Vec<u8> = [0, 1, 100, 255]
                .iter()
                .flat_map(|v| &made[v * bytes..][..bytes])
                .copied()
                .collect();
            assert_eq!(some, golden::bytes(expected[1]), "{words:?}");
            assert_eq!(golden::sha256(&made), expected[0], "{words:?}");
        }
    }

    const TO_FLOAT: Operation = Operation::ToDtype { dtype: Dtype::Float32, scale: false };
    const PLANES: Operation = Operation::Layout { layout: Layout::Nchw };

    /// The elements of a region in the order of the axes, taken one by one.
    fn expected(picture: &Picture, region: Region, mirrored: bool, layout: Layout) -> Vec<u8> {
        let at = |y: u32, x: u32, channel: usize| {
            let x = region.x + if mirrored { region.width - 1 - x } else { x };
            picture.pixels[((region.y + y) * picture.width + x) as usize * 3 + channel]
        };
        let mut elements = Vec::new();
        let outer = if layout == Layout::Nchw { 3 } else { 1 };
        for plane in 0..outer {
            for y in 0..region.height {
                for x in 0..region.width {
                    match layout {
                        Layout::Nchw => elements.push(at(y, x, plane)),
                        Layout::Nhwc => elements.extend([0, 1, 2].map(|c| at(y, x, c))),
                    }
                }
            }
        }
        elements
    }

    #[test]
    fn layouts_mirrors_and_views_put_every_element_in_its_place() {
        let picture = golden::picture("noise", 5, 9, 7);
        let region = Region { x: 2, y: 1, width: 5, height: 4 };
        let view = View::new(&picture, region);
        for mirrored in [false, true] {
            for (layout, operation) in [(Layout::Nhwc, None), (Layout::Nchw, Some(PLANES))] {
                let bytes = expected(&picture, region, mirrored, layout);
                let operations: Vec<_> = operation.into_iter().collect();
                assert_eq!(written(&operations, view, mirrored), bytes);
                let floats: Vec<u8> =
                    bytes.iter().flat_map(|byte| f32::from(*byte).to_le_bytes()).collect();
                let operations: Vec<_> = operations.into_iter().chain([TO_FLOAT]).collect();
                assert_eq!(written(&operations, view, mirrored), floats);
            }
        }
    }

    #[test]
    fn uint8_stays_uint8_whatever_scale_says() {
        let picture = golden::picture("noise", 6, 4, 4);
        let operation = Operation::ToDtype { dtype: Dtype::Uint8, scale: true };
        assert_eq!(written(&[operation], View::whole(&picture), false), picture.pixels);
    }

    #[test]
    #[should_panic(expected = "the output has the tensor's bytes")]
    fn an_output_of_another_size_is_a_broken_invariant() {
        let picture = golden::picture("noise", 6, 4, 4);
        TensorWriter::new(&[]).write(View::whole(&picture), false, &mut [0; 47]);
    }
}
