//! Compares ways to store a JPEG's coefficients: `form_study FILE.jpg ..`.
//!
//! For each layout it prints the bytes relative to the files, as they are, behind LZ4, and by the
//! order-0 statistics of each stream; for the two forms that exist also the time to unpack them.
#![expect(clippy::print_stdout, reason = "what it finds is its result")]

use meetpoint_jpeg::form::{Form, FormReader, RowComponent, RowScratch};
use meetpoint_jpeg::{Block, Coefficients, Cpu, read_coefficients, to_form};
use std::collections::BinaryHeap;
use std::error::Error;

/// Times that each picture is unpacked; the least time counts.
const TURNS: usize = 5;

/// Natural-order index of each zigzag index.
const NATURAL: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Number of separate byte streams of a layout.
type Streams = Vec<Vec<u8>>;

fn main() -> Result<(), Box<dyn Error>> {
    let names = [
        "masks, bytes",
        "masks, half bytes",
        "by band",
        "by band and kind",
        "2x4 groups",
        "2x4 half bytes",
    ];
    let mut sums = vec![[0.0; 4]; names.len()];
    let mut forms = [[0.0; 2]; 2];
    let mut pictures = 0.0;
    for path in std::env::args().skip(1) {
        let file = std::fs::read(path)?;
        let coefficients = read_coefficients(&file)?;
        let layouts: [Streams; 6] = [
            masks(&coefficients, |_, _| 0, false),
            masks(&coefficients, |_, _| 0, true),
            masks(&coefficients, |_, group| group, false),
            masks(&coefficients, |kind, group| 8 * kind + group, false),
            groups(&coefficients, false),
            groups(&coefficients, true),
        ];
        let size = file.len() as f64;
        for (sums, streams) in sums.iter_mut().zip(&layouts) {
            let raw = streams.iter().map(Vec::len).sum::<usize>() as f64;
            let packed = streams.iter().map(|stream| lz4_flex::block::compress(stream).len());
            sums[0] += raw / size;
            sums[1] += packed.sum::<usize>() as f64 / size;
            sums[2] += streams.iter().map(|stream| huffman(stream)).sum::<f64>() / size;
            sums[3] += streams.iter().map(|stream| entropy(stream)).sum::<f64>() / size;
        }
        for (sums, form) in forms.iter_mut().zip([Form::Fast, Form::Compact]) {
            let stored = to_form(&file, form)?;
            sums[0] += stored.len() as f64 / size;
            sums[1] += unpack_us(&stored)?;
        }
        pictures += 1.0;
    }
    println!("| layout | bytes | LZ4 | Huffman | rANS | unpacking |");
    println!("|---|---|---|---|---|---|");
    for (name, sums) in names.iter().zip(sums) {
        let [raw, lz4, huffman, entropy] = sums.map(|sum| sum / pictures);
        println!("| {name} | {raw:.3} | {lz4:.3} | {huffman:.3} | {entropy:.3} | |");
    }
    for (name, sums) in ["fast", "compact"].iter().zip(forms) {
        let [bytes, us] = sums.map(|sum| sum / pictures);
        println!("| {name}, with all headers | {bytes:.3} | | | | {us:.0} us |");
    }
    Ok(())
}

/// Each block with whether it is of the first component, and its DC difference.
fn blocks(of: &Coefficients) -> impl Iterator<Item = (usize, i16, &Block)> {
    of.planes.iter().enumerate().flat_map(|(index, plane)| {
        let mut before = 0;
        plane.blocks.iter().map(move |block| {
            let difference = block.0[0].wrapping_sub(before);
            before = block.0[0];
            (index.min(1), difference, block)
        })
    })
}

/// Appends a number as a byte, or as a byte and two more.
fn push(out: &mut Vec<u8>, value: i16) {
    match i8::try_from(value) {
        Ok(byte) if byte != i8::MIN => out.push(byte as u8),
        _ => {
            out.push(0x80);
            out.extend(value.to_le_bytes());
        }
    }
}

/// A byte with the number of mask bytes, the masks of eight zigzag neighbours each, and the
/// non-zero values in the stream `band`.
fn masks(of: &Coefficients, band: fn(usize, usize) -> usize, halves: bool) -> Streams {
    let mut streams = vec![Vec::new(); 3 + 16 + 16];
    for (kind, difference, block) in blocks(of) {
        push(&mut streams[0], difference);
        let values: Vec<i16> = NATURAL[1..].iter().map(|at| block.0[*at]).chain([0]).collect();
        let used = values.iter().rposition(|value| *value != 0).map_or(0, |last| last / 8 + 1);
        streams[1].push(used as u8);
        for (group, values) in values.chunks(8).take(used).enumerate() {
            let bits = values.iter().rev().map(|value| u8::from(*value != 0));
            streams[3 + band(kind, group)].push(bits.fold(0, |mask, bit| mask << 1 | bit));
            let values = values.iter().filter(|value| **value != 0);
            values.for_each(|value| push_any(&mut streams, 19 + band(kind, group), *value, halves));
        }
    }
    if halves { halve(streams) } else { streams }
}

/// Presence bits of eight groups of two rows of four, their masks, and the non-zero values, by
/// group.
fn groups(of: &Coefficients, halves: bool) -> Streams {
    let mut streams = vec![Vec::new(); 3 + 16 + 16];
    for (kind, difference, block) in blocks(of) {
        push(&mut streams[0], difference);
        let mut present = 0;
        for group in 0..8 {
            let mut mask = 0;
            for member in 0..8 {
                let at = 8 * (group / 2 * 2 + member / 4) + group % 2 * 4 + member % 4;
                if at > 0 && block.0[at] != 0 {
                    mask |= 1 << member;
                    push_any(&mut streams, 19 + 8 * kind + group, block.0[at], halves);
                }
            }
            if mask != 0 {
                present |= 1 << group;
                streams[3 + 8 * kind + group].push(mask);
            }
        }
        streams[1].push(present);
    }
    if halves { halve(streams) } else { streams }
}

/// Appends a half byte to a stream; the part that does not fit goes to stream 2 as bytes.
fn push_any(streams: &mut Streams, stream: usize, value: i16, halves: bool) {
    if !halves {
        push(&mut streams[stream], value);
    } else if (-7..=7).contains(&value) {
        streams[stream].push(value as u8 & 15);
    } else {
        streams[stream].push(8);
        push(&mut streams[2], value);
    }
}

/// Packs two half bytes of the streams of values into a byte.
fn halve(mut streams: Streams) -> Streams {
    for stream in &mut streams[19..] {
        let pairs = stream.chunks(2);
        *stream = pairs.map(|pair| pair[0] | pair.get(1).map_or(0, |high| high << 4)).collect();
    }
    streams
}

/// The counts of the bytes that occur.
fn counts(stream: &[u8]) -> Vec<u64> {
    let mut counts = vec![0; 256];
    stream.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    counts.retain(|count| *count != 0);
    counts
}

/// Bytes of a stream in its own Huffman code, and half a byte for each code length.
fn huffman(stream: &[u8]) -> f64 {
    let mut heap: BinaryHeap<_> = counts(stream).into_iter().map(std::cmp::Reverse).collect();
    let table = heap.len() as f64 / 2.0;
    let mut bits = 0;
    while let (Some(first), Some(second)) = (heap.pop(), heap.pop()) {
        bits += first.0 + second.0;
        heap.push(std::cmp::Reverse(first.0 + second.0));
        if heap.len() == 1 {
            break;
        }
    }
    bits as f64 / 8.0 + table
}

/// Bytes of a stream in an arithmetic code or rANS, and a byte for each frequency.
fn entropy(stream: &[u8]) -> f64 {
    let all = stream.len() as f64;
    let counts = counts(stream);
    let bits = counts.iter().map(|count| *count as f64 * (all / *count as f64).log2());
    bits.sum::<f64>() / 8.0 + counts.len() as f64
}

/// Microseconds to unpack a picture row by row.
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn unpack_us(stored: &[u8]) -> Result<f64, Box<dyn Error>> {
    let mut scratch = RowScratch::default();
    let mut least = f64::MAX;
    let mut buffers: Vec<(Vec<Block>, Vec<u8>)> = Vec::new();
    for _ in 0..TURNS {
        let start = std::time::Instant::now();
        let mut reader = FormReader::open_with(stored, Cpu::detect(), scratch)?;
        let (wide, high) = reader.frame().mcus();
        if buffers.is_empty() {
            let sizes = reader.frame().components.iter().map(|component| {
                wide as usize * usize::from(component.horizontal) * usize::from(component.vertical)
            });
            buffers = sizes.map(|size| (vec![Block([0; 64]); size], vec![0; size])).collect();
        }
        for row in 0..high {
            let into = buffers.iter_mut();
            let mut into: Vec<_> =
                into.map(|(blocks, extents)| RowComponent { blocks, extents }).collect();
            reader.row(row, 0..wide, &mut into)?;
        }
        least = least.min(start.elapsed().as_secs_f64() * 1e6);
        scratch = reader.into_scratch();
    }
    Ok(least)
}
