//! A recipe's operations on pixels as stages, each of which is one pass of rows through a resizer.
//!
//! A stage crops its source, resizes the crop at most once, and lays a part of the result on a
//! canvas that may be mirrored. What would need a second resize, or pixels around the canvas that
//! are already padding, begins another stage.

use crate::crop;
use crate::decode::PIXELS_MAX;
use crate::resize::{Filter, Resize, SourceBox};
use crate::sample::SampleId;
use crate::{Error, Region};
use meetpoint_format::recipe::{Interpolation, Operation};
use meetpoint_jpeg::DecodeScale;

/// A picture of which the pixels are not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lying {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Whether it is meant mirrored left to right.
    pub(super) mirrored: bool,
}

impl Lying {
    fn whole(self) -> Region {
        Region { x: 0, y: 0, width: self.width, height: self.height }
    }
}

/// One stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stage {
    /// Part of the source that is resized, as it lies in the source.
    pub(super) crop: Region,
    /// Whether it is mirrored before it is resized: the rounding of a filter is not symmetrical.
    pub(super) crop_mirrored: bool,
    /// The part of the crop that is resized, where that is not all of it.
    source: Option<SourceBox>,
    /// To rows, columns.
    resize: Option<(u32, u32, Filter)>,
    /// Part of the resized crop that is wanted.
    window: Region,
    /// What the stage makes: black, but for the window.
    pub(super) canvas: Lying,
    /// Where the window lies on the canvas as long as that is not mirrored.
    pub(super) at: (u32, u32),
}

impl Stage {
    /// A stage that leaves its source as it is.
    fn of(source: Lying) -> Self {
        Self {
            crop: source.whole(),
            crop_mirrored: false,
            source: None,
            resize: None,
            window: source.whole(),
            canvas: source,
            at: (0, 0),
        }
    }

    /// The stage of the operations from `next` on, as many as go into it. `next` becomes the index
    /// of the first that does not.
    pub(super) fn plan(
        source: Lying,
        operations: &[Operation],
        next: &mut usize,
        id: SampleId,
    ) -> Result<Self, Error> {
        let mut stage = Self::of(source);
        while let Some(operation) = operations.get(*next) {
            let Lying { width, height, .. } = stage.canvas;
            match *operation {
                Operation::Resize { .. } | Operation::RandomResizedCrop { .. }
                    if stage.resize.is_some() || stage.is_padded() =>
                {
                    break;
                }
                Operation::CenterCrop { .. } if stage.is_padded() => break,
                Operation::Resize { size, interpolation, antialias } => {
                    let to = size.resolve(height, width);
                    stage.resize(to, Filter { interpolation, antialias })?;
                }
                Operation::RandomResizedCrop {
                    height: to_height,
                    width: to_width,
                    scale,
                    ratio,
                    interpolation,
                    antialias,
                } => {
                    let mut draws = id.draws(*next);
                    let region = crop::random_region(&mut draws, width, height, scale, ratio);
                    stage.narrow(region);
                    stage.resize((to_height, to_width), Filter { interpolation, antialias })?;
                }
                Operation::CenterCrop { height, width } => stage.center_crop(width, height),
                Operation::RandomHorizontalFlip { p } => {
                    stage.canvas.mirrored ^= id.draws(*next).chance(p);
                }
                Operation::Decode(_)
                | Operation::ToDtype { .. }
                | Operation::Normalize { .. }
                | Operation::Layout { .. } => (),
            }
            *next += 1;
        }
        Ok(stage)
    }

    /// What the resizer is to do with the crop.
    pub(super) fn work(&self) -> Resize {
        let Region { width: from_width, height: from_height, .. } = self.crop;
        let plain = Filter { interpolation: Interpolation::Nearest, antialias: false };
        let (height, width, filter) = self.resize.unwrap_or((from_height, from_width, plain));
        let window = Some(self.window);
        Resize { from_width, from_height, source: self.source, width, height, filter, window }
    }

    /// Lets the stage begin with a picture of lower resolution, as low as its resize allows.
    ///
    /// `picture` is the size at full resolution. The resize then maps the same part of the picture,
    /// which no longer begins and ends at whole pixels.
    pub(super) fn scale_down(&mut self, picture: (u32, u32)) -> DecodeScale {
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
            // The last pixel stands for what the picture has of it.
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

    /// Whether the window leaves some of the canvas black.
    pub(super) fn is_padded(&self) -> bool {
        (self.window.width, self.window.height) != (self.canvas.width, self.canvas.height)
    }

    /// Rows that the resizer gives.
    pub(super) fn window_height(&self) -> u32 {
        self.window.height
    }

    /// Where columns of something lie in it when it is `mirrored`.
    fn turned(mirrored: bool, whole: u32, x: u32, width: u32) -> u32 {
        if mirrored { whole - x - width } else { x }
    }

    /// The region of the source that is decoded, for a region of the crop that the resizer needs.
    pub(super) fn region(&self, needed: Region) -> Region {
        let x = Self::turned(self.crop_mirrored, self.crop.width, needed.x, needed.width);
        Region { x: self.crop.x + x, y: self.crop.y + needed.y, ..needed }
    }

    /// Keeps a region of the canvas, which is not padded.
    fn narrow(&mut self, inside: Region) {
        let mirrored = self.canvas.mirrored;
        let x = Self::turned(mirrored, self.canvas.width, inside.x, inside.width);
        self.window = Region { x: self.window.x + x, y: self.window.y + inside.y, ..inside };
        self.canvas = Lying { width: inside.width, height: inside.height, mirrored };
    }

    /// Resizes the canvas, which is neither padded nor resized.
    fn resize(&mut self, (height, width): (u32, u32), filter: Filter) -> Result<(), Error> {
        // What lies between two passes has one side of the input and one of the output.
        let Region { width: from_width, height: from_height, .. } = self.window;
        for (width, height) in [(width, height), (width, from_height), (from_width, height)] {
            if u64::from(width) * u64::from(height) > PIXELS_MAX {
                return Err(Error::TooLarge { width, height, limit: PIXELS_MAX });
            }
        }
        let Region { x, y, .. } = self.window;
        let crop = Region { x: self.crop.x + x, y: self.crop.y + y, ..self.window };
        let canvas = Lying { width, height, mirrored: false };
        *self = Self {
            crop,
            crop_mirrored: self.canvas.mirrored,
            resize: Some((height, width, filter)),
            ..Self::of(canvas)
        };
        Ok(())
    }

    /// Keeps the middle of the canvas, which is not padded, or pads it.
    fn center_crop(&mut self, width: u32, height: u32) {
        let across = crop::center_span(self.canvas.width, width);
        let down = crop::center_span(self.canvas.height, height);
        self.narrow(Region { x: across.from, y: down.from, width: across.kept, height: down.kept });
        let left = if self.canvas.mirrored { across.after } else { across.before };
        self.at = (left, down.before);
        self.canvas = Lying { width: across.total(), height: down.total(), ..self.canvas };
    }
}
