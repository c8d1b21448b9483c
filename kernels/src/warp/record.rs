//! Records warps as data.

use super::nearest::{AffineForm, FixedMap, positions};
use super::{Map, Warp};
use crate::picture_program::{OUTSIDE, PictureChange, PositionMap, WarpForm};
use crate::recording::Recording;
use meetpoint_format::recipe::WarpInterpolation;

impl Warp {
    /// Records the warp, with `samples` by `samples` pixels averaged to one.
    pub(super) fn record(&self, samples: u32, recording: &mut Recording<'_>) {
        let map = match self.map {
            Map::Affine([a0, a1, a2, a3, a4, a5]) => PositionMap {
                coefficients: [a0, a1, a2, a3, a4, a5, 0.0, 0.0],
                is_perspective: false,
            },
            Map::Perspective(coefficients) => PositionMap { coefficients, is_perspective: true },
        };
        let form = match (self.interpolation, self.map) {
            (WarpInterpolation::Nearest, Map::Affine(map)) => match AffineForm::of(self, map) {
                AffineForm::Scale if samples == 1 => return self.record_scale(map, recording),
                AffineForm::Scale | AffineForm::Summed => return recording.refuse(),
                AffineForm::Fixed => {
                    let FixedMap { begin, across, down } = FixedMap::of(map);
                    WarpForm::Fixed { begin, across, down }
                }
            },
            (WarpInterpolation::Nearest, Map::Perspective(_)) => WarpForm::Nearest(map),
            (WarpInterpolation::Bilinear, _) => WarpForm::Bilinear(map),
            (WarpInterpolation::Bicubic, _) => WarpForm::Bicubic(map),
        };
        let [red, green, blue, _] = self.fill;
        let size = (self.size.0 / samples, self.size.1 / samples);
        let fill = [red, green, blue];
        recording.push_resized(PictureChange::Warp { size, form, samples, fill }, size);
    }

    /// Records a map with separate axes.
    fn record_scale(&self, [a0, _, a2, _, a4, a5]: [f64; 6], recording: &mut Recording<'_>) {
        let (width, height) = recording.size();
        let inside = |position: i32, length: u32| {
            if (0..i64::from(length)).contains(&i64::from(position)) { position } else { OUTSIDE }
        };
        let columns = positions(a2, a0, self.size.0).map(|column| inside(column, width));
        let columns = recording.add_words(columns);
        let rows = positions(a5, a4, self.size.1).map(|row| inside(row, height));
        let rows = recording.add_words(rows);
        let [red, green, blue, _] = self.fill;
        let fill = [red, green, blue];
        let change = PictureChange::Frame { size: self.size, columns, rows, fill };
        recording.push_resized(change, self.size);
    }
}
