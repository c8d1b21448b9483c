//! A whole picture in memory with 16-bit or float elements, for operations on its colours, which
//! process one channel, or one row of every channel, at a time.

use crate::wide::{Channel, Layers};
use crate::{Error, Interrupt};
use meetpoint_format::recipe::{DecodeMode, Dtype};

/// Rows between two polls of the interrupt and two pauses.
const ROWS: usize = 16;

/// A picture of elements that can be changed.
pub(crate) struct Elements<'a> {
    pub(crate) layers: &'a mut Layers,
    pub(crate) mode: DecodeMode,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) pause: &'a mut dyn FnMut(),
}

impl Elements<'_> {
    /// The largest value: 1 for floats.
    pub(crate) fn bound(&self) -> f32 {
        self.mode.dtype().largest().map_or(1.0, |largest| largest as f32)
    }

    pub(crate) fn is_float(&self) -> bool {
        self.mode.dtype() == Dtype::Float32
    }

    pub(crate) fn channels(&self) -> usize {
        self.mode.channels() as usize
    }

    /// Converts a computed number to an element; integers are truncated.
    pub(crate) fn stored(&self, number: f32) -> f32 {
        if self.is_float() { number } else { number.trunc() }
    }

    /// Clamps a number to the bounds and converts it to an element.
    pub(crate) fn clamped(&self, number: f32) -> f32 {
        self.stored(number.clamp(0.0, self.bound()))
    }

    pub(crate) fn poll(&mut self, y: usize) -> Result<(), Error> {
        if y.is_multiple_of(ROWS) {
            self.interrupt.check()?;
            (self.pause)();
        }
        Ok(())
    }

    /// Changes the numbers of each row, with all its channels.
    pub(crate) fn each_row(
        &mut self,
        mut change: impl FnMut(&Self, &mut [Vec<f32>]),
    ) -> Result<(), Error> {
        let (width, height) = self.layers.size();
        let mut rows = vec![vec![0.0; width]; self.channels()];
        for y in 0..height {
            self.poll(y)?;
            for (index, row) in rows.iter_mut().enumerate() {
                self.layers.numbers(Channel::of(self.mode, index), y, row);
            }
            change(self, &mut rows);
            for (index, row) in rows.iter().enumerate() {
                self.layers.set_numbers(Channel::of(self.mode, index), y, row);
            }
        }
        Ok(())
    }

    /// Changes each number separately.
    pub(crate) fn each(&mut self, change: impl Fn(&Self, f32) -> f32) -> Result<(), Error> {
        self.each_row(|picture, rows| {
            for number in rows.iter_mut().flatten() {
                *number = change(picture, *number);
            }
        })
    }

    /// The numbers of a channel, row by row.
    pub(crate) fn channel(&mut self, channel: usize) -> Result<Vec<f32>, Error> {
        let (width, height) = self.layers.size();
        let mut numbers = vec![0.0; width * height];
        for (y, row) in numbers.chunks_exact_mut(width.max(1)).enumerate() {
            self.poll(y)?;
            self.layers.numbers(Channel::of(self.mode, channel), y, row);
        }
        Ok(numbers)
    }
}
