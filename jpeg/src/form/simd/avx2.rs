//! Unpacking with AVX2 and BMI2: `pdep` puts a group's eight numbers into eight bytes at once, and
//! byte shuffles take a block from zigzag to natural order.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::super::bank::{CODE_BITS, DecodeTable};
use super::super::geometry::GROUPS;
use super::super::lanes::Lanes;
use super::super::unpack::{Patch, RowComponent, Target};
use super::{Masks, NARROW, PLACES, Zigzag, mark_wide, portable};
use std::arch::x86_64::{
    __m256i, _mm_and_si128, _mm_load_si128, _mm_set_epi64x, _mm_set1_epi16, _mm_setzero_si128,
    _mm_srli_epi16, _mm_storeu_si128, _mm_sub_epi16, _mm_xor_si128, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_cvtepi8_epi16,
    _mm256_extracti128_si256, _mm256_load_si256, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi16, _mm256_store_si256, _mm256_sub_epi8, _mm256_xor_si256, _pdep_u64,
};

/// Bits of the eight bytes that a group's numbers go to, by its width.
const DEPOSIT: [u64; 32] = {
    let mut deposit = [0; 32];
    let mut bits = 0;
    while bits <= 8 {
        deposit[bits] = ((1 << bits) - 1) * 0x0101_0101_0101_0101;
        bits += 1;
    }
    deposit
};

/// The same for four numbers in 16 bits each, of any width.
const DEPOSIT_WIDE: [u64; 17] = {
    let mut deposit = [0; 17];
    let mut bits = 0;
    while bits <= 16 {
        deposit[bits] = ((1 << bits) - 1) * 0x0001_0001_0001_0001;
        bits += 1;
    }
    deposit
};

/// Bytes of a load.
const WORD_BYTES: usize = 8;

/// Symbols of a lane between two loads: 5 codes of 10 bits and 7 bits of a begun byte fit in 64.
const BETWEEN_LOADS: usize = 5;

/// Bytes of the narrow groups of a block, and a word.
const WINDOW: usize = 72;

/// The bytes that a mask's values go to.
const SPREAD: [u64; 256] = {
    let mut spread = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut bit = 0;
        while bit < 8 {
            if mask >> bit & 1 == 1 {
                spread[mask] |= 0xff << (8 * bit);
            }
            bit += 1;
        }
        mask += 1;
    }
    spread
};

/// For 16 bytes of [`Zigzag`] and half of a block: which of them goes to each place, 0x80 for none.
const SHUFFLES: [[[u8; 32]; 2]; 4] = {
    let mut shuffles = [[[0x80; 32]; 2]; 4];
    let mut natural = 0;
    while natural < 64 {
        let place = PLACES[natural];
        if place < 64 {
            shuffles[place as usize / 16][natural / 32][natural % 32] = place % 16;
        }
        natural += 1;
    }
    shuffles
};

/// See [`super::read_lanes`].
pub(super) fn read_lanes<const N: usize>(
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    table: &DecodeTable,
    out: &mut [u8],
    count: usize,
) {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { read_lanes_bmi2(lanes, bytes, table, out, count) }
}

/// As [`Lanes::read`], with more symbols between two loads.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn read_lanes_bmi2<const N: usize>(
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    table: &DecodeTable,
    out: &mut [u8],
    count: usize,
) {
    let step = N * BETWEEN_LOADS;
    let (whole, rest) = (count / step * step, count % step);
    let mut places = lanes.0;
    for out in out[..whole].chunks_exact_mut(step) {
        places = turns::<N, true>(places, bytes, table, out, [BETWEEN_LOADS; N]);
    }
    if rest > 0 {
        let share = std::array::from_fn(|lane| (rest + N - 1 - lane) / N);
        places = turns::<N, false>(places, bytes, table, &mut out[whole..whole + step], share);
    }
    lanes.0 = places;
}

/// Symbols of each lane up to the next load, of which it takes all or the first `share`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn turns<const N: usize, const ALL: bool>(
    places: [usize; N],
    bytes: &[u8],
    table: &DecodeTable,
    out: &mut [u8],
    share: [usize; N],
) -> [usize; N] {
    assert!(bytes.len() >= WORD_BYTES && out.len() == N * BETWEEN_LOADS, "there is room");
    let last = bytes.len() - WORD_BYTES;
    let mut bits = places.map(|place| {
        // SAFETY: `last` is eight bytes before the end.
        let word =
            unsafe { bytes.as_ptr().add((place >> 3).min(last)).cast::<u64>().read_unaligned() };
        u64::from_le(word) >> (place & 7)
    });
    let mut used = [0u32; N];
    for turn in 0..BETWEEN_LOADS {
        for lane in 0..N {
            let entry = table[bits[lane] as usize & ((1 << CODE_BITS) - 1)];
            bits[lane] >>= entry & 63;
            let takes = if ALL || turn < share[lane] { u32::from(entry) } else { 0 };
            used[lane] = used[lane].wrapping_add(takes);
            // SAFETY: this is less than the length asserted above. Volatile keeps the compiler
            // from gathering the bytes in a vector, which takes longer than to store each.
            unsafe { out.as_mut_ptr().add(turn * N + lane).write_volatile((entry >> 8) as u8) };
        }
    }
    std::array::from_fn(|lane| places[lane] + (used[lane] as usize & 0xff))
}

/// See [`super::ones`].
pub(super) fn ones(masks: &[u8]) -> usize {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { ones_popcnt(masks) }
}

#[target_feature(enable = "popcnt")]
fn ones_popcnt(masks: &[u8]) -> usize {
    portable::ones(masks)
}

/// See [`super::count`].
pub(super) fn count(bytes: &[u8], wanted: u8) -> usize {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { count_avx2(bytes, wanted) }
}

#[target_feature(enable = "avx2")]
fn count_avx2(bytes: &[u8], wanted: u8) -> usize {
    portable::count(bytes, wanted)
}

/// See [`super::places_of`].
pub(super) fn places_of(bytes: &Zigzag, wanted: u8) -> u64 {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { places_of_avx2(bytes, wanted) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn places_of_avx2(bytes: &Zigzag, wanted: u8) -> u64 {
    let halves = bytes.0.as_chunks::<32>().0;
    let found = |half: &[u8; 32]| {
        // SAFETY: the load takes half of 64 bytes, which start at a multiple of 64.
        let part = unsafe { _mm256_load_si256(half.as_ptr().cast()) };
        let equal = _mm256_cmpeq_epi8(part, _mm256_set1_epi8(wanted as i8));
        u64::from(_mm256_movemask_epi8(equal) as u32)
    };
    found(&halves[0]) | found(&halves[1]) << 32
}

/// See [`super::nibbles`].
pub(super) fn nibbles(from: &[u8], to: &mut [u8]) -> u8 {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { nibbles_avx2(from, to) }
}

#[target_feature(enable = "avx2")]
fn nibbles_avx2(from: &[u8], to: &mut [u8]) -> u8 {
    portable::nibbles(from, to)
}

/// See [`super::expand_widths`].
pub(super) fn expand_widths(
    class: usize,
    widths: &[u8],
    data: &[u8],
    at: usize,
    out: &mut [Zigzag],
    patches: &mut Vec<Patch>,
) -> usize {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe {
        match class {
            1 => expand_widths_bmi2::<2>(widths, data, at, out, patches),
            2 => expand_widths_bmi2::<4>(widths, data, at, out, patches),
            3 => expand_widths_bmi2::<6>(widths, data, at, out, patches),
            _ => expand_widths_bmi2::<8>(widths, data, at, out, patches),
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn expand_widths_bmi2<const USED: usize>(
    widths: &[u8],
    data: &[u8],
    mut at: usize,
    out: &mut [Zigzag],
    patches: &mut Vec<Patch>,
) -> usize {
    for (member, (widths, out)) in widths.as_chunks::<USED>().0.iter().zip(out).enumerate() {
        let mut all = [0; GROUPS];
        all[..USED].copy_from_slice(widths);
        // Every byte is up to 16: it gets its top bit if it is above 8.
        let wide = (u64::from_le_bytes(all) + 0x7777_7777_7777_7777) & 0x8080_8080_8080_8080;
        let groups = &mut out.0.as_chunks_mut::<GROUPS>().0[..USED];
        if wide == 0 {
            let window: &[u8; WINDOW] =
                data[at..].first_chunk().expect("the caller leaves room behind the groups");
            let mut passed = 0;
            for (out, width) in groups.iter_mut().zip(widths) {
                let width = usize::from(*width);
                // SAFETY: up to seven groups of up to eight bytes have been passed, and the window
                // has eight bytes behind these.
                let loaded = unsafe { window.as_ptr().add(passed).cast::<u64>().read_unaligned() };
                *out = _pdep_u64(u64::from_le(loaded), DEPOSIT[width & 31]).to_le_bytes();
                passed += width;
            }
            at += passed;
        } else {
            for (group, (out, width)) in groups.iter_mut().zip(widths).enumerate() {
                if *width <= NARROW {
                    let word = data[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
                    *out = _pdep_u64(word, DEPOSIT[usize::from(*width)]).to_le_bytes();
                } else {
                    let values = wide_group_bmi2(*width, &data[at..]);
                    patches.push(mark_wide(values, (member, group), out));
                }
                at += usize::from(*width);
            }
        }
    }
    at
}

/// See [`super::wide_group`].
#[inline]
pub(super) fn wide_group(width: u8, data: &[u8]) -> [i16; GROUPS] {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { wide_group_bmi2(width, data) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn wide_group_bmi2(width: u8, data: &[u8]) -> [i16; GROUPS] {
    let window: &[u8; 24] = data.first_chunk().expect("the caller leaves room behind the groups");
    // Four numbers are half as many bytes as eight, perhaps with half a byte.
    let bits = 4 * usize::from(width);
    let half = |bit: usize| {
        let word = window[bit / 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        _pdep_u64(word >> (bit % 8), DEPOSIT_WIDE[usize::from(width)])
    };
    let folded = _mm_set_epi64x(half(bits) as i64, half(0) as i64);
    let halved = _mm_srli_epi16::<1>(folded);
    let odd = _mm_and_si128(folded, _mm_set1_epi16(1));
    let unfolded = _mm_xor_si128(halved, _mm_sub_epi16(_mm_setzero_si128(), odd));
    let mut values = [0; GROUPS];
    // SAFETY: the store takes the 16 bytes of the array and needs no alignment.
    unsafe { _mm_storeu_si128(values.as_mut_ptr().cast(), unfolded) };
    values
}

/// See [`super::expand_masks`].
pub(super) fn expand_masks(
    class: usize,
    masks: Masks<'_>,
    values: &[u8],
    at: &mut [usize; GROUPS],
    out: &mut [Zigzag],
) {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe {
        match class {
            1 => expand_masks_bmi2::<2>(masks, values, at, out),
            2 => expand_masks_bmi2::<4>(masks, values, at, out),
            3 => expand_masks_bmi2::<6>(masks, values, at, out),
            _ => expand_masks_bmi2::<8>(masks, values, at, out),
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn expand_masks_bmi2<const USED: usize>(
    masks: Masks<'_>,
    values: &[u8],
    at: &mut [usize; GROUPS],
    out: &mut [Zigzag],
) {
    // Group by group, so that there is one place to keep.
    for (group, (at, start)) in at.iter_mut().zip(masks.starts).take(USED).enumerate() {
        let masks = &masks.bytes[start..][..out.len()];
        let mut next = *at;
        for (out, mask) in out.iter_mut().zip(masks) {
            let word = values[next..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            let bytes = _pdep_u64(word, SPREAD[usize::from(*mask)]).to_le_bytes();
            out.0.as_chunks_mut::<GROUPS>().0[group] = bytes;
            next += mask.count_ones() as usize;
        }
        *at = next;
    }
}

/// See [`super::spread`].
pub(super) fn spread<const FOLDED: bool>(
    class: usize,
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe {
        match class {
            1 => spread_avx2::<FOLDED, 1>(from, targets, into),
            2 => spread_avx2::<FOLDED, 2>(from, targets, into),
            3 => spread_avx2::<FOLDED, 3>(from, targets, into),
            _ => spread_avx2::<FOLDED, 4>(from, targets, into),
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn spread_avx2<const FOLDED: bool, const CLASS: usize>(
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    let mut shuffles = [[_mm256_setzero_si256(); 2]; CLASS];
    for (to, from) in shuffles.iter_mut().zip(&SHUFFLES) {
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
            *to = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
        }
    }
    for (bytes, target) in from.iter().zip(targets) {
        let mut halves = [_mm256_setzero_si256(); 2];
        for (part, shuffles) in bytes.0.as_chunks::<16>().0.iter().zip(&shuffles) {
            // SAFETY: the load takes 16 bytes of an array that starts at a multiple of 64.
            let part = unsafe { _mm_load_si128(part.as_ptr().cast()) };
            let part = _mm256_broadcastsi128_si256(part);
            for (half, shuffle) in halves.iter_mut().zip(shuffles) {
                *half = _mm256_or_si256(*half, _mm256_shuffle_epi8(part, *shuffle));
            }
        }
        let index = target.index as usize;
        into.extents[index] = extent::<CLASS>(bytes);
        let rows = into.blocks[index].0.as_chunks_mut::<16>().0;
        for (half, rows) in halves.into_iter().zip(rows.as_chunks_mut::<2>().0) {
            let half = if FOLDED { unfold(half) } else { half };
            let low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(half));
            let high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256::<1>(half));
            // SAFETY: both are 32 bytes of a block, which starts at a multiple of 64.
            unsafe {
                _mm256_store_si256(rows[0].as_mut_ptr().cast(), low);
                _mm256_store_si256(rows[1].as_mut_ptr().cast(), high);
            }
        }
        into.blocks[index].0[0] = target.dc;
    }
}

/// Zigzag index of the last byte that is not zero.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn extent<const CLASS: usize>(bytes: &Zigzag) -> u8 {
    // The bytes behind the class may be left from other blocks, the last one of all means nothing.
    let used = (u64::MAX >> (64 - 16 * CLASS)) & (u64::MAX >> 1);
    64 - (!places_of_avx2(bytes, 0) & used).leading_zeros() as u8
}

/// Turns 0, 1, 2, 3, .. into 0, -1, 1, -2, ..
#[target_feature(enable = "avx2")]
#[inline]
fn unfold(folded: __m256i) -> __m256i {
    let halved = _mm256_and_si256(_mm256_srli_epi16::<1>(folded), _mm256_set1_epi8(0x7f));
    let odd = _mm256_and_si256(folded, _mm256_set1_epi8(1));
    _mm256_xor_si256(halved, _mm256_sub_epi8(_mm256_setzero_si256(), odd))
}
