//! A Huffman table as specified in a file.

/// A Huffman table as specified in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HuffmanSpec {
    /// Number of codes of each length from 1 to 16.
    pub counts: [u8; 16],
    /// Symbols in order of their codes; those after the sum of `counts` are 0.
    pub symbols: [u8; 256],
}

impl HuffmanSpec {
    /// Number of symbols.
    pub(crate) fn len(&self) -> usize {
        self.counts.iter().map(|count| usize::from(*count)).sum()
    }
}
