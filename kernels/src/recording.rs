//! Records operations on whole pictures as changes, instead of executing them.

use crate::picture_program::{Erasure, PictureChange, PictureProgram};

/// Records the changes of a picture without pixels.
#[derive(Debug)]
pub(crate) struct Recording<'a> {
    program: &'a mut PictureProgram,
    size: (u32, u32),
    is_complete: bool,
}

impl<'a> Recording<'a> {
    /// A recording for a picture of this size (columns, rows).
    pub(crate) fn new(program: &'a mut PictureProgram, size: (u32, u32)) -> Self {
        Self { program, size, is_complete: true }
    }

    /// Columns and rows after the changes so far.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.size
    }

    /// Whether all changes were recorded.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Marks the recording as incomplete: a change cannot be expressed as data.
    pub(crate) fn refuse(&mut self) {
        self.is_complete = false;
    }

    /// Records a change that does not affect the size.
    pub(crate) fn push(&mut self, change: PictureChange) {
        self.program.changes.push(change);
    }

    /// Records a change that results in a picture of another size.
    pub(crate) fn push_resized(&mut self, change: PictureChange, size: (u32, u32)) {
        self.size = size;
        self.push(change);
    }

    /// Records that a rectangle of the tensor is replaced.
    pub(crate) fn erase(&mut self, erasure: Erasure) {
        self.program.erasures.push(erasure);
    }

    /// Records a table for all channels.
    pub(crate) fn push_table(&mut self, table: [u8; 256]) {
        let number = self.program.tables.len();
        self.program.tables.push(table);
        self.push(PictureChange::Table { table: number });
    }

    /// Records a table for each channel.
    pub(crate) fn push_tables(&mut self, tables: [[u8; 256]; 3]) {
        let first = self.program.tables.len();
        self.program.tables.extend(tables);
        self.push(PictureChange::Tables { first });
    }

    /// Adds words to which a change refers; returns the index of the first.
    pub(crate) fn add_words(&mut self, words: impl IntoIterator<Item = i32>) -> usize {
        let first = self.program.words.len();
        self.program.words.extend(words);
        first
    }
}
