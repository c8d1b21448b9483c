//! Huffman tables as lookup tables for decoding.
//!
//! A code of up to [`PEEK_BITS`] bits is found by one lookup of that many bits of the data. For AC
//! coefficients one lookup often yields two symbols, each with its value bits.

use super::markers::HuffmanSpec;

/// Bits of a lookup.
pub(super) const PEEK_BITS: u32 = 11;

const LOOKUP_SIZE: usize = 1 << PEEK_BITS;

/// Bits of a lookup of a DC difference: in most files the codes of 8-bit samples are no longer, and
/// a small table leaves room in the L1 cache.
pub(super) const DC_PEEK_BITS: u32 = 9;

const DC_LOOKUP_SIZE: usize = 1 << DC_PEEK_BITS;

/// Lookup tables that find one symbol at a time.
#[derive(Debug, Clone)]
pub(super) struct Codes {
    /// By the next bits: length of the code and symbol, `length << 8 | symbol`; 0 for longer codes
    /// and for invalid bits.
    lookup: Box<[u16; LOOKUP_SIZE]>,
    /// By length: the first code after those of that length, moved to the top of 16 bits.
    ends: [u32; 17],
    /// By length: index of the symbol less the code.
    offsets: [i32; 17],
    symbols: [u8; 256],
}

impl Default for Codes {
    fn default() -> Self {
        let lookup = Box::new([0; LOOKUP_SIZE]);
        Self { lookup, ends: [0; 17], offsets: [0; 17], symbols: [0; 256] }
    }
}

impl Codes {
    /// Loads the codes of a table.
    fn fill(&mut self, spec: &HuffmanSpec) {
        self.lookup.fill(0);
        self.symbols = spec.symbols;
        let mut index = 0_i32;
        self.ends[0] = 0;
        for length in 1..=16_u32 {
            let first = self.ends[length as usize - 1] >> (16 - length);
            let count = i32::from(spec.counts[length as usize - 1]);
            self.offsets[length as usize] = index - first as i32;
            self.ends[length as usize] = (first + count as u32) << (16 - length);
            index += count;
        }
        for_each_code(spec, |code, length, symbol| {
            if length <= PEEK_BITS {
                let free = PEEK_BITS - length;
                let from = (code << free) as usize;
                let entry = (length << 8) as u16 | u16::from(symbol);
                self.lookup[from..from + (1 << free)].fill(entry);
            }
        });
    }

    /// Length and symbol of the code at the start of the bits, the first bit being the highest;
    /// `None` for an invalid code.
    #[inline(always)]
    pub(super) fn find(&self, bits: u64) -> Option<(u32, u8)> {
        let entry = self.lookup[(bits >> (64 - PEEK_BITS)) as usize];
        if entry != 0 { Some((u32::from(entry >> 8), entry as u8)) } else { self.find_long(bits) }
    }

    fn find_long(&self, bits: u64) -> Option<(u32, u8)> {
        let next = (bits >> 48) as u32;
        let length = (PEEK_BITS + 1..=16).find(|length| next < self.ends[*length as usize])?;
        let code = (next >> (16 - length)) as i32;
        let symbol = self.symbols[(code + self.offsets[length as usize]) as usize & 255];
        Some((length, symbol))
    }
}

/// The value of `size` bits at the top of `bits` (T.81 Figure F.12, EXTEND).
#[inline(always)]
pub(super) fn extend(bits: u64, size: u32) -> i32 {
    let raw = ((bits >> 1) >> (63 - size)) as i32;
    let is_negative = !((bits as i64 >> 63) as i32);
    raw + (is_negative & (1 - (1 << size)))
}

/// Added to a position by the end of a block. Other symbols reach 78 at most.
pub(super) const END_OF_BLOCK: u32 = 96;

/// Calls `with` for each code of a table, its length and its symbol (T.81 C.2).
fn for_each_code(spec: &HuffmanSpec, mut with: impl FnMut(u32, u32, u8)) {
    let mut symbols = spec.symbols.iter();
    let mut code = 0;
    for (length, count) in (1..).zip(spec.counts) {
        for symbol in symbols.by_ref().take(usize::from(count)) {
            with(code, length, *symbol);
            code += 1;
        }
        code <<= 1;
    }
}

/// A table for AC coefficients.
#[derive(Debug, Clone)]
pub(super) struct AcTable {
    pub(super) codes: Codes,
    /// By the next bits, one or two symbols with their values.
    ///
    /// ```text
    /// bits  0..6   bits of the data that they take
    ///       6..12  from the position of the last coefficient before to the first value
    ///      12..19  from the first value to the second; 95 or 96 at the end of a block; 0 for one
    ///              symbol, whose second value is meaningless
    ///      19..26  first value
    ///      26..32  second value
    /// ```
    ///
    /// Where not even one fits, it is [`TOO_LONG`] and, if the code without its value does,
    ///
    /// ```text
    /// bits  0..6   bits of code and value
    ///      12..16  zeros before the value
    ///      16..20  bits of the value
    ///      20..24  bits of the code
    /// ```
    pub(super) lookup: Box<[u32; LOOKUP_SIZE]>,
    /// Indexed by a 1 and the bits of a lookup after the first symbol: what a second symbol adds to
    /// the entry, 0 for none.
    seconds: Box<[u32; LOOKUP_SIZE]>,
}

/// A lookup that finds no symbol with its value. It advances past the end of any block, so that one
/// comparison finds this case and symbols that fill a block.
const TOO_LONG: u32 = 63 << 6;

/// A code that a lookup finds without the value after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeWithoutValue {
    /// Zeros before the value.
    pub(super) zeros: u32,
    /// Bits of the value, not 0.
    pub(super) size: u32,
    /// Bits of the code.
    pub(super) code: u32,
}

impl CodeWithoutValue {
    /// Decodes a table entry, if it is of this type.
    #[inline(always)]
    pub(super) fn of(entry: u32) -> Option<Self> {
        let bare = Self { zeros: entry >> 12 & 15, size: entry >> 16 & 15, code: entry >> 20 & 15 };
        (first_step(entry) == 63 && bare.code != 0).then_some(bare)
    }

    fn entry(self) -> u32 {
        let bits = self.code + self.size;
        bits | TOO_LONG | self.zeros << 12 | self.size << 16 | self.code << 20
    }
}

/// Maximum bits of the first value in a lookup, and of the second.
const VALUE_BITS_MAX: [u32; 2] = [6, 5];

impl Default for AcTable {
    fn default() -> Self {
        let lookup = Box::new([TOO_LONG; LOOKUP_SIZE]);
        Self { codes: Codes::default(), lookup, seconds: Box::new([0; LOOKUP_SIZE]) }
    }
}

impl AcTable {
    /// Computes the contribution of second symbols to an entry.
    fn fill_seconds(&mut self, spec: &HuffmanSpec) {
        /// Maximum bits that a first symbol leaves.
        const BITS: u32 = PEEK_BITS - 1;
        let (less, most) = self.seconds.split_at_mut(1 << BITS);
        most.fill(0);
        for_each_code(spec, |code, length, symbol| {
            let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if length + size > BITS || size > VALUE_BITS_MAX[1] {
                return;
            }
            let step = if is_end_of_block(symbol) { END_OF_BLOCK } else { zeros + 1 };
            let free = BITS - length - size;
            let from = (code << (BITS - length)) as usize;
            let lookup = most[from..][..1 << (size + free)].chunks_exact_mut(1 << free);
            for (raw, lookup) in (0..).zip(lookup) {
                lookup.fill((length + size) | step << 12 | (value(raw, size) as u32) << 26);
            }
        });
        // With fewer bits, only the symbols that fit.
        let fitting = |entry: u32, bits: u32| if entry & 63 <= bits { entry } else { 0 };
        halve(most, &mut less[1 << (BITS - 1)..], |entry| fitting(entry, BITS - 1));
        for bits in (0..BITS - 1).rev() {
            let (less, more) = less.split_at_mut(2 << bits);
            halve(&more[..2 << bits], &mut less[1 << bits..], |entry| fitting(entry, bits));
        }
    }
}

/// Every second entry of a table, mapped by `with`.
fn halve(from: &[u32], to: &mut [u32], with: impl Fn(u32) -> u32) {
    for (pair, to) in from.as_chunks::<2>().0.iter().zip(to) {
        *to = with(pair[0]);
    }
}

/// Whether an AC symbol ends its block.
fn is_end_of_block(symbol: u8) -> bool {
    symbol & 15 == 0 && symbol >> 4 != 15
}

impl Table for AcTable {
    fn fill(&mut self, spec: &HuffmanSpec) {
        self.codes.fill(spec);
        self.fill_seconds(spec);
        self.lookup.fill(TOO_LONG);
        for_each_code(spec, |code, length, symbol| {
            if length > PEEK_BITS {
                return;
            }
            let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            let from = (code << (PEEK_BITS - length)) as usize;
            let lookup = &mut self.lookup[from..][..1 << (PEEK_BITS - length)];
            if length + size > PEEK_BITS || size > VALUE_BITS_MAX[0] {
                lookup.fill(CodeWithoutValue { zeros, size, code: length }.entry());
            } else if is_end_of_block(symbol) {
                lookup.fill(pack_entry(length, 0, END_OF_BLOCK - 1, 0, 0));
            } else {
                let free = PEEK_BITS - length - size;
                let seconds = &self.seconds[1 << free..2 << free];
                for (raw, lookup) in (0..).zip(lookup.chunks_exact_mut(1 << free)) {
                    let first = pack_entry(length + size, zeros, 0, value(raw, size), 0);
                    for (entry, second) in lookup.iter_mut().zip(seconds) {
                        *entry = first + second;
                    }
                }
            }
        });
    }
}

/// An entry of [`AcTable::lookup`].
fn pack_entry(bits: u32, zeros: u32, step: u32, first: i32, second: i32) -> u32 {
    bits | (zeros + 1) << 6 | step << 12 | (first as u32 & 127) << 19 | (second as u32) << 26
}

/// Distance from the last coefficient to the first value of a lookup.
#[inline(always)]
pub(super) fn first_step(entry: u32) -> u32 {
    entry >> 6 & 63
}

/// Distance from the first value of a lookup to the second.
#[inline(always)]
pub(super) fn second_step(entry: u32) -> u32 {
    entry >> 12 & 127
}

/// The first value of a lookup.
#[inline(always)]
pub(super) fn first_value(entry: u32) -> i32 {
    (entry << 6) as i32 >> 25
}

/// The second value of a lookup.
#[inline(always)]
pub(super) fn second_value(entry: u32) -> i32 {
    entry as i32 >> 26
}

/// A table for DC differences.
#[derive(Debug, Clone)]
pub(super) struct DcTable {
    pub(super) codes: Codes,
    /// By the next bits; 0 if the code does not fit.
    ///
    /// ```text
    /// bits  0..6   bits of code and difference
    ///       6..10  bits of the difference
    ///      10..14  bits of the code
    /// ```
    pub(super) lookup: Box<[u16; DC_LOOKUP_SIZE]>,
}

impl Default for DcTable {
    fn default() -> Self {
        Self { codes: Codes::default(), lookup: Box::new([0; DC_LOOKUP_SIZE]) }
    }
}

impl Table for DcTable {
    fn fill(&mut self, spec: &HuffmanSpec) {
        self.codes.fill(spec);
        self.lookup.fill(0);
        for_each_code(spec, |code, length, symbol| {
            if length <= DC_PEEK_BITS {
                let size = u32::from(symbol & 15);
                let free = DC_PEEK_BITS - length;
                let entry = (length + size) | size << 6 | length << 10;
                self.lookup[(code << free) as usize..][..1 << free].fill(entry as u16);
            }
        });
    }
}

/// The difference at the start of the bits, whose code a lookup in [`DcTable::lookup`] found.
#[inline(always)]
pub(super) fn difference(entry: u16, bits: u64) -> i32 {
    let (size, code) = (u32::from(entry >> 6 & 15), u32::from(entry >> 10 & 15));
    extend(bits << code, size)
}

/// The value of `size` bits.
fn value(raw: u32, size: u32) -> i32 {
    extend(u64::from(raw) << (63 - size) << 1, size)
}

/// A table that is built from a specification in a file.
pub(super) trait Table: Default {
    /// Rebuilds the table from `spec`.
    fn fill(&mut self, spec: &HuffmanSpec);
}

/// A cache of the latest tables of one kind: building one takes microseconds, and the files of a
/// dataset share a few.
#[derive(Debug, Default)]
pub(super) struct RecentTables<T> {
    /// The latest are the last.
    tables: Vec<(HuffmanSpec, T)>,
}

/// Tables of each kind that are cached.
const CACHED_MAX: usize = 8;

impl<T: Table> RecentTables<T> {
    /// Ensures that the table of `spec` is cached; a new one replaces the oldest.
    pub(super) fn ensure(&mut self, spec: &HuffmanSpec) {
        match self.tables.iter().position(|(known, _)| known == spec) {
            Some(index) => self.tables[index..].rotate_left(1),
            None if self.tables.len() < CACHED_MAX => {
                let mut table = T::default();
                table.fill(spec);
                self.tables.push((*spec, table));
            }
            None => {
                self.tables.rotate_left(1);
                if let Some((known, table)) = self.tables.last_mut() {
                    *known = *spec;
                    table.fill(spec);
                }
            }
        }
    }

    /// The table of `spec`, which must be cached: at most [`CACHED_MAX`] others may have been added
    /// since.
    pub(super) fn of(&self, spec: &HuffmanSpec) -> &T {
        let known = self.tables.iter().rev().find(|(known, _)| known == spec);
        &known.expect("the tables of a scan, four of a kind at most, are made together").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Annex K.3: luma DC, and a made-up table with long codes.
    fn specs() -> [HuffmanSpec; 2] {
        let spec = |counts, symbols: &[u8]| {
            let mut all = [0; 256];
            all[..symbols.len()].copy_from_slice(symbols);
            HuffmanSpec { counts, symbols: all }
        };
        [
            spec(
                [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
                &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
            ),
            spec(
                [1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 2, 0, 3],
                &[0x01, 0x00, 0x12, 0xf0, 0x23, 0x06, 0x07, 0x31, 0x0f, 0x51, 0x61, 0xff],
            ),
        ]
    }

    /// Assigns codes by counting upwards as in T.81 C.2, and compares bit by bit.
    fn find_slowly(spec: &HuffmanSpec, bits: u64) -> Option<(u32, u8)> {
        let mut found = None;
        for_each_code(spec, |code, length, symbol| {
            if bits >> (64 - length) == u64::from(code) {
                found = Some((length, symbol));
            }
        });
        found
    }

    #[test]
    fn codes_of_annex_k_are_the_printed_ones() {
        let mut printed = Vec::new();
        for_each_code(&specs()[0], |code, length, symbol| printed.push((symbol, length, code)));
        // T.81 Table K.3.
        let expected =
            [(0, 2, 0b00), (1, 3, 0b010), (2, 3, 0b011), (5, 3, 0b110), (11, 9, 0b1_1111_1110)];
        assert!(expected.iter().all(|code| printed.contains(code)), "{printed:?}");
    }

    #[test]
    fn every_code_is_found() {
        for spec in specs() {
            let mut codes = Codes::default();
            codes.fill(&spec);
            // Miri, which is a hundred times slower, tries only some.
            for first in (0..1_u64 << 16).step_by(if cfg!(miri) { 251 } else { 1 }) {
                let bits = first << 48 | 0x1234_5678_9abc;
                assert_eq!(codes.find(bits), find_slowly(&spec, bits), "{first:016b}");
            }
        }
    }

    #[test]
    fn a_lookup_equals_its_codes_decoded_one_by_one() {
        for spec in specs() {
            let mut table = AcTable::default();
            table.fill(&spec);
            for index in (0..LOOKUP_SIZE as u64).step_by(if cfg!(miri) { 13 } else { 1 }) {
                let bits = index << (64 - PEEK_BITS);
                let entry = table.lookup[index as usize];
                let one = |bits: u64, room: u32, size_max: u32| {
                    let (length, symbol) = find_slowly(&spec, bits)?;
                    let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
                    (length + size <= room && size <= size_max).then(|| {
                        let is_end = size == 0 && zeros != 15;
                        (length + size, zeros, extend(bits << length, size), is_end)
                    })
                };
                let Some(first) = one(bits, PEEK_BITS, VALUE_BITS_MAX[0]) else {
                    let bare = find_slowly(&spec, bits).filter(|(code, _)| *code <= PEEK_BITS);
                    let bare = bare.map(|(code, symbol)| {
                        let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
                        CodeWithoutValue { zeros, size, code }
                    });
                    assert_eq!(CodeWithoutValue::of(entry), bare, "{index:011b}");
                    assert_eq!(first_step(entry), 63, "{index:011b}");
                    if let Some(bare) = bare {
                        assert_eq!(entry & 63, bare.code + bare.size, "{index:011b}");
                    }
                    continue;
                };
                assert_eq!(CodeWithoutValue::of(entry), None, "{index:011b}");
                let second = one(bits << first.0, PEEK_BITS - first.0, VALUE_BITS_MAX[1])
                    .filter(|_| !first.3);
                let length = first.0 + second.map_or(0, |second| second.0);
                let behind = match (first, second) {
                    ((_, _, _, true), _) => END_OF_BLOCK,
                    (_, None) => first.1 + 1,
                    (_, Some((_, _, _, true))) => first.1 + 1 + END_OF_BLOCK,
                    (_, Some((_, zeros, _, false))) => first.1 + 1 + zeros + 1,
                };
                assert_eq!(entry & 63, length, "{index:011b}");
                assert_eq!(first_step(entry) + second_step(entry), behind, "{index:011b}");
                assert_eq!(first_value(entry), first.2, "{index:011b}");
                if let Some(second) = second {
                    assert_eq!(second_value(entry), second.2, "{index:011b}");
                }
            }
        }
    }

    #[test]
    fn a_lookup_of_a_dc_difference_equals_its_decoded_code() {
        let spec = specs()[0];
        let mut table = DcTable::default();
        table.fill(&spec);
        for index in 0..DC_LOOKUP_SIZE as u64 {
            let bits = index << (64 - DC_PEEK_BITS) | 0x7f_1234_5678_9abc;
            let entry = table.lookup[index as usize];
            let found = find_slowly(&spec, bits).filter(|(length, _)| *length <= DC_PEEK_BITS);
            let Some((length, size)) = found else {
                assert_eq!(entry, 0, "{index:011b}");
                continue;
            };
            let size = u32::from(size);
            assert_eq!(u32::from(entry) & 63, length + size, "{index:011b}");
            assert_eq!(difference(entry, bits), extend(bits << length, size), "{index:011b}");
        }
    }

    #[test]
    fn values_extend_as_in_the_standard() {
        // T.81 Table F.1 and Figure F.12.
        let cases =
            [(0, 0, 0), (1, 0, -1), (1, 1, 1), (2, 0, -3), (2, 1, -2), (2, 2, 2), (2, 3, 3)];
        for (size, raw, value) in cases {
            assert_eq!(extend(raw << (63 - size) << 1, size as u32), value, "{size} {raw}");
        }
        assert_eq!(extend(0, 15), -32_767);
        assert_eq!(extend(u64::MAX, 15), 32_767);
    }

    #[test]
    fn the_latest_tables_are_cached() {
        let with = |last: u8| {
            let mut spec = specs()[0];
            spec.symbols[11] = last;
            spec
        };
        let mut recent = RecentTables::<DcTable>::default();
        for last in 0..20 {
            recent.ensure(&with(last));
            recent.ensure(&with(0));
            assert!(recent.tables.len() <= CACHED_MAX);
            for known in [0, last, last.saturating_sub(1)] {
                let bits = 0b1_1111_1110 << 55;
                assert_eq!(recent.of(&with(known)).codes.find(bits), Some((9, known)));
            }
        }
    }
}
