//! Points that move with the pixels of a picture: the corners of boxes, and keypoints.
//!
//! Coordinates are those of a continuous plane, in which the pixel at column x and row y covers x
//! to x + 1 and y to y + 1.

use std::ops::Range;

/// Column and row.
pub(crate) type Point = (f64, f64);

/// Points of a sample's targets, at their positions before the next operation.
#[derive(Debug, Default)]
pub(crate) struct Points {
    at: Vec<Point>,
    /// The corners of the boxes that operations may depend on, four per box.
    boxes: Boxes,
    /// Whether each of these boxes was dropped.
    dropped: Vec<bool>,
    /// Whether the picture has been mirrored an odd number of times.
    is_mirrored: bool,
}

/// The knowledge about boxes.
#[derive(Debug, Default, Clone)]
enum Boxes {
    /// There are none.
    #[default]
    None,
    /// They are unknown: only the maximum size of the picture is computed.
    Unknown,
    /// The range of their corners among all points.
    Known(Range<usize>),
}

/// Boxes that an operation depends on.
pub(crate) enum BoxesAt {
    /// None were given.
    None,
    /// They are unknown, so nothing must be cropped.
    Unknown,
    /// Left, top, right and bottom of each; `None` for a dropped box.
    Known(Vec<Option<[f64; 4]>>),
}

impl Points {
    /// Points of a sample whose boxes are unknown.
    pub(crate) fn unknown() -> Self {
        Self { boxes: Boxes::Unknown, ..Self::default() }
    }

    /// Removes all points.
    pub(crate) fn clear(&mut self) {
        self.at.clear();
        self.dropped.clear();
        (self.boxes, self.is_mirrored) = (Boxes::None, false);
    }

    /// Adds points; returns their range.
    pub(crate) fn add(&mut self, points: impl Iterator<Item = Point>) -> Range<usize> {
        let start = self.at.len();
        self.at.extend(points);
        start..self.at.len()
    }

    /// Adds the corners of the boxes that operations may depend on, four per box.
    pub(crate) fn add_boxes(&mut self, corners: impl Iterator<Item = Point>) -> Range<usize> {
        let range = self.add(corners);
        if matches!(self.boxes, Boxes::None) {
            self.dropped.resize(range.len() / 4, false);
            self.boxes = Boxes::Known(range.clone());
        }
        range
    }

    /// Whether there are no points to move.
    pub(crate) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Some of the points.
    pub(crate) fn some(&self, range: Range<usize>) -> &[Point] {
        &self.at[range]
    }

    /// All points, to be moved.
    pub(crate) fn all_mut(&mut self) -> &mut [Point] {
        &mut self.at
    }

    /// Moves all points.
    pub(crate) fn map(&mut self, to: impl Fn(Point) -> Point) {
        self.at.iter_mut().for_each(|point| *point = to(*point));
    }

    /// Records whether the picture was mirrored.
    pub(crate) fn mirror(&mut self, is_mirrored: bool) {
        self.is_mirrored ^= is_mirrored;
    }

    /// Whether the picture has been mirrored an odd number of times.
    pub(crate) fn is_mirrored(&self) -> bool {
        self.is_mirrored
    }

    /// The boxes that an operation may depend on, each the bounding box of its corners moved by
    /// `place`.
    pub(crate) fn boxes(&self, place: impl Fn(Point) -> Point) -> BoxesAt {
        let range = match &self.boxes {
            Boxes::None => return BoxesAt::None,
            Boxes::Unknown => return BoxesAt::Unknown,
            Boxes::Known(range) => range.clone(),
        };
        let corners = self.at[range].chunks_exact(4).zip(&self.dropped);
        let boxes = corners.map(|(corners, is_dropped)| {
            (!is_dropped).then(|| around(corners.iter().map(|corner| place(*corner))))
        });
        BoxesAt::Known(boxes.collect())
    }

    /// Drops boxes permanently.
    pub(crate) fn drop_boxes(&mut self, is_dropped: impl Fn(usize) -> bool) {
        for (index, dropped) in self.dropped.iter_mut().enumerate() {
            *dropped |= is_dropped(index);
        }
    }

    /// Whether the box at an index of the points in a range was dropped.
    pub(crate) fn is_dropped(&self, range: &Range<usize>, index: usize) -> bool {
        match &self.boxes {
            Boxes::Known(boxes) if boxes == range => self.dropped[index],
            Boxes::Known(_) | Boxes::None | Boxes::Unknown => false,
        }
    }
}

/// Left, top, right and bottom of the bounding box of points.
pub(crate) fn around(points: impl Iterator<Item = Point>) -> [f64; 4] {
    let none = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
    points.fold(none, |[left, top, right, bottom], (x, y)| {
        [left.min(x), top.min(y), right.max(x), bottom.max(y)]
    })
}
