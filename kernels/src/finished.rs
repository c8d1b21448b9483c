//! A finished tensor in memory, for operations that need the positions of its elements.

use crate::{Cpu, Error, Interrupt};
use half::f16;
use meetpoint_format::recipe::{Dtype, Layout, TensorSpec};
use std::ops::Range;

/// Rows between two pauses.
const ROWS: usize = 16;

/// A tensor that operations change in place.
pub(crate) struct FinishedTensor<'a> {
    spec: TensorSpec,
    bytes: &'a mut [u8],
    cpu: Cpu,
    interrupt: &'a Interrupt,
    pause: &'a mut dyn FnMut(),
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
        Self { spec, bytes, cpu, interrupt, pause }
    }

    /// The instruction set for operations on it.
    pub(crate) fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Shape, type and layout.
    pub(crate) fn spec(&self) -> TensorSpec {
        self.spec
    }

    /// Sets the elements of some columns of a row of a channel, each to the nearest value of the
    /// element type; `value` gets the column's position among them. Fails when the sample is
    /// interrupted.
    pub(crate) fn set(
        &mut self,
        channel: usize,
        y: usize,
        columns: Range<usize>,
        mut value: impl FnMut(usize) -> f32,
    ) -> Result<(), Error> {
        self.interrupt.check()?;
        if y.is_multiple_of(ROWS) {
            (self.pause)();
        }
        let TensorSpec { height, width, channels, dtype, layout } = self.spec;
        let [height, width, channels] = [height, width, channels].map(|side| side as usize);
        let (first, step) = match layout {
            Layout::Nhwc | Layout::Nt | Layout::Ntc => (y * width * channels + channel, channels),
            Layout::Nchw | Layout::Nct => ((channel * height + y) * width, 1),
        };
        for (index, x) in columns.enumerate() {
            let element = first + x * step;
            match dtype {
                // The cast is exact for the whole numbers that a recipe may hold.
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
