//! Turns the blocks of a scan into symbols, sequential ones here (T.81, F.1.2).

use super::block::{Predictions, WriteBlock, at, size_and_bits};
use super::plan::{OutOfRange, Part, RewriteFailure, ScanPlan};
use super::present::present;
use super::progressive::{AcFirst, AcRefine, DcFirst, DcRefine};
use super::sink::Sink;
use crate::Interrupt;
use crate::coefficient_reader::{AC_SIZE_MAX, Cell};
use crate::markers::Frame;
use crate::{CoefficientPlane, Coefficients};

/// Sends the symbols of a scan to a sink. Polls the interrupt in every row of MCUs.
pub(crate) fn write_scan(
    plan: &ScanPlan,
    frame: &Frame,
    coefficients: &Coefficients,
    sink: &mut impl Sink,
    interrupt: &Interrupt,
) -> Result<(), RewriteFailure> {
    let from = (plan, frame, &coefficients.planes[..], interrupt);
    match (plan.progressive, plan.first, plan.high) {
        (false, ..) => walk(from, sink, &mut Sequential::new(plan)),
        (true, 0, 0) => walk(from, sink, &mut DcFirst::new(plan)),
        (true, 0, _) => walk(from, sink, &mut DcRefine::new(plan)),
        (true, _, 0) => walk(from, sink, &mut AcFirst::new(plan)),
        (true, ..) => walk(from, sink, &mut AcRefine::new(plan)),
    }
}

fn walk<S: Sink>(
    (plan, frame, planes, interrupt): (&ScanPlan, &Frame, &[CoefficientPlane], &Interrupt),
    sink: &mut S,
    blocks: &mut impl WriteBlock<S>,
) -> Result<(), RewriteFailure> {
    let order = plan.order(frame);
    let interval = match plan.restart_interval {
        0 => order.mcus(),
        interval => interval as usize,
    };
    let intervals = order.mcus().div_ceil(interval);
    let (mut left, mut ended) = (interval, 0);
    for y in 0..order.mcus_high {
        if interrupt.is_raised() {
            return Err(RewriteFailure::Interrupted);
        }
        for x in 0..order.mcus_wide {
            if left == 0 {
                blocks.end_interval(sink);
                sink.end_interval(ended, false);
                ended += 1;
                left = interval;
            }
            left -= 1;
            for cell in order.cells() {
                blocks.write(sink, cell, &planes[cell.component].blocks[cell.block(x, y)].0)?;
            }
        }
    }
    blocks.end_interval(sink);
    debug_assert_eq!(ended + 1, intervals);
    sink.end_interval(ended, true);
    Ok(())
}

/// Whole blocks.
struct Sequential<'a> {
    parts: &'a [Part],
    predictions: Predictions,
}

impl<'a> Sequential<'a> {
    fn new(plan: &'a ScanPlan) -> Self {
        Self { parts: &plan.parts, predictions: Predictions::new() }
    }
}

impl<S: Sink> WriteBlock<S> for Sequential<'_> {
    #[inline(always)]
    fn write(&mut self, sink: &mut S, cell: &Cell, block: &[i16; 64]) -> Result<(), OutOfRange> {
        let Part { dc, ac, .. } = self.parts[cell.slot];
        self.predictions.write(sink, cell.slot, dc, i32::from(block[0]))?;
        let ac = 4 + ac;
        // The DC coefficient is coded already.
        let mut present = present(block) & !1;
        let mut before = 0;
        while present != 0 {
            let position = present.trailing_zeros();
            present &= present - 1;
            let mut run = position - before - 1;
            before = position;
            while run > 15 {
                sink.symbol(ac, 0xf0, 0, 0);
                run -= 16;
            }
            let (size, bits) = size_and_bits(i32::from(at(block, position)));
            if size > AC_SIZE_MAX {
                return Err(OutOfRange);
            }
            sink.symbol(ac, (run << 4 | size) as u8, bits, size);
        }
        if before < 63 {
            sink.symbol(ac, 0, 0, 0);
        }
        Ok(())
    }

    fn end_interval(&mut self, _sink: &mut S) {
        self.predictions = Predictions::new();
    }
}
