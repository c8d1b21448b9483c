//! A row on its way through the pass along the rows.

/// A row of one plane to go through the pass along the rows, and where in the output it is put.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// From the first needed column, with 32 bytes that may be read behind the last.
    pub(super) from: &'a [u8],
    pub(super) to: usize,
}
