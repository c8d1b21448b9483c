//! Orients a picture according to its Exif orientation.

use crate::Region;
use crate::picture_program::Turn;
use crate::planes::{Planes, Stripe};

/// Number of columns processed together.
const TILE: usize = 64;

/// An Exif orientation, 2..=8: the positions of the file's first row and first column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orientation(u8);

impl Orientation {
    /// `None` for an orientation that does not change the picture.
    pub(super) fn of(orientation: u8) -> Option<Self> {
        (2..=8).contains(&orientation).then_some(Self(orientation))
    }

    /// Columns and rows of the oriented picture.
    pub(super) fn size(self, (width, height): (u32, u32)) -> (u32, u32) {
        if self.0 >= 5 { (height, width) } else { (width, height) }
    }

    /// The turn of the picture in the file.
    pub(super) fn turn(self) -> Turn {
        Turn {
            is_transposed: self.0 >= 5,
            from_right: matches!(self.0, 2 | 3 | 7 | 8),
            from_bottom: matches!(self.0, 3 | 4 | 6 | 7),
        }
    }

    /// The part of the picture in the file, of `width` x `height`, that becomes a part of the
    /// oriented picture.
    pub(super) fn source(self, part: Region, (width, height): (u32, u32)) -> Region {
        let Turn { is_transposed, from_right, from_bottom } = self.turn();
        let Region { x, y, .. } = part;
        let (x, y) = if is_transposed { (y, x) } else { (x, y) };
        let (columns, rows) = self.size((part.width, part.height));
        Region {
            x: if from_right { width - x - columns } else { x },
            y: if from_bottom { height - y - rows } else { y },
            width: columns,
            height: rows,
        }
    }

    /// The new position of a pixel of a picture of `width` x `height`.
    fn place(self, (x, y): (usize, usize), (width, height): (usize, usize)) -> (usize, usize) {
        let (right, bottom) = (width - 1 - x, height - 1 - y);
        match self.0 {
            2 => (right, y),
            3 => (right, bottom),
            4 => (x, bottom),
            5 => (y, x),
            6 => (bottom, x),
            7 => (bottom, right),
            8 => (y, right),
            _ => (x, y),
        }
    }

    /// Copies rows of a picture of `size`, from row `first` on, to their positions.
    pub(super) fn put(
        self,
        stripe: Stripe<'_>,
        first: usize,
        size: (usize, usize),
        into: &mut Planes,
    ) {
        let (height, width) = (size.1, stripe.width);
        let down = first..first + stripe.rows;
        for plane in 0..3 {
            let from = |row: usize| &stripe.row(plane, row)[..width];
            if self.0 < 5 {
                for row in 0..stripe.rows {
                    let (_, y) = self.place((0, first + row), size);
                    let out = into.row_mut(plane, y);
                    out.copy_from_slice(from(row));
                    if matches!(self.0, 2 | 3) {
                        out.reverse();
                    }
                }
                continue;
            }
            // Rows become columns, tile by tile, so that the rows of a tile stay in the cache.
            let is_backwards = matches!(self.0, 6 | 7);
            let to = if is_backwards { height - down.end } else { down.start };
            for tile in (0..width).step_by(TILE) {
                for x in tile..width.min(tile + TILE) {
                    let (_, y) = self.place((x, 0), size);
                    let out = &mut into.row_mut(plane, y)[to..to + stripe.rows];
                    for (row, out) in out.iter_mut().enumerate() {
                        let row = if is_backwards { stripe.rows - 1 - row } else { row };
                        *out = stripe.planes[plane][row * stripe.stride + x];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_file_become_parts_of_the_oriented_picture() {
        let (width, height) = (37, 29);
        for tag in 2..=8 {
            let orientation = Orientation::of(tag).unwrap();
            let size = orientation.size((width, height));
            let part = Region { x: 3, y: 5, width: size.0 - 10, height: size.1 - 7 };
            let from = orientation.source(part, (width, height));
            for (x, y) in (0..width).flat_map(|x| (0..height).map(move |y| (x, y))) {
                let file = (width as usize, height as usize);
                let to = orientation.place((x as usize, y as usize), file);
                let is_in = |region: Region, (x, y): (u32, u32)| {
                    (region.x..region.x + region.width).contains(&x)
                        && (region.y..region.y + region.height).contains(&y)
                };
                let to = (to.0 as u32, to.1 as u32);
                assert_eq!(is_in(from, (x, y)), is_in(part, to), "orientation {tag}: {x}, {y}");
            }
        }
    }

    #[test]
    fn every_pixel_is_moved_to_its_position() {
        let (width, height) = (37, 29);
        let mut whole = Planes::default();
        whole.set_size(width, height);
        for (plane, y) in (0..3).flat_map(|plane| (0..height).map(move |y| (plane, y))) {
            for (x, value) in whole.row_mut(plane, y).iter_mut().enumerate() {
                *value = (plane * 101 + y * 37 + x * 3) as u8;
            }
        }
        for tag in 2..=8 {
            let orientation = Orientation::of(tag).unwrap();
            let (oriented_width, oriented_height) = orientation.size((width as u32, height as u32));
            let mut oriented = Planes::default();
            oriented.set_size(oriented_width as usize, oriented_height as usize);
            for first in (0..height).step_by(11) {
                let rows = 11.min(height - first);
                let stripe = whole.stripe((0, first), width, rows);
                orientation.put(stripe, first, (width, height), &mut oriented);
            }
            for (plane, y) in (0..3).flat_map(|plane| (0..height).map(move |y| (plane, y))) {
                for x in 0..width {
                    let (to_x, to_y) = orientation.place((x, y), (width, height));
                    let expected = (plane * 101 + y * 37 + x * 3) as u8;
                    assert_eq!(oriented.row_mut(plane, to_y)[to_x], expected, "orientation {tag}");
                }
            }
        }
    }
}
