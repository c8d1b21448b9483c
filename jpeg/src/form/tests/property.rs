//! Every picture survives a round trip.

use super::{BLOCK_CONTENTS, FORMS, coefficients, frame};
use crate::Cpu;
use crate::form::{pack, unpack_all};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_picture_round_trips(
        (width, height) in (1u32..120, 1u32..60),
        sampling in prop::collection::vec((1u8..=4, 1u8..=4), 1..=4),
        content in prop::sample::select(&BLOCK_CONTENTS[..]),
        seed: u32,
        skeleton in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let one = [(1, 1)];
        let sampling = if sampling.len() == 1 { &one[..] } else { &sampling };
        let frame = frame(width, height, sampling);
        let coefficients = coefficients(&frame, content, seed);
        for form in FORMS {
            let packed = pack(form, &frame, &coefficients, &skeleton).unwrap();
            for cpu in Cpu::available() {
                let (unpacked, with) = unpack_all(&packed, cpu).unwrap();
                prop_assert!(unpacked == coefficients, "{form:?} {cpu:?}");
                prop_assert_eq!(&with, &skeleton);
            }
        }
    }
}
