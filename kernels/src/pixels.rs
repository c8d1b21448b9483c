//! A whole picture in memory, for operations that need all channels of a pixel, or all pixels.

use crate::planes::Planes;
use crate::{Error, Interrupt};

/// Rows between two polls of the interrupt and two pauses.
const ROWS: usize = 16;

/// A picture that operations on pixels change in place.
///
/// A grey picture has three equal channels. Only the first goes into a tensor of one channel.
pub(crate) struct Pixels<'a> {
    picture: &'a mut Planes,
    interrupt: &'a Interrupt,
    pause: &'a mut dyn FnMut(),
}

impl<'a> Pixels<'a> {
    pub(crate) fn new(
        picture: &'a mut Planes,
        interrupt: &'a Interrupt,
        pause: &'a mut dyn FnMut(),
    ) -> Self {
        Self { picture, interrupt, pause }
    }

    /// Number of pixels.
    pub(crate) fn count(&self) -> u64 {
        let (width, height) = self.picture.size();
        width as u64 * height as u64
    }

    /// Passes each row to a function, from top to bottom: red, green and blue, equally long. Fails
    /// when the sample is interrupted.
    pub(crate) fn each_row(&mut self, mut change: impl FnMut([&mut [u8]; 3])) -> Result<(), Error> {
        let (_, height) = self.picture.size();
        for y in 0..height {
            if y % ROWS == 0 {
                self.interrupt.check()?;
                (self.pause)();
            }
            change(self.picture.pixels_mut(y));
        }
        Ok(())
    }
}
