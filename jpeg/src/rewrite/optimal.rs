//! Builds the Huffman table that codes given symbols in the fewest bits (T.81, K.2).
//!
//! It breaks ties as libjpeg's `jpeg_gen_optimal_table` does, so that the tables equal those of its
//! encoders.

use super::super::markers::HuffmanSpec;

/// How often each symbol occurs.
pub(crate) type Frequencies = [u64; 256];

/// Longest code that a table of the file format holds.
const LENGTH_MAX: usize = 16;

/// The real symbols and one that reserves the code of all ones, which no symbol may have.
const NODES: usize = 257;

/// The table for symbols of these frequencies; it has no codes if there are no symbols.
pub(crate) fn optimal_table(frequencies: &Frequencies) -> HuffmanSpec {
    let depths = depths(frequencies);
    let mut counts = [0_usize; NODES];
    for depth in depths.iter().filter(|depth| **depth > 0) {
        counts[*depth] += 1;
    }
    limit_lengths(&mut counts);
    // The longest remaining code is the one of all ones.
    if let Some(longest) = counts.iter().rposition(|count| *count > 0) {
        counts[longest] -= 1;
    }
    let mut table = HuffmanSpec { counts: [0; 16], symbols: [0; 256] };
    for (count, found) in table.counts.iter_mut().zip(&counts[1..]) {
        *count = *found as u8;
    }
    let mut used: Vec<u8> = (0..=255).filter(|symbol| depths[usize::from(*symbol)] > 0).collect();
    used.sort_by_key(|symbol| depths[usize::from(*symbol)]);
    table.symbols[..used.len()].copy_from_slice(&used);
    table
}

/// Depth of each symbol in Huffman's tree, without a limit; 0 for symbols that do not occur.
fn depths(frequencies: &Frequencies) -> [usize; NODES] {
    let mut depths = [0; NODES];
    // Trees not yet joined: weight, and the symbol with the largest number of those that joined as
    // the lighter half at the top; symbols of a tree are chained.
    let mut weights = [0; NODES];
    weights[..256].copy_from_slice(frequencies);
    weights[256] = 1;
    let mut next = [usize::MAX; NODES];
    while let Some(lightest) = lightest(&weights, None) {
        let Some(second) = self::lightest(&weights, Some(lightest)) else {
            break;
        };
        weights[lightest] += weights[second];
        weights[second] = 0;
        let last = deepen(&mut depths, &next, lightest);
        next[last] = second;
        deepen(&mut depths, &next, second);
    }
    depths
}

/// The lightest tree except one; the last of equals.
fn lightest(weights: &[u64; NODES], except: Option<usize>) -> Option<usize> {
    let mut found = None;
    for (index, weight) in weights.iter().enumerate() {
        if *weight > 0 && Some(index) != except && found.is_none_or(|(_, least)| *weight <= least) {
            found = Some((index, *weight));
        }
    }
    found.map(|(index, _)| index)
}

/// Moves the symbols of a chain down by one and returns its last.
fn deepen(depths: &mut [usize; NODES], next: &[usize; NODES], first: usize) -> usize {
    let mut at = first;
    loop {
        depths[at] += 1;
        if next[at] == usize::MAX {
            return at;
        }
        at = next[at];
    }
}

/// Shortens codes of more than 16 bits by K.2's procedure `Adjust_BITS`: of two siblings that are
/// too long, one takes the place of their parent, and a shorter code becomes the parent of the
/// other.
fn limit_lengths(counts: &mut [usize; NODES]) {
    for length in (LENGTH_MAX + 1..NODES).rev() {
        while counts[length] > 0 {
            let shorter = counts[..length - 1]
                .iter()
                .rposition(|count| *count > 0)
                .expect("a tree with two leaves so deep has one further up");
            counts[length] -= 2;
            counts[length - 1] += 1;
            counts[shorter + 1] += 2;
            counts[shorter] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_symbol_needs_no_code() {
        assert_eq!(optimal_table(&[0; 256]).len(), 0);
    }

    #[test]
    fn a_single_symbol_has_a_code_of_one_bit() {
        let mut frequencies = [0; 256];
        frequencies[7] = 3;
        let table = optimal_table(&frequencies);
        assert_eq!((table.counts[0], table.len(), table.symbols[0]), (1, 1, 7));
    }

    #[test]
    fn steep_frequencies_stay_within_sixteen_bits() {
        let mut frequencies = [0; 256];
        let (mut one, mut other) = (1, 1);
        for frequency in frequencies.iter_mut().take(60) {
            *frequency = one;
            (one, other) = (other, one + other);
        }
        let table = optimal_table(&frequencies);
        assert_eq!(table.len(), 60);
        assert!(kraft(&table) < 1 << 16);
    }

    /// Share of all codes of 16 bits that begin with a code of the table.
    fn kraft(table: &HuffmanSpec) -> u64 {
        (0..16).map(|index| u64::from(table.counts[index]) << (15 - index)).sum()
    }

    proptest! {
        #[test]
        fn every_symbol_has_a_code_and_all_ones_is_free(
            used in prop::collection::vec((any::<u8>(), 1..1_000_000u64), 1..300),
        ) {
            let mut frequencies = [0; 256];
            for (symbol, frequency) in used {
                frequencies[usize::from(symbol)] = frequency;
            }
            let table = optimal_table(&frequencies);
            let mut symbols = table.symbols[..table.len()].to_vec();
            symbols.sort_unstable();
            let expected: Vec<u8> =
                (0..=255).filter(|s| frequencies[usize::from(*s)] > 0).collect();
            prop_assert_eq!(symbols, expected);
            prop_assert!(kraft(&table) < 1 << 16);
        }
    }
}
