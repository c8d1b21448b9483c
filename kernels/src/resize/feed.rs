//! Passes rows through a resizer, for each combination of its two axes.

use super::axis::Kind;
use super::coefficients::OUTSIDE;
use super::line::Line;
use super::ring::plane_bytes;
use super::{BATCH, CHUNK, Resizer, RowSink};
use crate::planes::{Row, Stripe};
use std::ops::Range;

/// Maximum number of lines in a chunk.
const LINES_MAX: usize = 3 * CHUNK;

impl Resizer {
    /// Allocates the memory that a resize needs, if there is not enough.
    pub(super) fn take_memory(&mut self) {
        let between = if self.down_first { self.needed.width as usize } else { self.across.wanted };
        let grow = |bytes: &mut Vec<u8>, to: usize| {
            if bytes.len() < to {
                bytes.resize(to, 0);
            }
        };
        if self.down.kind == Kind::Weigh {
            self.down.plan_keeping();
            let rows = self.down.kept_max + CHUNK;
            self.ring.set_size(self.planes, between, rows, self.down_first);
            self.taps.reserve(self.down.coefficients.taps_max);
        }
        if self.down_first {
            grow(&mut self.batch, BATCH * self.ring.row_bytes());
        }
        grow(&mut self.results, CHUNK * self.planes * plane_bytes(self.across.wanted, false));
    }

    /// Polls the interrupt before each output row.
    fn look(&mut self) -> bool {
        self.is_interrupted |= self.interrupt.is_raised();
        self.is_interrupted
    }

    /// For a resize with a pass along the columns: rows are buffered in the ring until there are
    /// enough.
    pub(super) fn feed_ring(
        &mut self,
        stripe: Stripe<'_>,
        rows: Range<usize>,
        pause: &mut dyn FnMut(),
        sink: &mut RowSink<'_>,
    ) {
        let kept = self.down.kept_from.get(self.given + self.batched);
        // Rows that are no longer, or not yet, needed are skipped.
        let unused = kept.map_or(rows.len(), |kept| (*kept as usize).saturating_sub(self.fed));
        let used = rows.start + unused.min(rows.len())..rows.end;
        let first = self.fed + unused.min(rows.len());
        if self.across.kind == Kind::Weigh && !self.down_first {
            let ring = &self.ring;
            let mut lines = [Line { from: &[], to: 0 }; LINES_MAX];
            let count = used.len();
            for plane in 0..self.planes {
                for row in 0..count {
                    let to = ring.place(first + row) + plane * ring.plane_bytes;
                    lines[plane * count + row] =
                        Line { from: stripe.row(plane, used.start + row), to };
                }
            }
            self.passes.across(
                &self.across.coefficients,
                &lines[..self.planes * count],
                &mut self.ring.bytes,
            );
            self.work.done(count * self.across.multiplications(self.planes), pause);
        } else {
            for (row, y) in (first..).zip(used) {
                for plane in 0..self.planes {
                    let to = self.ring.place(row) + plane * self.ring.plane_bytes;
                    let from = &stripe.row(plane, y)[..stripe.width];
                    self.ring.bytes[to..][..from.len()].copy_from_slice(from);
                }
            }
        }
        self.fed += rows.len();
        self.give_from_ring(pause, sink);
    }

    /// Outputs all rows for which the ring has enough input.
    fn give_from_ring(&mut self, pause: &mut dyn FnMut(), sink: &mut RowSink<'_>) {
        while self.given + self.batched < self.down.wanted
            && !self.look()
            && self.down.run_end(self.given + self.batched) <= self.fed
        {
            let (first, weights) = self.down.coefficients.run(self.given + self.batched);
            self.taps.clear();
            self.taps.extend((first..first + weights.len()).map(|row| self.ring.place(row)));
            let row_bytes = self.ring.row_bytes();
            let out = if self.down_first {
                &mut self.batch[self.batched * row_bytes..]
            } else {
                &mut self.results[..]
            };
            self.passes.down(&self.ring.bytes, &self.taps, weights, &mut out[..row_bytes]);
            self.work.done(row_bytes * weights.len(), pause);
            if self.down_first {
                self.batched += 1;
                self.give_batch(pause, sink);
            } else {
                let row =
                    row_of(&self.results, self.planes, (self.ring.plane_bytes, self.across.wanted));
                sink(self.given, row);
                self.given += 1;
            }
        }
    }

    /// Runs the pass along the rows on the batch if it is full or there is no more input.
    fn give_batch(&mut self, pause: &mut dyn FnMut(), sink: &mut RowSink<'_>) {
        let rows = self.batched;
        if rows < BATCH && self.given + rows < self.down.wanted {
            return;
        }
        let to_bytes = plane_bytes(self.across.wanted, false);
        let from = self.batch.chunks_exact(self.ring.plane_bytes).take(self.planes * rows);
        let mut lines = [Line { from: &[], to: 0 }; 3 * BATCH];
        for (index, (line, from)) in lines.iter_mut().zip(from).enumerate() {
            *line = Line { from, to: index * to_bytes };
        }
        self.passes.across(
            &self.across.coefficients,
            &lines[..self.planes * rows],
            &mut self.results,
        );
        self.work.done(rows * self.across.multiplications(self.planes), pause);
        self.batched = 0;
        self.give_results(rows, sink);
    }

    /// For a resize with only a pass along the rows.
    pub(super) fn feed_across(
        &mut self,
        stripe: Stripe<'_>,
        rows: Range<usize>,
        pause: &mut dyn FnMut(),
        sink: &mut RowSink<'_>,
    ) {
        let to_bytes = plane_bytes(self.across.wanted, false);
        let mut lines = [Line { from: &[], to: 0 }; LINES_MAX];
        let count = rows.len();
        for plane in 0..self.planes {
            for row in 0..count {
                let to = (row * self.planes + plane) * to_bytes;
                lines[plane * count + row] = Line { from: stripe.row(plane, rows.start + row), to };
            }
        }
        self.passes.across(
            &self.across.coefficients,
            &lines[..self.planes * count],
            &mut self.results,
        );
        self.work.done(count * self.across.multiplications(self.planes), pause);
        self.fed += count;
        self.give_results(count, sink);
    }

    /// Outputs the first rows of the results.
    fn give_results(&mut self, rows: usize, sink: &mut RowSink<'_>) {
        let to_bytes = plane_bytes(self.across.wanted, false);
        for row in self.results.chunks_exact(self.planes * to_bytes).take(rows) {
            sink(self.given, row_of(row, self.planes, (to_bytes, self.across.wanted)));
            self.given += 1;
        }
    }

    /// For axes that only move or pick pixels.
    pub(super) fn feed_picks(
        &mut self,
        stripe: Stripe<'_>,
        rows: Range<usize>,
        sink: &mut RowSink<'_>,
    ) {
        let (first, end) = (self.fed, self.fed + rows.len());
        self.fed = end;
        while self.given < self.down.wanted && !self.look() {
            let from = match self.down.kind {
                Kind::Pick => self.down.picks[self.given],
                _ => self.given as u32,
            };
            let bytes = plane_bytes(self.across.wanted, false);
            if from == OUTSIDE {
                self.results[..self.planes * bytes].fill(0);
                sink(self.given, row_of(&self.results, self.planes, (bytes, self.across.wanted)));
            } else if from as usize >= end {
                break;
            } else {
                let y = rows.start + from as usize - first;
                let planes = [0, 1, 2].map(|plane| stripe.row(plane, y));
                if self.across.kind == Kind::Shift {
                    sink(self.given, Row { planes, width: stripe.width });
                } else {
                    let results = self.results[..self.planes * bytes].chunks_exact_mut(bytes);
                    for (from, out) in planes.iter().zip(results) {
                        for (out, pick) in out.iter_mut().zip(&self.across.picks) {
                            *out = if *pick == OUTSIDE { 0 } else { from[*pick as usize] };
                        }
                    }
                    sink(
                        self.given,
                        row_of(&self.results, self.planes, (bytes, self.across.wanted)),
                    );
                }
            }
            self.given += 1;
        }
    }
}

/// The row at the start of `bytes`, with its planes concatenated; a single plane is used for all
/// three.
fn row_of(bytes: &[u8], planes: usize, (plane_bytes, width): (usize, usize)) -> Row<'_> {
    let planes =
        [0, 1, 2].map(|plane: usize| &bytes[plane.min(planes - 1) * plane_bytes..][..plane_bytes]);
    Row { planes, width }
}
