//! Means of a few values, and their errors.

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

    /// Halves the weight of everything so far.
    pub(super) fn fade(&mut self) {
        *self = Self { count: self.count / 2.0, sum: self.sum / 2.0, squares: self.squares / 2.0 };
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// The squared standard error of the mean.
    pub(super) fn error_squared(&self) -> f64 {
        self.error_squared_of(self.count)
    }

    /// The same for a mean of `count` values; 0 if there are too few to know.
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
