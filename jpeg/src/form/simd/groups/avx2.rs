//! Groups with AVX2: two rows of a block, which are two groups, at a time.
//!
//! The bytes of each number go to its 16 bits, a multiplication shifts it to the top of these, and
//! the high half of another product is the number shifted down again with its sign. A table by the
//! widths of both groups holds the parameters of each number.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::super::super::geometry::BANDS;
use super::super::super::geometry::width;
use super::{GroupedBlocks, NARROW, WINDOW, extent, is_any_wide, portable, widths_of};
use crate::Block;
use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi16, _mm_add_epi64, _mm_castsi128_pd, _mm_cvtsi32_si128,
    _mm_cvtsi128_si64, _mm_extract_epi16, _mm_loadu_si128, _mm_set_epi64x, _mm_set1_epi16,
    _mm_shuffle_epi8, _mm_sll_epi16, _mm_slli_si128, _mm_sra_epi16, _mm_storeh_pd, _mm_storel_pd,
    _mm_storeu_si128, _mm_unpackhi_epi64, _mm256_add_epi8, _mm256_add_epi64, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_cmpeq_epi8,
    _mm256_extracti128_si256, _mm256_load_si256, _mm256_loadu_si256, _mm256_mulhi_epi16,
    _mm256_mullo_epi16, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_sub_epi8, _pdep_u64,
};

/// How two groups are expanded to two rows.
#[repr(C, align(128))]
struct Step {
    /// The two bytes that hold each number, 0x80 for none.
    shuffle: [u8; 32],
    /// The factor that shifts it to the top of 16 bits.
    up: [u16; 16],
    /// The factor that shifts it down into the next 16 bits.
    down: [u16; 16],
    /// Bytes of both groups.
    bytes: usize,
}

/// Bytes of the widths of a block, at most.
const WIDTHS_MAX: usize = BANDS;

/// Marks widths that no step handles.
const NO_STEP: usize = usize::MAX;

/// Widest number that a step handles, if both groups fit its 16 bytes.
const STEP_BITS_MAX: usize = 9;

/// Steps by the widths of both groups; `bytes` is [`NO_STEP`] where they do not fit one.
static STEPS: [Step; 256] = {
    const NONE: Step = Step { shuffle: [0x80; 32], up: [0; 16], down: [0; 16], bytes: NO_STEP };
    let mut steps = [NONE; 256];
    let mut index = 0;
    while index < 256 {
        let widths = [index & 15, index >> 4];
        let fit = widths[0] <= STEP_BITS_MAX && widths[1] <= STEP_BITS_MAX;
        if fit && widths[0] + widths[1] <= 2 * NARROW {
            steps[index].bytes = widths[0] + widths[1];
            let mut place = 0;
            while place < 16 {
                let (row, column) = (place / 8, place % 8);
                let group = column / 4;
                let bits = widths[group];
                if bits > 0 {
                    let bit = 8 * group * widths[0] + (4 * row + column % 4) * bits;
                    steps[index].shuffle[2 * place] = (bit / 8) as u8;
                    // The byte after the last one does not matter.
                    steps[index].shuffle[2 * place + 1] = (bit / 8 + 1) as u8 & 15;
                    steps[index].up[place] = 1 << (16 - bits - bit % 8);
                    steps[index].down[place] = 1 << bits;
                }
                place += 1;
            }
        }
        index += 1;
    }
    steps
};

/// See [`super::unpack_groups`].
pub(super) fn unpack(
    from: GroupedBlocks<'_>,
    blocks: &mut [Block],
    extents: &mut [u8],
) -> (usize, usize) {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { unpack_avx2(from, blocks, extents) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn unpack_avx2(
    from: GroupedBlocks<'_>,
    blocks: &mut [Block],
    extents: &mut [u8],
) -> (usize, usize) {
    let widths_end = sum_avx2(from.classes);
    let groups_end = group_bytes_avx2(&from.widths[..widths_end]);
    assert!(
        from.widths.len() - widths_end >= WIDTHS_MAX && from.groups.len() >= groups_end + WINDOW,
        "the caller leaves room behind widths and groups"
    );
    let (mut widths_at, mut groups_at) = (from.widths.as_ptr(), from.groups.as_ptr());
    let listed = from.classes.iter().zip(from.dc);
    for ((class, dc), (block, to)) in listed.zip(blocks.iter_mut().zip(extents)) {
        // SAFETY: both positions are at most the ends of what all blocks take, as just summed, and
        // the bytes loaded here are readable after those ends.
        let (widths, groups) = unsafe {
            let widths: &[u8; WIDTHS_MAX] = &*widths_at.cast();
            let groups: &[u8; WINDOW] = &*groups_at.cast();
            (widths_of(*class, widths), groups)
        };
        let bytes = if is_any_wide(widths) {
            // SAFETY: the block's groups are before the end, and there is a window after that.
            let groups = unsafe {
                let left = from.groups.as_ptr().add(groups_end + WINDOW).offset_from(groups_at);
                std::slice::from_raw_parts(groups_at, left as usize)
            };
            unpack_wide_block(widths, groups, block)
        } else {
            unpack_block(widths, groups, block)
        };
        block.0[0] = *dc;
        *to = extent(widths);
        // SAFETY: neither exceeds the end of all blocks together.
        unsafe {
            widths_at = widths_at.add(usize::from(*class));
            groups_at = groups_at.add(bytes);
        }
    }
    (widths_end, groups_end)
}

/// As [`portable::unpack_block`], for narrow groups.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn unpack_block(widths: u32, groups: &[u8; WINDOW], block: &mut Block) -> usize {
    let mut at = 0;
    for (band, rows) in block.0.as_chunks_mut::<16>().0.iter_mut().enumerate().take(BANDS) {
        let step = &STEPS[(widths >> (8 * band) & 255) as usize];
        // SAFETY: up to three steps have passed up to 16 bytes each, and there are four times 16.
        let bytes = unsafe { _mm_loadu_si128(groups.as_ptr().add(at).cast()) };
        unpack_step(step, bytes, rows);
        at += step.bytes;
    }
    at
}

/// Two groups that fit a step.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn unpack_step(step: &Step, bytes: __m128i, rows: &mut [i16; 16]) {
    let spread = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), load(&step.shuffle));
    // SAFETY: both loads take the 32 bytes of an array at a multiple of 32.
    let (up, down) = unsafe {
        let (up, down) = (step.up.as_ptr().cast(), step.down.as_ptr().cast());
        (_mm256_load_si256(up), _mm256_load_si256(down))
    };
    let numbers = _mm256_mulhi_epi16(_mm256_mullo_epi16(spread, up), down);
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_si256(rows.as_mut_ptr().cast(), numbers) };
}

/// As [`portable::unpack_block`], for any groups.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
fn unpack_wide_block(widths: u32, groups: &[u8], block: &mut Block) -> usize {
    let mut at = 0;
    for (band, rows) in block.0.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let both = (widths >> (8 * band)) as u8;
        let step = &STEPS[usize::from(both)];
        match groups[at..].first_chunk::<16>() {
            Some(bytes) if step.bytes != NO_STEP => {
                // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
                unpack_step(step, unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }, rows);
                at += step.bytes;
            }
            _ => {
                for (half, code) in [both & 15, both >> 4].into_iter().enumerate() {
                    unpack_group(width(code), &groups[at..], rows, 4 * half);
                    at += usize::from(width(code));
                }
            }
        }
    }
    at
}

/// Bits of four numbers of each width that go to 16 bits each.
const DEPOSIT: [u64; 17] = {
    let mut deposit = [0; 17];
    let mut bits = 0;
    while bits <= 16 {
        deposit[bits] = ((1 << bits) - 1) * 0x0001_0001_0001_0001;
        bits += 1;
    }
    deposit
};

/// A group of any width: four numbers from a column on, and those below.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn unpack_group(bits: u8, group: &[u8], rows: &mut [i16; 16], column: usize) {
    let window: &[u8; 16] = group.first_chunk().expect("the caller leaves room behind the groups");
    let all = u128::from_le_bytes(*window);
    let deposit = DEPOSIT[usize::from(bits.min(16))];
    let upper = _pdep_u64(all as u64, deposit);
    let lower = _pdep_u64((all >> (4 * bits.min(16))) as u64, deposit);
    let numbers = _mm_set_epi64x(lower as i64, upper as i64);
    // Shifting up and back extends the sign; without bits the number is 0.
    let rest = _mm_cvtsi32_si128(16 - i32::from(bits.min(16)));
    let numbers = _mm_castsi128_pd(_mm_sra_epi16(_mm_sll_epi16(numbers, rest), rest));
    let (above, below) = rows.split_at_mut(8);
    let above: &mut [i16; 4] = above[column..].first_chunk_mut().expect("a column is 0 or 4");
    let below: &mut [i16; 4] = below[column..].first_chunk_mut().expect("a column is 0 or 4");
    // SAFETY: each store fills the 8 bytes of its array.
    unsafe {
        _mm_storel_pd(above.as_mut_ptr().cast(), numbers);
        _mm_storeh_pd(below.as_mut_ptr().cast(), numbers);
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// See [`super::group_bytes`].
pub(in super::super) fn group_bytes(widths: &[u8]) -> usize {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { group_bytes_avx2(widths) }
}

#[target_feature(enable = "avx2")]
fn group_bytes_avx2(widths: &[u8]) -> usize {
    let (wholes, rest) = widths.as_chunks::<32>();
    let low = _mm256_set1_epi8(15);
    let mut total = _mm256_setzero_si256();
    for pairs in wholes {
        let pairs = load(pairs);
        let first = _mm256_and_si256(pairs, low);
        let second = _mm256_and_si256(_mm256_srli_epi16::<4>(pairs), low);
        let bytes = _mm256_add_epi8(first, second);
        // Where a code is 15, a comparison gives -1.
        let bytes = _mm256_sub_epi8(bytes, _mm256_cmpeq_epi8(first, low));
        let bytes = _mm256_sub_epi8(bytes, _mm256_cmpeq_epi8(second, low));
        total = _mm256_add_epi64(total, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    }
    total_of(total) + portable::group_bytes(rest)
}

/// See [`super::sum`].
pub(in super::super) fn sum(numbers: &[u8]) -> usize {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { sum_avx2(numbers) }
}

#[target_feature(enable = "avx2")]
fn sum_avx2(numbers: &[u8]) -> usize {
    let (wholes, rest) = numbers.as_chunks::<32>();
    let mut total = _mm256_setzero_si256();
    for numbers in wholes {
        let sums = _mm256_sad_epu8(load(numbers), _mm256_setzero_si256());
        total = _mm256_add_epi64(total, sums);
    }
    total_of(total) + portable::sum(rest)
}

/// See [`super::prefix_sums`].
pub(super) fn prefix_sums(before: i16, differences: &mut [i16]) {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { prefix_sums_avx2(before, differences) }
}

#[target_feature(enable = "avx2")]
fn prefix_sums_avx2(before: i16, differences: &mut [i16]) {
    let (wholes, rest) = differences.as_chunks_mut::<8>();
    let last = _mm_set1_epi16(0x0f0e);
    let mut before = _mm_set1_epi16(before);
    for eight in wholes {
        // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
        let sums = unsafe { _mm_loadu_si128(eight.as_ptr().cast()) };
        let sums = _mm_add_epi16(sums, _mm_slli_si128::<2>(sums));
        let sums = _mm_add_epi16(sums, _mm_slli_si128::<4>(sums));
        let sums = _mm_add_epi16(sums, _mm_slli_si128::<8>(sums));
        let sums = _mm_add_epi16(sums, before);
        // SAFETY: the store fills the 16 bytes of the array and needs no alignment.
        unsafe { _mm_storeu_si128(eight.as_mut_ptr().cast(), sums) };
        before = _mm_shuffle_epi8(sums, last);
    }
    portable::prefix_sums(_mm_extract_epi16::<0>(before) as i16, rest);
}

/// The sum of four numbers.
#[target_feature(enable = "avx2")]
#[inline]
fn total_of(numbers: __m256i) -> usize {
    let high = _mm256_extracti128_si256::<1>(numbers);
    let two = _mm_add_epi64(_mm256_castsi256_si128(numbers), high);
    _mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))) as usize
}
