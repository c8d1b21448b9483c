//! Elements against NumPy, the position of every row, and every instruction set against the
//! portable one.

use super::{ElementTable, RowPosition, TensorWriter};
use crate::planes::{ROW_SLACK, Row};
use crate::{Cpu, Picture, golden};
use meetpoint_format::recipe::{Dtype, Layout, Scale};
use proptest::prelude::*;

/// A whole picture as a tensor. The bytes after the rows are not zero.
fn written(cpu: Cpu, table: &ElementTable, from: &Picture, mirrored: bool) -> Vec<u8> {
    let mut writer = TensorWriter::new(table, 3, cpu);
    let (width, height) = (from.width as usize, from.height as usize);
    let mut out = vec![0xaa; width * height * 3 * writer.dtype().bytes()];
    for (y, pixels) in from.pixels.chunks_exact(width * 3).enumerate() {
        let mut planes = [0, 1, 2].map(|_| vec![0x55; width.next_multiple_of(ROW_SLACK)]);
        for (x, pixel) in pixels.chunks_exact(3).enumerate() {
            (0..3).for_each(|channel| planes[channel][x] = pixel[channel]);
        }
        let row = Row { planes: std::array::from_fn(|channel| &planes[channel][..]), width };
        writer.write_row(row, RowPosition { y, height, mirrored }, &mut out);
    }
    out
}

/// At aligned and unaligned addresses.
#[test]
fn large_tensors_are_the_same_at_every_address() {
    let (width, height) = (168, 160);
    let plane: Vec<u8> = (0..width * height).map(|at| (at * 7 % 251) as u8).collect();
    for layout in [Layout::Nchw, Layout::Nhwc] {
        let mut table = ElementTable::default();
        table.convert(Dtype::Float32, Scale::Multiply);
        table.normalize([0.485, 0.456, 0.406, 0.0], [0.229, 0.224, 0.225, 1.0]);
        table.set_layout(layout);
        let made = |cpu: Cpu, offset: usize| {
            let mut writer = TensorWriter::new(&table, 3, cpu);
            let bytes = width * height * 3 * 4;
            let mut memory = vec![0xaa; bytes + 64];
            let start = memory.as_ptr().align_offset(32) + offset;
            let out = &mut memory[start..start + bytes];
            for y in 0..height {
                let from = &plane[y * width..][..width];
                let mut padded = from.to_vec();
                padded.resize(width.next_multiple_of(ROW_SLACK), 0);
                let row = Row { planes: [&padded, &padded, &padded], width };
                writer.write_row(row, RowPosition { y, height, mirrored: y % 2 == 0 }, out);
            }
            out.to_vec()
        };
        let expected = made(Cpu::Portable, 0);
        for cpu in golden::instruction_sets() {
            for offset in [0, 4, 16] {
                assert!(made(cpu, offset) == expected, "{} {layout:?} {offset}", cpu.name());
            }
        }
    }
}

#[test]
fn every_value_of_a_byte_becomes_what_numpy_computes() {
    let pixels = (0..=255u8).flat_map(|value| [value; 3]).collect();
    let picture = Picture { width: 256, height: 1, pixels };
    for (words, expected) in golden::lines(include_str!("../../tests/golden/tensors.txt")) {
        let [dtype, scale, numbers @ ..] = &words[..] else { panic!("{words:?}") };
        let dtype = match *dtype {
            "float16" => Dtype::Float16,
            "float32" => Dtype::Float32,
            other => panic!("no type {other}"),
        };
        let scale = match *scale {
            "False" => Scale::None,
            "True" => Scale::Multiply,
            "Divide" => Scale::Divide,
            other => panic!("no scale {other}"),
        };
        let mut table = ElementTable::default();
        table.convert(dtype, scale);
        if *numbers != ["none"] {
            let [mean, std] = [0, 3].map(|from| {
                [0, 1, 2, 2].map(|channel| golden::number::<f64>(numbers[from + channel]) as f32)
            });
            table.normalize(mean, std);
        }
        for cpu in golden::instruction_sets() {
            let made = written(cpu, &table, &picture, false);
            // A few elements in full, so that a failure is readable.
            let bytes = 3 * dtype.bytes();
            let some: Vec<u8> = [0, 1, 100, 255]
                .iter()
                .flat_map(|v| &made[v * bytes..][..bytes])
                .copied()
                .collect();
            assert_eq!(some, golden::bytes(expected[1]), "{} {words:?}", cpu.name());
            assert_eq!(golden::sha256(&made), expected[0], "{} {words:?}", cpu.name());
        }
    }
}

/// The bytes of a picture in the order of the axes, copied one by one.
fn ordered(picture: &Picture, mirrored: bool, layout: Layout) -> Vec<u8> {
    let at = |y: u32, x: u32, channel: usize| {
        let x = if mirrored { picture.width - 1 - x } else { x };
        picture.pixels[(y * picture.width + x) as usize * 3 + channel]
    };
    let mut elements = Vec::new();
    let outer = if layout == Layout::Nchw { 3 } else { 1 };
    for plane in 0..outer {
        for y in 0..picture.height {
            for x in 0..picture.width {
                match layout {
                    Layout::Nchw | Layout::Nct => elements.push(at(y, x, plane)),
                    Layout::Nhwc | Layout::Nt | Layout::Ntc => {
                        elements.extend([0, 1, 2].map(|c| at(y, x, c)));
                    }
                }
            }
        }
    }
    elements
}

proptest! {
    #[test]
    fn layouts_mirrors_and_types_put_every_element_at_its_index(
        seed: u32, width in 1..150u32, height in 1..4u32, mirrored: bool, planes: bool,
    ) {
        let picture = golden::picture("noise", seed, width, height);
        let layout = if planes { Layout::Nchw } else { Layout::Nhwc };
        let bytes = ordered(&picture, mirrored, layout);
        for cpu in golden::instruction_sets() {
            let mut table = ElementTable::default();
            table.set_layout(layout);
            prop_assert_eq!(&written(cpu, &table, &picture, mirrored), &bytes);
            for dtype in [Dtype::Float32, Dtype::Float16] {
                let mut table = ElementTable::default();
                table.set_layout(layout);
                table.convert(dtype, Scale::None);
                let elements = bytes.iter().flat_map(|byte| match dtype {
                    Dtype::Float32 => f32::from(*byte).to_le_bytes().to_vec(),
                    _ => half::f16::from_f32(f32::from(*byte)).to_le_bytes().to_vec(),
                });
                let elements: Vec<u8> = elements.collect();
                prop_assert_eq!(&written(cpu, &table, &picture, mirrored), &elements);
            }
        }
    }
}

#[test]
fn uint8_stays_uint8_whatever_scale_says() {
    let picture = golden::picture("noise", 6, 4, 4);
    let mut table = ElementTable::default();
    table.convert(Dtype::Uint8, Scale::Multiply);
    assert_eq!(written(Cpu::detect(), &table, &picture, false), picture.pixels);
}

#[test]
fn a_tensor_of_one_channel_holds_the_first_plane_in_either_layout() {
    let (width, height) = (45, 2);
    let plane: Vec<u8> = (0..width * height).map(|at| (at * 7) as u8).collect();
    for cpu in golden::instruction_sets() {
        for (layout, mirrored) in
            [(Layout::Nhwc, false), (Layout::Nhwc, true), (Layout::Nchw, true)]
        {
            let mut table = ElementTable::default();
            table.set_layout(layout);
            table.convert(Dtype::Float32, Scale::None);
            table.normalize([3.0, 0.0, 0.0, 0.0], [0.5, 0.1, 0.1, 0.1]);
            let mut writer = TensorWriter::new(&table, 1, cpu);
            let mut out = vec![0; width * height * 4];
            let mut expected = Vec::new();
            for (y, row) in plane.chunks_exact(width).enumerate() {
                let mut padded = row.to_vec();
                padded.resize(width.next_multiple_of(ROW_SLACK), 0x55);
                let others = vec![0xaa; padded.len()];
                let row = Row { planes: [&padded, &others, &others], width };
                writer.write_row(row, RowPosition { y, height, mirrored }, &mut out);
                let mut values: Vec<f32> =
                    padded[..width].iter().map(|value| (f32::from(*value) - 3.0) / 0.5).collect();
                if mirrored {
                    values.reverse();
                }
                expected.extend(values.into_iter().flat_map(f32::to_le_bytes));
            }
            assert_eq!(out, expected, "{} {layout:?} {mirrored}", cpu.name());
        }
    }
}

#[test]
#[should_panic(expected = "the output has the tensor's bytes")]
fn an_output_of_another_size_is_a_broken_invariant() {
    let row = Row { planes: [&[0; 32]; 3], width: 4 };
    let place = RowPosition { y: 0, height: 4, mirrored: false };
    TensorWriter::new(&ElementTable::default(), 3, Cpu::detect()).write_row(
        row,
        place,
        &mut [0; 47],
    );
}
