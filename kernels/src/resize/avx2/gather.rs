//! The pass along the rows for little or no shrinking: a shuffle gathers two taps of each of four
//! output values from 16 bytes of the row.

use super::super::coefficients::Coefficients;
use super::super::line::Line;
use super::super::portable::HALF;
use super::{GROUP, finish, load, parts};
use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm_storel_epi64, _mm_unpackhi_epi64, _mm256_add_epi32,
    _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_castsi256_si128,
    _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_madd_epi16, _mm256_packs_epi32,
    _mm256_packus_epi16, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_setr_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8,
};

/// Bytes of a load.
const LOAD: usize = 16;

/// Output values whose taps one load must reach: half a vector.
const HALF_GROUP: usize = GROUP / 2;

/// Rows that share the loads of weights.
const ROWS: usize = 4;

/// Shuffle indices that give zeros.
const NOTHING: i32 = 0x8080_8080_u32 as i32;

/// Two taps of eight output values.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
struct Step {
    /// Shuffle: the bytes of both taps, each widened to 16 bits.
    order: [i32; GROUP],
    low: [i32; GROUP],
    high: [i32; GROUP],
}

/// The loads needed to reach all taps of a group of output values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reading {
    /// One load for the whole group.
    #[default]
    Once,
    /// One load for each half.
    Halves,
    /// One load for each half in each step.
    Steps,
}

impl Reading {
    /// The smallest sufficient number of loads, if there is one.
    fn of(runs: &[(u32, u32)]) -> Option<Self> {
        let reaches = |group: usize, taps_max: u32| {
            runs.chunks(group).all(|runs| {
                let first = runs.iter().map(|run| run.0).min().unwrap_or(0);
                runs.iter().all(|run| (run.0 - first + run.1.min(taps_max)) as usize <= LOAD)
            })
        };
        if reaches(GROUP, u32::MAX) {
            Some(Self::Once)
        } else if reaches(HALF_GROUP, u32::MAX) {
            Some(Self::Halves)
        } else {
            reaches(HALF_GROUP, 2).then_some(Self::Steps)
        }
    }
}

// As const parameters of functions.
const ONCE: u8 = Reading::Once as u8;
const HALVES: u8 = Reading::Halves as u8;
const STEPS: u8 = Reading::Steps as u8;

const EMPTY: Step = Step { order: [NOTHING; GROUP], low: [0; GROUP], high: [0; GROUP] };

/// Weights in steps, `pairs` for each eight output values.
#[derive(Debug, Default)]
pub(super) struct Gather {
    pairs: usize,
    groups: usize,
    steps: Vec<Step>,
    reading: Reading,
    /// Start of the loads for the halves of a vector, for each group or each step.
    loads: Vec<[u32; 2]>,
    /// Bytes of a row that may be read.
    reach: usize,
}

impl Gather {
    /// Packs the weights; `false` if the loads cannot reach all taps.
    pub(super) fn pack(&mut self, coefficients: &Coefficients) -> bool {
        self.pairs = coefficients.taps_max.div_ceil(2);
        self.groups = coefficients.runs.len().div_ceil(GROUP);
        self.steps.clear();
        self.loads.clear();
        let Some(reading) = Reading::of(&coefficients.runs) else { return false };
        self.reading = reading;
        self.steps.resize(self.groups * self.pairs, EMPTY);
        let mut last = 0;
        for (group, steps) in self.steps.chunks_exact_mut(self.pairs).enumerate() {
            let outputs = group * GROUP..coefficients.runs.len().min((group + 1) * GROUP);
            let runs = &coefficients.runs[outputs.clone()];
            let first = |runs: &[(u32, u32)]| runs.iter().map(|run| run.0).min().unwrap_or(0);
            let (left, right) = runs.split_at(runs.len().min(HALF_GROUP));
            let firsts = match reading {
                Reading::Once => [first(runs); 2],
                Reading::Halves | Reading::Steps => [first(left), first(right)],
            };
            for (place, output) in outputs.enumerate() {
                let (from, weights) = coefficients.run(output);
                let shift = from as i32 - firsts[place / HALF_GROUP] as i32;
                for (pair, (step, weights)) in steps.iter_mut().zip(weights.chunks(2)).enumerate() {
                    let at = match reading {
                        Reading::Once | Reading::Halves => shift + 2 * pair as i32,
                        Reading::Steps => shift,
                    };
                    // The second tap is read even if it does not exist: its weight is 0, and so is
                    // the result of an index beyond the load.
                    step.order[place] = 0x8000_8000_u32 as i32 | at | ((at + 1) & 0xf) << 16;
                    let second = weights.get(1).copied().unwrap_or(0);
                    (step.low[place], step.high[place]) = parts(weights[0], second);
                }
            }
            let count = if reading == Reading::Steps { self.pairs as u32 } else { 1 };
            for pair in 0..count {
                let place = |runs: &[(u32, u32)], first| {
                    // If no run has this number of taps, the load only needs to be inside the row.
                    let is_used = runs.iter().any(|run| run.1 > 2 * pair);
                    first + if is_used { 2 * pair } else { 0 }
                };
                let places = [place(left, firsts[0]), place(right, firsts[1])];
                last = last.max(places[0].max(places[1]) as usize);
                self.loads.push(places);
            }
        }
        self.reach = last + LOAD;
        true
    }

    /// The pass along the rows.
    pub(super) fn across(&self, lines: &[Line<'_>], out: &mut [u8]) {
        for line in lines {
            assert!(line.from.len() >= self.reach, "a row goes on behind its end");
            assert!(out.len() >= line.to + self.groups * GROUP, "there is room for the row");
        }
        let (fours, rest) = lines.as_chunks::<ROWS>();
        for lines in fours {
            // SAFETY: the machine has AVX2, for which `Passes` has been made, and what is read and
            // written lies inside the slices, as just asserted.
            unsafe {
                match (self.reading, self.pairs) {
                    (Reading::Once, 1) => self.rows::<ROWS, 1, ONCE>(lines, out),
                    (Reading::Once, 2) => self.rows::<ROWS, 2, ONCE>(lines, out),
                    (Reading::Once, _) => self.rows::<ROWS, 0, ONCE>(lines, out),
                    (Reading::Halves, 2) => self.rows::<ROWS, 2, HALVES>(lines, out),
                    (Reading::Halves, 3) => self.rows::<ROWS, 3, HALVES>(lines, out),
                    (Reading::Halves, _) => self.rows::<ROWS, 0, HALVES>(lines, out),
                    (Reading::Steps, _) => self.rows::<ROWS, 0, STEPS>(lines, out),
                }
            }
        }
        for line in rest {
            let lines = std::array::from_ref(line);
            // SAFETY: as above.
            unsafe {
                match self.reading {
                    Reading::Once => self.rows::<1, 0, ONCE>(lines, out),
                    Reading::Halves => self.rows::<1, 0, HALVES>(lines, out),
                    Reading::Steps => self.rows::<1, 0, STEPS>(lines, out),
                }
            }
        }
    }

    /// Processes some rows at once, with a known number of steps if that is not 0.
    ///
    /// # Safety
    ///
    /// The rows have `reach` bytes, and `out` has space for whole groups after each start.
    #[target_feature(enable = "avx2")]
    unsafe fn rows<const ROWS: usize, const PAIRS: usize, const READING: u8>(
        &self,
        lines: &[Line<'_>; ROWS],
        out: &mut [u8],
    ) {
        let pairs = if PAIRS == 0 { self.pairs } else { PAIRS };
        let mut loads = self.loads.iter();
        for (group, steps) in self.steps.chunks_exact(pairs).enumerate() {
            let mut low = [_mm256_set1_epi32(HALF); ROWS];
            let mut high = [_mm256_setzero_si256(); ROWS];
            let mut bytes = [_mm256_setzero_si256(); ROWS];
            for (pair, step) in steps.iter().enumerate() {
                if (READING == STEPS || pair == 0)
                    && let Some(places) = loads.next()
                {
                    for (bytes, line) in bytes.iter_mut().zip(lines) {
                        // SAFETY: the loads end within `reach`.
                        *bytes = unsafe { read::<READING>(line.from.as_ptr(), *places) };
                    }
                }
                let order = load(&step.order);
                let (low_weights, high_weights) = (load(&step.low), load(&step.high));
                for row in 0..ROWS {
                    let taps = _mm256_shuffle_epi8(bytes[row], order);
                    low[row] = _mm256_add_epi32(low[row], _mm256_madd_epi16(taps, low_weights));
                    high[row] = _mm256_add_epi32(high[row], _mm256_madd_epi16(taps, high_weights));
                }
            }
            let mut sums = [_mm256_setzero_si256(); 4];
            for row in 0..ROWS {
                sums[row] = finish(low[row], high[row]);
            }
            let rows = narrow(sums);
            for (line, row) in lines.iter().zip(rows) {
                // SAFETY: the group's eight bytes lie in `out`.
                unsafe {
                    _mm_storel_epi64(out.as_mut_ptr().add(line.to + group * GROUP).cast(), row);
                };
            }
        }
    }
}

/// Two loads of 16 bytes of a row, or the same bytes twice.
///
/// # Safety
///
/// Both loads lie inside the row.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn read<const READING: u8>(row: *const u8, places: [u32; 2]) -> __m256i {
    // SAFETY: both loads lie inside the row, says the caller, and need no alignment.
    let load = |place: u32| unsafe { _mm_loadu_si128(row.add(place as usize).cast()) };
    let left = load(places[0]);
    if READING == ONCE {
        return _mm256_broadcastsi128_si256(left);
    }
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(left), load(places[1]))
}

/// Eight sums each of four rows as eight bytes each, in the lower halves.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow(sums: [__m256i; 4]) -> [__m128i; 4] {
    let words = [_mm256_packs_epi32(sums[0], sums[1]), _mm256_packs_epi32(sums[2], sums[3])];
    let bytes = _mm256_packus_epi16(words[0], words[1]);
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let rows = _mm256_permutevar8x32_epi32(bytes, order);
    let (ab, cd) = (_mm256_castsi256_si128(rows), _mm256_extracti128_si256::<1>(rows));
    [ab, _mm_unpackhi_epi64(ab, ab), cd, _mm_unpackhi_epi64(cd, cd)]
}
