//! A row to be processed by the pass along the rows.

/// A row of one plane for the pass along the rows, and its position in the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// The bytes from the first needed column on, with 32 readable bytes after the last.
    pub(super) from: &'a [u8],
    pub(super) to: usize,
}
