//! A whole picture in memory whose elements have 16 bits or are floats, for operations on its
//! colours: the numbers of a channel at a time, or of a row of each.

use crate::wide::{Channel, Layers};
use crate::{Error, Interrupt};
use meetpoint_format::recipe::{DecodeMode, Dtype};

/// Rows between two polls of the interrupt and two pauses.
const ROWS: usize = 16;

/// A picture of elements, to be changed.
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

    /// A number that was computed, as an element: integers are truncated.
    pub(crate) fn stored(&self, number: f32) -> f32 {
        if self.is_float() { number } else { number.trunc() }
    }

    /// A number within the bounds, as an element.
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

    /// Changes the numbers of each row, all channels of it.
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

    /// Changes each number by itself.
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
