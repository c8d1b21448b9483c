//! Executes `elastic_transform`: moves positions by smooth random fields, like torchvision on
//! tensors.

use super::PictureOperation;
use crate::frame::source;
use crate::picture_program::PictureChange;
use crate::pixels::Pixels;
use crate::planes::Planes;
use crate::points::Points;
use crate::random::Field;
use crate::vector::{Kernel, run};
use crate::{Cpu, Error};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{ElasticTransform, PaddingMode, WarpInterpolation};

/// A random field, smoothed row by row. The arithmetic is float32, and sums run from left to right
/// and from top to bottom.
struct Smoothed {
    cpu: Cpu,
    field: Field,
    channel: usize,
    width: usize,
    height: usize,
    /// Weights along rows and along columns, of equal number; a single 1 for no smoothing.
    across: Vec<f32>,
    down: Vec<f32>,
    /// The last rows, smoothed horizontally; a row is at its index modulo their number.
    rows: Vec<Vec<f32>>,
    /// Number of rows smoothed horizontally so far.
    made: usize,
    words: Vec<u32>,
    /// A row extended by reflection on both sides.
    line: Vec<f32>,
    result: Vec<f32>,
}

/// Weights of a Gaussian, from the first of `2 * radius + 1` to the last.
fn gaussian(sigma: f64, radius: usize) -> Vec<f32> {
    let distances = (0..=2 * radius).map(|tap| tap as f64 - radius as f64);
    let exact: Vec<f64> =
        distances.map(|distance| libm::exp(-distance * distance / (2.0 * sigma * sigma))).collect();
    let sum: f64 = exact.iter().sum();
    exact.iter().map(|weight| (weight / sum) as f32).collect()
}

/// Weights along rows and along columns; `sigma` determines their number, `sigmas` their values.
fn weights(sigma: f64, sigmas: (f64, f64)) -> [Vec<f32>; 2] {
    if sigma > 0.0 {
        // torchvision: int(8 * sigma + 1) taps, plus one if that is even.
        let radius = (8.0 * sigma + 1.0) as usize / 2;
        [gaussian(sigmas.0, radius), gaussian(sigmas.1, radius)]
    } else {
        [vec![1.0], vec![1.0]]
    }
}

/// Computes the weighted sum of rows, all at least as long as the result.
struct Sum<'a, R> {
    weights: &'a [f32],
    rows: R,
    out: &'a mut [f32],
}

impl<'a, R: Fn(usize) -> &'a [f32]> Kernel for Sum<'a, R> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { weights, rows, out } = self;
        out.fill(0.0);
        for (tap, weight) in weights.iter().enumerate() {
            for (sum, value) in out.iter_mut().zip(rows(tap)) {
                *sum += weight * value;
            }
        }
    }
}

impl Smoothed {
    /// The field of a channel, with [`weights`] of `sigma` and `sigmas`.
    fn new(
        cpu: Cpu,
        (field, channel): (Field, usize),
        sigma: f64,
        sigmas: (f64, f64),
        (width, height): (usize, usize),
    ) -> Self {
        let [across, down] = weights(sigma, sigmas);
        let kept = height.min(down.len());
        Self {
            cpu,
            field,
            channel,
            width,
            height,
            rows: vec![vec![0.0; width]; kept],
            made: 0,
            words: vec![0; width],
            line: vec![0.0; width + across.len() - 1],
            result: vec![0.0; width],
            across,
            down,
        }
    }

    /// Reflects a position that may be outside into `length`.
    fn reflected(position: usize, radius: usize, length: usize) -> usize {
        let position = position as i64 - radius as i64;
        source(PaddingMode::Reflect, position, length as u32).expect("every position has a mirror")
    }

    /// Draws the next row and smooths it horizontally.
    fn make(&mut self) {
        self.field.row(self.cpu, self.channel, self.made, &mut self.words);
        let radius = self.across.len() / 2;
        for (at, value) in self.line.iter_mut().enumerate() {
            let word = self.words[Self::reflected(at, radius, self.width)];
            // 24 bits, which float32 represents exactly.
            *value = (word >> 8) as f32 * (2.0 / 16_777_216.0) - 1.0;
        }
        let slot = self.made % self.rows.len();
        let row = &mut self.rows[slot];
        let (line, width) = (&self.line, self.width);
        let rows = |tap: usize| &line[tap..][..width];
        run(self.cpu, Sum { weights: &self.across, rows, out: row });
        self.made += 1;
    }

    /// Computes the rows that a row of the field needs, beyond those already computed.
    fn advance(&mut self, y: usize) {
        let radius = self.down.len() / 2;
        while self.made < self.height.min(y + radius + 1) {
            self.make();
        }
    }

    /// A row of the field. Must be called for rows from top to bottom.
    fn row(&mut self, y: usize) -> &[f32] {
        let radius = self.down.len() / 2;
        self.advance(y);
        let (rows, height) = (&self.rows, self.height);
        let rows = |tap: usize| {
            let row = Self::reflected(y + tap, radius, height);
            &rows[row % rows.len()][..]
        };
        run(self.cpu, Sum { weights: &self.down, rows, out: &mut self.result });
        &self.result
    }
}

/// Red, green and blue at a position, as PyTorch's `grid_sample` with zeros outside, filled like in
/// torchvision: a mask sampled the same way determines the share of the fill.
fn bilinear(from: &Planes, (column, row): (f64, f64), fill: [u8; 3]) -> [u8; 3] {
    let (width, height) = from.size();
    let is_near = column > -1.0 && column < width as f64 && row > -1.0 && row < height as f64;
    if !is_near {
        return fill;
    }
    let (left, above) = (column.floor(), row.floor());
    let (across, down) = (column - left, row - above);
    let weights = [
        (0, 0, (1.0 - across) * (1.0 - down)),
        (1, 0, across * (1.0 - down)),
        (0, 1, (1.0 - across) * down),
        (1, 1, across * down),
    ];
    let planes = from.planes();
    let mut sums = [0.0; 3];
    let mut share = 0.0;
    for (right, below, weight) in weights {
        let (x, y) = (left as i64 + right, above as i64 + below);
        if (0..width as i64).contains(&x) && (0..height as i64).contains(&y) {
            let at = y as usize * from.stride() + x as usize;
            for (sum, plane) in sums.iter_mut().zip(planes) {
                *sum += weight * f64::from(plane[at]);
            }
            share += weight;
        }
    }
    let mut result = fill;
    for (result, sum) in result.iter_mut().zip(sums) {
        let fill = f64::from(*result);
        // The cast saturates at 0 and 255.
        *result = ((sum - fill) * share + fill).round_ties_even() as u8;
    }
    result
}

/// Red, green and blue of the nearest pixel; halves round to even.
fn nearest(from: &Planes, (column, row): (f64, f64), fill: [u8; 3]) -> [u8; 3] {
    let (width, height) = from.size();
    let (column, row) = (column.round_ties_even(), row.round_ties_even());
    let is_inside = column >= 0.0 && column < width as f64 && row >= 0.0 && row < height as f64;
    if !is_inside {
        return fill;
    }
    let at = row as usize * from.stride() + column as usize;
    from.planes().map(|plane| plane[at])
}

/// The displacement of each pixel of the result from its position in the source.
struct Displacements {
    across: Smoothed,
    down: Smoothed,
    /// Twice the displacement in pixels for a value of 1, along rows and along columns.
    alpha: (f64, f64),
}

impl Displacements {
    fn drawn(
        cpu: Cpu,
        elastic: &ElasticTransform,
        (columns, rows): (u32, u32),
        draws: &mut Draws,
    ) -> Self {
        let &ElasticTransform { alpha, sigma, .. } = elastic;
        let field = Field::drawn(draws);
        let size = (columns as usize, rows as usize);
        Self {
            across: Smoothed::new(cpu, (field, 0), sigma.0, sigma, size),
            down: Smoothed::new(cpu, (field, 1), sigma.1, sigma, size),
            alpha,
        }
    }

    /// The displacements of a row, in columns and rows. Must be called for every row from top to
    /// bottom.
    fn row(&mut self, y: usize) -> impl Iterator<Item = (f64, f64)> {
        let alpha = self.alpha;
        let fields = self.across.row(y).iter().zip(self.down.row(y));
        fields.map(move |(across, down)| {
            let across = f64::from(*across) * alpha.0 / 2.0;
            (across, f64::from(*down) * alpha.1 / 2.0)
        })
    }

    /// Skips a row.
    fn skip(&mut self, y: usize) {
        self.across.advance(y);
        self.down.advance(y);
    }
}

impl PictureOperation for ElasticTransform {
    fn size(&self, size: (u32, u32), _draws: &mut Draws) -> Option<(u32, u32)> {
        Some(size)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let Self { interpolation, fill, alpha, sigma } = *self;
        let fill = pixels.fill(fill.rgba());
        let is_nearest = pixels.is_nearest();
        if let Some(recording) = pixels.recording() {
            let key = Field::drawn(draws).key();
            let weights = [sigma.0, sigma.1].map(|own| {
                weights(own, sigma).map(|weights| {
                    let bits = weights.iter().map(|weight| weight.to_bits().cast_signed());
                    (recording.add_words(bits), weights.len() as u32)
                })
            });
            let is_nearest = interpolation == WarpInterpolation::Nearest;
            let alpha = [alpha.0, alpha.1];
            recording.push(PictureChange::Elastic { key, weights, alpha, is_nearest, fill });
            return Ok(());
        }
        let mut displacements = Displacements::drawn(pixels.cpu(), self, pixels.size(), draws);
        pixels.replace(pixels.size(), |from, y, out| {
            let [red, green, blue] = out;
            let out = red.iter_mut().zip(green).zip(blue);
            for (x, (((red, green), blue), (across, down))) in
                out.zip(displacements.row(y)).enumerate()
            {
                let position = (x as f64 + across, y as f64 + down);
                [*red, *green, *blue] = match interpolation {
                    WarpInterpolation::Nearest => nearest(from, position, fill),
                    WarpInterpolation::Bilinear | WarpInterpolation::Bicubic if is_nearest => {
                        nearest(from, position, fill)
                    }
                    WarpInterpolation::Bilinear | WarpInterpolation::Bicubic => {
                        bilinear(from, position, fill)
                    }
                };
            }
        })
    }

    /// Moves each point by the opposite of the displacement of the pixel that contains it, or of
    /// the nearest pixel.
    fn move_points(
        &self,
        size: (u32, u32),
        draws: &mut Draws,
        points: &mut Points,
    ) -> Result<(), Error> {
        if points.is_empty() {
            return Ok(());
        }
        let mut displacements = Displacements::drawn(Cpu::Portable, self, size, draws);
        let pixel = |position: f64, side: u32| (position.max(0.0) as usize).min(side as usize - 1);
        let points = points.all_mut();
        let mut by_row: Vec<usize> = (0..points.len()).collect();
        by_row.sort_by_key(|index| pixel(points[*index].1, size.1));
        let mut next = by_row.into_iter().peekable();
        for y in 0..size.1 as usize {
            let Some(index) = next.peek() else { break };
            if pixel(points[*index].1, size.1) > y {
                displacements.skip(y);
                continue;
            }
            let row: Vec<(f64, f64)> = displacements.row(y).collect();
            while let Some(index) = next.next_if(|index| pixel(points[*index].1, size.1) == y) {
                let point = &mut points[index];
                let (across, down) = row[pixel(point.0, size.0)];
                *point = (point.0 - across, point.1 - down);
            }
        }
        Ok(())
    }
}
