//! Sound, spectrograms and signals: values over time, prepared by a sequence of operations.
//!
//! In reading order: [`Series`] (the values), [`SeriesDecoder`] and [`SeriesOperation`] (what
//! operations implement), [`SeriesSource`] and [`SeriesChange`] (their executable forms, with
//! tables and memory), `compiled` (kernels for several instruction sets). `sample` applies recipes
//! of such operations.

mod compiled;

use crate::{Cpu, Error};
use meetpoint_format::random::Draws;
use std::fmt::Debug;

pub(crate) use compiled::{Kernel, execute};

/// Called between short pieces of work; an error ends the work.
pub(crate) type Pause<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

/// Axes of values over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SeriesShape {
    pub(crate) channels: usize,
    /// Rows per channel: the frequencies of a spectrogram, otherwise 1.
    pub(crate) rows: usize,
    /// Number of time steps.
    pub(crate) length: usize,
}

impl SeriesShape {
    /// Number of values.
    pub(crate) fn values(self) -> usize {
        self.channels * self.rows * self.length
    }

    /// Bytes of the values.
    pub(crate) fn bytes(self) -> u64 {
        4 * self.channels as u64 * self.rows as u64 * self.length as u64
    }
}

/// Values over time: for each channel and row, all time steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Series {
    pub(crate) shape: SeriesShape,
    /// `shape.values()` values.
    pub(crate) values: Vec<f32>,
}

/// An operation that decodes a file to such values.
pub(crate) trait SeriesDecoder: Debug + Send + Sync {
    /// Samples per second of the result, if it is sound.
    fn sample_rate(&self) -> Option<u32>;

    /// The shape of the result, and the bytes of additional memory. A file with a false header can
    /// exceed the shape only up to a limit.
    fn measure(&self, encoded: &[u8]) -> Result<(SeriesShape, u64), Error>;

    /// Creates the executable operation, with code for an instruction set.
    fn start(&self, cpu: Cpu) -> Box<dyn SeriesSource>;
}

/// A decoder with its tables and memory.
pub(crate) trait SeriesSource: Debug + Send + Sync {
    /// Decodes a file.
    fn decode(&mut self, encoded: &[u8], to: &mut Series, pause: Pause<'_>) -> Result<(), Error>;
}

/// An operation on such values.
pub(crate) trait SeriesOperation: Debug + Send + Sync {
    /// Creates the executable operation for sound with a sample rate, with code for an instruction
    /// set.
    fn start(&self, sample_rate: Option<u32>, cpu: Cpu) -> Box<dyn SeriesChange>;
}

/// An operation with its tables and scratch memory.
pub(crate) trait SeriesChange: Debug + Send + Sync {
    /// The shape of the result; an error if values of this shape are not supported.
    fn shape(&self, input: SeriesShape) -> Result<SeriesShape, Error>;

    /// Changes the values, which `shape` has accepted. `draws` is at its beginning. `next` is
    /// scratch memory for a result.
    fn apply(
        &mut self,
        draws: &mut Draws,
        values: &mut Series,
        next: &mut Series,
        pause: Pause<'_>,
    ) -> Result<(), Error>;
}
