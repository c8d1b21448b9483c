//! Turns the blocks of progressive scans into symbols (T.81, G.1.2).
//!
//! Runs of blocks are as long as they can be, as libjpeg writes them, which bounds them by 32,767
//! blocks and by the number of correction bits that wait for the end of a run.

use super::block::{Predictions, WriteBlock, at, size_and_bits};
use super::plan::{OutOfRange, Part, ScanPlan};
use super::present;
use super::sink::Sink;
use crate::coefficient_reader::{AC_SIZE_MAX, Cell};

/// Longest run of blocks.
const RUN_MAX: u32 = 0x7fff;

/// A run ends with more pending correction bits than this: libjpeg reserves room for one block in
/// 1,000.
const WAITING_MAX: usize = 1000 - 64 + 1;

/// The upper bits of DC coefficients.
pub(crate) struct DcFirst<'a> {
    parts: &'a [Part],
    low: u8,
    predictions: Predictions,
}

impl<'a> DcFirst<'a> {
    pub(crate) fn new(plan: &'a ScanPlan) -> Self {
        Self { parts: &plan.parts, low: plan.low, predictions: Predictions::new() }
    }
}

impl<S: Sink> WriteBlock<S> for DcFirst<'_> {
    #[inline(always)]
    fn write(&mut self, sink: &mut S, cell: &Cell, block: &[i16; 64]) -> Result<(), OutOfRange> {
        let value = i32::from(block[0] >> self.low);
        self.predictions.write(sink, cell.slot, self.parts[cell.slot].dc, value)
    }

    fn end_interval(&mut self, _sink: &mut S) {
        self.predictions = Predictions::new();
    }
}

/// One more bit of DC coefficients.
pub(crate) struct DcRefine {
    low: u8,
}

impl DcRefine {
    pub(crate) fn new(plan: &ScanPlan) -> Self {
        Self { low: plan.low }
    }
}

impl<S: Sink> WriteBlock<S> for DcRefine {
    #[inline(always)]
    fn write(&mut self, sink: &mut S, _cell: &Cell, block: &[i16; 64]) -> Result<(), OutOfRange> {
        sink.bit(block[0] >> self.low & 1 == 1);
        Ok(())
    }

    fn end_interval(&mut self, _sink: &mut S) {}
}

/// The band of coefficients of a scan and the pending run of blocks.
struct Band {
    table: usize,
    first: u32,
    last: u32,
    /// Bits of the positions in the band.
    positions: u64,
    low: u8,
    run: u32,
    /// Correction bits of the blocks of the run.
    waiting: Vec<bool>,
}

impl Band {
    fn new(plan: &ScanPlan) -> Self {
        Self {
            table: 4 + plan.parts[0].ac,
            first: u32::from(plan.first),
            last: u32::from(plan.last),
            positions: present::band(plan.first, plan.last),
            low: plan.low,
            run: 0,
            waiting: Vec::new(),
        }
    }

    /// Sends the run, if there is one, and the correction bits of its blocks.
    fn end_run(&mut self, sink: &mut impl Sink) {
        if self.run > 0 {
            let size = self.run.ilog2();
            sink.symbol(self.table, (size << 4) as u8, self.run ^ 1 << size, size);
            self.run = 0;
            self.waiting.drain(..).for_each(|bit| sink.bit(bit));
        }
    }
}

/// The upper bits of AC coefficients.
pub(crate) struct AcFirst(Band);

impl AcFirst {
    pub(crate) fn new(plan: &ScanPlan) -> Self {
        Self(Band::new(plan))
    }
}

impl<S: Sink> WriteBlock<S> for AcFirst {
    #[inline(always)]
    fn write(&mut self, sink: &mut S, _cell: &Cell, block: &[i16; 64]) -> Result<(), OutOfRange> {
        let band = &mut self.0;
        let mut present = present::present(block) & band.positions;
        let mut next = band.first;
        while present != 0 {
            let position = present.trailing_zeros();
            present &= present - 1;
            let value = i32::from(at(block, position));
            // The magnitude is shifted, so values are rounded towards zero.
            let value = (value.abs() >> band.low) * value.signum();
            if value == 0 {
                continue;
            }
            let mut zeros = position - next;
            next = position + 1;
            band.end_run(sink);
            while zeros > 15 {
                sink.symbol(band.table, 0xf0, 0, 0);
                zeros -= 16;
            }
            let (size, bits) = size_and_bits(value);
            if size > AC_SIZE_MAX {
                return Err(OutOfRange);
            }
            sink.symbol(band.table, (zeros << 4 | size) as u8, bits, size);
        }
        if next <= band.last {
            band.run += 1;
            if band.run == RUN_MAX {
                band.end_run(sink);
            }
        }
        Ok(())
    }

    fn end_interval(&mut self, sink: &mut S) {
        self.0.end_run(sink);
    }
}

/// One more bit of AC coefficients, and those that this bit makes differ from zero.
pub(crate) struct AcRefine {
    band: Band,
    /// Correction bits since the last symbol of the block.
    corrections: Vec<bool>,
}

impl AcRefine {
    pub(crate) fn new(plan: &ScanPlan) -> Self {
        Self { band: Band::new(plan), corrections: Vec::new() }
    }
}

impl<S: Sink> WriteBlock<S> for AcRefine {
    fn write(&mut self, sink: &mut S, _cell: &Cell, block: &[i16; 64]) -> Result<(), OutOfRange> {
        let Self { band, corrections } = self;
        let low = band.low;
        let magnitude = |position: u32| at(block, position).unsigned_abs() >> low;
        // Those that are not zero in this scan, and the last of them that was zero before: runs of
        // 16 zeros are sent only in front of it.
        let (mut present, mut candidates) = (0, present::present(block) & band.positions);
        let mut last_coming = None;
        while candidates != 0 {
            let position = candidates.trailing_zeros();
            candidates &= candidates - 1;
            let magnitude = magnitude(position);
            present |= u64::from(magnitude > 0) << position;
            if magnitude == 1 {
                last_coming = Some(position);
            }
        }
        let (mut zeros, mut next) = (0, band.first);
        while present != 0 {
            let position = present.trailing_zeros();
            present &= present - 1;
            let magnitude = magnitude(position);
            zeros += position - next;
            next = position + 1;
            while zeros > 15 && last_coming.is_some_and(|last| position <= last) {
                band.end_run(sink);
                sink.symbol(band.table, 0xf0, 0, 0);
                corrections.drain(..).for_each(|bit| sink.bit(bit));
                zeros -= 16;
            }
            if magnitude > 1 {
                corrections.push(magnitude & 1 == 1);
                continue;
            }
            band.end_run(sink);
            let positive = at(block, position) > 0;
            sink.symbol(band.table, (zeros << 4 | 1) as u8, u32::from(positive), 1);
            corrections.drain(..).for_each(|bit| sink.bit(bit));
            zeros = 0;
        }
        zeros += band.last + 1 - next;
        if zeros > 0 || !corrections.is_empty() {
            band.run += 1;
            band.waiting.append(corrections);
            if band.run == RUN_MAX || band.waiting.len() > WAITING_MAX {
                band.end_run(sink);
            }
        }
        Ok(())
    }

    fn end_interval(&mut self, sink: &mut S) {
        self.band.end_run(sink);
    }
}
