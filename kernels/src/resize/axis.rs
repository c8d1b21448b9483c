//! One axis of a resize: the mapping of positions, and the needed positions.

use super::coefficients::{Coefficients, Filter, pick};
use crate::Cpu;
use meetpoint_format::recipe::Interpolation;
use std::ops::Range;

/// How an axis maps positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// Only moves them: every weight would be 0 or 1.
    #[default]
    Shift,
    /// Computes weighted sums of runs.
    Weigh,
    /// Copies one position each.
    Pick,
}

/// The request for one axis.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// Number of positions of the picture.
    pub(super) whole: u32,
    /// The interval to map.
    pub(super) source: (f32, f32),
    /// Number of positions to which it is mapped.
    pub(super) length: u32,
    /// The requested positions of the result; not empty.
    pub(super) window: Range<u32>,
}

/// One axis, prepared for one resize after another.
#[derive(Debug, Default)]
pub(super) struct Axis {
    pub(super) kind: Kind,
    /// Needed input positions; all other input positions here are relative to the first of them.
    pub(super) needed: Range<u32>,
    /// Number of requested output positions.
    pub(super) wanted: usize,
    /// For [`Kind::Weigh`].
    pub(super) coefficients: Coefficients,
    /// For [`Kind::Pick`].
    pub(super) picks: Vec<u32>,
    /// For [`Kind::Weigh`]: the lowest input position that an output position or a later one uses.
    pub(super) kept_from: Vec<u32>,
    /// Maximum number of input positions to retain for an output position and later ones.
    pub(super) kept_max: usize,
}

impl Axis {
    /// Prepares the axis.
    pub(super) fn prepare(&mut self, cpu: Cpu, filter: Filter, span: &Span) {
        let Span { whole, source: (from, to), length, window } = span.clone();
        let nearest = filter.interpolation == Interpolation::Nearest;
        self.wanted = window.len();
        let is_all = length == whole && from == 0.0 && to == whole as f32;
        // For steps of 1 from an integer position, the weights of neighbours are exactly 0. Lengths
        // from 2^24 on may not be exact in float32.
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

    /// Determines the positions of a stream to retain, for [`Kind::Weigh`].
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

    /// Number of multiplications of the pass over one row of some planes.
    pub(super) fn multiplications(&self, planes: usize) -> usize {
        planes * self.wanted * self.coefficients.taps_max
    }

    /// The end of an output position's run: the number of input positions that must have arrived.
    pub(super) fn run_end(&self, output: usize) -> usize {
        let (first, count) = self.coefficients.runs[output];
        (first + count) as usize
    }
}
