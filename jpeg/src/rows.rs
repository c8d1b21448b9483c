//! Coefficients of one row of MCUs, or of some of its columns.

use super::Block;
use super::markers::{COMPONENTS_MAX, Frame};

/// The blocks of one component in a row of MCUs.
#[derive(Debug, Default)]
pub(crate) struct ComponentRows {
    /// Blocks, row by row.
    blocks: Vec<Block>,
    /// For each block, the zigzag position of its last coefficient that is not 0, or a later one.
    extents: Vec<u8>,
    wide: usize,
    high: usize,
}

impl ComponentRows {
    /// Changes the size and retains the memory. The content of the blocks is unspecified.
    fn set_size(&mut self, wide: usize, high: usize) {
        self.wide = wide;
        self.high = high;
        self.blocks.resize(wide * high, Block::ZERO);
        self.extents.resize(wide * high, 0);
    }

    /// Rows of blocks.
    pub(crate) fn high(&self) -> usize {
        self.high
    }

    /// A row of blocks with their extents.
    pub(crate) fn row(&self, row: usize) -> (&[Block], &[u8]) {
        let range = row * self.wide..(row + 1) * self.wide;
        (&self.blocks[range.clone()], &self.extents[range])
    }

    /// A row of blocks with their extents, mutable.
    pub(crate) fn row_mut(&mut self, row: usize) -> (&mut [Block], &mut [u8]) {
        let range = row * self.wide..(row + 1) * self.wide;
        (&mut self.blocks[range.clone()], &mut self.extents[range])
    }

    /// All blocks, row by row, with their extents, mutable.
    pub(crate) fn all_mut(&mut self) -> (&mut [Block], &mut [u8]) {
        (&mut self.blocks, &mut self.extents)
    }

    #[inline(always)]
    pub(super) fn block_mut(&mut self, column: usize, row: usize) -> (&mut Block, &mut u8) {
        let at = row * self.wide + column;
        (&mut self.blocks[at], &mut self.extents[at])
    }
}

/// The blocks of all components in a row of MCUs, or in some of its columns.
#[derive(Debug, Default)]
pub(crate) struct BlockRows {
    components: [ComponentRows; COMPONENTS_MAX],
}

impl BlockRows {
    /// Resizes to `mcus` columns of MCUs.
    pub(crate) fn set_size(&mut self, frame: &Frame, mcus: u32) {
        for (rows, component) in self.components.iter_mut().zip(frame.components()) {
            rows.set_size((mcus * component.h) as usize, component.v as usize);
        }
    }

    /// A component's blocks.
    pub(crate) fn component(&self, index: usize) -> &ComponentRows {
        &self.components[index]
    }

    /// The blocks of all components; none for absent components.
    pub(crate) fn components_mut(&mut self) -> &mut [ComponentRows; COMPONENTS_MAX] {
        &mut self.components
    }

    /// A component's blocks, mutable.
    #[inline(always)]
    pub(crate) fn component_mut(&mut self, index: usize) -> &mut ComponentRows {
        &mut self.components[index]
    }
}
