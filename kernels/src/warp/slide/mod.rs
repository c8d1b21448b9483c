//! Rows of a warp that preserves the distances between columns and interpolates along one axis:
//! translations and shears along the rows.
//!
//! All positions of such a row have the same distance from a column of the source, so the pixels
//! around them are contiguous rows of bytes with the same weights.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;
mod weighted_lines;
mod weighted_mean;

use super::taps::Taps;
use super::{RowOfMap, RowWriter, Warp};
use crate::Cpu;
use crate::planes::Planes;
use crate::vector::BLOCK;
use weighted_lines::WeightedLines;
use weighted_mean::weighted_mean;

/// Positions up to this have more than 20 exact fraction bits.
const POSITION_MAX: f64 = (1 << 20) as f64;

/// Distances further than this from 0, 1/2 and 1 remain on the same side of these despite the
/// rounding of positions, which is at most 2^-31 in one row.
const NEAR: f64 = 1.0 / (1 << 20) as f64;

/// The positions of a row of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slide {
    /// The column and row of the source before the first column of the result.
    at: (i64, i64),
    /// The distance of its position from their centres.
    distance: (f64, f64),
    /// The columns of the result whose positions are inside: start and end.
    inside: (i64, i64),
}

impl Slide {
    /// The slide of a row of a map whose columns are one apart. `None` if it interpolates along
    /// both axes, or its positions differ in their distance from a column.
    fn of(map: &RowOfMap, columns: usize, (width, height): (usize, usize)) -> Option<Self> {
        let (column, row) = map.affine(0);
        let sides = [columns, width, height].map(|side| side as f64);
        let is_near = column.abs() < POSITION_MAX && row.abs() < POSITION_MAX;
        if !is_near || sides.into_iter().any(|side| side >= POSITION_MAX) {
            return None;
        }
        let (x, y) = (column - 0.5, row - 0.5);
        let distance = (x - x.floor(), y - y.floor());
        let (_, part, shift) = map.across;
        let is_whole = |number: f64| number.fract() == 0.0;
        let is_even = if distance.0 == 0.0 {
            is_whole(part) && is_whole(shift)
        } else {
            [0.0, 0.5, 1.0].iter().all(|border| (distance.0 - border).abs() > NEAR)
        };
        if !is_even || distance.0 > 0.0 && distance.1 > 0.0 {
            return None;
        }
        let at = (x.floor() as i64, y.floor() as i64);
        // The first position inside is in the first half of the first pixel, or after it.
        let first = -at.0 - i64::from(distance.0 > 0.5);
        let (first, end) = match (0.0..height as f64).contains(&row) {
            true => (first, first + width as i64),
            false => (0, 0),
        };
        let inside = |column: i64| column.clamp(0, columns as i64);
        Some(Self { at, distance, inside: (inside(first), inside(end)) })
    }
}

/// Scratch memory for the rows of a warp.
#[derive(Debug, Default)]
struct Buffers {
    /// A row of the source with its ends repeated.
    line: Vec<u8>,
    /// Doubtful columns.
    doubtful: Vec<usize>,
}

/// The writer of rows of `warp`, whose map preserves the distances between columns; rows that are
/// not slides are left to `others`.
pub(super) fn slide<'a>(
    warp: &'a Warp,
    taps: Taps,
    cpu: Cpu,
    mut others: RowWriter<'a>,
) -> RowWriter<'a> {
    let mut buffers = Buffers::default();
    Box::new(move |from: &Planes, y, out: [&mut [u8]; 3]| {
        let map = RowOfMap::new(warp.map, y);
        match Slide::of(&map, out[0].len(), from.size()) {
            Some(slide) => slide.write((warp, &map, taps, cpu), from, &mut buffers, out),
            None => others(from, y, out),
        }
    })
}

/// Maximum number of weighted pixels before a column.
const BEFORE: usize = 1;
const BEHIND: usize = 2;

impl Slide {
    /// Writes the row.
    fn write(
        &self,
        (warp, map, taps, cpu): (&Warp, &RowOfMap, Taps, Cpu),
        from: &Planes,
        buffers: &mut Buffers,
        out: [&mut [u8]; 3],
    ) {
        let height = from.size().1 as i64;
        let (begin, end) = (self.inside.0 as usize, self.inside.1 as usize);
        let count = end - begin;
        // The column before the first one inside, at least -1.
        let column = self.at.0 + self.inside.0;
        let row = |row: i64| row.clamp(0, height - 1) as usize;
        for ((plane, out), fill) in out.into_iter().enumerate().zip(warp.fill) {
            out[..begin].fill(fill);
            out[end..].fill(fill);
            let out = &mut out[begin..end];
            if count == 0 {
                continue;
            }
            let lines: [&[u8]; 4] = if self.distance.1 > 0.0 {
                std::array::from_fn(|tap| {
                    let y = row(self.at.1 + tap as i64 - BEFORE as i64);
                    &from.planes()[plane][y * from.stride() + column as usize..]
                })
            } else if self.distance.0 > 0.0 {
                let source = from.row(plane, row(self.at.1));
                pad(source, column, count, &mut buffers.line);
                std::array::from_fn(|tap| &buffers.line[tap..])
            } else {
                let source = from.row(plane, row(self.at.1));
                out.copy_from_slice(&source[column as usize..][..count]);
                continue;
            };
            // One of the two is 0.
            let distance = (self.distance.0 + self.distance.1) as f32;
            let (weights, error) = (taps.weights(distance), taps.error());
            buffers.doubtful.clear();
            let doubtful = &mut buffers.doubtful;
            match taps {
                Taps::Two => {
                    let (lines, weights) = ([lines[1], lines[2]], [weights[1], weights[2]]);
                    weighted_mean(cpu, WeightedLines { lines, weights, error, out, doubtful });
                }
                Taps::Four => {
                    weighted_mean(cpu, WeightedLines { lines, weights, error, out, doubtful })
                }
            }
            for index in &buffers.doubtful {
                let bytes = lines.map(|line| line[*index]);
                let distance = match self.distance.1 > 0.0 {
                    true => self.distance.1,
                    false => {
                        let x = map.affine(begin + index).0 - 0.5;
                        x - x.floor()
                    }
                };
                out[*index] = taps.exact(bytes, distance);
            }
        }
    }
}

/// Copies the bytes of a row from the one before a column on, for `count` columns and a block. The
/// ends of the row are repeated.
fn pad(row: &[u8], column: i64, count: usize, line: &mut Vec<u8>) {
    line.clear();
    let first = column - BEFORE as i64;
    let before = (-first).max(0) as usize;
    line.extend(std::iter::repeat_n(row[0], before));
    let wanted = BEFORE + count + BEHIND;
    let end = (first + wanted as i64).min(row.len() as i64) as usize;
    line.extend_from_slice(&row[first.max(0) as usize..end]);
    line.resize(wanted + BLOCK, row[row.len() - 1]);
}
