//! The discrete Fourier transform of 8 real signals at a time.
//!
//! A signal of N samples is transformed as one of N / 2 complex numbers, by Stockham's algorithm
//! with the radices 4, 2, 3 and 5. The signals are the lanes of a vector and are never combined, so
//! the compiler's choice of instructions does not affect the result.

/// Signals that are transformed together.
pub(crate) const LANES: usize = 8;

/// A number of each signal.
pub(crate) type Lanes = [f32; LANES];

/// A complex number of each signal.
#[derive(Debug, Clone, Copy)]
struct Complex {
    re: Lanes,
    im: Lanes,
}

const ZERO: Complex = Complex { re: [0.0; LANES], im: [0.0; LANES] };

/// The transform of one length, with its tables and scratch memory.
#[derive(Debug)]
pub(crate) struct RealFft {
    /// Samples of a signal.
    length: usize,
    /// Radices of the transform of half the length, in the order of its stages.
    radices: Vec<usize>,
    /// exp(-2 pi i k / (length / 2)).
    roots: Vec<(f32, f32)>,
    /// exp(-2 pi i k / length), for k up to half the length.
    split: Vec<(f32, f32)>,
    from: Vec<Complex>,
    to: Vec<Complex>,
}

fn root(index: usize, of: usize) -> (f32, f32) {
    let angle = -2.0 * std::f64::consts::PI * index as f64 / of as f64;
    (libm::cos(angle) as f32, libm::sin(angle) as f32)
}

impl RealFft {
    /// The transform of an even length without prime factors above 5.
    pub(crate) fn new(length: usize) -> Self {
        assert!(length.is_multiple_of(2), "the length is even");
        let half = length / 2;
        let (mut rest, mut radices) = (half, Vec::new());
        for radix in [4, 2, 3, 5] {
            while rest.is_multiple_of(radix) {
                radices.push(radix);
                rest /= radix;
            }
        }
        assert_eq!(rest, 1, "the length has no prime factors above 5");
        Self {
            length,
            radices,
            roots: (0..half).map(|index| root(index, half)).collect(),
            split: (0..=half).map(|index| root(index, length)).collect(),
            from: vec![ZERO; half],
            to: vec![ZERO; half],
        }
    }

    /// Number of frequencies in the result: half the length plus 1.
    pub(crate) fn frequencies(&self) -> usize {
        self.length / 2 + 1
    }

    /// Sets the samples of one signal, each multiplied by that of a window.
    #[inline(always)]
    pub(crate) fn load(&mut self, lane: usize, samples: &[f32], window: &[f32]) {
        let (samples, window) = (samples.as_chunks::<2>().0, window.as_chunks::<2>().0);
        for ((number, samples), window) in self.from.iter_mut().zip(samples).zip(window) {
            number.re[lane] = samples[0] * window[0];
            number.im[lane] = samples[1] * window[1];
        }
    }

    /// Transforms the samples that were set, and passes the squared magnitude of each frequency to
    /// a function, in order. The samples are overwritten.
    #[inline(always)]
    pub(crate) fn squares(&mut self, mut found: impl FnMut(usize, &Lanes)) {
        self.transform();
        let half = self.length / 2;
        for (index, (cos, sin)) in self.split.iter().enumerate() {
            let this = &self.from[if index == half { 0 } else { index }];
            let other = &self.from[if index == 0 { 0 } else { half - index }];
            let square = std::array::from_fn(|lane| {
                let (a, b) = (this.re[lane], this.im[lane]);
                let (c, d) = (other.re[lane], other.im[lane]);
                // The transforms of the even and the odd samples are half the sum and half the
                // difference.
                let (even_re, even_im) = (0.5 * (a + c), 0.5 * (b - d));
                let (odd_re, odd_im) = (0.5 * (b + d), 0.5 * (c - a));
                let re = even_re + (cos * odd_re - sin * odd_im);
                let im = even_im + (cos * odd_im + sin * odd_re);
                re * re + im * im
            });
            found(index, &square);
        }
    }

    /// The complex transform, in `from`.
    #[inline(always)]
    fn transform(&mut self) {
        let half = self.length / 2;
        let (mut length, mut stride) = (half, 1);
        for index in 0..self.radices.len() {
            let radix = self.radices[index];
            let (from, to, roots) = (&self.from[..], &mut self.to[..], &self.roots[..]);
            match radix {
                2 => stage::<2, Radix2>(from, to, roots, (length, stride)),
                3 => stage::<3, Radix3>(from, to, roots, (length, stride)),
                4 => stage::<4, Radix4>(from, to, roots, (length, stride)),
                _ => stage::<5, Radix5>(from, to, roots, (length, stride)),
            }
            std::mem::swap(&mut self.from, &mut self.to);
            length /= radix;
            stride *= radix;
        }
    }
}

/// The transform of a few numbers.
///
/// This is a trait, because a function that is passed as an argument is compiled for the baseline
/// instruction set.
trait Butterfly<const RADIX: usize> {
    /// Transforms the numbers. Implementations are `#[inline(always)]`.
    fn apply(numbers: &mut [Complex; RADIX]);
}

struct Radix2;
struct Radix3;
struct Radix4;
struct Radix5;

/// One stage of decimation in frequency.
#[inline(always)]
fn stage<const RADIX: usize, B: Butterfly<RADIX>>(
    from: &[Complex],
    to: &mut [Complex],
    roots: &[(f32, f32)],
    (length, stride): (usize, usize),
) {
    let part = length / RADIX;
    for first in 0..part {
        for offset in 0..stride {
            let mut numbers = [ZERO; RADIX];
            for (index, number) in numbers.iter_mut().enumerate() {
                *number = from[offset + stride * (first + index * part)];
            }
            B::apply(&mut numbers);
            for (index, number) in numbers.iter().enumerate() {
                let target = &mut to[offset + stride * (RADIX * first + index)];
                *target = match first * index {
                    0 => *number,
                    turns => number.turned(roots[turns * stride]),
                };
            }
        }
    }
}

impl Complex {
    #[inline(always)]
    fn map(&self, other: &Self, change: impl Fn(f32, f32) -> f32) -> Self {
        let mut result = ZERO;
        for lane in 0..LANES {
            result.re[lane] = change(self.re[lane], other.re[lane]);
            result.im[lane] = change(self.im[lane], other.im[lane]);
        }
        result
    }

    #[inline(always)]
    fn add(&self, other: &Self) -> Self {
        self.map(other, |a, b| a + b)
    }

    #[inline(always)]
    fn subtract(&self, other: &Self) -> Self {
        self.map(other, |a, b| a - b)
    }

    /// `self + factor * other`.
    #[inline(always)]
    fn add_scaled(&self, factor: f32, other: &Self) -> Self {
        self.map(other, |a, b| a + factor * b)
    }

    /// `one * self + two * other`.
    #[inline(always)]
    fn mixed(&self, one: f32, two: f32, other: &Self) -> Self {
        self.map(other, |a, b| one * a + two * b)
    }

    /// `self - i * other`.
    #[inline(always)]
    fn subtract_turned(&self, other: &Self) -> Self {
        let mut result = ZERO;
        for lane in 0..LANES {
            result.re[lane] = self.re[lane] + other.im[lane];
            result.im[lane] = self.im[lane] - other.re[lane];
        }
        result
    }

    /// `self + i * other`.
    #[inline(always)]
    fn add_turned(&self, other: &Self) -> Self {
        let mut result = ZERO;
        for lane in 0..LANES {
            result.re[lane] = self.re[lane] - other.im[lane];
            result.im[lane] = self.im[lane] + other.re[lane];
        }
        result
    }

    /// Multiplied by a root of unity.
    #[inline(always)]
    fn turned(&self, (cos, sin): (f32, f32)) -> Self {
        let mut result = ZERO;
        for lane in 0..LANES {
            result.re[lane] = cos * self.re[lane] - sin * self.im[lane];
            result.im[lane] = cos * self.im[lane] + sin * self.re[lane];
        }
        result
    }
}

impl Butterfly<2> for Radix2 {
    #[inline(always)]
    fn apply(numbers: &mut [Complex; 2]) {
        let [a, b] = numbers;
        *numbers = [a.add(b), a.subtract(b)];
    }
}

impl Butterfly<3> for Radix3 {
    #[inline(always)]
    fn apply(numbers: &mut [Complex; 3]) {
        /// sin(pi / 3).
        const SIN: f32 = 0.866_025_4;
        let [a, b, c] = numbers;
        let (sum, difference) = (b.add(c), b.subtract(c));
        let middle = a.add_scaled(-0.5, &sum);
        let side = ZERO.add_scaled(SIN, &difference);
        *numbers = [a.add(&sum), middle.subtract_turned(&side), middle.add_turned(&side)];
    }
}

impl Butterfly<4> for Radix4 {
    #[inline(always)]
    fn apply(numbers: &mut [Complex; 4]) {
        let [a, b, c, d] = numbers;
        let (even, odd) = (a.add(c), b.add(d));
        let (low, high) = (a.subtract(c), b.subtract(d));
        *numbers = [
            even.add(&odd),
            low.subtract_turned(&high),
            even.subtract(&odd),
            low.add_turned(&high),
        ];
    }
}

impl Butterfly<5> for Radix5 {
    #[inline(always)]
    fn apply(numbers: &mut [Complex; 5]) {
        /// Cosine and sine of 2 pi / 5 and 4 pi / 5.
        const COS: [f32; 2] = [0.309_017, -0.809_017];
        const SIN: [f32; 2] = [0.951_056_5, 0.587_785_25];
        let [a, b, c, d, e] = numbers;
        let (outer, inner) = (b.add(e), c.add(d));
        let (outer_side, inner_side) = (b.subtract(e), c.subtract(d));
        let one = a.add(&outer.mixed(COS[0], COS[1], &inner));
        let two = a.add(&outer.mixed(COS[1], COS[0], &inner));
        let one_side = outer_side.mixed(SIN[0], SIN[1], &inner_side);
        let two_side = outer_side.mixed(SIN[1], -SIN[0], &inner_side);
        *numbers = [
            a.add(&outer).add(&inner),
            one.subtract_turned(&one_side),
            two.subtract_turned(&two_side),
            two.add_turned(&two_side),
            one.add_turned(&one_side),
        ];
    }
}

#[cfg(test)]
mod tests {
    use super::{LANES, RealFft};

    /// The squares of the magnitudes by the definition, in float64.
    fn by_definition(samples: &[f64]) -> Vec<f64> {
        let length = samples.len();
        let square = |frequency: usize| {
            let (mut re, mut im) = (0.0, 0.0);
            for (index, sample) in samples.iter().enumerate() {
                let turns = (index * frequency % length) as f64 / length as f64;
                re += sample * (2.0 * std::f64::consts::PI * turns).cos();
                im -= sample * (2.0 * std::f64::consts::PI * turns).sin();
            }
            re * re + im * im
        };
        (0..=length / 2).map(square).collect()
    }

    #[test]
    fn every_length_gives_the_transform_of_each_signal() {
        for length in [4, 6, 8, 10, 12, 16, 18, 20, 30, 50, 60, 128, 250, 320, 400, 480, 1024] {
            let sample =
                |lane: usize, at: usize| ((at * at * 7 + lane * 31 + at) % 97) as f32 - 48.0;
            let mut fft = RealFft::new(length);
            for lane in 0..LANES {
                let samples: Vec<f32> = (0..length).map(|at| sample(lane, at)).collect();
                fft.load(lane, &samples, &vec![1.0; length]);
            }
            let mut found = Vec::new();
            fft.squares(|index, square| {
                assert_eq!(index, found.len());
                found.push(*square);
            });
            assert_eq!(found.len(), fft.frequencies());
            for lane in 0..LANES {
                let samples: Vec<f64> = (0..length).map(|at| f64::from(sample(lane, at))).collect();
                let expected = by_definition(&samples);
                let largest = expected.iter().copied().fold(0.0, f64::max);
                for (square, expected) in found.iter().zip(expected) {
                    let error = (f64::from(square[lane]) - expected).abs();
                    assert!(error <= 1e-6 * largest, "{length} {lane}: {error} of {largest}");
                }
            }
        }
    }
}
