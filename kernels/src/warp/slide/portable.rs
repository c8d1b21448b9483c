//! Computes the weighted means of lines, block by block.

use super::weighted_lines::WeightedLines;
use crate::vector::BLOCK;
use crate::warp::taps::bounds;

/// Fills the output.
pub(super) fn weighted_mean<const TAPS: usize>(weighted: WeightedLines<'_, TAPS>) {
    let WeightedLines { lines, weights, error, out, doubtful } = weighted;
    for first in (0..out.len()).step_by(BLOCK) {
        let count = BLOCK.min(out.len() - first);
        let blocks: [&[u8; BLOCK]; TAPS] = lines.map(|line| {
            line[first..].first_chunk().expect("a line goes on for a block behind the end")
        });
        let (mut least, mut most) = ([0; BLOCK], [0; BLOCK]);
        for index in 0..BLOCK {
            let mut sum = 0.0;
            for tap in 0..TAPS {
                sum += weights[tap] * f32::from(blocks[tap][index]);
            }
            [least[index], most[index]] = bounds(sum, error);
        }
        for index in 0..count {
            // The weighted mean of equal bytes is exact.
            let byte = blocks[0][index];
            if blocks.iter().all(|block| block[index] == byte) {
                least[index] = byte;
            } else if least[index] != most[index] {
                doubtful.push(first + index);
            }
        }
        out[first..][..count].copy_from_slice(&least[..count]);
    }
}
