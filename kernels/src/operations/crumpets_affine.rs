//! Executes `crumpets_affine`.

use super::PictureOperation;
use crate::Error;
use crate::pixels::Pixels;
use crate::points::Points;
use crate::random::normal;
use crate::warp::{Map, Warp};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{CrumpetsAffine, RandomAffine, ScaleMode, WarpInterpolation};

/// The warp of a picture, and the number of samples along each side of a pixel.
fn drawn(affine: &CrumpetsAffine, (width, height): (u32, u32), draws: &mut Draws) -> (Warp, u32) {
    let angle = affine.rotation_sigma * normal(draws.next_u32());
    let scale = draws.uniform_in(affine.scale.0, affine.scale.1);
    let mut pair = |(low, high): (f64, f64)| {
        let first = draws.uniform_in(low, high);
        (first, draws.uniform_in(low, high))
    };
    let (shear, shift) = (pair(affine.shear), pair(affine.shift));
    let aspect = 1.0 + affine.aspect_sigma * normal(draws.next_u32());
    let aspect = aspect.max(CrumpetsAffine::ASPECT_MIN);
    let half = |side: u32| f64::from(side) / 2.0;
    let (w, h) = (half(width), half(height));
    let (u, v) = (half(affine.size.1), half(affine.size.0));
    let ratio = match affine.scale_mode {
        ScaleMode::Shortest => (h / v).min(w / u),
        ScaleMode::Longest => (h / v).max(w / u),
    };
    let r = ratio / scale;
    let turn = angle * (std::f64::consts::PI / 180.0);
    let (cos, sin) = (libm::cos(turn), libm::sin(turn));
    let (across, down) = (r * aspect, r / aspect);
    // The linear part of the map: shear and scale, per column and row.
    let [a, b, c, d] = [across, across * shear.1, down * shear.0, down];
    let [a0, a1] = [cos * a - sin * c, cos * b - sin * d];
    let [a3, a4] = [sin * a + cos * c, sin * b + cos * d];
    let (x, y) = (w + (w - u * r).abs() * shift.1, h + (h - v * r).abs() * shift.0);
    let map = [a0, a1, x - a0 * u - a1 * v, a3, a4, y - a3 * u - a4 * v];
    let warp = Warp {
        size: (affine.size.1, affine.size.0),
        map: Map::Affine(map),
        interpolation: affine.interpolation,
        fill: affine.fill.rgba(),
    };
    // The cast saturates.
    let samples = affine
        .supersampling
        .unwrap_or_else(|| (r.ceil() as u32).clamp(1, RandomAffine::SUPERSAMPLING_MAX));
    (warp, samples)
}

impl PictureOperation for CrumpetsAffine {
    fn size(&self, _size: (u32, u32), _draws: &mut Draws) -> Option<(u32, u32)> {
        Some((self.size.1, self.size.0))
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let (warp, samples) = drawn(self, pixels.size(), draws);
        warp.apply_sampled(samples, pixels)
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
        drawn(self, size, draws).0.map.move_points(points);
        Ok(())
    }
}
