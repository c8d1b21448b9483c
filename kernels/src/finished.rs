//! A finished tensor in memory, for operations that need the positions of its elements.

use crate::picture_program::{ErasedValues, Erasure};
use crate::recording::Recording;
use crate::{Cpu, Error, Interrupt};
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout, TensorSpec};
use std::ops::Range;

/// Rows processed between two calls of `pause`.
const ROWS: usize = 16;

/// A tensor that operations change in place.
pub(crate) struct FinishedTensor<'a> {
    spec: TensorSpec,
    bytes: &'a mut [u8],
    cpu: Cpu,
    interrupt: &'a Interrupt,
    pause: &'a mut dyn FnMut(),
    /// The recording, if changes are recorded; there are no bytes then.
    recording: Option<Recording<'a>>,
}

/// A rectangle of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) top: usize,
    pub(crate) left: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
}

impl Rectangle {
    /// The erasure of this rectangle.
    pub(crate) fn erased(self, values: ErasedValues) -> Erasure {
        let Self { top, left, height, width } = self;
        let [top, left, height, width] = [top, left, height, width].map(|side| side as u32);
        Erasure { top, left, height, width, values }
    }
}

impl<'a> FinishedTensor<'a> {
    /// A tensor of `spec.bytes()` bytes.
    pub(crate) fn new(
        spec: TensorSpec,
        bytes: &'a mut [u8],
        cpu: Cpu,
        interrupt: &'a Interrupt,
        pause: &'a mut dyn FnMut(),
    ) -> Self {
        assert_eq!(bytes.len(), spec.bytes(), "the memory has the tensor's bytes");
        Self { spec, bytes, cpu, interrupt, pause, recording: None }
    }

    /// A tensor without data, on which operations are recorded.
    pub(crate) fn recorded(
        spec: TensorSpec,
        recording: Recording<'a>,
        cpu: Cpu,
        interrupt: &'a Interrupt,
        pause: &'a mut dyn FnMut(),
    ) -> Self {
        Self { spec, bytes: &mut [], cpu, interrupt, pause, recording: Some(recording) }
    }

    /// The recording, if changes are recorded.
    pub(crate) fn recording(&mut self) -> Option<&mut Recording<'a>> {
        self.recording.as_mut()
    }

    /// The bits of the nearest value of the element type.
    fn bits(&self, value: f32) -> u32 {
        match self.spec.dtype {
            // The casts are exact for the integers that a recipe can contain.
            Dtype::Uint8 => u32::from(value as u8),
            Dtype::Uint16 => u32::from(value as u16),
            Dtype::Int32 => (value as i32).cast_unsigned(),
            Dtype::Float16 => u32::from(f16::from_f32(value).to_bits()),
            Dtype::Float32 => value.to_bits(),
        }
    }

    /// Fills a rectangle with one value per channel.
    pub(crate) fn fill(&mut self, rectangle: Rectangle, values: &[f32]) -> Result<(), Error> {
        let bits = [0, 1, 2]
            .map(|channel: usize| values.get(channel).map_or(0, |value| self.bits(*value)));
        if let Some(recording) = &mut self.recording {
            recording.erase(rectangle.erased(ErasedValues::Channels(bits)));
            return Ok(());
        }
        let Rectangle { top, left, height, width } = rectangle;
        if height == 0 || width == 0 {
            return Ok(());
        }
        for (channel, value) in values.iter().enumerate() {
            self.set(channel, top, left..left + width, |_| *value)?;
        }
        // The other rows are copies of the first.
        for y in top + 1..top + height {
            self.poll(y)?;
            for channel in 0..values.len() {
                let Some((from, bytes)) = self.piece(channel, top, left..left + width) else {
                    continue;
                };
                let to = from + (y - top) * self.row_bytes();
                self.bytes.copy_within(from..from + bytes, to);
            }
        }
        Ok(())
    }

    /// Fails if the sample is interrupted, and pauses every few rows.
    fn poll(&mut self, y: usize) -> Result<(), Error> {
        self.interrupt.check()?;
        if y.is_multiple_of(ROWS) {
            (self.pause)();
        }
        Ok(())
    }

    /// Bytes from a row of a channel to the next.
    fn row_bytes(&self) -> usize {
        let TensorSpec { width, channels, dtype, layout, .. } = self.spec;
        let channels = match layout {
            Layout::Nhwc | Layout::Nt | Layout::Ntc => channels as usize,
            Layout::Nchw | Layout::Nct => 1,
        };
        width as usize * channels * dtype.bytes()
    }

    /// First byte and number of bytes of these columns of a row of a channel. Where all channels of
    /// a pixel are together, the first channel has the bytes of all, and the others have none.
    fn piece(&self, channel: usize, y: usize, columns: Range<usize>) -> Option<(usize, usize)> {
        let TensorSpec { height, width, channels, dtype, layout } = self.spec;
        let row = y * self.row_bytes();
        let (plane, pixel) = match layout {
            Layout::Nhwc | Layout::Nt | Layout::Ntc if channel > 0 => return None,
            Layout::Nhwc | Layout::Nt | Layout::Ntc => (0, channels as usize * dtype.bytes()),
            Layout::Nchw | Layout::Nct => {
                (channel * height as usize * width as usize * dtype.bytes(), dtype.bytes())
            }
        };
        Some((plane + row + columns.start * pixel, columns.len() * pixel))
    }

    /// The instruction set for operations on it.
    pub(crate) fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Shape, type and layout.
    pub(crate) fn spec(&self) -> TensorSpec {
        self.spec
    }

    /// Sets the elements in a range of columns of a row of a channel, each to the nearest value of
    /// the element type; `value` receives the index within the range. Fails if the sample is
    /// interrupted.
    pub(crate) fn set(
        &mut self,
        channel: usize,
        y: usize,
        columns: Range<usize>,
        mut value: impl FnMut(usize) -> f32,
    ) -> Result<(), Error> {
        if let Some(recording) = &mut self.recording {
            recording.refuse();
            return Ok(());
        }
        self.poll(y)?;
        let TensorSpec { height, width, channels, dtype, layout } = self.spec;
        let [height, width, channels] = [height, width, channels].map(|side| side as usize);
        let (first, step) = match layout {
            Layout::Nhwc | Layout::Nt | Layout::Ntc => (y * width * channels + channel, channels),
            Layout::Nchw | Layout::Nct => ((channel * height + y) * width, 1),
        };
        for (index, x) in columns.enumerate() {
            let element = first + x * step;
            match dtype {
                // The cast is exact for the integers that a recipe can contain.
                Dtype::Uint8 => self.bytes[element] = value(index) as u8,
                Dtype::Uint16 => {
                    let bytes = (value(index) as u16).to_le_bytes();
                    self.bytes[2 * element..][..2].copy_from_slice(&bytes);
                }
                Dtype::Int32 => {
                    let bytes = (value(index) as i32).to_le_bytes();
                    self.bytes[4 * element..][..4].copy_from_slice(&bytes);
                }
                Dtype::Float16 => {
                    let bytes = f16::from_f32(value(index)).to_le_bytes();
                    self.bytes[2 * element..][..2].copy_from_slice(&bytes);
                }
                Dtype::Float32 => {
                    let bytes = value(index).to_le_bytes();
                    self.bytes[4 * element..][..4].copy_from_slice(&bytes);
                }
            }
        }
        Ok(())
    }
}
