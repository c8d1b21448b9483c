//! How blocks and coefficients are numbered: rows of MCUs, zigzag groups, classes.

use super::frame::{COMPONENTS_MAX, Frame};
use arrayvec::ArrayVec;

/// Pairs of rows of coefficients of a block.
pub(super) const BANDS: usize = 4;

/// Natural-order indices of a group of the fast form: the first or the last four columns of two
/// rows.
pub(super) fn group_places(group: usize) -> [usize; GROUPS] {
    std::array::from_fn(|index| {
        let (row, column) = (2 * (group / 2) + index / 4, 4 * (group % 2) + index % 4);
        8 * row + column
    })
}

/// Groups of a block, and coefficients of a group.
pub(super) const GROUPS: usize = 8;

/// Number of classes of a block: in class c, the last non-zero coefficient is in the first 2c
/// groups.
pub(super) const CLASSES: usize = 5;

/// The bits of a number in a group with this code, which is also the number of bytes of the group.
#[inline(always)]
pub(super) fn width(code: u8) -> u8 {
    code + u8::from(code == 15)
}

/// One component's share of a row of MCUs: `rows` rows of `wide` blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strip {
    /// Blocks of an MCU along a row.
    pub(super) horizontal: usize,
    /// Rows of blocks.
    pub(super) rows: usize,
    /// Blocks in a row.
    pub(super) wide: usize,
    /// Index of its first block among all of the row of MCUs.
    pub(super) first: usize,
    /// 0 for the first component, 1 for the others, which have separate codes.
    pub(super) kind: usize,
}

impl Strip {
    /// Blocks of the strip.
    pub(super) fn blocks(&self) -> usize {
        self.rows * self.wide
    }
}

/// The strips of every row of MCUs, and the blocks of all of them together.
pub(super) fn strips(frame: &Frame) -> (ArrayVec<Strip, COMPONENTS_MAX>, usize) {
    let (mcus_wide, _) = frame.mcus();
    let mut blocks = 0;
    let mut strips = ArrayVec::new();
    for (index, component) in frame.components.iter().enumerate() {
        let strip = Strip {
            horizontal: usize::from(component.horizontal),
            rows: usize::from(component.vertical),
            wide: mcus_wide as usize * usize::from(component.horizontal),
            first: blocks,
            kind: index.min(1),
        };
        blocks += strip.blocks();
        strips.push(strip);
    }
    (strips, blocks)
}
