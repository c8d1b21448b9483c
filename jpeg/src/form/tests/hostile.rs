//! Damaged bytes give an error or some coefficients, the same from every instruction set.

use super::golden::STORED;
use super::{BLOCK_CONTENTS, BlockContent, FORMS, Numbers, coefficients, frame};
use crate::Cpu;
use crate::form::{FormError, pack, unpack_all};
use crate::golden::{bytes, instruction_sets};

#[test]
fn every_truncation_is_an_error() {
    let frame = frame(50, 40, &[(2, 2), (1, 1), (1, 1)]);
    let coefficients = coefficients(&frame, BlockContent::Photo, 8);
    for form in FORMS {
        let packed = pack(form, &frame, &coefficients, b"0123456789").unwrap();
        for end in 0..packed.len() {
            let error = unpack_all(&packed[..end], Cpu::detect()).unwrap_err();
            assert!(matches!(error, FormError::Damaged { offset, .. } if offset <= end));
        }
        let longer = [packed.as_slice(), &[0]].concat();
        assert!(unpack_all(&longer, Cpu::detect()).is_err());
    }
}

#[test]
fn flipped_bits_never_panic_and_all_instruction_sets_agree() {
    let mut numbers = Numbers(99);
    let sets = instruction_sets();
    for content in BLOCK_CONTENTS {
        let frame = frame(60, 33, &[(2, 1), (1, 1), (1, 1)]);
        let coefficients = coefficients(&frame, content, 9);
        for form in FORMS {
            let packed = pack(form, &frame, &coefficients, b"skeleton").unwrap();
            for _ in 0..400 {
                let mut damaged = packed.clone();
                for _ in 0..1 + numbers.below(3) {
                    let at = numbers.below(packed.len() as u32) as usize;
                    damaged[at] ^= 1 << numbers.below(8);
                }
                let results: Vec<_> = sets.iter().map(|cpu| unpack_all(&damaged, *cpu)).collect();
                assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{form:?} {content:?}");
            }
        }
    }
}

#[test]
fn rows_of_noise_never_panic() {
    let mut numbers = Numbers(5);
    let sets = instruction_sets();
    let frame = frame(80, 16, &[(1, 1); 3]);
    let coefficients = coefficients(&frame, BlockContent::Photo, 9);
    for form in FORMS {
        let packed = pack(form, &frame, &coefficients, &[]).unwrap();
        let rows = packed.len() / 2;
        for _ in 0..400 {
            let mut damaged = packed.clone();
            damaged[rows..].iter_mut().for_each(|byte| *byte = numbers.next() as u8);
            let results: Vec<_> = sets.iter().map(|cpu| unpack_all(&damaged, *cpu)).collect();
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{form:?}");
        }
    }
}

#[test]
fn few_bytes_cannot_cause_large_allocations() {
    // Stored bytes: choosing codes for a compact form is work that takes Miri minutes.
    let one_pixel =
        crate::golden::lines(STORED).into_iter().filter(|line| line.0[0] == "one-pixel");
    let stored: Vec<_> = one_pixel.map(|(_, words)| bytes(words[0])).collect();
    assert_eq!(stored.len(), FORMS.len());
    for mut packed in stored {
        // Width and height.
        packed[13..17].copy_from_slice(&[0xff, 0x3f, 0xff, 0x3f]);
        assert!(unpack_all(&packed, Cpu::Portable).is_err());
        packed[13..17].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
        assert!(unpack_all(&packed, Cpu::Portable).is_err());
    }
}
