//! torchvision's Gaussian blur: one kernel along the rows, one along the columns.

use crate::Error;
use crate::pixels::Pixels;

/// The weights of a kernel, whose sum is 1.
fn weights(length: u32, sigma: f64) -> Vec<f32> {
    let middle = f64::from(length / 2);
    let weight = |at: u32| {
        let distance = f64::from(at) - middle;
        // The square of a small deviation is 0.
        if distance == 0.0 {
            return 1.0;
        }
        libm::exp(-distance * distance / (2.0 * sigma * sigma))
    };
    let all: Vec<f64> = (0..length).map(weight).collect();
    let sum: f64 = all.iter().sum();
    all.into_iter().map(|weight| (weight / sum) as f32).collect()
}

/// The position inside of a side of a position outside, mirrored at the first and the last one.
fn mirrored(position: i64, length: usize) -> usize {
    let last = length as i64 - 1;
    if last == 0 {
        return 0;
    }
    let inside = position.rem_euclid(2 * last);
    (if inside > last { 2 * last - inside } else { inside }) as usize
}

/// Bytes of the rows that [`blur`] holds besides two pictures: for each row of the kernel, or of
/// the picture where it has fewer, three channels in float32.
pub(crate) fn buffer_bytes(kernel: (u32, u32), (width, height): (u32, u32)) -> u64 {
    let rows = u64::from(kernel.0.min(height));
    rows * 3 * u64::from(width) * size_of::<f32>() as u64
}

/// Blurs a picture with a kernel of a height and width.
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
    // Rows blurred along themselves, one for each row of the kernel: row y lies at y modulo their
    // number, with the number of the row that it holds.
    let kept = down.len().min(height);
    let mut rows = vec![[const { Vec::new() }; 3]; kept];
    let mut held = vec![usize::MAX; kept];
    let mut sums = vec![0f32; width];
    pixels.replace(size, |picture, y, planes| {
        let from = |tap: usize| mirrored((y + tap) as i64 - i64::from(kernel_height / 2), height);
        for tap in 0..down.len() {
            let source = from(tap);
            if held[source % kept] != source {
                held[source % kept] = source;
                for (plane, row) in rows[source % kept].iter_mut().enumerate() {
                    blur_row(picture.row(plane, source), &across, &columns, row);
                }
            }
        }
        for (plane, out) in planes.into_iter().enumerate() {
            sums.fill(0.0);
            for (tap, weight) in down.iter().enumerate() {
                let row = &rows[from(tap) % kept][plane];
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += weight * value;
                }
            }
            for (out, sum) in out.iter_mut().zip(&sums) {
                *out = sum.round_ties_even() as u8;
            }
        }
    })
}

/// A row blurred along itself. `columns` are those of each position that the kernel covers.
fn blur_row(row: &[u8], weights: &[f32], columns: &[usize], out: &mut Vec<f32>) {
    out.clear();
    out.extend((0..row.len()).map(|x| {
        let values = columns[x..].iter().map(|column| f32::from(row[*column]));
        weights.iter().zip(values).fold(0.0, |sum, (weight, value)| sum + weight * value)
    }));
}
