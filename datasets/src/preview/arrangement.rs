//! The arrangement of the pictures of one sample: those of each column in a block.

/// Pixels between pictures of a sample.
const GAP: u32 = 2;
/// Maximum number of pictures in a row of a block, unless a square arrangement is wider.
const ROW_MOST: u32 = 5;

/// The pictures of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Their number.
    pub(super) count: u32,
    /// Width and height of each.
    pub(super) size: (u32, u32),
}

/// Positions for all pictures of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// Left and top of each picture, in the order of the columns.
    pub(super) places: Vec<(u32, u32)>,
    /// Width and height of the whole.
    pub(super) size: (u32, u32),
}

impl Arrangement {
    /// Arranges blocks from left to right, each with as many rows as fit into the height of the
    /// tallest picture. `None` if the sides exceed 32 bits.
    pub(super) fn of(blocks: &[Block]) -> Option<Self> {
        let tallest = blocks.iter().map(|block| block.size.1).max()?;
        let mut places = Vec::new();
        let (mut left, mut height) = (0_u32, 0_u32);
        for &Block { count, size: (block_width, block_height) } in blocks {
            let columns = columns(count, block_height, tallest);
            let step = (block_width.checked_add(GAP)?, block_height.checked_add(GAP)?);
            let rows = count.div_ceil(columns);
            let (width, bottom) = (step.0.checked_mul(columns)?, step.1.checked_mul(rows)?);
            left.checked_add(width)?;
            for index in 0..count {
                places.push((left + index % columns * step.0, index / columns * step.1));
            }
            left += width;
            height = height.max(bottom - GAP);
        }
        Some(Self { places, size: (left - GAP, height) })
    }
}

/// Number of pictures in a row of a block.
fn columns(count: u32, height: u32, tallest: u32) -> u32 {
    let rows = (u64::from(tallest) + u64::from(GAP)) / (u64::from(height) + u64::from(GAP));
    let rows = u32::try_from(rows).unwrap_or(u32::MAX).max(1);
    let square = count.isqrt() + u32::from(count.isqrt().pow(2) < count);
    count.div_ceil(rows).min(ROW_MOST.max(square)).max(1)
}

#[cfg(test)]
mod tests {
    use super::{Arrangement, Block, GAP};

    fn of(blocks: &[(u32, (u32, u32))]) -> Arrangement {
        let blocks: Vec<Block> =
            blocks.iter().map(|&(count, size)| Block { count, size }).collect();
        Arrangement::of(&blocks).unwrap()
    }

    #[test]
    fn one_picture_fills_the_tile() {
        let it = of(&[(1, (30, 20))]);
        assert_eq!((it.places, it.size), (vec![(0, 0)], (30, 20)));
    }

    #[test]
    fn small_views_are_drawn_in_rows_beside_large_ones() {
        let it = of(&[(1, (224, 224)), (1, (224, 224)), (8, (96, 96))]);
        let (large, small) = (224 + GAP, 96 + GAP);
        assert_eq!(it.places[..3], [(0, 0), (large, 0), (2 * large, 0)]);
        assert_eq!(it.places[5], (2 * large + 3 * small, 0));
        assert_eq!(it.places[6], (2 * large, small));
        assert_eq!(it.size, (2 * large + 4 * small - GAP, 224));
    }

    #[test]
    fn crops_are_drawn_in_rows_of_five_and_many_in_a_square() {
        assert_eq!(of(&[(5, (8, 9))]).size, (5 * 8 + 4 * GAP, 9));
        assert_eq!(of(&[(10, (8, 9))]).size, (5 * 8 + 4 * GAP, 2 * 9 + GAP));
        assert_eq!(of(&[(100, (8, 8))]).size, (10 * 8 + 9 * GAP, 10 * 8 + 9 * GAP));
        assert_eq!(of(&[(3, (4, 4)), (30, (5, 5))]).places.len(), 33);
    }

    #[test]
    fn sides_that_32_bits_cannot_hold_are_refused() {
        assert_eq!(Arrangement::of(&[Block { count: 256, size: (u32::MAX / 4, 1) }]), None);
    }
}
