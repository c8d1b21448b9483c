//! The common parts of the block encoders: sizes of values and DC predictions.

use super::plan::OutOfRange;
use super::sink::Sink;
use crate::coefficient_reader::{Cell, DC_SIZE_MAX};
use crate::markers::{COMPONENTS_MAX, NATURAL};

/// Encodes the blocks of a scan.
pub(crate) trait WriteBlock<S: Sink> {
    /// Sends a block to the sink, or defers it.
    fn write(&mut self, sink: &mut S, cell: &Cell, block: &[i16; 64]) -> Result<(), OutOfRange>;

    /// Sends what was deferred and resets the state at the end of an interval.
    fn end_interval(&mut self, sink: &mut S);
}

/// Size category and value bits of a coefficient (T.81, F.1.2.1).
#[inline(always)]
pub(crate) fn size_and_bits(value: i32) -> (u32, u32) {
    let size = 32 - value.unsigned_abs().leading_zeros();
    let bits = (value + (value >> 31)) as u32;
    (size, bits & ((1 << size) - 1))
}

/// The coefficient at a zigzag position.
#[inline(always)]
pub(super) fn at(block: &[i16; 64], position: u32) -> i16 {
    block[usize::from(NATURAL[position as usize & 63] & 63)]
}

/// DC predictions of a scan.
#[derive(Debug)]
pub(crate) struct Predictions([i32; COMPONENTS_MAX]);

impl Predictions {
    pub(crate) fn new() -> Self {
        Self([0; COMPONENTS_MAX])
    }

    /// Sends the difference of a DC value to the one before.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        sink: &mut impl Sink,
        slot: usize,
        table: usize,
        value: i32,
    ) -> Result<(), OutOfRange> {
        let (size, bits) = size_and_bits(value - self.0[slot]);
        self.0[slot] = value;
        if size > DC_SIZE_MAX {
            return Err(OutOfRange);
        }
        sink.symbol(table, size as u8, bits, size);
        Ok(())
    }
}
