//! Bytes in varying codes, with AVX2 and BMI2: shifts by a register, and contexts 16 at a time.
#![expect(unsafe_code, reason = "loads and stores, and calls behind a CPU check")]

use super::super::super::codes::{
    Context, ESCAPE, PAIR_BYTES, PairCodes, Tables, WORD_BITS, WidthContexts,
};
use super::super::super::lanes::Lanes;
use super::portable::{self, BETWEEN_LOADS, WORD_BYTES};
use super::{BYTES_OF, OVERRUN};
use std::arch::x86_64::{
    _bzhi_u64, _mm_loadu_si128, _mm256_cmpeq_epi8, _mm256_cvtepu8_epi16, _mm256_loadu_si256,
    _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_slli_epi16, _mm256_storeu_si256,
};

/// See [`super::read`].
pub(super) fn read<const N: usize>(
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    tables: &Tables,
    contexts: &[Context],
    out: &mut [u8],
) {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { read_bmi2(lanes, bytes, tables, contexts, out) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn read_bmi2<const N: usize>(
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    tables: &Tables,
    contexts: &[Context],
    out: &mut [u8],
) {
    assert!(bytes.len() >= WORD_BYTES && out.len() >= contexts.len(), "there is room");
    let count = contexts.len() / (N * BETWEEN_LOADS);
    let furthest = lanes.0.iter().max().map_or(0, |place| place / 8);
    let lists = (contexts.as_ptr(), out.as_mut_ptr());
    // SAFETY: both lists have `count` whole steps. A step consumes fewer than eight bytes of a lane
    // and loads eight, so that the loads of the first case end within the bytes.
    unsafe {
        if furthest + WORD_BYTES * (count + 1) <= bytes.len() {
            read_steps::<N, false>(lanes, bytes, tables, lists, count);
        } else {
            read_steps::<N, true>(lanes, bytes, tables, lists, count);
        }
    }
    let read = count * N * BETWEEN_LOADS;
    read_rest(lanes, bytes, tables, &contexts[read..], &mut out[read..]);
}

/// Reads `count` steps, [`BETWEEN_LOADS`] symbols of each lane.
///
/// # Safety
///
/// Both lists must have that many. Unless `BOUND`, each lane must stay at least eight bytes before
/// the end.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn read_steps<const N: usize, const BOUND: bool>(
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    tables: &Tables,
    (mut from, mut to): (*const Context, *mut u8),
    count: usize,
) {
    const { assert!(BETWEEN_LOADS == 6, "as many turns are written out below") };
    let step = N * BETWEEN_LOADS;
    // A value unknown to the compiler prevents it from splitting one instruction into two.
    let word_bits = std::hint::black_box(WORD_BITS as u32);
    let mut places = lanes.0;
    for _ in 0..count {
        // SAFETY: the caller guarantees it.
        let mut bits = unsafe { load::<N, BOUND>(places, bytes) };
        // SAFETY: there are that many whole steps of both lists.
        unsafe {
            turn(&mut bits, tables, word_bits, from, to);
            turn(&mut bits, tables, word_bits, from.add(N), to.add(N));
            turn(&mut bits, tables, word_bits, from.add(2 * N), to.add(2 * N));
            turn(&mut bits, tables, word_bits, from.add(3 * N), to.add(3 * N));
            turn(&mut bits, tables, word_bits, from.add(4 * N), to.add(4 * N));
            turn(&mut bits, tables, word_bits, from.add(5 * N), to.add(5 * N));
            from = from.add(step);
            to = to.add(step);
        }
        advance(&mut places, bits);
    }
    lanes.0 = places;
}

/// Reads the remainder after the last whole step.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
fn read_rest<const N: usize>(
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    tables: &Tables,
    contexts: &[Context],
    out: &mut [u8],
) {
    // SAFETY: what it takes is bound.
    let mut bits = unsafe { load::<N, true>(lanes.0, bytes) };
    let (turns, rest) = contexts.as_chunks::<N>();
    let (to_turns, to_rest) = out[..contexts.len()].as_chunks_mut::<N>();
    for (contexts, out) in turns.iter().zip(to_turns) {
        // SAFETY: both are arrays of a turn.
        unsafe { turn(&mut bits, tables, WORD_BITS as u32, contexts.as_ptr(), out.as_mut_ptr()) };
    }
    for ((context, out), bits) in rest.iter().zip(to_rest).zip(&mut bits) {
        // SAFETY: both are elements of a list.
        unsafe { symbol(bits, tables, WORD_BITS as u32, context, out) };
    }
    advance(&mut lanes.0, bits);
}

/// Takes a symbol of each lane.
///
/// # Safety
///
/// There must be as many elements of a list at both pointers.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn turn<const N: usize>(
    bits: &mut [u64; N],
    tables: &Tables,
    word_bits: u32,
    from: *const Context,
    to: *mut u8,
) {
    for (lane, bits) in bits.iter_mut().enumerate() {
        // SAFETY: the caller guarantees it.
        unsafe { symbol(bits, tables, word_bits, from.add(lane), to.add(lane)) };
    }
}

/// The next bits of each lane, of which 54 may be consumed. The position of the top bit tells how
/// far each was shifted.
///
/// # Safety
///
/// Unless `BOUND`, all positions must be at least eight bytes before the end.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn load<const N: usize, const BOUND: bool>(places: [usize; N], bytes: &[u8]) -> [u64; N] {
    let last = bytes.len() - WORD_BYTES;
    places.map(|place| {
        let at = if BOUND { (place >> 3).min(last) } else { place >> 3 };
        // SAFETY: `last` is eight bytes before the end, or the caller guarantees it.
        let word = unsafe { bytes.as_ptr().add(at).cast::<u64>().read_unaligned() };
        u64::from_le(word) >> (place & 7) | 1 << 63
    })
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn advance<const N: usize>(places: &mut [usize; N], bits: [u64; N]) {
    for (place, bits) in places.iter_mut().zip(bits) {
        *place += bits.leading_zeros() as usize;
    }
}

/// Takes a symbol.
///
/// # Safety
///
/// Both pointers must be to an element of a list.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn symbol(
    bits: &mut u64,
    tables: &Tables,
    word_bits: u32,
    from: *const Context,
    to: *mut u8,
) {
    // SAFETY: the caller guarantees it.
    let start = unsafe { from.read() }.bytes();
    let next = _bzhi_u64(*bits, word_bits) as usize;
    // SAFETY: a context has 16 bits, and the list has the entries of one more table after that.
    let entry = unsafe { tables.as_ptr().byte_add(start).add(next).read_unaligned() };
    *bits >>= entry & 63;
    // SAFETY: the caller guarantees it. Volatile prevents the compiler from gathering the bytes in
    // a vector, which takes longer than to store each.
    unsafe { to.write_volatile((entry >> 8) as u8) };
}

/// See [`super::width_contexts`].
pub(super) fn width_contexts(
    classes: &[u8],
    of: &WidthContexts,
    contexts: &mut [Context],
    bands: &mut [u8],
) -> usize {
    let all = super::super::groups::avx2::sum(classes);
    assert!(contexts.len() >= all + OVERRUN && bands.len() >= all + OVERRUN, "there is room");
    let (pairs, rest) = classes.as_chunks::<2>();
    let (mut to_contexts, mut to_bands) = (contexts.as_mut_ptr(), bands.as_mut_ptr());
    let mut at = 0;
    for [first, second] in pairs {
        let pair = &of.pairs[usize::from(*first & 7) << 3 | usize::from(*second & 7)];
        let count = usize::from(*first) + usize::from(*second);
        // SAFETY: the classes have been added up: this starts before their end or at it, and there
        // is room for 32 after that.
        unsafe {
            to_contexts.cast::<[Context; 8]>().write_unaligned(pair.0);
            to_bands.cast::<[u8; 8]>().write_unaligned(pair.1);
            to_contexts = to_contexts.add(count);
            to_bands = to_bands.add(count);
        }
        at += count;
    }
    at + portable::width_contexts(rest, of, &mut contexts[at..], &mut bands[at..])
}

/// See [`super::group_contexts`].
pub(super) fn group_contexts(
    widths: &[u8],
    bands: &[u8],
    codes: &PairCodes,
    contexts: &mut [Context],
) {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { group_contexts_avx2(widths, bands, codes, contexts) }
}

#[target_feature(enable = "avx2")]
fn group_contexts_avx2(widths: &[u8], bands: &[u8], codes: &PairCodes, contexts: &mut [Context]) {
    let all = super::super::groups::avx2::group_bytes(widths);
    assert!(contexts.len() >= all + OVERRUN, "the caller leaves room behind the contexts");
    let mut to = contexts.as_mut_ptr();
    for (widths, band) in widths.iter().zip(bands) {
        let codes = &codes[usize::from(*band) & 15];
        let bytes = usize::from(BYTES_OF[usize::from(*widths)]);
        // SAFETY: the bytes of all groups have been added up: each starts before their end or at
        // it, and there is room for 32 contexts after that.
        unsafe {
            if bytes <= PAIR_BYTES {
                store(&codes[usize::from(*widths)], to);
            } else {
                let first = usize::from(BYTES_OF[usize::from(*widths & 15)]);
                store(&codes[usize::from(*widths & 15)], to);
                store(&codes[usize::from(*widths & 0xf0)], to.add(first));
            }
            to = to.add(bytes);
        }
    }
}

/// Writes 16 contexts.
///
/// # Safety
///
/// There must be room for them at `to`.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store(codes: &[u8; PAIR_BYTES], to: *mut Context) {
    // SAFETY: the load takes the 16 bytes of the array, the caller has room; none is aligned.
    unsafe {
        let codes = _mm256_cvtepu8_epi16(_mm_loadu_si128(codes.as_ptr().cast()));
        let contexts = _mm256_slli_epi16::<{ WORD_BITS as i32 + 1 }>(codes);
        _mm256_storeu_si256(to.cast(), contexts);
    }
}

/// See [`super::find_escapes`].
pub(super) fn find_escapes(symbols: &[u8], places: &mut Vec<u32>) -> usize {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { find_escapes_avx2(symbols, places) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn find_escapes_avx2(symbols: &[u8], places: &mut Vec<u32>) -> usize {
    /// Written without a check whether there are any, as usually there are few.
    const UNASKED: usize = 2;
    let escape = _mm256_set1_epi8(ESCAPE as i8);
    // Earlier entries are overwritten, so that nothing needs clearing.
    places.resize(places.len().max(symbols.len() + 64), 0);
    let mut count = 0;
    let (wholes, rest) = symbols.as_chunks::<64>();
    for (index, symbols) in wholes.iter().enumerate() {
        let [low, high] = [&symbols[..32], &symbols[32..]].map(|half| {
            // SAFETY: the load takes the 32 bytes of half of the array and needs no alignment.
            let half = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
            u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(half, escape)) as u32)
        });
        let mut found = low | high << 32;
        let to = &mut places[count..][..64];
        count += found.count_ones() as usize;
        for to in &mut to[..UNASKED] {
            *to = 64 * index as u32 + found.trailing_zeros();
            found &= found.wrapping_sub(1);
        }
        for to in &mut to[UNASKED..] {
            if found == 0 {
                break;
            }
            *to = 64 * index as u32 + found.trailing_zeros();
            found &= found.wrapping_sub(1);
        }
    }
    let behind = 64 * wholes.len() as u32;
    let listed = rest.iter().zip(behind..).filter(|(symbol, _)| **symbol == ESCAPE);
    for (to, (_, place)) in places[count..].iter_mut().zip(listed) {
        *to = place;
        count += 1;
    }
    count
}
