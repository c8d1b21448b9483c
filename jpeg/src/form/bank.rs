//! The fixed prefix codes of version 1 of the compact form, and the tables that decode them.
//!
//! They are part of the format: `bank.txt` holds their code lengths, and must never change.

use std::sync::LazyLock;

/// Longest code in bits.
pub(super) const CODE_BITS: usize = 10;

/// Groups of all classes: 2 of class 1, 4 of class 2, 6 of class 3, 8 of class 4.
pub(super) const CONTEXTS: usize = 20;

/// Codes of values, and as many of masks.
pub(super) const CODES: usize = 16;

/// The value and DC symbol that stands for a number in the list of escapes.
pub(super) const ESCAPE: u8 = 0x80;

/// What the next [`CODE_BITS`] bits hold: a symbol in the high byte, its bits in the low byte.
pub(super) type DecodeTable = [u16; 1 << CODE_BITS];

/// A prefix code for bytes.
#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) table: Box<DecodeTable>,
}

impl Code {
    /// The canonical code of these lengths: shorter codes first, among equals lower symbols first.
    fn new(lengths: [u8; 256]) -> Self {
        let mut table = Box::new([0; 1 << CODE_BITS]);
        let mut next = 0usize;
        for length in 1..=CODE_BITS {
            next <<= 1;
            for symbol in (0..256).filter(|symbol| usize::from(lengths[*symbol]) == length) {
                let reversed = next.reverse_bits() >> (usize::BITS as usize - length);
                let entry = (symbol << 8 | length) as u16;
                table.iter_mut().skip(reversed).step_by(1 << length).for_each(|to| *to = entry);
                next += 1;
            }
        }
        assert_eq!(next, 1 << CODE_BITS, "the lengths of a code fill it");
        Self { table }
    }

    /// The code of `bits` bits for every number below `1 << bits`.
    fn flat(bits: usize) -> Self {
        let mut lengths = [0; 256];
        lengths[..1 << bits].fill(bits as u8);
        Self::new(lengths)
    }
}

/// Which code each group of each class has: index into the values' and into the masks'.
pub(super) type CodeMap = [(u8, u8); CONTEXTS];

/// All fixed codes.
#[derive(Debug)]
pub(super) struct Bank {
    /// 16 codes of values, as two's complement.
    pub(super) values: Vec<Code>,
    /// 16 codes of masks.
    pub(super) masks: Vec<Code>,
    /// 8 codes of DC differences, as two's complement.
    pub(super) dc: Vec<Code>,
    /// 8 codes of three classes.
    pub(super) classes: Vec<Code>,
    /// Codes of the low bits of DC differences, by their number.
    pub(super) flat: Vec<Code>,
    /// 16 maps that need not be stored.
    pub(super) presets: Vec<CodeMap>,
}

/// The fixed codes, made when the first picture needs them.
pub(super) static BANK: LazyLock<Bank> = LazyLock::new(|| {
    let codes = |name: &str| lines(name).map(|digits| Code::new(lengths(&digits))).collect();
    Bank {
        values: codes("value"),
        masks: codes("mask"),
        dc: codes("dc"),
        classes: codes("class"),
        flat: (0..=8)
            .map(|bits| if bits == 0 { Code::flat(1) } else { Code::flat(bits) })
            .collect(),
        presets: lines("preset").map(|digits| map(&digits)).collect(),
    }
});

/// The digits of each line of this name.
fn lines(name: &str) -> impl Iterator<Item = Vec<u8>> {
    include_str!("bank.txt").lines().filter_map(move |line| {
        let digits = line.strip_prefix(name)?.strip_prefix(' ')?;
        Some(
            digits
                .chars()
                .filter_map(|digit| digit.to_digit(16))
                .map(|digit| digit as u8)
                .collect(),
        )
    })
}

fn lengths(digits: &[u8]) -> [u8; 256] {
    let mut lengths = [0; 256];
    lengths[..digits.len()].copy_from_slice(digits);
    lengths
}

fn map(digits: &[u8]) -> CodeMap {
    std::array::from_fn(|context| (digits[2 * context], digits[2 * context + 1]))
}

/// Index of a group of a class among [`CONTEXTS`].
pub(super) fn context(class: usize, group: usize) -> usize {
    class * (class - 1) + group
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_is_complete_and_every_map_points_into_the_bank() {
        let bank = &*BANK;
        let counts = [&bank.values, &bank.masks, &bank.dc, &bank.classes].map(Vec::len);
        assert_eq!(counts, [CODES, CODES, 8, 8]);
        assert_eq!(bank.presets.len(), 16);
        let symbols = |code: &Code| -> BTreeSet<u8> {
            code.table.iter().map(|entry| (entry >> 8) as u8).collect()
        };
        for code in bank.values.iter().chain(&bank.dc) {
            assert!(symbols(code).contains(&ESCAPE));
        }
        for code in &bank.masks {
            assert_eq!(symbols(code).len(), 256);
        }
        for code in &bank.classes {
            assert!(symbols(code).into_iter().eq(0..125));
        }
    }
}
