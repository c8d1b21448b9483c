//! Turns a picture as its Exif orientation says.

use crate::stripe::{Planes, Stripe};

/// An Exif orientation, 2..=8: where the first row and the first column of the file belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(u8);

impl Turn {
    /// `None` for an orientation that leaves the picture as it is.
    pub(super) fn of(orientation: u8) -> Option<Self> {
        (2..=8).contains(&orientation).then_some(Self(orientation))
    }

    /// Columns and rows of a turned picture.
    pub(super) fn size(self, (width, height): (u32, u32)) -> (u32, u32) {
        if self.0 >= 5 { (height, width) } else { (width, height) }
    }

    /// Where a pixel of a picture of `width` x `height` comes to lie.
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

    /// Puts rows of a picture of `size`, from row `first` on, where they belong.
    pub(super) fn put(
        self,
        stripe: Stripe<'_>,
        first: usize,
        size: (usize, usize),
        into: &mut Planes,
    ) {
        for plane in 0..3 {
            for row in 0..stripe.rows {
                let values = &stripe.row(plane, row)[..stripe.width];
                for (x, value) in values.iter().enumerate() {
                    let (x, y) = self.place((x, first + row), size);
                    into.row_mut(plane, y)[x] = *value;
                }
            }
        }
    }
}
