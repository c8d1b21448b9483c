//! How an index reads parts without knowing where they are stored.

/// Random access to the bytes of the parts: all that an [`Index`](super::Index) requires of its
/// caller.
pub trait PartBytes {
    /// Length of a part in bytes.
    fn part_bytes(&self, part: usize) -> std::io::Result<u64>;
    /// Fills `into` from `offset`, whole or not at all.
    fn read_exact_at(&self, part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()>;
}
