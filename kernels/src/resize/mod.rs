//! Resizing with Pillow's filters, bit-identical to `Image.resize(size, resample, box)`, as a
//! stream: rows in, rows out, never a whole picture.
//!
//! There are two passes, one along the rows and one along the columns, each rounding to uint8, so
//! their order affects the result. It is that of Pillow 13: along the rows first, unless the other
//! pass removes many more rows. (Earlier versions always processed the rows first; where the order
//! differs, some values differ, usually by 1.) A pass that would change nothing is skipped.
//! Sources: `Resample.c` of Pillow's libImaging, and `Geometry.c` for the nearest pixel.
//!
//! In reading order: [`Resize`] (the request), `coefficients` and `axis` (the weights of each
//! axis), [`Resizer`] (the stream) with `feed` and `ring`, `passes` and `portable` (the
//! arithmetic), `exact` (the same for numbers that a byte does not hold), `program` and `export`
//! (the passes as data), and `avx2`, which is also used on machines with AVX-512; on AArch64 the
//! compiler vectorises the portable loops.
//!
//! Memory of a resizer: the weights of each requested row and column, and a ring of 16 more rows
//! than the filter spans, each as wide as the input of the pass along the columns. That is at most
//! a picture with the height of the source and the width of the result (or of the source, if the
//! columns come first), plus 16 rows.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod axis;
mod coefficients;
mod exact;
mod export;
mod feed;
mod line;
mod passes;
mod portable;
pub(crate) mod program;
mod ring;
#[cfg(test)]
mod tests;

pub use coefficients::Filter;
pub(crate) use coefficients::PRECISION_BITS;
pub(crate) use exact::{Rounding, resize_numbers};

use crate::planes::{Row, Stripe};
use crate::{Cpu, Interrupt, Region};
use axis::{Axis, Kind, Span};
use passes::{Passes, Work};
use ring::Ring;

/// Maximum number of rows that the pass along the rows processes together.
const CHUNK: usize = 16;

/// Number of rows buffered after the pass along the columns before the other pass.
const BATCH: usize = 4;

/// The part of a picture that a resize maps to the output: left, top, right, bottom in pixels.
pub type SourceBox = [f32; 4];

/// A resize of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resize {
    /// Columns of the picture, not 0.
    pub from_width: u32,
    /// Rows of the picture, not 0.
    pub from_height: u32,
    /// Part of the picture to resize; all of it for `None`. It must be inside the picture. Pixels
    /// around it are used if the filter reaches them, as in Pillow; to resize a crop, give the
    /// crop's size as the picture's.
    pub source: Option<SourceBox>,
    /// Columns of the result, not 0.
    pub width: u32,
    /// Rows of the result, not 0.
    pub height: u32,
    /// Filter.
    pub filter: Filter,
    /// Requested part of the result, not empty; all of it for `None`.
    pub window: Option<Region>,
}

impl Resize {
    /// Both axes: along the rows, along the columns.
    fn spans(&self) -> [Span; 2] {
        let [left, top, right, bottom] =
            self.source.unwrap_or([0.0, 0.0, self.from_width as f32, self.from_height as f32]);
        let all = Region { x: 0, y: 0, width: self.width, height: self.height };
        let window = self.window.unwrap_or(all);
        let span = |whole, source, length, first, wanted| Span {
            whole,
            source,
            length,
            window: first..first + wanted,
        };
        let across = span(self.from_width, (left, right), self.width, window.x, window.width);
        let down = span(self.from_height, (top, bottom), self.height, window.y, window.height);
        for Span { whole, source: (from, to), length, window } in [&across, &down] {
            let inside = 0.0 <= *from && from <= to && *to <= *whole as f32;
            assert!(inside && *length > 0 && *whole > 0, "the source lies in the picture");
            assert!(window.start < window.end && window.end <= *length, "the window is inside");
        }
        [across, down]
    }
}

/// Receives the result: the row's index in the window, and the row.
pub type RowSink<'a> = dyn FnMut(usize, Row<'_>) + 'a;

/// Resizes pictures one after another, reusing its memory.
///
/// [`Resizer::begin`] says which region of the picture it needs; [`Resizer::feed`] takes exactly
/// that region, cut into stripes anywhere, and returns the rows of the window from top to bottom,
/// each as soon as possible. All rows have been returned when the last row of the region has been
/// fed.
#[derive(Debug)]
pub struct Resizer {
    passes: Passes,
    /// Number of resized planes: 3, or 1 for a picture with equal planes.
    planes: usize,
    across: Axis,
    down: Axis,
    /// Whether the pass along the columns comes first, if there are two passes.
    down_first: bool,
    needed: Region,
    ring: Ring,
    /// Offsets of a run's rows in the ring.
    taps: Vec<usize>,
    /// Rows of results.
    results: Vec<u8>,
    /// Rows between the two passes if the columns come first, and their number.
    batch: Vec<u8>,
    batched: usize,
    /// Next input row of the region, and next output row of the window.
    fed: usize,
    given: usize,
    work: Work,
    interrupt: Interrupt,
    is_interrupted: bool,
}

impl Resizer {
    /// Creates a resizer for an instruction set. Panics if this machine lacks it.
    pub fn new(cpu: Cpu) -> Self {
        assert!(cpu.is_available(), "this machine has no {}", cpu.name());
        Self {
            passes: Passes::new(cpu),
            planes: 3,
            across: Axis::default(),
            down: Axis::default(),
            down_first: false,
            needed: Region { x: 0, y: 0, width: 0, height: 0 },
            ring: Ring::default(),
            taps: Vec::new(),
            results: Vec::new(),
            batch: Vec::new(),
            batched: 0,
            fed: 0,
            given: 0,
            work: Work::default(),
            interrupt: Interrupt::default(),
            is_interrupted: false,
        }
    }

    /// Stops output when `interrupt` is raised.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Whether the resize was interrupted, so that not all rows were returned.
    pub fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Sets whether the planes of subsequent pictures are equal; the planes of a returned row are
    /// then one slice.
    pub fn set_grey(&mut self, is_grey: bool) {
        self.planes = if is_grey { 1 } else { 3 };
    }

    /// Prepares for a picture. Returns the region of it that must be fed.
    pub fn begin(&mut self, resize: &Resize) -> Region {
        self.plan(resize);
        if self.across.kind == Kind::Weigh {
            self.passes.pack(&self.across.coefficients);
        }
        self.take_memory();
        (self.fed, self.given, self.batched) = (0, 0, 0);
        self.is_interrupted = false;
        self.needed
    }

    /// Determines the passes and the region that they need.
    fn plan(&mut self, resize: &Resize) {
        let [across, down] = resize.spans();
        self.across.prepare(self.passes.cpu, resize.filter, &across);
        self.down.prepare(self.passes.cpu, resize.filter, &down);
        self.down_first = vertical_first(resize)
            && self.across.kind == Kind::Weigh
            && self.down.kind == Kind::Weigh;
        let (columns, rows) = (self.across.needed.clone(), self.down.needed.clone());
        let (width, height) = (columns.end - columns.start, rows.end - rows.start);
        self.needed = Region { x: columns.start, y: rows.start, width, height };
    }

    /// The region that [`Resizer::begin`] returned.
    pub fn needed(&self) -> Region {
        self.needed
    }

    /// Takes the next rows of the needed region. `pause` is called every fraction of a millisecond.
    pub fn feed(&mut self, stripe: Stripe<'_>, pause: &mut dyn FnMut(), sink: &mut RowSink<'_>) {
        assert_eq!(stripe.width, self.needed.width as usize, "a stripe is as wide as the region");
        let left = self.needed.height as usize - self.fed;
        assert!(stripe.rows <= left, "no more rows than the region has");
        for from in (0..stripe.rows).step_by(CHUNK) {
            if self.is_interrupted() {
                return;
            }
            let rows = from..stripe.rows.min(from + CHUNK);
            match (self.down.kind, self.across.kind) {
                (Kind::Weigh, _) => self.feed_ring(stripe, rows, pause, sink),
                (Kind::Shift, Kind::Weigh) => self.feed_across(stripe, rows, pause, sink),
                (Kind::Shift | Kind::Pick, _) => self.feed_picks(stripe, rows, sink),
            }
        }
    }
}

/// Whether the pass along the columns comes first, if there are both: it does if it removes more
/// than twice as many rows as the other pass removes columns, like in Pillow 13.
fn vertical_first(resize: &Resize) -> bool {
    let columns = i64::from(resize.from_width) - i64::from(resize.width);
    let rows = i64::from(resize.from_height) - i64::from(resize.height);
    rows > 0 && rows > columns * 2
}
