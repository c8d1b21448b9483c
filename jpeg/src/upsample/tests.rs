//! Compares every instruction set with the portable code, parts of rows with whole ones, and the
//! selection with libjpeg-turbo.

use super::{SampleSpan, Side, Upsampling, h1v2, h2v1, h2v2, replicate};
use crate::{Cpu, golden};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

/// Two rows of a component with some padding after its width, and a part of the output columns.
fn any_rows() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, usize, Range<usize>)> {
    (1..200usize, 0..9usize).prop_flat_map(|(width, padding)| {
        let row = || vec(prop_oneof![any::<u8>(), Just(0), Just(255)], width + padding);
        (row(), row(), 0..=2 * width, 0..=2 * width)
            .prop_map(move |(near, far, a, b)| (near, far, width, a.min(b)..a.max(b)))
    })
}

/// libjpeg's h2v2 rule as written there; with `far` equal to `near` also its h2v1 rule except the
/// rounding.
fn whole_h2v2(near: &[u8], far: &[u8], width: usize) -> Vec<u8> {
    let sum = |at: usize| 3 * u32::from(near[at]) + u32::from(far[at]);
    let mut out = Vec::new();
    for at in 0..width {
        let (this, first, last) = (sum(at), at == 0, at == width - 1);
        let left = if first { this * 4 + 8 } else { this * 3 + sum(at - 1) + 8 };
        let right = if last { this * 4 + 7 } else { this * 3 + sum(at + 1) + 7 };
        out.extend([(left >> 4) as u8, (right >> 4) as u8]);
    }
    out
}

/// libjpeg's h2v1 rule as written there.
fn whole_h2v1(row: &[u8], width: usize) -> Vec<u8> {
    let sample = |at: usize| u32::from(row[at]);
    let mut out = Vec::new();
    for at in 0..width {
        let (this, first, last) = (sample(at), at == 0, at == width - 1);
        let left = if first { this } else { (this * 3 + sample(at - 1) + 1) >> 2 };
        let right = if last { this } else { (this * 3 + sample(at + 1) + 2) >> 2 };
        out.extend([left as u8, right as u8]);
    }
    out
}

proptest! {
    #[test]
    fn any_part_of_a_row_equals_that_part_of_the_whole((near, far, width, columns) in any_rows()) {
        let needed = SampleSpan::needed(width, columns.clone());
        let span = SampleSpan { first: needed.start, width };
        let (near_part, far_part) = (&near[needed.clone()], &far[needed]);
        for cpu in golden::instruction_sets() {
            let mut out = vec![0; columns.len()];
            h2v1(cpu, near_part, span, columns.clone(), &mut out);
            prop_assert_eq!(&out, &whole_h2v1(&near, width)[columns.clone()], "{}", cpu.name());
            h2v2(cpu, near_part, far_part, span, columns.clone(), &mut out);
            prop_assert_eq!(
                &out, &whole_h2v2(&near, &far, width)[columns.clone()], "{}", cpu.name()
            );
        }
    }

    #[test]
    fn more_context_changes_nothing((near, far, width, columns) in any_rows()) {
        let span = SampleSpan { first: 0, width };
        for cpu in golden::instruction_sets() {
            let mut out = vec![0; columns.len()];
            h2v2(cpu, &near, &far, span, columns.clone(), &mut out);
            prop_assert_eq!(
                &out, &whole_h2v2(&near, &far, width)[columns.clone()], "{}", cpu.name()
            );
        }
    }

    #[test]
    fn rows_between_rows_match_portable((near, far, width, _) in any_rows()) {
        for side in [Side::Upper, Side::Lower] {
            let made = |cpu| {
                let mut out = vec![0; width];
                h1v2(cpu, &near[..width], &far[..width], side, &mut out);
                out
            };
            for cpu in golden::instruction_sets() {
                prop_assert_eq!(made(cpu), made(Cpu::Portable), "{}", cpu.name());
            }
        }
    }

    #[test]
    fn replicated_columns_are_those_of_their_samples(
        (row, _, width, columns) in any_rows(), factor in 1..5usize, spare in 0..3usize,
    ) {
        let columns = columns.start * factor / 2..columns.end * factor / 2;
        let first = (columns.start / factor).saturating_sub(spare).min(width - 1);
        let expected: Vec<u8> = columns.clone().map(|column| row[column / factor]).collect();
        for cpu in golden::instruction_sets() {
            let mut out = vec![0; columns.len()];
            replicate(cpu, &row[first..], first, factor, columns.clone(), &mut out);
            prop_assert_eq!(&out, &expected, "{}", cpu.name());
        }
    }
}

#[test]
fn every_part_of_short_rows_equals_that_part_of_the_whole() {
    for cpu in golden::instruction_sets() {
        for width in 1..40 {
            let near: Vec<u8> = (0..width).map(|at| (at * 89 % 256) as u8).collect();
            let far: Vec<u8> = (0..width).map(|at| (at * 151 % 256) as u8).collect();
            let whole = whole_h2v2(&near, &far, width);
            for start in 0..=2 * width {
                for end in start..=2 * width {
                    let needed = SampleSpan::needed(width, start..end);
                    let span = SampleSpan { first: needed.start, width };
                    let mut out = vec![0; end - start];
                    let (near, far) = (&near[needed.clone()], &far[needed]);
                    h2v2(cpu, near, far, span, start..end, &mut out);
                    assert_eq!(out, whole[start..end], "{} {width} {start}..{end}", cpu.name());
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "need samples")]
fn missing_context_is_refused() {
    let span = SampleSpan { first: 2, width: 10 };
    h2v1(Cpu::detect(), &[1; 4], span, 4..8, &mut [0; 4]);
}

#[test]
fn upsampling_is_chosen_as_libjpeg_turbo_does() {
    let choose = |h, v, width, fancy| Upsampling::choose(h, v, 2, 2, width, fancy);
    let replicated = |columns, rows| Some(Upsampling::Replicate { columns, rows });
    assert_eq!(choose(2, 2, 9, true), Some(Upsampling::None));
    assert_eq!(choose(1, 2, 3, true), Some(Upsampling::FancyH2V1));
    assert_eq!(choose(1, 2, 2, true), replicated(2, 1));
    assert_eq!(choose(1, 1, 3, true), Some(Upsampling::FancyH2V2));
    assert_eq!(choose(1, 1, 2, true), replicated(2, 2));
    assert_eq!(choose(1, 1, 9, false), replicated(2, 2));
    assert_eq!(choose(2, 1, 1, true), Some(Upsampling::FancyH1V2));
    assert_eq!(choose(2, 1, 9, false), replicated(1, 2));
    assert_eq!(Upsampling::choose(1, 1, 4, 1, 9, true), replicated(4, 1));
    assert_eq!(Upsampling::choose(2, 1, 3, 1, 9, true), None);
    assert!(Upsampling::FancyH2V2.needs_context_rows());
    assert!(!Upsampling::FancyH2V1.needs_context_rows());
}
