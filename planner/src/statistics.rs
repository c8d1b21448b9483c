//! Means, variances and their errors, and totals that are extrapolated from a sample.

use serde::{Deserialize, Serialize};

/// Count, mean and spread of numbers, updated one by one (Welford, 1962).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Sum of the squares of the differences from the mean.
    squares: f64,
}

impl Moments {
    /// The moments of some numbers.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut moments = Self::default();
        numbers.into_iter().for_each(|number| moments.add(number));
        moments
    }

    /// Adds a number.
    pub fn add(&mut self, number: f64) {
        self.count += 1;
        let difference = number - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (number - self.mean);
    }

    /// Combines them with the moments of other numbers (Chan et al., 1979).
    pub fn merge(&mut self, other: Self) {
        let count = self.count + other.count;
        if count == 0 {
            return;
        }
        let difference = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.squares += other.squares + difference * difference * self.count as f64 * share;
        self.mean += difference * share;
        self.count = count;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The sample standard deviation (n - 1); 0 for fewer than two values.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }

    /// Standard error of the mean, relative to the mean, if the numbers are a random sample without
    /// replacement from `population`; 0 if they are the whole population.
    pub fn relative_error(&self, population: u64) -> f64 {
        if self.count == 0 || self.mean == 0.0 || self.count >= population {
            return 0.0;
        }
        let (count, population) = (self.count as f64, population as f64);
        let left_out = 1.0 - count / population;
        self.deviation() / self.mean.abs() * (left_out / count).sqrt()
    }
}

/// A total over a dataset, extrapolated from a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

/// The total of a quantity over a dataset of `population` samples. `pairs` are a random sample: the
/// quantity, and an auxiliary one (bytes of the file) whose total is known.
///
/// Extrapolated by count (mean times samples) and by the auxiliary quantity (ratio estimator); the
/// one with the smaller standard error is returned (Cochran, Sampling Techniques, chapter 6).
pub fn extrapolate(pairs: &[(f64, f64)], population: u64, auxiliary_total: f64) -> Total {
    let count = pairs.len() as f64;
    let quantity = Moments::of(pairs.iter().map(|pair| pair.0));
    let population_count = population as f64;
    let scale =
        population_count * ((1.0 - count / population_count).max(0.0) / count.max(1.0)).sqrt();
    let by_count =
        Total { value: quantity.mean() * population_count, error: scale * quantity.deviation() };
    let sums = pairs.iter().fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
    if sums.1 <= 0.0 {
        return by_count;
    }
    let ratio = sums.0 / sums.1;
    let residuals = Moments::of(pairs.iter().map(|pair| pair.0 - ratio * pair.1));
    let by_ratio = Total { value: ratio * auxiliary_total, error: scale * residuals.deviation() };
    if by_ratio.error < by_count.error { by_ratio } else { by_count }
}

/// The quantile of the standard normal distribution, for 0 < p < 1 (Acklam's rational
/// approximation, relative error below 1.2e-9).
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
    let horner = |of: &[f64], x: f64| of.iter().fold(0.0, |sum, factor| sum * x + factor);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&C, q) / (horner(&D, q) * q + 1.0)
    };
    const TAIL: f64 = 0.02425;
    if p < TAIL {
        return tail(p);
    }
    if p > 1.0 - TAIL {
        return -tail(1.0 - p);
    }
    let q = p - 0.5;
    let r = q * q;
    horner(&A, r) * q / (horner(&B, r) * r + 1.0)
}

/// The quantile of Student's t distribution with `freedom` degrees of freedom, for 0 < p < 1: exact
/// for 1 and 2, otherwise by the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5).
pub fn student_quantile(p: f64, freedom: u32) -> f64 {
    match freedom {
        0 => f64::INFINITY,
        1 => (std::f64::consts::PI * (p - 0.5)).tan(),
        2 => (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt(),
        _ => {
            let (z, n) = (normal_quantile(p), f64::from(freedom));
            let power = |exponent| z.powi(exponent);
            let terms = [
                (power(3) + z) / 4.0,
                (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / 96.0,
                (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / 384.0,
                (79.0 * power(9) + 776.0 * power(7) + 1482.0 * power(5)
                    - 1920.0 * power(3)
                    - 945.0 * z)
                    / 92160.0,
            ];
            terms.iter().zip(1..).fold(z, |sum, (term, exponent)| sum + term / n.powi(exponent))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(got: f64, expected: f64, tolerance: f64) -> bool {
        (got - expected).abs() <= tolerance * expected.abs()
    }

    #[test]
    fn moments_are_those_of_all_numbers_however_they_are_merged() {
        let numbers = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let whole = Moments::of(numbers);
        let mut merged = Moments::of(numbers[..3].iter().copied());
        merged.merge(Moments::of(numbers[3..].iter().copied()));
        merged.merge(Moments::default());
        for moments in [whole, merged] {
            assert_eq!((moments.count(), moments.mean()), (8, 5.0));
            assert!(is_near(moments.deviation(), (32.0f64 / 7.0).sqrt(), 1e-12));
        }
        assert_eq!(whole.relative_error(8), 0.0);
        let expected = (32.0f64 / 7.0).sqrt() / 5.0 * (0.5f64 / 8.0).sqrt();
        assert!(is_near(whole.relative_error(16), expected, 1e-12));
    }

    #[test]
    fn a_quantity_in_proportion_to_bytes_is_extrapolated_exactly() {
        let pairs = [(20.0, 10.0), (60.0, 30.0), (4.0, 2.0)];
        let total = extrapolate(&pairs, 100, 1000.0);
        assert!(is_near(total.value, 2000.0, 1e-12) && total.error < 1e-9, "{total:?}");
        // A quantity that does not depend on the bytes is extrapolated by count.
        let total = extrapolate(&[(5.0, 1.0), (5.0, 100.0)], 50, 1000.0);
        assert_eq!(total, Total { value: 250.0, error: 0.0 });
        // The whole dataset was measured, so the estimate is exact.
        assert_eq!(extrapolate(&[(1.0, 9.0), (2.0, 1.0)], 2, 10.0).error, 0.0);
    }

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (p, z) in [(0.975, 1.959963985), (0.995, 2.575829304), (0.01, -2.326347874)] {
            assert!(is_near(normal_quantile(p), z, 1e-8), "{p}");
        }
        for (p, freedom, t, tolerance) in [
            (0.975, 1, 12.7062047, 1e-8),
            (0.975, 2, 4.30265273, 1e-8),
            (0.975, 4, 2.77644511, 2e-3),
            (0.975, 9, 2.26215716, 1e-4),
            (0.95, 30, 1.69726089, 1e-6),
        ] {
            let got = student_quantile(p, freedom);
            assert!(is_near(got, t, tolerance), "{p} {freedom}: {got}");
        }
        assert_eq!(student_quantile(0.9, 0), f64::INFINITY);
    }
}
