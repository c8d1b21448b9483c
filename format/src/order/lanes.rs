//! The Feistel network of an order on several values at once.
//!
//! A round waits for the ten multiplications of Philox, which depend on each other, so a single
//! value leaves most of the CPU idle. The same steps on [`LANES`] values are written as loops that
//! the compiler vectorizes; each result equals that of the network on the value alone. Nothing
//! overflows; arithmetic wraps only so that overflow checks do not prevent vectorization.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls a function that is compiled for AVX2 where there is AVX2")
)]

use super::ROUNDS;
use crate::random::{MULTIPLIERS, PHILOX_ROUNDS, WEYL, halves};

/// Values at a time.
pub(super) const LANES: usize = 16;

const LOW: u64 = u32::MAX as u64;

/// The keys that the networks of all lanes share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    pub(super) seed: u64,
    pub(super) epoch: u32,
    /// Word 3 of the counters.
    pub(super) domain: u32,
}

/// Values, and the network of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes {
    pub(super) values: [u64; LANES],
    /// From 1 to 2^32 - 1.
    pub(super) sides: [u64; LANES],
    /// Added to word 1 of the counters; the lowest 4 bits are 0.
    pub(super) streams: [u64; LANES],
}

/// Maps every value by its network.
pub(super) fn forward(keys: Keys, lanes: &mut Lanes) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { forward_avx2(keys, lanes) };
    }
    forward_portable(keys, lanes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn forward_avx2(keys: Keys, lanes: &mut Lanes) {
    map(keys, lanes);
}

fn forward_portable(keys: Keys, lanes: &mut Lanes) {
    map(keys, lanes);
}

#[inline(always)]
fn map(keys: Keys, lanes: &mut Lanes) {
    let Lanes { values, sides, streams } = lanes;
    let round_keys = round_keys(keys.seed);
    let (mut left, mut right) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        left[lane] = values[lane] / sides[lane];
        right[lane] = values[lane] % sides[lane];
    }
    for round in 0..u64::from(ROUNDS) {
        let mut words = [0; LANES];
        for lane in 0..LANES {
            words[lane] = streams[lane] | round;
        }
        let offsets = offsets(&round_keys, keys, &right, &words, sides);
        for lane in 0..LANES {
            // Below 2^33, so the highest bit of the difference is its sign.
            let sum = left[lane].wrapping_add(offsets[lane]);
            let reduced = sum.wrapping_sub(sides[lane]);
            let is_negative = 0_u64.wrapping_sub(reduced >> 63);
            left[lane] = right[lane];
            right[lane] = reduced.wrapping_add(sides[lane] & is_negative);
        }
    }
    for lane in 0..LANES {
        values[lane] = left[lane].wrapping_mul(sides[lane]).wrapping_add(right[lane]);
    }
}

/// f(round, digit) of each lane. The words of the counters are stored in 64 bits each, of which
/// only the lower half is used.
#[inline(always)]
fn offsets(
    round_keys: &[[u64; 2]; PHILOX_ROUNDS],
    keys: Keys,
    digits: &[u64; LANES],
    words: &[u64; LANES],
    sides: &[u64; LANES],
) -> [u64; LANES] {
    let (mut c0, mut c1) = (*digits, *words);
    let (mut c2, mut c3) = ([u64::from(keys.epoch); LANES], [u64::from(keys.domain); LANES]);
    for [k0, k1] in round_keys {
        for lane in 0..LANES {
            let product0 = u64::from(MULTIPLIERS[0]).wrapping_mul(c0[lane] & LOW);
            let product1 = u64::from(MULTIPLIERS[1]).wrapping_mul(c2[lane] & LOW);
            c0[lane] = (product1 >> 32) ^ c1[lane] ^ k0;
            c2[lane] = (product0 >> 32) ^ c3[lane] ^ k1;
            c1[lane] = product1;
            c3[lane] = product0;
        }
    }
    let mut offsets = [0; LANES];
    for lane in 0..LANES {
        let side = sides[lane] & LOW;
        // 64 bits times the side, divided by 2^64: no sum here exceeds 64 bits.
        let low = (c0[lane] & LOW).wrapping_mul(side) >> 32;
        offsets[lane] = (c1[lane] & LOW).wrapping_mul(side).wrapping_add(low) >> 32;
    }
    offsets
}

fn round_keys(seed: u64) -> [[u64; 2]; PHILOX_ROUNDS] {
    let [mut k0, mut k1] = halves(seed);
    let mut keys = [[0; 2]; PHILOX_ROUNDS];
    for key in &mut keys {
        *key = [k0.into(), k1.into()];
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::super::Shuffle;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_version_gives_what_the_network_gives_on_each_value(
            seed in any::<u64>(),
            epoch in any::<u32>(),
            device in any::<u16>(),
            sides in prop::collection::vec(prop_oneof![1..40_u64, 1..=LOW, Just(LOW)], LANES),
            streams in prop::collection::vec(0..1_u32 << 28, LANES),
            picks in prop::collection::vec(any::<u64>(), LANES),
        ) {
            let domain = crate::random::MIXTURE_DOMAIN | u32::from(device);
            let keys = Keys { seed, epoch, domain };
            let mut lanes =
                Lanes { values: [0; LANES], sides: [1; LANES], streams: [0; LANES] };
            let mut expected = [0; LANES];
            for lane in 0..LANES {
                let (side, stream) = (sides[lane], streams[lane] << 4);
                lanes.sides[lane] = side;
                lanes.streams[lane] = stream.into();
                lanes.values[lane] = picks[lane] % (side * side);
                let alone = Shuffle { seed, epoch, domain, stream, side };
                expected[lane] = alone.forward(lanes.values[lane]);
            }
            let (mut chosen, mut portable) = (lanes, lanes);
            forward(keys, &mut chosen);
            forward_portable(keys, &mut portable);
            prop_assert_eq!(chosen.values, expected);
            prop_assert_eq!(portable.values, expected);
        }
    }
}
