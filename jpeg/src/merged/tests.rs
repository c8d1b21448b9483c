//! Compares the single pass with upsampling followed by conversion, for any part of any row.

use super::{Chroma, to_rgb};
use crate::colour::ycc_to_rgb;
use crate::upsample::{SampleSpan, h2v1, h2v2};
use crate::{Cpu, golden};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

/// Rows of luma, of near and of far Cb and Cr, and some of the samples.
#[derive(Debug, Clone)]
struct Rows {
    luma: Vec<u8>,
    near: [Vec<u8>; 2],
    far: [Vec<u8>; 2],
    width: usize,
    samples: Range<usize>,
}

fn any_rows() -> impl Strategy<Value = Rows> {
    (1..150usize).prop_flat_map(|width| {
        let row = |length| vec(prop_oneof![any::<u8>(), Just(0), Just(255)], length);
        let chroma = || [row(width), row(width)];
        (row(2 * width), chroma(), chroma(), 0..=width, 0..=width).prop_map(
            move |(luma, near, far, a, b)| Rows {
                luma,
                near,
                far,
                width,
                samples: a.min(b)..a.max(b),
            },
        )
    })
}

impl Rows {
    fn columns(&self) -> Range<usize> {
        2 * self.samples.start..2 * self.samples.end
    }

    /// Colours of the samples, given `spare` samples more than they need at either end.
    fn merged(&self, cpu: Cpu, has_rows: bool, spare: usize) -> [Vec<u8>; 3] {
        let Self { luma, near, far, width, samples } = self;
        let first = samples.start.saturating_sub(spare);
        let end = (samples.end + spare).min(*width);
        let with_ends = |rows: &[Vec<u8>; 2]| {
            rows.each_ref().map(|row| {
                let before = row[first.saturating_sub(1)];
                let behind = row[end.min(*width - 1)];
                [&[before], &row[first..end], &[behind]].concat()
            })
        };
        let (near, far) = (with_ends(near), with_ends(far));
        let far = has_rows.then(|| far.each_ref().map(|row| &row[..]));
        let chroma = Chroma { near: near.each_ref().map(|row| &row[..]), far, first };
        let mut rgb = [0; 3].map(|_| vec![0; 2 * samples.len()]);
        let planes = rgb.each_mut().map(|plane| &mut plane[..]);
        to_rgb(cpu, &luma[self.columns()], &chroma, samples.clone(), planes);
        rgb
    }

    /// The same, in two passes over the whole row.
    fn apart(&self, has_rows: bool) -> [Vec<u8>; 3] {
        let Self { luma, near, far, width, .. } = self;
        let span = SampleSpan { first: 0, width: *width };
        let whole = 0..2 * width;
        let chroma = [0, 1].map(|index: usize| {
            let mut full = vec![0; whole.len()];
            let (near, far) = (&near[index], &far[index]);
            match has_rows {
                true => h2v2(Cpu::Portable, near, far, span, whole.clone(), &mut full),
                false => h2v1(Cpu::Portable, near, span, whole.clone(), &mut full),
            }
            full
        });
        let mut rgb = [0; 3].map(|_| vec![0; whole.len()]);
        let to = rgb.each_mut().map(|plane| &mut plane[..]);
        ycc_to_rgb(Cpu::Portable, [luma, &chroma[0], &chroma[1]], to);
        rgb.map(|plane| plane[self.columns()].to_vec())
    }
}

proptest! {
    #[test]
    fn one_pass_equals_two_passes(rows in any_rows(), has_rows: bool, spare in 0..20usize) {
        let expected = rows.apart(has_rows);
        for cpu in golden::instruction_sets() {
            prop_assert_eq!(&rows.merged(cpu, has_rows, spare), &expected, "{}", cpu.name());
        }
    }
}

#[test]
fn every_part_of_a_row_equals_that_part_of_the_whole() {
    let row = |factor: usize, length| -> Vec<u8> {
        (0..length).map(|at| (at * factor % 256) as u8).collect()
    };
    for width in [1, 15, 16, 17, 40] {
        let mut rows = Rows {
            luma: row(67, 2 * width),
            near: [row(89, width), row(23, width)],
            far: [row(151, width), row(203, width)],
            width,
            samples: 0..0,
        };
        for start in 0..width {
            for end in start..=width {
                rows.samples = start..end;
                for has_rows in [false, true] {
                    let expected = rows.apart(has_rows);
                    for cpu in golden::instruction_sets() {
                        let name = cpu.name();
                        let merged = rows.merged(cpu, has_rows, 0);
                        assert_eq!(merged, expected, "{name} {width} {start}..{end}");
                    }
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "out of range")]
fn missing_chroma_is_refused() {
    let rows = [&[1; 20][..]; 2];
    let chroma = Chroma { near: rows, far: None, first: 2 };
    let mut rgb = [[0; 40]; 3];
    let planes = rgb.each_mut().map(|plane| &mut plane[..]);
    to_rgb(Cpu::detect(), &[0; 40], &chroma, 2..22, planes);
}
