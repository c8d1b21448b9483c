//! torchvision's Gaussian blur, with separate kernels along the rows and the columns.

use crate::Error;
use crate::pixels::Pixels;
use crate::vector::{BLOCK, Kernel, run};

/// The weights of a kernel, whose sum is 1.
pub(super) fn weights(length: u32, sigma: f64) -> Vec<f32> {
    let middle = f64::from(length / 2);
    let weight = |at: u32| {
        let distance = f64::from(at) - middle;
        // The square of a small deviation underflows to 0.
        if distance == 0.0 {
            return 1.0;
        }
        libm::exp(-distance * distance / (2.0 * sigma * sigma))
    };
    let all: Vec<f64> = (0..length).map(weight).collect();
    let sum: f64 = all.iter().sum();
    all.into_iter().map(|weight| (weight / sum) as f32).collect()
}

/// Maps a position outside `0..length` into it, mirrored at the first and the last position.
pub(super) fn mirrored(position: i64, length: usize) -> usize {
    let last = length as i64 - 1;
    if last == 0 {
        return 0;
    }
    let inside = position.rem_euclid(2 * last);
    (if inside > last { 2 * last - inside } else { inside }) as usize
}

/// Bytes of the row buffers of [`blur`] besides two pictures: three float32 channels for each row
/// of the kernel, or of the picture if it has fewer.
pub(crate) fn buffer_bytes(kernel: (u32, u32), (width, height): (u32, u32)) -> u64 {
    let rows = u64::from(kernel.0.min(height));
    rows * 3 * u64::from(width) * size_of::<f32>() as u64
}

/// Blurs a picture with a kernel of a given height and width.
pub(super) fn blur(
    (kernel_height, kernel_width): (u32, u32),
    sigma: f64,
    pixels: &mut Pixels<'_>,
) -> Result<(), Error> {
    let across = weights(kernel_width, sigma);
    let down = weights(kernel_height, sigma);
    let size = pixels.size();
    let (width, height) = (size.0 as usize, size.1 as usize);
    let columns: Vec<usize> = (0..width + across.len() - 1)
        .map(|x| mirrored(x as i64 - i64::from(kernel_width / 2), width))
        .collect();
    // Horizontally blurred rows, one for each row of the kernel: row y is at index y modulo their
    // number, stored with y.
    let kept = down.len().min(height);
    let mut rows = vec![[const { Vec::new() }; 3]; kept];
    let mut taken = Vec::with_capacity(down.len());
    let mut held = vec![usize::MAX; kept];
    let mut line = vec![0.0; columns.len()];
    let cpu = pixels.cpu();
    pixels.replace(size, |picture, y, planes| {
        let from = |tap: usize| mirrored((y + tap) as i64 - i64::from(kernel_height / 2), height);
        for tap in 0..down.len() {
            let source = from(tap);
            if held[source % kept] != source {
                held[source % kept] = source;
                for (plane, row) in rows[source % kept].iter_mut().enumerate() {
                    let values = picture.row(plane, source);
                    for (value, column) in line.iter_mut().zip(&columns) {
                        *value = f32::from(values[*column]);
                    }
                    row.resize(width, 0.0);
                    run(cpu, HorizontalBlur { weights: &across, line: &line, out: row });
                }
            }
        }
        for (plane, out) in planes.into_iter().enumerate() {
            taken.clear();
            taken.extend((0..down.len()).map(|tap| from(tap) % kept));
            run(cpu, VerticalBlur { weights: &down, rows: &rows, taken: &taken, plane, out });
        }
    })
}

/// Blurs a row horizontally; its line contains the values of all positions that the kernel covers.
struct HorizontalBlur<'a> {
    weights: &'a [f32],
    line: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for HorizontalBlur<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { weights, line, out } = self;
        let width = out.len();
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        for (index, block) in blocks.iter_mut().enumerate() {
            let mut sums = [0.0; BLOCK];
            for (tap, weight) in weights.iter().enumerate() {
                add(&mut sums, *weight, &line[index * BLOCK + tap..]);
            }
            *block = sums;
        }
        let first = width - rest.len();
        for (x, out) in rest.iter_mut().enumerate() {
            let values = &line[first + x..];
            *out = weights.iter().zip(values).fold(0.0, |sum, (weight, it)| sum + weight * it);
        }
    }
}

/// Adds a weighted block of a row.
#[inline(always)]
fn add(sums: &mut [f32; BLOCK], weight: f32, values: &[f32]) {
    let values: &[f32; BLOCK] = values.first_chunk().expect("the row has a block more");
    for index in 0..BLOCK {
        sums[index] += weight * values[index];
    }
}

/// Computes a row of a plane of the result: the weighted sum of horizontally blurred rows.
struct VerticalBlur<'a> {
    weights: &'a [f32],
    rows: &'a [[Vec<f32>; 3]],
    /// The index of the row for each weight.
    taken: &'a [usize],
    plane: usize,
    out: &'a mut [u8],
}

/// From here to twice this, consecutive float32 numbers differ by 1.
const WHOLE: f32 = 8_388_608.0;

/// Rounds a number from 0 to 255 to the nearest integer, halves to even.
#[inline(always)]
fn rounded(number: f32) -> u8 {
    (number + WHOLE).to_bits() as u8
}

impl Kernel for VerticalBlur<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { weights, rows, taken, plane, out } = self;
        let width = out.len();
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        for (index, block) in blocks.iter_mut().enumerate() {
            let mut sums = [0.0; BLOCK];
            for (weight, taken) in weights.iter().zip(taken) {
                add(&mut sums, *weight, &rows[*taken][plane][index * BLOCK..]);
            }
            for index in 0..BLOCK {
                block[index] = rounded(sums[index]);
            }
        }
        let first = width - rest.len();
        for (x, out) in rest.iter_mut().enumerate() {
            let mut sum = 0.0;
            for (weight, taken) in weights.iter().zip(taken) {
                sum += weight * rows[*taken][plane][first + x];
            }
            *out = rounded(sum);
        }
    }
}
