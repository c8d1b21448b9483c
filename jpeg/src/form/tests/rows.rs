//! Rows, regions and extents.

use super::{BLOCK_CONTENTS, BlockContent, FORMS, Numbers, coefficients, frame};
use crate::Block;
use crate::form::{FormError, FormReader, Frame, RowComponent, RowScratch, pack, unpack_all};
use crate::golden::instruction_sets;
use crate::markers::NATURAL;
use crate::{Coefficients, Cpu};
use std::ops::Range;

/// Blocks and extents of each component.
pub(super) type Unpacked = Vec<(Vec<Block>, Vec<u8>)>;

/// Buffers with other content.
pub(super) fn read(
    reader: &mut FormReader<'_>,
    row: u32,
    columns: Range<u32>,
) -> Result<Unpacked, FormError> {
    let sizes = reader.frame().components.iter().map(|component| {
        usize::from(component.horizontal) * usize::from(component.vertical) * columns.len()
    });
    let mut unpacked: Unpacked =
        sizes.map(|size| (vec![Block([0x5a5a; 64]); size], vec![0xa5; size])).collect();
    let mut into: Vec<_> =
        unpacked.iter_mut().map(|(blocks, extents)| RowComponent { blocks, extents }).collect();
    reader.row(row, columns, &mut into)?;
    Ok(unpacked)
}

/// The expected result, directly from the planes.
pub(super) fn slice(frame: &Frame, from: &Coefficients, row: u32, columns: Range<u32>) -> Unpacked {
    let components = frame.components.iter().zip(&from.planes).map(|(component, plane)| {
        let (horizontal, vertical) =
            (usize::from(component.horizontal), usize::from(component.vertical));
        let wide = plane.blocks_wide as usize;
        let lines = row as usize * vertical..(row as usize + 1) * vertical;
        let columns = columns.start as usize * horizontal..columns.end as usize * horizontal;
        let blocks: Vec<Block> =
            lines.flat_map(|line| &plane.blocks[line * wide..][columns.clone()]).copied().collect();
        let last = |block: &Block| {
            NATURAL.iter().rposition(|at| *at != 0 && block.0[usize::from(*at)] != 0)
        };
        let extents = blocks.iter().map(|block| last(block).unwrap_or(0) as u8).collect();
        (blocks, extents)
    });
    components.collect()
}

/// Whether blocks are as expected and extents valid: exact, or 9 for the corner of low frequencies,
/// or 63.
pub(super) fn fits(got: &Unpacked, expected: &Unpacked) -> bool {
    let in_corner =
        |block: &Block| (0..64).all(|at| block.0[at] == 0 || (at % 8 < 4 && at / 8 < 4));
    let true_extent = |(block, (got, exact)): (&Block, (&u8, &u8))| {
        got == exact || *exact > 0 && (*got == 63 || *got == 9 && in_corner(block))
    };
    got.len() == expected.len()
        && got.iter().zip(expected).all(|(got, expected)| {
            let extents = got.1.iter().zip(&expected.1);
            got.0 == expected.0 && got.0.iter().zip(extents).all(true_extent)
        })
}

#[test]
fn a_damaged_form_does_not_affect_the_next_one() {
    let mut numbers = Numbers(7);
    let frame = frame(60, 33, &[(2, 1), (1, 1), (1, 1)]);
    for (content, form) in
        BLOCK_CONTENTS.into_iter().flat_map(|content| FORMS.map(|form| (content, form)))
    {
        let packed = pack(form, &frame, &coefficients(&frame, content, 9), b"skeleton").unwrap();
        let mut sound = FormReader::open(&packed, Cpu::Portable).unwrap();
        let expected = read(&mut sound, 0, 0..3).unwrap();
        let mut damaged = 0;
        for number in 0..500 {
            let mut bytes = packed.clone();
            let at = numbers.below(packed.len() as u32) as usize;
            bytes[at] ^= 1 << numbers.below(8);
            let cpu = Cpu::available().nth(number % Cpu::available().count()).unwrap();
            let mut scratch = RowScratch::default();
            if let Ok(mut reader) = FormReader::open_with(&bytes, cpu, scratch) {
                let (wide, _) = reader.frame().mcus();
                damaged += u32::from(read(&mut reader, 0, 0..wide).is_err());
                scratch = reader.into_scratch();
                let mut reader = FormReader::open_with(&packed, cpu, scratch).unwrap();
                assert_eq!(read(&mut reader, 0, 0..3).unwrap(), expected, "{form:?} {content:?}");
            }
        }
        assert!(damaged > 0 || content == BlockContent::Empty, "{form:?} {content:?}");
    }
}

#[test]
fn every_region_is_that_part_of_the_whole() {
    let samplings: [&[(u8, u8)]; 5] = [
        &[(1, 1)],
        &[(1, 1); 3],
        &[(2, 2), (1, 1), (1, 1)],
        &[(2, 1), (1, 1), (1, 1)],
        &[(1, 2), (2, 1), (4, 3), (1, 1)],
    ];
    for sampling in samplings {
        for content in BLOCK_CONTENTS {
            let frame = frame(150, 70, sampling);
            let coefficients = coefficients(&frame, content, 11);
            let (wide, high) = frame.mcus();
            for form in FORMS {
                let packed = pack(form, &frame, &coefficients, &[]).unwrap();
                for cpu in instruction_sets() {
                    let mut reader = FormReader::open(&packed, cpu).unwrap();
                    assert_eq!(reader.frame(), &frame);
                    for row in (0..high).rev() {
                        for columns in [0..wide, 0..1, wide - 1..wide, wide / 3..wide / 2 + 1] {
                            let expected = slice(&frame, &coefficients, row, columns.clone());
                            let got = read(&mut reader, row, columns.clone()).unwrap();
                            assert!(
                                fits(&got, &expected),
                                "{form:?} {content:?} {sampling:?} {cpu:?} row {row} {columns:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rows_and_columns_out_of_range_are_refused() {
    let frame = frame(40, 20, &[(1, 1); 3]);
    let packed =
        pack(FORMS[0], &frame, &coefficients(&frame, BlockContent::Photo, 1), &[]).unwrap();
    let mut reader = FormReader::open(&packed, Cpu::Portable).unwrap();
    let refused = |result| matches!(result, Err(FormError::Request { .. }));
    assert!(refused(read(&mut reader, 3, 0..1)));
    assert!(refused(read(&mut reader, 0, 0..6)));
    assert!(refused(read(&mut reader, 0, 2..2)));
    assert!(refused(reader.row(0, 0..1, &mut []).map(|()| Vec::new())));
    assert!(read(&mut reader, 2, 4..5).is_ok());
}

#[test]
fn planes_of_another_size_are_not_packed() {
    let small = frame(8, 8, &[(1, 1)]);
    let large = frame(9, 8, &[(1, 1)]);
    let planes = coefficients(&small, BlockContent::Photo, 1);
    assert!(matches!(pack(FORMS[0], &large, &planes, &[]), Err(FormError::Unfit { .. })));
    let mut zero_step = small;
    zero_step.quant_tables[0].0[5] = 0;
    assert!(matches!(pack(FORMS[0], &zero_step, &planes, &[]), Err(FormError::Unfit { .. })));
}

#[test]
fn a_picture_of_one_pixel_stays_small() {
    let mut frame = frame(1, 1, &[(1, 1)]);
    frame.quant_tables.truncate(1);
    let coefficients = coefficients(&frame, BlockContent::Empty, 1);
    // Choosing codes for the compact form is work that takes Miri minutes.
    for form in if cfg!(miri) { &FORMS[..1] } else { &FORMS[..] } {
        let packed = pack(*form, &frame, &coefficients, &[]).unwrap();
        assert!(packed.len() <= 96, "{form:?} takes {} bytes", packed.len());
        assert_eq!(unpack_all(&packed, Cpu::Portable).unwrap().0, coefficients);
    }
}

#[test]
fn a_picture_of_one_colour_is_small_and_readable() {
    let frame = frame(65_535, 8, &[(1, 1)]);
    let coefficients = coefficients(&frame, BlockContent::Empty, 1);
    for form in FORMS {
        let packed = pack(form, &frame, &coefficients, &[]).unwrap();
        assert!(packed.len() < 8_192, "{form:?} takes {} bytes", packed.len());
        for cpu in instruction_sets() {
            assert!(unpack_all(&packed, cpu).unwrap().0 == coefficients, "{form:?} {cpu:?}");
        }
    }
}

#[test]
fn scratch_memory_is_reused_between_pictures() {
    let mut scratch = Default::default();
    for (seed, size) in [(1, 200), (2, 9), (3, 90)] {
        let frame = frame(size, size, &[(2, 2), (1, 1), (1, 1)]);
        let coefficients = coefficients(&frame, BlockContent::Photo, seed);
        for form in FORMS {
            let packed = pack(form, &frame, &coefficients, &[]).unwrap();
            let mut reader = FormReader::open_with(&packed, Cpu::detect(), scratch).unwrap();
            let columns = 0..frame.mcus().0;
            let expected = slice(&frame, &coefficients, 0, columns.clone());
            assert!(fits(&read(&mut reader, 0, columns).unwrap(), &expected));
            scratch = reader.into_scratch();
        }
    }
}
