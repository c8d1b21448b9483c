//! Executes `gaussian_noise`.

use super::PixelOperation;
use crate::Error;
use crate::picture_program::PictureChange;
use crate::pixels::Pixels;
use crate::random::{Field, normal};
use crate::vector::{BLOCK, Kernel, run};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::GaussianNoise;

/// Upper bits of a random word that select an entry of the table.
const TABLE_BITS: u32 = 12;
const TABLE_LEN: usize = 1 << TABLE_BITS;
/// An entry of the table whose words have more than two addends.
const MIXED: i16 = i16::MIN;
/// Addends beyond this give the same results as this, if results are clipped.
const ADDEND_MAX: i32 = 256;

/// What to add to a value for a random word: `(mean + number * sigma) as i32` for the standard
/// normal number of the word.
///
/// Numbers grow with their words, and those of two neighbouring words differ by far more than their
/// rounding errors, so that addends never fall. The table has the addend of the first of the words
/// with the same upper bits, and the last word that has this addend; the others have the next one.
#[derive(Debug)]
struct Addends {
    mean: f64,
    sigma: f64,
    clip: bool,
    first: [i16; TABLE_LEN],
    last_words: [u32; TABLE_LEN],
}

impl Addends {
    fn new(mean: f64, sigma: f64, clip: bool) -> Self {
        let (first, last_words) = ([MIXED; TABLE_LEN], [u32::MAX; TABLE_LEN]);
        let mut addends = Self { mean, sigma, clip, first, last_words };
        for index in 0..TABLE_LEN {
            let mut low = (index as u32) << (u32::BITS - TABLE_BITS);
            let mut high = low | (u32::MAX >> TABLE_BITS);
            let [addend, last] = [low, high].map(|word| addends.exact(word));
            if last.wrapping_sub(addend) > 1 {
                continue;
            }
            addends.first[index] = addends.narrow(addend);
            if last != addend {
                // Bisection: `low` has the first addend, `high` the last.
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    let has_first = addends.exact(middle) == addend;
                    *(if has_first { &mut low } else { &mut high }) = middle;
                }
                addends.last_words[index] = low;
            }
        }
        addends
    }

    /// An addend of 16 bits with the same result.
    fn narrow(&self, addend: i32) -> i16 {
        match self.clip {
            true => addend.clamp(-ADDEND_MAX, ADDEND_MAX) as i16,
            // The lower eight bits are the addend modulo 256.
            false => i16::from(addend as u8),
        }
    }

    /// The addend of a word by its definition. The cast truncates.
    fn exact(&self, word: u32) -> i32 {
        (self.mean + normal(word) * self.sigma) as i32
    }

    /// The addend of a word, or [`MIXED`].
    #[inline(always)]
    fn found(&self, word: u32) -> i16 {
        let index = (word >> (u32::BITS - TABLE_BITS)) as usize;
        self.first[index] + i16::from(word > self.last_words[index])
    }
}

/// The operation with its table.
#[derive(Debug)]
pub(super) struct Noise {
    addends: Box<Addends>,
}

impl Noise {
    pub(super) fn new(operation: GaussianNoise) -> Self {
        let GaussianNoise { mean, sigma, clip } = operation;
        Self { addends: Box::new(Addends::new(mean * 255.0, sigma * 255.0, clip)) }
    }
}

impl PixelOperation for Noise {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        true
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let field = Field::drawn(draws);
        let (cpu, is_grey) = (pixels.cpu(), pixels.is_grey());
        if let Some(recording) = pixels.recording() {
            let Addends { mean, sigma, clip, .. } = *self.addends;
            let (key, is_clipped) = (field.key(), clip);
            recording.push(PictureChange::Noise { key, mean, sigma, is_clipped, is_grey });
            return Ok(());
        }
        let mut words = vec![0; pixels.size().0 as usize];
        let mut y = 0;
        pixels.each_row(|planes| {
            for (channel, row) in planes.into_iter().enumerate() {
                if channel == 0 || !is_grey {
                    field.row(cpu, channel, y, &mut words);
                }
                run(cpu, Add { row, words: &words, addends: &self.addends });
            }
            y += 1;
        })
    }
}

/// Adds the addends of words to a row.
struct Add<'a> {
    row: &'a mut [u8],
    words: &'a [u32],
    addends: &'a Addends,
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { row, words, addends } = self;
        let (values, last_values) = row.as_chunks_mut::<BLOCK>();
        let (words, last_words) = words.as_chunks::<BLOCK>();
        for (values, words) in values.iter_mut().zip(words) {
            add(values, words, addends);
        }
        if !last_values.is_empty() {
            let (mut values, mut words) = ([0; BLOCK], [0; BLOCK]);
            values[..last_values.len()].copy_from_slice(last_values);
            words[..last_words.len()].copy_from_slice(last_words);
            add(&mut values, &words, addends);
            last_values.copy_from_slice(&values[..last_values.len()]);
        }
    }
}

#[inline(always)]
fn add(values: &mut [u8; BLOCK], words: &[u32; BLOCK], addends: &Addends) {
    let mut found = [0; BLOCK];
    let mut is_mixed = false;
    for (found, word) in found.iter_mut().zip(words) {
        *found = addends.found(*word);
        is_mixed |= *found == MIXED;
    }
    if is_mixed {
        for (found, word) in found.iter_mut().zip(words) {
            if *found == MIXED {
                *found = addends.narrow(addends.exact(*word));
            }
        }
    }
    for (value, addend) in values.iter_mut().zip(found) {
        let sum = i16::from(*value) + addend;
        // Without clipping, the lower eight bits are the value modulo 256.
        *value = if addends.clip { sum.clamp(0, 255) as u8 } else { sum as u8 };
    }
}

#[cfg(test)]
mod tests {
    use super::{Addends, MIXED, TABLE_BITS, TABLE_LEN};

    #[test]
    fn addends_of_the_table_are_those_of_each_word() {
        for (mean, sigma) in [(0.0, 25.5), (12.75, 2.0), (-300.0, 0.0), (0.0, 900.0)] {
            for clip in [true, false] {
                let addends = Addends::new(mean, sigma, clip);
                let mut word = 12345_u32;
                for step in 0..100_000_u32 {
                    let index = step as usize / 8 % TABLE_LEN;
                    word = match step % 8 {
                        // The ends of an entry, and the words around its step.
                        0 => (index as u32) << (u32::BITS - TABLE_BITS),
                        1 => word.wrapping_sub(1),
                        2 => addends.last_words[index],
                        3 => word.wrapping_add(1),
                        _ => word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223),
                    };
                    let found = addends.found(word);
                    let exact = addends.exact(word);
                    let found = if found == MIXED { addends.narrow(exact) } else { found };
                    for value in [0, 1, 77, 254, 255] {
                        let end = |sum: i32| if clip { sum.clamp(0, 255) } else { sum & 255 };
                        let (sum, expected) = (i32::from(found) + value, exact.wrapping_add(value));
                        assert_eq!(end(sum), end(expected), "{mean} {sigma} {word}");
                    }
                }
                let mixed = addends.first.iter().filter(|first| **first == MIXED).count();
                assert!(sigma > 100.0 || mixed < 100, "{mean} {sigma} {mixed}");
            }
        }
    }
}
