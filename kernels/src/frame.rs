//! Padding around a picture: maps each padding pixel to a pixel of the picture, or to the fill
//! colour.

use crate::Error;
use crate::picture_program::{OUTSIDE, PictureChange};
use crate::pixels::Pixels;
use crate::points::Points;
use meetpoint_format::recipe::{Padding, PaddingMode};

/// A part of a padded picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) mode: PaddingMode,
    /// Red, green, blue and alpha, for [`PaddingMode::Constant`].
    pub(crate) fill: [u8; 4],
    /// Number of pixels around the picture.
    pub(crate) padding: Padding,
    /// Column and row of the padded picture at which the part begins.
    pub(crate) at: (u32, u32),
    /// Columns and rows of the part, not 0.
    pub(crate) size: (u32, u32),
}

/// Maps a position that may be outside to a position of the picture, 0 to `length` - 1; `None` for
/// the fill colour.
pub(crate) fn source(mode: PaddingMode, position: i64, length: u32) -> Option<usize> {
    let length = i64::from(length);
    let found = match mode {
        PaddingMode::Constant if (0..length).contains(&position) => position,
        PaddingMode::Constant => return None,
        PaddingMode::Edge => position.clamp(0, length - 1),
        PaddingMode::Reflect if length == 1 => 0,
        PaddingMode::Reflect => {
            let period = 2 * (length - 1);
            let inside = position.rem_euclid(period);
            inside.min(period - inside)
        }
        PaddingMode::Symmetric => {
            let inside = position.rem_euclid(2 * length);
            inside.min(2 * length - 1 - inside)
        }
    };
    Some(found as usize)
}

impl Frame {
    /// Replaces a picture by the part of the padded picture. Fails if the sample is interrupted.
    pub(crate) fn apply(&self, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let (width, height) = pixels.size();
        let axis = |at: u32, before: u32, count: u32, length: u32| -> Vec<Option<usize>> {
            let first = i64::from(at) - i64::from(before);
            (first..first + i64::from(count)).map(|it| source(self.mode, it, length)).collect()
        };
        let columns = axis(self.at.0, self.padding.left, self.size.0, width);
        let rows = axis(self.at.1, self.padding.top, self.size.1, height);
        let fill = pixels.fill(self.fill);
        if let Some(recording) = pixels.recording() {
            let word = |at: &Option<usize>| at.map_or(OUTSIDE, |at| at as i32);
            let columns = recording.add_words(columns.iter().map(word));
            let rows = recording.add_words(rows.iter().map(word));
            let change = PictureChange::Frame { size: self.size, columns, rows, fill };
            recording.push_resized(change, self.size);
            return Ok(());
        }
        pixels.replace(self.size, |from, y, out| {
            let planes = from.planes().into_iter().zip(out).zip(fill);
            for ((plane, out), fill) in planes {
                let Some(row) = rows[y] else {
                    out.fill(fill);
                    continue;
                };
                let row = &plane[row * from.stride()..];
                for (out, column) in out.iter_mut().zip(&columns) {
                    *out = column.map_or(fill, |column| row[column]);
                }
            }
        })
    }
}

impl Frame {
    /// Moves points like the pixels of the picture. Repeated pixels of the padding get no points.
    pub(crate) fn move_points(&self, points: &mut Points) {
        let shift = |before: u32, at: u32| f64::from(before) - f64::from(at);
        let across = shift(self.padding.left, self.at.0);
        let down = shift(self.padding.top, self.at.1);
        points.map(|(x, y)| (x + across, y + down));
    }
}

#[cfg(test)]
mod tests {
    use super::source;
    use meetpoint_format::recipe::PaddingMode;

    /// `numpy.pad(numpy.arange(n), 7, mode)` for n = 3 and 1.
    #[test]
    fn positions_outside_are_those_of_numpy() {
        let padded = |mode, length: u32| -> Vec<usize> {
            let positions = -7..i64::from(length) + 7;
            positions.map(|position| source(mode, position, length).unwrap_or(9)).collect()
        };
        let cases = [
            (PaddingMode::Constant, [9, 9, 9, 9, 9, 9, 9, 0, 1, 2, 9, 9, 9, 9, 9, 9, 9]),
            (PaddingMode::Edge, [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2]),
            (PaddingMode::Reflect, [1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1]),
            (PaddingMode::Symmetric, [0, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2]),
        ];
        for (mode, expected) in cases {
            assert_eq!(padded(mode, 3), expected, "{mode:?}");
            if mode != PaddingMode::Constant {
                assert_eq!(padded(mode, 1), [0; 15], "{mode:?}");
            }
        }
    }
}
