//! A picture as pixels of four bytes with its border repeated, from which a warp loads the pixels
//! around a position at once without bounds checks.

use crate::Cpu;
use crate::planes::Planes;
use crate::vector::{Kernel, run};

/// Width of the repeated border: the cubic around a position just before the first pixel starts two
/// pixels before it.
pub(super) const MARGIN: usize = 2;

/// Maximum number of pixels of a packed picture. Larger ones are read from their planes, so that
/// neither the memory nor the time between two polls of the interrupt grows with them.
const PIXELS_MAX: usize = 1 << 24;

/// Bytes of a pixel: red, green, blue, and 0.
pub(super) const PIXEL_BYTES: usize = 4;

/// A packed picture.
pub(super) struct Packed {
    bytes: Vec<u8>,
    /// Pixels from one row to the next.
    stride: usize,
}

/// Upper bound of the bytes of the packed form for a warp of a picture of this size (columns,
/// rows). Warps with nearest pixels do not need it.
pub(crate) fn packed_bytes((width, height): (u32, u32)) -> u64 {
    let margins = 2 * MARGIN as u64;
    let pixels = u64::from(width) * u64::from(height);
    if pixels > PIXELS_MAX as u64 {
        return 0;
    }
    (u64::from(width) + margins) * (u64::from(height) + margins) * PIXEL_BYTES as u64
}

impl Packed {
    /// Packs a picture; `None` if it is too large.
    pub(super) fn of(picture: &Planes, cpu: Cpu) -> Option<Self> {
        let (width, height) = picture.size();
        if width * height > PIXELS_MAX {
            return None;
        }
        let stride = width + 2 * MARGIN;
        let mut bytes = Vec::with_capacity(stride * (height + 2 * MARGIN) * PIXEL_BYTES);
        let mut line = vec![[0; PIXEL_BYTES]; stride];
        for y in 0..height {
            let planes = [0, 1, 2].map(|plane| picture.row(plane, y));
            run(cpu, Interleave { planes, out: &mut line[MARGIN..][..width] });
            let (first, last) = (line[MARGIN], line[MARGIN + width - 1]);
            line[..MARGIN].fill(first);
            line[MARGIN + width..].fill(last);
            let repeats = if y == 0 { MARGIN } else { 0 };
            let repeats = if y + 1 == height { repeats + MARGIN } else { repeats };
            for _ in 0..=repeats {
                bytes.extend_from_slice(line.as_flattened());
            }
        }
        Some(Self { bytes, stride })
    }

    /// The bytes of all pixels.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Pixels from one row to the next.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// The index of a pixel of the picture, or of its margins, among all pixels.
    #[inline(always)]
    pub(super) fn offset(stride: u32, column: i32, row: i32) -> u32 {
        let margin = MARGIN as i32;
        (row + margin) as u32 * stride + (column + margin) as u32
    }
}

/// Interleaves the planes of a row to pixels.
struct Interleave<'a> {
    planes: [&'a [u8]; 3],
    out: &'a mut [[u8; PIXEL_BYTES]],
}

impl Kernel for Interleave<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let [red, green, blue] = self.planes.map(|plane| &plane[..self.out.len()]);
        for (index, out) in self.out.iter_mut().enumerate() {
            let [red, green, blue] = [red, green, blue].map(|plane| u32::from(plane[index]));
            *out = (red | green << 8 | blue << 16).to_le_bytes();
        }
    }
}
