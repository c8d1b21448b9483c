//! libjpeg's estimate for scans that a progressive file lacks: the lowest frequencies of a block
//! follow from the mean values of the blocks around it (T.81 K.8; jdcoefct.c, `smoothing_ok` and
//! `decompress_smooth_data`).

use super::super::markers::{COMPONENTS_MAX, Coding};
use super::super::{Block, CoefficientPlane, Coefficients, QuantTable};
use super::markers::{Markers, ScanHead};
use crate::{Error, Interrupt};

/// Maximum number of estimated zigzag positions: DC and nine others.
const COUNT: usize = 10;

/// Natural-order indices of those positions.
const NATURAL: [usize; COUNT] = [0, 1, 8, 16, 9, 2, 3, 10, 17, 24];

/// Weights of the 5 x 5 DC values.
type Weights = [[i32; 5]; 5];

/// By position, where some AC coefficients are present; the last four and DC stay.
#[rustfmt::skip]
const SOME: [Weights; 6] = [
    [[0; 5]; 5],
    [[0; 5], [0; 5], [-7, 50, 0, -50, 7], [0; 5], [0; 5]],
    [[0, 0, -7, 0, 0], [0, 0, 50, 0, 0], [0; 5], [0, 0, -50, 0, 0], [0, 0, 7, 0, 0]],
    [[0, 0, -1, 0, 0], [0, 0, 13, 0, 0], [0, 0, -24, 0, 0], [0, 0, 13, 0, 0], [0, 0, -1, 0, 0]],
    [[0, -1, 0, 1, 0], [-1, 10, 0, -10, 1], [0; 5], [1, -10, 0, 10, -1], [0, 1, 0, -1, 0]],
    [[0; 5], [0; 5], [-1, 13, -24, 13, -1], [0; 5], [0; 5]],
];

/// By position, if no AC coefficient is present.
#[rustfmt::skip]
const NONE: [Weights; COUNT] = [
    [[-2, -6, -8, -6, -2], [-6, 6, 42, 6, -6], [-8, 42, 152, 42, -8], [-6, 6, 42, 6, -6],
        [-2, -6, -8, -6, -2]],
    [[-1, -1, 0, 1, 1], [-3, 13, 0, -13, 3], [-3, 38, 0, -38, 3], [-3, 13, 0, -13, 3],
        [-1, -1, 0, 1, 1]],
    [[-1, -3, -3, -3, -1], [-1, 13, 38, 13, -1], [0; 5], [1, -13, -38, -13, 1],
        [1, 3, 3, 3, 1]],
    [[0, 0, 1, 0, 0], [0, 2, 7, 2, 0], [0, -5, -14, -5, 0], [0, 2, 7, 2, 0], [0, 0, 1, 0, 0]],
    [[-1, 0, 0, 0, 1], [0, 9, 0, -9, 0], [0; 5], [0, -9, 0, 9, 0], [1, 0, 0, 0, -1]],
    [[0; 5], [0, 2, -5, 2, 0], [1, 7, -14, 7, 1], [0, 2, -5, 2, 0], [0; 5]],
    [[0; 5], [0, 1, 0, -1, 0], [0, 2, 0, -2, 0], [0, 1, 0, -1, 0], [0; 5]],
    [[0; 5], [0, 1, -3, 1, 0], [0; 5], [0, -1, 3, -1, 0], [0; 5]],
    [[0; 5], [0, 1, 0, -1, 0], [0, -3, 0, 3, 0], [0, 1, 0, -1, 0], [0; 5]],
    [[0; 5], [0, 1, 2, 1, 0], [0; 5], [0, -1, -2, -1, 0], [0; 5]],
];

/// The lowest bit of a coefficient that is present; -1 for none.
type LowestBit = [i32; COUNT];

/// The progress of the scans of a progressive file.
#[derive(Debug)]
pub(super) struct Progress {
    now: [LowestBit; COMPONENTS_MAX],
    /// The same as it was before the last scan of a component.
    before: [LowestBit; COMPONENTS_MAX],
    scans: u32,
    /// Last row of MCUs of the frame in which the last scan had data.
    pub(super) last_row: u32,
}

impl Progress {
    pub(super) fn new() -> Self {
        let [now, before] = [-1, 0].map(|bits| [[bits; COUNT]; COMPONENTS_MAX]);
        Self { now, before, scans: 0, last_row: 0 }
    }

    /// A scan begins.
    pub(super) fn begin(&mut self, head: &ScanHead) {
        self.scans += 1;
        for part in &head.parts {
            let (now, before) = (&mut self.now[part.component], &mut self.before[part.component]);
            for at in head.first.min(1)..COUNT {
                before[at] = if self.scans > 1 { now[at] } else { 0 };
            }
            for now in now.iter_mut().take(head.last + 1).skip(head.first) {
                *now = head.low as i32;
            }
        }
    }
}

/// Estimates missing coefficients in the same cases as libjpeg.
pub(super) fn smooth(
    coefficients: &mut Coefficients,
    markers: &Markers<'_>,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let frame = &markers.frame;
    let count = frame.count;
    let steps = |quant: &Option<QuantTable>| {
        quant.map(|QuantTable(values)| NATURAL.map(|index| i64::from(values[index])))
    };
    let quant = markers.quant.each_ref().map(steps);
    let all_known = quant[..count]
        .iter()
        .all(|steps| steps.is_some_and(|steps| steps.iter().all(|step| *step != 0)));
    let is_of_use = progress.now[..count].iter().any(|now| now[1..].iter().any(|bit| *bit != 0));
    let has_dc = progress.now[..count].iter().all(|now| now[0] >= 0);
    if frame.coding != Coding::Progressive || !all_known || !has_dc || !is_of_use {
        return Ok(());
    }
    for (index, plane) in coefficients.planes.iter_mut().enumerate() {
        let component = &frame.components()[index];
        let (wide, high) = component.blocks_alone();
        let before = if progress.scans > 1 { progress.before[index] } else { [-1; COUNT] };
        let plane = Smoothed {
            means: plane.blocks.iter().map(|Block(block)| block[0]).collect(),
            pitch: plane.blocks_wide as usize,
            wide: wide as usize,
            high: high as usize,
            factor: markers.factors_down[index] as usize,
            steps: quant[index].expect("checked above"),
            now: progress.now[index],
            before,
            last_good: progress.last_row as usize,
            plane,
        };
        plane.run(interrupt)?;
    }
    Ok(())
}

/// A component being smoothed.
struct Smoothed<'a> {
    plane: &'a mut CoefficientPlane,
    /// DC of all blocks as the file has them.
    means: Vec<i16>,
    pitch: usize,
    /// Blocks that are not padding.
    wide: usize,
    high: usize,
    /// Rows of blocks in a row of MCUs of the frame.
    factor: usize,
    steps: [i64; COUNT],
    now: LowestBit,
    before: LowestBit,
    last_good: usize,
}

impl Smoothed<'_> {
    fn run(mut self, interrupt: &Interrupt) -> Result<(), Error> {
        for row in 0..self.high {
            interrupt.check()?;
            let reached = if row / self.factor > self.last_good { self.before } else { self.now };
            self.row(row, &reached);
        }
        Ok(())
    }

    /// The rows around a row, two above and two below; the row itself or a nearer one where libjpeg
    /// uses no other.
    fn around(&self, row: usize) -> [usize; 5] {
        let (mcu_row, inside) = (row / self.factor, row % self.factor);
        let last = (self.high - 1) / self.factor;
        let rows = if mcu_row < last { self.factor } else { self.high - last * self.factor };
        let above = if row > 0 { row - 1 } else { row };
        let above_2 = if inside > 1 || mcu_row > 1 { row - 2 } else { above };
        let below = if inside + 1 < rows || mcu_row < last { row + 1 } else { row };
        let below_2 = if inside + 2 < rows || mcu_row + 1 < last { row + 2 } else { below };
        [above_2, above, row, below, below_2]
    }

    fn row(&mut self, row: usize, reached: &LowestBit) {
        let starts = self.around(row).map(|row| row * self.pitch);
        let mean = |column: usize| starts.map(|start| i32::from(self.means[start + column]));
        // Five columns of five DC values. At the right edge the previous values stay.
        let mut window = [mean(0); 5];
        let last = self.wide - 1;
        for column in 0..self.wide {
            if column == 0 && column < last {
                window[3] = mean(1);
            }
            if column + 1 < last {
                window[4] = mean(column + 2);
            }
            let Block(block) = &mut self.plane.blocks[row * self.pitch + column];
            fill_in(block, &window, &self.steps, reached);
            window.copy_within(1.., 0);
        }
    }
}

/// Estimates the coefficients of a block that are absent and zero.
fn fill_in(
    block: &mut [i16; 64],
    window: &[[i32; 5]; 5],
    steps: &[i64; COUNT],
    reached: &LowestBit,
) {
    let nothing_came = reached[1..].iter().all(|bit| *bit == -1);
    let weights = if nothing_came { NONE.as_slice() } else { SOME.as_slice() };
    let estimate = |at: usize| {
        let mut sum = 0;
        for (y, row) in weights[at].iter().enumerate() {
            for (x, weight) in row.iter().enumerate() {
                sum += weight * window[x][y];
            }
        }
        let all = steps[0] * i64::from(sum);
        let size = ((steps[at] << 7) + all.abs()) / (steps[at] << 8);
        // Converted to an `int` as in C.
        (size as i32, all < 0)
    };
    let signed = |size: i32, is_negative| {
        let value = if is_negative { size.wrapping_neg() } else { size };
        value as i16
    };
    for at in 1..weights.len() {
        if reached[at] == 0 || block[NATURAL[at]] != 0 {
            continue;
        }
        let (size, is_negative) = estimate(at);
        // Below the lowest bit that is present: a larger value would have been sent.
        let most = if reached[at] > 0 { (1 << reached[at]) - 1 } else { i32::MAX };
        block[NATURAL[at]] = signed(size.min(most), is_negative);
    }
    if nothing_came {
        let (size, is_negative) = estimate(0);
        block[0] = signed(size, is_negative);
    }
}
