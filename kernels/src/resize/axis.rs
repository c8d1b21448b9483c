//! One axis of a resize: the mapping of positions, and which of them are needed.

use super::coefficients::{Coefficients, Filter, pick};
use crate::Cpu;
use meetpoint_format::recipe::Interpolation;
use std::ops::Range;

/// What an axis does to its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// Nothing but moving them: every weight would be 0 or 1.
    #[default]
    Shift,
    /// Sums up weighted runs.
    Weigh,
    /// Takes one position each.
    Pick,
}

/// What one axis is to do.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// Positions of the picture.
    pub(super) whole: u32,
    /// The interval that is mapped.
    pub(super) source: (f32, f32),
    /// Positions that it becomes.
    pub(super) length: u32,
    /// Those of them that are wanted; not empty.
    pub(super) window: Range<u32>,
}

/// One axis, made ready for one resize after another.
#[derive(Debug, Default)]
pub(super) struct Axis {
    pub(super) kind: Kind,
    /// Input positions that are needed; all others here count from the first of them.
    pub(super) needed: Range<u32>,
    /// Output positions that are wanted.
    pub(super) wanted: usize,
    /// For [`Kind::Weigh`].
    pub(super) coefficients: Coefficients,
    /// For [`Kind::Pick`].
    pub(super) picks: Vec<u32>,
    /// For [`Kind::Weigh`]: the lowest input position that an output position or a later one uses.
    pub(super) kept_from: Vec<u32>,
    /// Most input positions that must be kept for an output position and later ones.
    pub(super) kept_max: usize,
}

impl Axis {
    /// Makes ready.
    pub(super) fn prepare(&mut self, cpu: Cpu, filter: Filter, span: &Span) {
        let Span { whole, source: (from, to), length, window } = span.clone();
        let nearest = filter.interpolation == Interpolation::Nearest;
        self.wanted = window.len();
        let is_all = length == whole && from == 0.0 && to == whole as f32;
        // Whole steps of 1 from a whole position: weights of neighbours are exactly 0. Lengths from
        // 2^24 on may not be what their float32 says.
        let is_part = from.fract() == 0.0 && to - from == length as f32 && whole < 1 << 24;
        if is_all || is_part {
            self.kind = Kind::Shift;
            let first = from as u32;
            self.needed = first + window.start..first + window.end;
        } else if nearest {
            self.kind = Kind::Pick;
            self.needed = pick(&mut self.picks, whole, (from, to), length, window);
        } else {
            self.kind = Kind::Weigh;
            self.needed = self.coefficients.compute(cpu, filter, whole, (from, to), length, window);
        }
    }

    /// Finds what must be kept of a stream of positions, for [`Kind::Weigh`].
    pub(super) fn plan_keeping(&mut self) {
        self.kept_from.clear();
        self.kept_from.resize(self.wanted, 0);
        let mut lowest = u32::MAX;
        for (kept, run) in self.kept_from.iter_mut().zip(&self.coefficients.runs).rev() {
            lowest = if run.1 == 0 { lowest } else { lowest.min(run.0) };
            *kept = lowest;
        }
        let runs = self.coefficients.runs.iter().zip(&self.kept_from);
        let spans = runs.map(|(run, kept)| (run.0 + run.1).saturating_sub(*kept));
        self.kept_max = spans.max().unwrap_or(0) as usize;
    }

    /// Multiplications of the pass over one row of some planes.
    pub(super) fn multiplications(&self, planes: usize) -> usize {
        planes * self.wanted * self.coefficients.taps_max
    }

    /// The output position's run ends here: as many input positions must have come.
    pub(super) fn run_end(&self, output: usize) -> usize {
        let (first, count) = self.coefficients.runs[output];
        (first + count) as usize
    }
}
