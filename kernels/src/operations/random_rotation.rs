//! Executes `random_rotation`, with the arithmetic of Pillow's `Image.rotate`.

use super::PictureOperation;
use crate::Error;
use crate::pixels::Pixels;
use crate::points::Points;
use crate::warp::{Map, Warp, packed_bytes};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{RandomRotation, WarpInterpolation};
use std::io::Write;

/// Decimals to which Pillow rounds cosine and sine.
const DECIMALS: usize = 15;

/// Draws the angle, in 0..=360 degrees: Python's `angle % 360.0`.
fn angle(rotation: &RandomRotation, draws: &mut Draws) -> f64 {
    let angle = draws.uniform_in(rotation.degrees.0, rotation.degrees.1) % 360.0;
    if angle < 0.0 { angle + 360.0 } else { angle }
}

/// Rounds a number to [`DECIMALS`] decimals, like Python's `round`.
fn rounded(number: f64) -> f64 {
    let mut text = [0; 32];
    let mut rest = &mut text[..];
    write!(rest, "{number:.DECIMALS$}").expect("a cosine has few digits");
    let unused = rest.len();
    let digits = &text[..text.len() - unused];
    std::str::from_utf8(digits).ok().and_then(|it| it.parse().ok()).expect("these are digits")
}

/// The warp of a picture of this size by an angle; `None` if it does not change.
pub(super) fn warp(rotation: &RandomRotation, angle: f64, size: (u32, u32)) -> Option<Warp> {
    let &RandomRotation { interpolation, expand, center, fill, .. } = rotation;
    let fill = fill.rgba();
    let (columns, rows) = (f64::from(size.0), f64::from(size.1));
    let is_whole_turn = |degrees: f64| center.is_none() && angle == degrees;
    // Quarter turns move whole pixels, for which nearest is exact.
    let moved = |size, map| {
        let interpolation = WarpInterpolation::Nearest;
        Some(Warp { size, map: Map::Affine(map), interpolation, fill })
    };
    if is_whole_turn(0.0) {
        return None;
    }
    if is_whole_turn(180.0) {
        return moved(size, [-1.0, 0.0, columns, 0.0, -1.0, rows]);
    }
    if expand || size.0 == size.1 {
        let turned = (size.1, size.0);
        if is_whole_turn(90.0) {
            return moved(turned, [0.0, -1.0, columns, 1.0, 0.0, 0.0]);
        }
        if is_whole_turn(270.0) {
            return moved(turned, [0.0, 1.0, 0.0, -1.0, 0.0, rows]);
        }
    }
    let center = center.unwrap_or((columns / 2.0, rows / 2.0));
    let radians = -(angle * (std::f64::consts::PI / 180.0));
    let (cos, sin) = (rounded(libm::cos(radians)), rounded(libm::sin(radians)));
    let mut map = [cos, sin, 0.0, rounded(-libm::sin(radians)), cos, 0.0];
    let to_source = |map: &[f64; 6], x: f64, y: f64| {
        (map[0] * x + map[1] * y + map[2], map[3] * x + map[4] * y + map[5])
    };
    let shift = to_source(&map, -center.0, -center.1);
    (map[2], map[5]) = (shift.0 + center.0, shift.1 + center.1);
    let mut result = size;
    if expand {
        let corners = [(0.0, 0.0), (columns, 0.0), (columns, rows), (0.0, rows)]
            .map(|(x, y)| to_source(&map, x, y));
        let length = |axis: fn(&(f64, f64)) -> f64| {
            let ends = corners.iter().map(axis);
            let least = ends.clone().fold(f64::INFINITY, f64::min);
            let most = ends.fold(f64::NEG_INFINITY, f64::max);
            most.ceil() - least.floor()
        };
        let (wide, high) = (length(|it| it.0), length(|it| it.1));
        (map[2], map[5]) = to_source(&map, -(wide - columns) / 2.0, -(high - rows) / 2.0);
        // The cast saturates.
        result = (wide as u32, high as u32);
    }
    Some(Warp { size: result, map: Map::Affine(map), interpolation, fill })
}

impl PictureOperation for RandomRotation {
    fn size(&self, size: (u32, u32), draws: &mut Draws) -> Option<(u32, u32)> {
        warp(self, angle(self, draws), size).map(|warp| warp.size)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        match warp(self, angle(self, draws), pixels.size()) {
            Some(warp) => warp.apply(pixels),
            None => Ok(()),
        }
    }

    fn buffer_bytes(&self, size: (u32, u32)) -> u64 {
        packed_bytes(size)
    }

    fn mixes_pixels(&self, size: (u32, u32), draws: &mut Draws) -> bool {
        let warp = warp(self, angle(self, draws), size);
        warp.is_some_and(|warp| warp.interpolation != WarpInterpolation::Nearest)
    }

    fn move_points(
        &self,
        size: (u32, u32),
        draws: &mut Draws,
        points: &mut Points,
    ) -> Result<(), Error> {
        if let Some(warp) = warp(self, angle(self, draws), size) {
            warp.map.move_points(points);
        }
        Ok(())
    }

    fn size_key(&self) -> &'static str {
        "expand"
    }
}
