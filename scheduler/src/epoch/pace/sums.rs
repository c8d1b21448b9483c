//! Means of a few values, and their errors.

use crate::effects::Total;

/// Count, sum and sum of squares.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) count: f64,
    pub(super) sum: f64,
    squares: f64,
}

impl Sums {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    /// Adds all values of another sum.
    pub(super) fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean per rank of the totals of several ranks.
    pub(super) fn of(total: Total, ranks: f64) -> Self {
        Self {
            count: f64::from(total.count) / ranks,
            sum: total.sum_ns as f64 / ranks,
            squares: total.squares as f64 * 1e6 / ranks,
        }
    }

    /// Halves the weight of everything so far.
    pub(super) fn fade(&mut self) {
        *self = Self { count: self.count / 2.0, sum: self.sum / 2.0, squares: self.squares / 2.0 };
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// The squared standard error of a mean of `count` such values; 0 if there are too few to know.
    pub(super) fn error_squared_of(&self, count: f64) -> f64 {
        self.variance() / (count - 1.0).max(1.0)
    }

    /// 0 if there are too few values to know.
    pub(super) fn variance(&self) -> f64 {
        if self.count < 2.0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.squares / self.count - mean * mean).max(0.0)
    }
}
