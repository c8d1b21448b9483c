//! The fixed prefix codes of the compact form, and which code each byte of a row uses.
//!
//! They are part of the format: `codes.txt` must never change without a new version of the form.

use super::geometry::{BANDS, CLASSES, width};
use std::sync::LazyLock;

/// Longest word in bits.
pub(super) const WORD_BITS: usize = 9;

/// The symbol that represents a byte in the list of escapes.
pub(super) const ESCAPE: u8 = 0x99;

/// Lanes of all but small pictures: as many as fit a processor's registers.
pub(super) const LANES: u8 = 6;

/// Kinds of components: the first one, and the others.
pub(super) const KINDS: usize = 2;

/// Number of codes of classes; a picture selects one for each kind.
pub(super) const CLASS_CODES: usize = 4;

/// Number of codes of widths; a picture selects one for each kind and class-and-band index.
pub(super) const WIDTH_CODES: usize = 16;

/// Bytes of widths of all classes: 1 of class 1, 2 of class 2, 3 of class 3, 4 of class 4.
pub(super) const WIDTH_INDICES: usize = 10;

/// The codes that a compact form selects for a kind of blocks, by their numbers in the bank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindCodes {
    /// Of classes.
    pub classes: u8,
    /// Of bytes of widths: of band 0 of class 1, bands 0 and 1 of class 2, and so on.
    pub widths: [u8; WIDTH_INDICES],
}

/// Combinations of kind and band of a pair of groups, besides DC differences.
pub(super) const DC_PAIRS: u8 = (KINDS * BANDS) as u8;

/// Maximum bytes of a pair of groups with a common list of codes; in a larger pair, each group has
/// its own list.
pub(super) const PAIR_BYTES: usize = 16;

/// Offset of a code's table in all tables, in bytes. There are up to 64 codes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Context(u16);

impl Context {
    /// Of a code.
    #[inline(always)]
    pub(super) fn new(code: u8) -> Self {
        Self(u16::from(code) << (WORD_BITS + 1))
    }

    /// The code.
    pub(super) fn code(self) -> usize {
        usize::from(self.0) >> (WORD_BITS + 1)
    }

    /// Bytes from the start of all tables.
    #[inline(always)]
    pub(super) fn bytes(self) -> usize {
        usize::from(self.0)
    }
}

/// Indexed by the sum of a [`Context`] and the next [`WORD_BITS`] bits: a symbol in the high byte,
/// the bits of its word in the low byte. Any context is in bounds.
pub(super) type Tables = [u16; (1 << 15) + (1 << WORD_BITS)];

/// The codes of the bytes of a pair of groups, by its index below [`DC_PAIRS`] and its widths.
pub(super) type PairCodes = [[[u8; PAIR_BYTES]; 256]; 16];

/// The word of each symbol: its bits, the first lowest, and their number; 0 bits for no word.
pub(super) type Words = [(u16, u8); 256];

/// All fixed codes.
#[derive(Debug)]
pub(super) struct Codes {
    /// For decoding.
    pub(super) tables: Box<Tables>,
    /// For encoding, by code.
    pub(super) words: Vec<Words>,
    /// Codes of the bytes of groups.
    pub(super) pairs: Box<PairCodes>,
    /// The first of the codes of widths.
    widths: u8,
    /// The first of the codes of classes.
    classes: u8,
    /// The code of widths of groups of DC differences.
    dc_widths: u8,
}

/// The fixed codes, built on first use.
pub(super) static CODES: LazyLock<Codes> = LazyLock::new(|| {
    let mut words = Vec::new();
    let starts = ["group", "width", "class", "dc", "dc_width"].map(|name| {
        let start = words.len() as u8;
        words.extend(lines(name).map(|lengths| canonical(&lengths)));
        start
    });
    let [_, widths, classes, dc, dc_widths] = starts;
    let mut tables = Box::new([0; (1 << 15) + (1 << WORD_BITS)]);
    for (table, words) in tables.chunks_exact_mut(1 << WORD_BITS).zip(&words) {
        fill(table, words);
    }
    let mut pairs = Box::new([[[0; PAIR_BYTES]; 256]; 16]);
    let of_dc: Vec<u8> = lines("dc_map").flatten().map(|code| code + dc).collect();
    let maps: Vec<Vec<u8>> = lines("group_map").chain([of_dc.clone(), of_dc]).collect();
    for (pairs, maps) in pairs.iter_mut().zip(maps.chunks(2)) {
        fill_pairs(pairs, [&maps[0], &maps[1]]);
    }
    Codes { tables, words, pairs, widths, classes, dc_widths }
});

/// The digits of each line of this name, in base 36.
pub(super) fn lines(name: &str) -> impl Iterator<Item = Vec<u8>> {
    include_str!("codes.txt").lines().filter_map(move |line| {
        let digits = line.strip_prefix(name)?.strip_prefix(' ')?;
        Some(digits.chars().filter_map(|digit| digit.to_digit(36)).map(|at| at as u8).collect())
    })
}

/// The canonical code of these lengths: shorter words first, then lower symbols.
fn canonical(lengths: &[u8]) -> Words {
    let mut words = [(0, 0); 256];
    let mut next = 0usize;
    for length in 1..=WORD_BITS {
        next <<= 1;
        let its = lengths.iter().zip(&mut words).filter(|(its, _)| usize::from(**its) == length);
        for (_, word) in its {
            let reversed = next.reverse_bits() >> (usize::BITS as usize - length);
            *word = (reversed as u16, length as u8);
            next += 1;
        }
    }
    assert_eq!(next, 1 << WORD_BITS, "the words of a code are complete");
    words
}

/// The table of a code.
fn fill(table: &mut [u16], words: &Words) {
    let words = words.iter().enumerate().filter(|(_, (_, length))| *length > 0);
    for (symbol, (bits, length)) in words {
        let entry = (symbol << 8) as u16 | u16::from(*length);
        let entries = table.iter_mut().skip(usize::from(*bits)).step_by(1 << length);
        entries.for_each(|to| *to = entry);
    }
}

/// The codes of pairs, out of those of each width and byte of both groups.
fn fill_pairs(pairs: &mut [[u8; PAIR_BYTES]; 256], maps: [&[u8]; 2]) {
    // Those of a width follow those of the widths below it.
    let of = |group: usize, code: u8| {
        let width = usize::from(width(code));
        maps[group][width * width.saturating_sub(1) / 2..][..width].iter()
    };
    for (widths, pair) in (0..=255u8).zip(pairs) {
        let both = of(0, widths & 15).chain(of(1, widths >> 4));
        pair.iter_mut().zip(both).for_each(|(to, code)| *to = *code);
    }
}

impl Codes {
    /// The code of the widths of groups of DC differences.
    pub(super) fn dc_widths(&self) -> Context {
        Context::new(self.dc_widths)
    }

    /// The code of classes that a picture has selected.
    pub(super) fn classes(&self, choice: u8) -> Context {
        Context::new(self.classes + choice)
    }

    /// The code of widths that a picture has selected.
    pub(super) fn widths(&self, choice: u8) -> Context {
        Context::new(self.widths + choice)
    }
}

/// The codes that a picture has selected for a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// The code of classes.
    pub(super) classes: u8,
    /// The code of each byte of widths, see [`width_index`].
    pub(super) widths: [u8; WIDTH_INDICES],
}

/// Index of a block's byte of widths among [`WIDTH_INDICES`].
pub(super) fn width_index(class: usize, band: usize) -> usize {
    class * (class - 1) / 2 + band
}

/// The contexts of the widths of two blocks, one after the other, and the number of the pair of
/// groups of each, up to [`DC_PAIRS`]; indexed by eight times the class of the first plus that of
/// the second.
#[derive(Debug, Clone)]
pub(super) struct WidthContexts {
    pub(super) pairs: [([Context; 2 * BANDS], [u8; 2 * BANDS]); 64],
}

impl Choice {
    /// By their numbers among all codes.
    pub(super) fn codes(&self) -> KindCodes {
        KindCodes {
            classes: CODES.classes(self.classes).code() as u8,
            widths: self.widths.map(|choice| CODES.widths(choice).code() as u8),
        }
    }

    /// The tables that a reader needs for a kind.
    pub(super) fn width_contexts(&self, kind: usize) -> WidthContexts {
        let mut pairs = [([Context::default(); 2 * BANDS], [0; 2 * BANDS]); 64];
        let classes =
            (0..CLASSES).flat_map(|first| (0..CLASSES).map(move |second| (first, second)));
        for (first, second) in classes {
            let of = |class: usize| (0..class).map(move |band| (class, band));
            let both = of(first).chain(of(second));
            let (contexts, numbers) = &mut pairs[first << 3 | second];
            for ((context, number), (class, band)) in contexts.iter_mut().zip(numbers).zip(both) {
                *context = CODES.widths(self.widths[width_index(class, band)]);
                *number = (kind * BANDS + band) as u8;
            }
        }
        WidthContexts { pairs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_escape_and_every_map_points_at_codes() {
        let codes = &*CODES;
        assert_eq!(usize::from(codes.classes - codes.widths), WIDTH_CODES);
        assert_eq!(usize::from(codes.dc_widths) + 1, codes.words.len());
        assert!(codes.words.len() <= 64);
        for words in &codes.words {
            assert_ne!(words[usize::from(ESCAPE)].1, 0);
        }
        assert_eq!(lines("class").count(), CLASS_CODES);
        assert_eq!(lines("group_map").count(), usize::from(2 * DC_PAIRS));
        for map in lines("group_map").chain(lines("dc_map")) {
            assert_eq!(map.len(), 16 * 17 / 2);
        }
        let groups = lines("group").count();
        assert!(lines("group_map").flatten().all(|code| usize::from(code) < groups));
        let of_dc = lines("dc").count();
        assert!(lines("dc_map").flatten().all(|code| usize::from(code) < of_dc));
    }
}
