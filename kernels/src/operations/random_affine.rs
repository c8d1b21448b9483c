//! Executes `random_affine`.

use super::PictureOperation;
use crate::Error;
use crate::pixels::Pixels;
use crate::points::Points;
use crate::stage::Shift;
use crate::warp::{Map, Warp, packed_bytes};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{RandomAffine, WarpInterpolation};

/// A warp, and the number of samples along each side of a pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
struct DrawnWarp {
    warp: Warp,
    samples: u32,
}

/// The random parameters.
struct Parameters {
    /// Degrees, clockwise.
    angle: f64,
    /// Pixels to the right and down.
    shift: (f64, f64),
    scale: f64,
    /// Degrees, along the rows and along the columns.
    shear: (f64, f64),
}

impl Parameters {
    /// Draws the parameters for a result of `columns` and `rows`.
    fn drawn(affine: &RandomAffine, (columns, rows): (u32, u32), draws: &mut Draws) -> Self {
        let angle = draws.uniform_in(affine.degrees.0, affine.degrees.1);
        let mut shift = (0.0, 0.0);
        if affine.translate != (0.0, 0.0) {
            let (across, down) = affine.translate;
            let mut pixels = |most: f64| draws.uniform_in(-most, most).round_ties_even();
            shift.0 = pixels(across * f64::from(columns));
            shift.1 = pixels(down * f64::from(rows));
        }
        let scale = draws.uniform_in(affine.scale.0, affine.scale.1);
        let [across, down] = affine.shear;
        let across = draws.uniform_in(across.0, across.1);
        let shear = (across, draws.uniform_in(down.0, down.1));
        Self { angle, shift, scale, shear }
    }

    /// The map from the result to the source that maps the point `to` of the result, moved by the
    /// shift, to the point `from` of the source; at a scale of 1, `grow` pixels of the result are
    /// one pixel of the source. torchvision's `_get_inverse_affine_matrix`, with the operations in
    /// its order.
    fn map(&self, from: (f64, f64), to: (f64, f64), grow: f64) -> [f64; 6] {
        let radians = |degrees: f64| degrees * (std::f64::consts::PI / 180.0);
        let turn = radians(self.angle);
        let (across, down) = (radians(self.shear.0), radians(self.shear.1));
        let (cos, sin) = (libm::cos(turn - down), libm::sin(turn - down));
        let (tan, cos_down) = (libm::tan(across), libm::cos(down));
        let a = cos / cos_down;
        let b = -cos * tan / cos_down - libm::sin(turn);
        let c = sin / cos_down;
        let d = -sin * tan / cos_down + libm::cos(turn);
        let scale = self.scale * grow;
        let [a0, a1, a3, a4] = [d, -b, -c, a].map(|value| value / scale);
        let (x, y) = (-from.0 - self.shift.0, -from.1 - self.shift.1);
        [a0, a1, a0 * x + a1 * y + to.0, a3, a4, a3 * x + a4 * y + to.1]
    }
}

fn drawn(affine: &RandomAffine, size: (u32, u32), draws: &mut Draws) -> DrawnWarp {
    let result = affine.size.map_or(size, |(height, width)| (width, height));
    let parameters = Parameters::drawn(affine, result, draws);
    let sides = |(width, height): (u32, u32)| (f64::from(width), f64::from(height));
    let (from, to) = (sides(size), sides(result));
    let center = affine.center.unwrap_or((from.0 * 0.5, from.1 * 0.5));
    let (at, grow) = match affine.size {
        None => (center, 1.0),
        Some(_) => ((to.0 * 0.5, to.1 * 0.5), f64::max(to.0 / from.0, to.1 / from.1)),
    };
    let warp = Warp {
        size: result,
        map: Map::Affine(parameters.map(at, center, grow)),
        interpolation: affine.interpolation,
        fill: affine.fill.rgba(),
    };
    let most = RandomAffine::SUPERSAMPLING_MAX;
    let samples = affine.supersampling.unwrap_or_else(|| {
        // The cast saturates.
        ((1.0 / (parameters.scale * grow)).ceil() as u32).clamp(1, most)
    });
    DrawnWarp { warp, samples }
}

impl PictureOperation for RandomAffine {
    fn size(&self, (width, height): (u32, u32), _draws: &mut Draws) -> Option<(u32, u32)> {
        Some(self.size.map_or((width, height), |(height, width)| (width, height)))
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let DrawnWarp { warp, samples } = drawn(self, pixels.size(), draws);
        warp.apply_sampled(samples, pixels)
    }

    fn buffer_bytes(&self, size: (u32, u32)) -> u64 {
        packed_bytes(size)
    }

    fn mixes_pixels(&self, _size: (u32, u32), _draws: &mut Draws) -> bool {
        self.interpolation != WarpInterpolation::Nearest
    }

    fn shift(&self, size: (u32, u32), draws: &mut Draws) -> Option<Shift> {
        if self.interpolation != WarpInterpolation::Nearest {
            return None;
        }
        let DrawnWarp { warp, samples } = drawn(self, size, draws);
        let from = warp.map.shift().filter(|_| samples == 1)?;
        Some(Shift { from, size: warp.size, fill: warp.fill })
    }

    fn move_points(
        &self,
        size: (u32, u32),
        draws: &mut Draws,
        points: &mut Points,
    ) -> Result<(), Error> {
        drawn(self, size, draws).warp.map.move_points(points);
        Ok(())
    }
}
