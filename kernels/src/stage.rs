//! Combines a recipe's operations on the geometry of a picture into stages, each of which is one
//! pass of rows through a resizer.
//!
//! A stage crops its source, resizes the crop at most once, and writes a part of the result to a
//! canvas that may be mirrored. An operation that would need a second resize, or padding outside a
//! padded canvas, starts another stage. Operations on pixels are executed between two stages.

use crate::colour::RowChanges;
use crate::crop;
use crate::decode::PIXELS_MAX;
use crate::pixels::Style;
use crate::points::{Point, Points};
use crate::resize::{Filter, Resize, SourceBox};
use crate::{Misfit, Region};
use meetpoint_format::recipe::{Interpolation, Padding};
use meetpoint_jpeg::DecodeScale;
use std::ops::Range;

/// Size and orientation of a picture whose pixels are not computed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Whether the pixels must still be mirrored left to right.
    pub(crate) mirrored: bool,
    /// Whether the pixels must still be mirrored top to bottom.
    pub(crate) flipped: bool,
}

/// Whether an operation fits into a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The stage includes the operation.
    Here,
    /// The operation must start the next stage.
    Next,
    /// The operation must be executed on the whole picture after the stage.
    Whole,
}

/// A move of a picture by whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift {
    /// The position in the picture, column and row, of the first pixel of the result.
    pub(crate) from: (i32, i32),
    /// Columns and rows of the result.
    pub(crate) size: (u32, u32),
    /// Red, green, blue and alpha outside the picture.
    pub(crate) fill: [u8; 4],
}

impl Geometry {
    /// A picture that is not mirrored.
    pub(crate) fn upright(width: u32, height: u32) -> Self {
        Self { width, height, mirrored: false, flipped: false }
    }

    /// Bytes of the picture in memory.
    pub(crate) fn bytes(self) -> u64 {
        3 * u64::from(self.width) * u64::from(self.height)
    }

    fn whole(self) -> Region {
        Region { x: 0, y: 0, width: self.width, height: self.height }
    }
}

/// Refuses a picture with more pixels than the limit.
pub(crate) fn check_pixels(width: u32, height: u32) -> Result<(), Misfit> {
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(Misfit::TooLarge { height, width, limit: PIXELS_MAX });
    }
    Ok(())
}

/// One stage.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// Part of the source that is resized, in coordinates of the source.
    pub(crate) crop: Region,
    /// Whether it is mirrored before the resize, since the rounding of a filter is not symmetrical.
    pub(crate) crop_mirrored: bool,
    /// The part of the crop that is resized, if it is not all of it.
    source: Option<SourceBox>,
    /// Rows and columns after the resize.
    resize: Option<(u32, u32, Filter)>,
    /// The requested part of the resized crop.
    window: Region,
    /// The result: the window, surrounded by one colour.
    pub(crate) canvas: Geometry,
    /// Column and row of the window on the canvas before mirroring.
    pub(crate) at: (u32, u32),
    /// Red, green, blue and alpha around the window; for a single style, the fill of its planes.
    pub(crate) fill: [u8; 4],
    /// Changes of the colours of its rows, if it is the last stage; they also apply to the fill.
    pub(crate) changes: RowChanges,
    /// Operations on the whole picture after it, by their positions among the sample's operations.
    pub(crate) whole: Range<usize>,
    /// The picture after these operations, which is the source of the next stage.
    pub(crate) after: Geometry,
    /// Maximum number of bytes of pictures that these operations hold at once.
    pub(crate) whole_bytes_max: u64,
    /// Whether its result is the tensor.
    pub(crate) is_last: bool,
}

impl Stage {
    /// A stage that does not change its source.
    pub(crate) fn of(source: Geometry) -> Self {
        Self {
            crop: source.whole(),
            crop_mirrored: false,
            source: None,
            resize: None,
            window: source.whole(),
            canvas: source,
            at: (0, 0),
            fill: [0; 4],
            changes: RowChanges::default(),
            whole: 0..0,
            after: source,
            whole_bytes_max: 0,
            is_last: false,
        }
    }

    /// Adds a resize, unless it needs another stage.
    pub(crate) fn resize(&mut self, to: (u32, u32), filter: Filter) -> Result<Fit, Misfit> {
        let (height, width) = self.size();
        self.crop_and_resize(Region { x: 0, y: 0, width, height }, to, filter)
    }

    /// Adds a crop and a resize of it, unless they need another stage.
    pub(crate) fn crop_and_resize(
        &mut self,
        region: Region,
        to: (u32, u32),
        filter: Filter,
    ) -> Result<Fit, Misfit> {
        if !self.can_resize() {
            return Ok(Fit::Next);
        }
        self.narrow(region);
        self.resize_canvas(to, filter)?;
        Ok(Fit::Here)
    }

    /// Adds a central crop, unless it needs another stage.
    pub(crate) fn center_crop(&mut self, (height, width): (u32, u32)) -> Fit {
        if self.is_padded() {
            return Fit::Next;
        }
        let across = crop::center_span(self.canvas.width, width);
        let down = crop::center_span(self.canvas.height, height);
        self.narrow(Region { x: across.from, y: down.from, width: across.kept, height: down.kept });
        let left = if self.canvas.mirrored { across.after } else { across.before };
        let top = if self.canvas.flipped { down.after } else { down.before };
        self.at = (left, top);
        self.canvas = Geometry { width: across.total(), height: down.total(), ..self.canvas };
        Fit::Here
    }

    /// Adds padding of one colour, unless it needs another stage.
    pub(crate) fn pad(&mut self, padding: Padding, fill: [u8; 4]) -> Fit {
        let (height, width) = padding.around(self.size());
        self.cut(padding, Region { x: 0, y: 0, width, height }, fill)
    }

    /// Adds a crop of the padded picture, unless it needs another stage, or must run on the whole
    /// picture because the crop contains only padding.
    pub(crate) fn cut(&mut self, padding: Padding, part: Region, fill: [u8; 4]) -> Fit {
        if self.is_padded() {
            return Fit::Next;
        }
        // First position of the picture in the part, count, and position in the part.
        let axis = |before: u32, length: u32, from: u32, wanted: u32| {
            let (first, end) = (from.max(before), (from + wanted).min(before + length));
            (first < end).then(|| (first - before, end - first, first - from))
        };
        let Geometry { width, height, mirrored, flipped } = self.canvas;
        let across = axis(padding.left, width, part.x, part.width);
        let down = axis(padding.top, height, part.y, part.height);
        let (Some(across), Some(down)) = (across, down) else { return Fit::Whole };
        let inside = Region { x: across.0, y: down.0, width: across.1, height: down.1 };
        self.narrow(inside);
        self.at = (
            Self::turned(mirrored, part.width, across.2, across.1),
            Self::turned(flipped, part.height, down.2, down.1),
        );
        self.canvas = Geometry { width: part.width, height: part.height, mirrored, flipped };
        self.fill = fill;
        Fit::Here
    }

    /// Adds a move by whole pixels, with the exceptions of [`Self::cut`].
    pub(crate) fn shift(&mut self, shift: Shift) -> Fit {
        let Shift { from: (x, y), size: (width, height), fill } = shift;
        let before = |from: i32| if from < 0 { from.unsigned_abs() } else { 0 };
        let after = |from: i32| if from > 0 { from.unsigned_abs() } else { 0 };
        let padding =
            Padding { left: before(x), top: before(y), right: after(x), bottom: after(y) };
        self.cut(padding, Region { x: after(x), y: after(y), width, height }, fill)
    }

    /// Adds a mirroring left to right.
    pub(crate) fn mirror(&mut self) {
        self.canvas.mirrored ^= true;
    }

    /// Adds a mirroring top to bottom.
    pub(crate) fn flip(&mut self) {
        self.canvas.flipped ^= true;
    }

    /// Height and width of the canvas.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.canvas.height, self.canvas.width)
    }

    /// The picture that the stage leaves in memory. If operations on whole pictures follow, it is
    /// fully mirrored; otherwise mirroring left to right is left to the next stage.
    pub(crate) fn result(&self) -> Geometry {
        let mirrored = self.canvas.mirrored && self.whole.is_empty();
        Geometry { mirrored, flipped: false, ..self.canvas }
    }

    /// Whether a resize fits. A second resize, one of a padded picture, and one of a picture
    /// flipped top to bottom, whose last rows would be needed first, start another stage.
    fn can_resize(&self) -> bool {
        self.resize.is_none() && !self.is_padded() && !self.canvas.flipped
    }

    /// Maps a point of the source, at full resolution, to the canvas, mirrored according to
    /// `turned`.
    pub(crate) fn place(&self, (x, y): Point, turned: Geometry) -> Point {
        let Region { x: left, y: top, width, height } = self.crop;
        let [left, top, from_width, from_height] = [left, top, width, height].map(f64::from);
        let (mut x, mut y) = (x - left, y - top);
        if self.crop_mirrored {
            x = from_width - x;
        }
        if let Some((to_height, to_width, _)) = self.resize {
            x *= f64::from(to_width) / from_width;
            y *= f64::from(to_height) / from_height;
        }
        x += f64::from(self.at.0) - f64::from(self.window.x);
        y += f64::from(self.at.1) - f64::from(self.window.y);
        if turned.mirrored {
            x = f64::from(self.canvas.width) - x;
        }
        if turned.flipped {
            y = f64::from(self.canvas.height) - y;
        }
        (x, y)
    }

    /// Moves points of the source to their positions in the result.
    pub(crate) fn move_points(&self, points: &mut Points) {
        let left = self.result();
        let mirrored = self.canvas.mirrored && (self.is_last || !left.mirrored);
        let applied = Geometry { mirrored, ..self.canvas };
        points.map(|point| self.place(point, applied));
        points.mirror(self.crop_mirrored ^ applied.mirrored ^ applied.flipped);
    }

    /// The same stage for pixels of another style.
    pub(crate) fn with_style(&self, style: Style) -> Self {
        let resize = match style {
            Style::Picture | Style::Alpha | Style::Elements { .. } | Style::Saliency(_) => {
                self.resize
            }
            Style::Mask(_) => {
                let nearest = Filter { interpolation: Interpolation::Nearest, antialias: false };
                self.resize.map(|(height, width, _)| (height, width, nearest))
            }
        };
        let [first, second, third] = style.fill(self.fill);
        let changes = if style.is_target() { RowChanges::default() } else { self.changes };
        Self { resize, fill: [first, second, third, 0], changes, ..self.clone() }
    }

    /// Splits the stage into its crop and resize, and the rest; `None` if it does not resize.
    pub(crate) fn split(&self) -> Option<(Self, Self)> {
        self.resize?;
        let Region { width, height, .. } = self.window;
        let canvas = Geometry::upright(width, height);
        let resize = Self { canvas, at: (0, 0), whole: 0..0, is_last: false, ..self.clone() };
        let (crop, window) = (canvas.whole(), canvas.whole());
        let rest =
            Self { crop, crop_mirrored: false, source: None, resize: None, window, ..self.clone() };
        Some((resize, rest))
    }

    /// The request to the resizer for the crop.
    pub(crate) fn work(&self) -> Resize {
        let Region { width: from_width, height: from_height, .. } = self.crop;
        let plain = Filter { interpolation: Interpolation::Nearest, antialias: false };
        let (height, width, filter) = self.resize.unwrap_or((from_height, from_width, plain));
        let window = Some(self.window);
        Resize { from_width, from_height, source: self.source, width, height, filter, window }
    }

    /// Changes the source to a picture of the lowest resolution that the resize allows.
    ///
    /// `picture` is the size at full resolution. The resize then maps the same part of the picture,
    /// whose bounds may no longer be integers.
    pub(crate) fn scale_down(&mut self, picture: (u32, u32)) -> DecodeScale {
        let Some((height, width, _)) = self.resize else { return DecodeScale::Eight };
        let Region { x, y, width: from_width, height: from_height } = self.crop;
        let scale = DecodeScale::for_target((from_width, from_height), (width, height));
        if scale == DecodeScale::Eight {
            return scale;
        }
        let axis = |from: u32, length: u32, whole: u32| {
            let exact = |at: u32| f64::from(at) * f64::from(scale.side()) / 8.0;
            let (begin, end) = (exact(from), exact(from + length));
            let first = begin as u32;
            // The last pixel may represent only a part of a pixel block.
            let last = (end.ceil() as u32).min(scale.scaled(whole));
            let inside = |at: f64| (at - f64::from(first)) as f32;
            (first, last - first, inside(begin), inside(end).min((last - first) as f32))
        };
        let (x, columns, left, right) = axis(x, from_width, picture.0);
        let (y, rows, top, bottom) = axis(y, from_height, picture.1);
        self.crop = Region { x, y, width: columns, height: rows };
        let (left, right) = match self.crop_mirrored {
            true => (columns as f32 - right, columns as f32 - left),
            false => (left, right),
        };
        self.source = Some([left, top, right, bottom]);
        scale
    }

    /// Whether the canvas is larger than the window.
    pub(crate) fn is_padded(&self) -> bool {
        (self.window.width, self.window.height) != (self.canvas.width, self.canvas.height)
    }

    /// Whether it resizes its source.
    pub(crate) fn is_resized(&self) -> bool {
        self.resize.is_some()
    }

    /// Columns and rows of the resizer's result.
    pub(crate) fn window_size(&self) -> (u32, u32) {
        (self.window.width, self.window.height)
    }

    /// Rows of the resizer's result.
    pub(crate) fn window_height(&self) -> u32 {
        self.window.height
    }

    /// The start of a part of an axis if the axis is `mirrored`.
    fn turned(mirrored: bool, whole: u32, from: u32, length: u32) -> u32 {
        if mirrored { whole - from - length } else { from }
    }

    /// The region of the source to decode, for a region of the crop that the resizer needs.
    pub(crate) fn region(&self, needed: Region) -> Region {
        let x = Self::turned(self.crop_mirrored, self.crop.width, needed.x, needed.width);
        Region { x: self.crop.x + x, y: self.crop.y + needed.y, ..needed }
    }

    /// Crops the canvas, which must not be padded, to a region.
    fn narrow(&mut self, inside: Region) {
        let Geometry { width, height, mirrored, flipped } = self.canvas;
        let x = Self::turned(mirrored, width, inside.x, inside.width);
        let y = Self::turned(flipped, height, inside.y, inside.height);
        self.window = Region { x: self.window.x + x, y: self.window.y + y, ..inside };
        let (width, height) = (inside.width, inside.height);
        self.canvas = Geometry { width, height, mirrored, flipped };
    }

    /// Resizes the canvas; [`Self::can_resize`] must be true.
    fn resize_canvas(&mut self, (height, width): (u32, u32), filter: Filter) -> Result<(), Misfit> {
        if height == 0 || width == 0 {
            return Err(Misfit::NoPixels { height, width });
        }
        // The intermediate picture between the passes has one side of the input and one of the
        // output.
        let Region { width: from_width, height: from_height, .. } = self.window;
        for (width, height) in [(width, height), (width, from_height), (from_width, height)] {
            check_pixels(width, height)?;
        }
        let Region { x, y, .. } = self.window;
        let crop = Region { x: self.crop.x + x, y: self.crop.y + y, ..self.window };
        let canvas = Geometry { width, height, mirrored: false, flipped: false };
        *self = Self {
            crop,
            crop_mirrored: self.canvas.mirrored,
            resize: Some((height, width, filter)),
            ..Self::of(canvas)
        };
        Ok(())
    }
}
