//! The codes of the compact form for decoders on other processors.

use super::codes::{CODES, WORD_BITS, lines};
use super::geometry::GROUPS;
use std::sync::LazyLock;

/// Groups of both kinds, and one for all groups of DC differences.
const MAPS: usize = 2 * GROUPS + 1;

/// Bytes of groups of each width from 1 to 16.
const MAP_BYTES: usize = 16 * 17 / 2;

/// The fixed codes of the compact form, which docs/coefficient-form.md defines.
#[derive(Debug)]
pub struct CodeBank {
    /// By code and the next nine bits, the first of which is the lowest: a symbol in the high byte,
    /// the bits of its word in the low byte. 512 entries for each code.
    pub lookups: Vec<u16>,
    /// The code of each byte of a group, by eight times the kind plus the number of the group, or
    /// 16 for DC differences; those of a width follow those of the widths below it.
    pub maps: Vec<[u8; MAP_BYTES]>,
    /// The code of the widths of DC differences.
    pub dc_widths: u8,
}

impl CodeBank {
    /// The symbol that stands for a byte in the list of escapes.
    pub const ESCAPE: u8 = super::codes::ESCAPE;

    /// The codes.
    pub fn get() -> &'static Self {
        &BANK
    }
}

static BANK: LazyLock<CodeBank> = LazyLock::new(|| {
    let codes = &*CODES;
    let count = codes.words.len() << WORD_BITS;
    let first_of_dc = lines("group").count() + lines("width").count() + lines("class").count();
    let of_dc = lines("dc_map")
        .map(|map| map.into_iter().map(|code| code + first_of_dc as u8).collect::<Vec<u8>>());
    let maps: Vec<_> = lines("group_map")
        .chain(of_dc)
        .map(|map| map.try_into().expect("a code for each byte of each width"))
        .collect();
    assert_eq!(maps.len(), MAPS, "a map for each group");
    CodeBank {
        lookups: codes.tables[..count].to_vec(),
        maps,
        dc_widths: codes.dc_widths().code() as u8,
    }
});

#[cfg(test)]
mod tests {
    use super::{CODES, CodeBank, WORD_BITS};

    #[test]
    fn lookups_and_maps_are_those_of_the_reader() {
        let bank = CodeBank::get();
        for (code, words) in CODES.words.iter().enumerate() {
            for (symbol, (bits, length)) in words.iter().enumerate().filter(|(_, it)| it.1 > 0) {
                let entry = bank.lookups[code << WORD_BITS | usize::from(*bits)];
                assert_eq!(usize::from(entry >> 8), symbol);
                assert_eq!(entry as u8, *length);
            }
        }
        // A pair of a group of 3 bits and one of 2: three bytes, then two.
        for kind in 0..2 {
            for band in 0..4 {
                let pair = &CODES.pairs[kind * 4 + band][2 << 4 | 3];
                let first = 8 * kind + 2 * band;
                assert_eq!(pair[..3], bank.maps[first][3..6]);
                assert_eq!(pair[3..5], bank.maps[first + 1][1..3]);
            }
        }
        assert_eq!(CODES.pairs[8][2 << 4 | 3][..3], bank.maps[16][3..6]);
    }
}
