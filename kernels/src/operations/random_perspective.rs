//! Executes `random_perspective`.

use super::PictureOperation;
use crate::Error;
use crate::pixels::Pixels;
use crate::points::Points;
use crate::warp::{Map, Warp, packed_bytes};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{RandomPerspective, WarpInterpolation};

/// Column and row.
type Point = (u32, u32);

/// Draws the new positions of a picture's corners, clockwise from the upper left.
fn corners(scale: f64, (width, height): (u32, u32), draws: &mut Draws) -> [Point; 4] {
    // At most half a side, so that the casts only truncate.
    let bound = |side: u32| (scale * f64::from(side / 2)) as u32;
    let (bound_x, bound_y) = (bound(width), bound(height));
    let (right, bottom) = (width - 1 - bound_x, height - 1 - bound_y);
    [(0, 0), (right, 0), (right, bottom), (0, bottom)].map(|(x, y)| {
        let x = x + draws.up_to(bound_x);
        (x, y + draws.up_to(bound_y))
    })
}

/// The coefficients of the perspective that maps the moved corners to those of the picture, rounded
/// to float32; `None` if the corners do not determine one.
///
/// Gaussian elimination with partial pivoting; ties go to the first row.
pub(super) fn coefficients(moved: [Point; 4], (width, height): (u32, u32)) -> Option<[f64; 8]> {
    let (right, bottom) = (width - 1, height - 1);
    let corners = [(0, 0), (right, 0), (right, bottom), (0, bottom)];
    let mut rows = [[0.0; 9]; 8];
    for (pair, (from, to)) in rows.chunks_exact_mut(2).zip(moved.into_iter().zip(corners)) {
        let (x, y) = (f64::from(from.0), f64::from(from.1));
        let (u, v) = (f64::from(to.0), f64::from(to.1));
        pair[0] = [x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, u];
        pair[1] = [0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y, v];
    }
    for column in 0..8 {
        let pivot = (column..8).fold(column, |best, row| {
            if rows[row][column].abs() > rows[best][column].abs() { row } else { best }
        });
        rows.swap(column, pivot);
        if rows[column][column] == 0.0 {
            return None;
        }
        let (above, below) = rows.split_at_mut(column + 1);
        let pivot = above[column];
        for row in below {
            let factor = row[column] / pivot[column];
            for (value, from) in row.iter_mut().zip(pivot).skip(column) {
                *value -= factor * from;
            }
        }
    }
    let mut found = [0.0; 8];
    for column in (0..8).rev() {
        let known: f64 = (column + 1..8).map(|other| rows[column][other] * found[other]).sum();
        found[column] = (rows[column][8] - known) / rows[column][column];
    }
    let rounded = found.map(|value| f64::from(value as f32));
    rounded.iter().all(|value| value.is_finite()).then_some(rounded)
}

/// The map of a sample; `None` if it does not change.
fn map(perspective: &RandomPerspective, size: (u32, u32), draws: &mut Draws) -> Option<[f64; 8]> {
    if !draws.chance(perspective.p) {
        return None;
    }
    coefficients(corners(perspective.distortion_scale, size, draws), size)
}

impl PictureOperation for RandomPerspective {
    fn size(&self, size: (u32, u32), draws: &mut Draws) -> Option<(u32, u32)> {
        map(self, size, draws).map(|_| size)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let size = pixels.size();
        let Some(map) = map(self, size, draws) else { return Ok(()) };
        let &Self { interpolation, fill, .. } = self;
        Warp { size, map: Map::Perspective(map), interpolation, fill: fill.rgba() }.apply(pixels)
    }

    fn buffer_bytes(&self, size: (u32, u32)) -> u64 {
        packed_bytes(size)
    }

    fn mixes_pixels(&self, _size: (u32, u32), _draws: &mut Draws) -> bool {
        self.interpolation != WarpInterpolation::Nearest
    }

    fn move_points(
        &self,
        size: (u32, u32),
        draws: &mut Draws,
        points: &mut Points,
    ) -> Result<(), Error> {
        if let Some(map) = map(self, size, draws) {
            Map::Perspective(map).move_points(points);
        }
        Ok(())
    }
}
