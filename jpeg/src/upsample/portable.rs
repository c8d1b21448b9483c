//! The reference for the upsampling, sample by sample.

use super::{SampleSpan, Side};
use std::ops::Range;

/// Weight of the nearer of two samples; the other one has weight 1.
const NEAR: u16 = 3;

/// Samples with both neighbours: `row` begins one before the first and ends one after the last.
/// Each yields two columns of output.
#[inline(always)]
pub(super) fn h2v1(row: &[u8], out: &mut [u8]) {
    for (samples, out) in row.windows(3).zip(out.chunks_exact_mut(2)) {
        let [left, sample, right] = [samples[0], samples[1], samples[2]].map(u16::from);
        out[0] = ((NEAR * sample + left + 1) >> 2) as u8;
        out[1] = ((NEAR * sample + right + 2) >> 2) as u8;
    }
}

/// The same with two rows.
#[inline(always)]
pub(super) fn h2v2(near: &[u8], far: &[u8], out: &mut [u8]) {
    for ((near, far), out) in near.windows(3).zip(far.windows(3)).zip(out.chunks_exact_mut(2)) {
        let sum = |at: usize| NEAR * u16::from(near[at]) + u16::from(far[at]);
        let [left, sample, right] = [sum(0), sum(1), sum(2)];
        out[0] = ((NEAR * sample + left + 8) >> 4) as u8;
        out[1] = ((NEAR * sample + right + 7) >> 4) as u8;
    }
}

/// The columns outside the interior.
pub(super) fn edges_h2v1(
    row: &[u8],
    span: SampleSpan,
    columns: &Range<usize>,
    interior: &Range<usize>,
    out: &mut [u8],
) {
    let mut make = |column: usize| {
        let [sample, other] = nearest(span, column).map(|at| u16::from(row[at]));
        let round = 1 + (column & 1) as u16;
        out[column - columns.start] = ((NEAR * sample + other + round) >> 2) as u8;
    };
    (columns.start..interior.start).for_each(&mut make);
    (interior.end..columns.end).for_each(&mut make);
}

/// The columns outside the interior.
pub(super) fn edges_h2v2(
    near: &[u8],
    far: &[u8],
    span: SampleSpan,
    columns: &Range<usize>,
    interior: &Range<usize>,
    out: &mut [u8],
) {
    let mut make = |column: usize| {
        let [sample, other] =
            nearest(span, column).map(|at| NEAR * u16::from(near[at]) + u16::from(far[at]));
        let round = 8 - (column & 1) as u16;
        out[column - columns.start] = ((NEAR * sample + other + round) >> 4) as u8;
    };
    (columns.start..interior.start).for_each(&mut make);
    (interior.end..columns.end).for_each(&mut make);
}

/// The indices in the row of the two samples nearest to an output column; at the component's edge
/// the nearest one counts twice.
#[inline(always)]
fn nearest(span: SampleSpan, column: usize) -> [usize; 2] {
    let sample = column / 2;
    let other = match column % 2 {
        0 => sample.saturating_sub(1),
        _ => (sample + 1).min(span.width - 1),
    };
    [sample - span.first, other - span.first]
}

/// Samples between two rows.
#[inline(always)]
pub(super) fn h1v2(near: &[u8], far: &[u8], side: Side, out: &mut [u8]) {
    let round = match side {
        Side::Upper => 1,
        Side::Lower => 2,
    };
    for ((near, far), out) in near.iter().zip(far).zip(out) {
        *out = ((NEAR * u16::from(*near) + u16::from(*far) + round) >> 2) as u8;
    }
}

/// Every sample `factor` times, the first one `before` times fewer.
pub(super) fn replicate(row: &[u8], factor: usize, before: usize, out: &mut [u8]) {
    let (head, rest) = out.split_at_mut((factor - before).min(out.len()));
    head.fill(row[0]);
    for (sample, out) in row[1..].iter().zip(rest.chunks_mut(factor)) {
        out.fill(*sample);
    }
}
