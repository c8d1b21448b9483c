//! Compares every instruction set with the portable code, and checks the assumptions of the
//! shortcuts.

use super::islow::flat_row;
use super::{Dequantiser, Scale, islow, scaled};
use crate::backend_tests::{ZIGZAG, extent};
use crate::{Block, QuantTable};
use crate::{Cpu, golden};
use proptest::collection::vec;
use proptest::prelude::*;

/// A transform of a run of blocks by their extents to an output and its stride.
type Transform<'a> = &'a dyn Fn(Cpu, &[u8], &mut [u8], usize);

/// Values as in a photograph, the largest in a file, and arbitrary ones.
fn any_value() -> impl Strategy<Value = i16> {
    prop_oneof![4 => -8..=8i16, 2 => -1023..=1023i16, 1 => any::<i16>(), 3 => Just(0)]
}

/// A block with a random number of coefficients, in zigzag order.
fn any_block(values: impl Strategy<Value = i16>) -> impl Strategy<Value = Block> {
    let extents = prop_oneof![0..=10usize, 0..=64usize];
    (vec(values, 64), extents, any::<bool>()).prop_map(|(values, extent, only_row_0)| {
        let mut block = Block([0; 64]);
        for (at, value) in ZIGZAG.into_iter().zip(values).take(extent) {
            block.0[at] = if only_row_0 && at >= 8 { 0 } else { value };
        }
        block
    })
}

fn any_table() -> impl Strategy<Value = QuantTable> {
    let value = prop_oneof![1..=20u16, 1..=255u16, 1..=65535u16];
    (value.clone(), vec(value, 64), any::<bool>()).prop_map(|(one, values, flat)| {
        QuantTable(std::array::from_fn(|at| if flat { one } else { values[at] }))
    })
}

/// The rows of a run with a stride beyond its width, in memory that is not 0.
fn run(
    side: usize,
    blocks: &[Block],
    gap: usize,
    transform: impl Fn(&[u8], &mut [u8], usize),
) -> Vec<u8> {
    let stride = blocks.len() * side + gap;
    let extents: Vec<u8> = blocks.iter().map(extent).collect();
    let mut out = vec![0x5A; stride * (side - 1) + blocks.len() * side];
    transform(&extents, &mut out, stride);
    out
}

proptest! {
    #[test]
    fn islow_matches_portable(
        table in any_table(), blocks in vec(any_block(any_value()), 1..10), gap in 0..40usize,
    ) {
        let dequantiser = Dequantiser::new(&table);
        let made = |cpu: Cpu| run(8, &blocks, gap, |extents, out, stride| {
            islow(cpu, &dequantiser, &blocks, extents, out, stride);
        });
        for cpu in golden::instruction_sets() {
            prop_assert_eq!(made(cpu), made(Cpu::Portable), "{}", cpu.name());
        }
    }

    #[test]
    fn scaled_matches_portable(
        table in any_table(), blocks in vec(any_block(any_value()), 1..10), gap in 0..40usize,
    ) {
        let dequantiser = Dequantiser::new(&table);
        for scale in [Scale::Four, Scale::Two, Scale::One] {
            let made = |cpu: Cpu| run(scale.side(), &blocks, gap, |extents, out, stride| {
                scaled(cpu, scale, &dequantiser, &blocks, extents, out, stride);
            });
            for cpu in golden::instruction_sets() {
                prop_assert_eq!(made(cpu), made(Cpu::Portable), "{} {:?}", cpu.name(), scale);
            }
        }
    }

    /// The shortcuts for small extents equal the whole transforms.
    #[test]
    fn a_larger_extent_changes_nothing(
        table in any_table(),
        blocks in vec(any_block(any_value()), 1..10),
        more in vec(0..64u8, 10),
    ) {
        let dequantiser = Dequantiser::new(&table);
        let scales = [Scale::Four, Scale::Two, Scale::One];
        let scaled = scales.map(|scale| {
            let (dequantiser, blocks) = (&dequantiser, &blocks);
            move |cpu: Cpu, extents: &[u8], out: &mut [u8], stride| {
                scaled(cpu, scale, dequantiser, blocks, extents, out, stride);
            }
        });
        let transforms: [(usize, Transform<'_>); 4] = [
            (8, &|cpu, extents, out, stride| {
                islow(cpu, &dequantiser, &blocks, extents, out, stride);
            }),
            (4, &scaled[0]),
            (2, &scaled[1]),
            (1, &scaled[2]),
        ];
        for cpu in golden::instruction_sets() {
            for (side, transform) in transforms {
                let made = |raise: bool| run(side, &blocks, 0, |extents, out, stride| {
                    let raised: Vec<u8> =
                        extents.iter().zip(&more).map(|(extent, more)| *extent.max(more)).collect();
                    transform(cpu, if raise { &raised } else { extents }, out, stride);
                });
                prop_assert_eq!(made(true), made(false), "{} {}", cpu.name(), side);
            }
        }
    }
}

#[test]
fn a_row_of_a_flat_block_is_eight_copies_of_every_sample() {
    for sample in 0..=255 {
        assert_eq!(flat_row(sample).to_ne_bytes(), [sample; 8]);
    }
}

/// The sample of a flat block depends on the lower 16 bits of a product alone, so that a step of 1
/// covers all of them; with the other steps the product overflows.
#[test]
fn every_flat_block_matches_portable() {
    for step in [1, 3, 16, 255, 32_767, 32_768, 65_535] {
        let dequantiser = Dequantiser::new(&QuantTable([step; 64]));
        let apart = if step == 1 && !cfg!(miri) { 1 } else { 61 };
        let means: Vec<i16> = (i16::MIN..=i16::MAX).step_by(apart).collect();
        for means in means.chunks(512) {
            let blocks: Vec<Block> = means.iter().map(|mean| flat(*mean)).collect();
            for cpu in Cpu::available().skip(1) {
                let same = |side: usize, transform: Transform<'_>| {
                    let made = |cpu| {
                        run(side, &blocks, 0, |extents, out, stride| {
                            transform(cpu, extents, out, stride);
                        })
                    };
                    assert_eq!(made(cpu), made(Cpu::Portable), "{} {step}", cpu.name());
                };
                same(8, &|cpu, extents, out, stride| {
                    islow(cpu, &dequantiser, &blocks, extents, out, stride);
                });
                for scale in [Scale::Four, Scale::Two, Scale::One] {
                    same(scale.side(), &|cpu, extents, out, stride| {
                        scaled(cpu, scale, &dequantiser, &blocks, extents, out, stride);
                    });
                }
            }
        }
    }
}

/// A block with only a mean.
fn flat(mean: i16) -> Block {
    let mut block = Block([0; 64]);
    block.0[0] = mean;
    block
}

#[test]
fn a_run_of_no_blocks_writes_nothing() {
    let dequantiser = Dequantiser::new(&QuantTable([1; 64]));
    for cpu in golden::instruction_sets() {
        islow(cpu, &dequantiser, &[], &[], &mut [], 0);
        scaled(cpu, Scale::One, &dequantiser, &[], &[], &mut [], 0);
    }
}

#[test]
#[should_panic(expected = "the output has room for the run")]
fn an_output_that_is_too_short_is_refused() {
    let dequantiser = Dequantiser::new(&QuantTable([1; 64]));
    islow(Cpu::detect(), &dequantiser, &[Block([0; 64]); 2], &[0; 2], &mut [0; 7 * 16 + 15], 16);
}

#[test]
#[should_panic(expected = "overlap")]
fn rows_that_overlap_are_refused() {
    let dequantiser = Dequantiser::new(&QuantTable([1; 64]));
    islow(Cpu::detect(), &dequantiser, &[Block([0; 64]); 2], &[0; 2], &mut [0; 200], 15);
}
