//! Turns the blocks of a scan into symbols, sequential ones here (T.81, F.1.2).

use super::present::present;
use super::progressive::{AcFirst, AcRefine, DcFirst, DcRefine};
use super::sink::Sink;
use crate::markers::{COMPONENTS_MAX, Coding, Frame, NATURAL, Scan};
use crate::whole::{AC_SIZE_MAX, Cell, DC_SIZE_MAX, Order};
use crate::{CoefficientPlane, Coefficients};
use crate::{Error, Interrupt};

/// A component's part in a scan to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Part {
    /// Index among the components of the frame.
    pub(crate) component: usize,
    /// Destination of its DC table, 0..=3.
    pub(crate) dc: usize,
    /// Destination of its AC table, 0..=3.
    pub(crate) ac: usize,
}

/// A scan to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) parts: Vec<Part>,
    pub(crate) progressive: bool,
    /// As in [`Scan`].
    pub(crate) first: u8,
    pub(crate) last: u8,
    pub(crate) high: u8,
    pub(crate) low: u8,
    pub(crate) restart_interval: u32,
}

impl Plan {
    /// A scan as it is in a file, whose header segment has this content.
    pub(crate) fn of(scan: &Scan, content: &[u8], coding: Coding) -> Self {
        let pairs = content.get(1..).unwrap_or(&[]).chunks_exact(2);
        let parts = scan.components().iter().zip(pairs).map(|(part, pair)| Part {
            component: part.component,
            dc: usize::from(pair[1] >> 4) & 3,
            ac: usize::from(pair[1] & 15) & 3,
        });
        Self {
            parts: parts.collect(),
            progressive: coding == Coding::Progressive,
            first: scan.first,
            last: scan.last,
            high: scan.high,
            low: scan.low,
            restart_interval: scan.restart_interval,
        }
    }

    /// The order of its blocks.
    pub(crate) fn order(&self, frame: &Frame) -> Order {
        let components: Vec<usize> = self.parts.iter().map(|part| part.component).collect();
        Order::of(frame, &components)
    }

    /// The tables that it needs: indices for [`Sink::symbol`], in the order libjpeg writes them.
    pub(crate) fn tables(&self) -> Vec<usize> {
        let mut tables = Vec::new();
        for part in &self.parts {
            let dc = (self.first == 0 && self.high == 0).then_some(part.dc);
            let ac = (self.last > 0).then_some(4 + part.ac);
            for table in dc.into_iter().chain(ac) {
                if !tables.contains(&table) {
                    tables.push(table);
                }
            }
        }
        tables
    }
}

/// A coefficient that the coding has no symbol for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfRange;

/// Why a scan was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unwritten {
    OutOfRange,
    Interrupted,
}

impl From<OutOfRange> for Unwritten {
    fn from(_: OutOfRange) -> Self {
        Self::OutOfRange
    }
}

impl Unwritten {
    /// The error, where `out_of_range` is that of a coefficient out of range.
    pub(crate) fn or(self, out_of_range: Error) -> Error {
        match self {
            Self::OutOfRange => out_of_range,
            Self::Interrupted => Error::Interrupted,
        }
    }
}

/// Sends the symbols of a scan to a sink. Polls the interrupt in every row of MCUs.
pub(crate) fn write_scan(
    plan: &Plan,
    frame: &Frame,
    coefficients: &Coefficients,
    sink: &mut impl Sink,
    interrupt: &Interrupt,
) -> Result<(), Unwritten> {
    let from = (plan, frame, &coefficients.planes[..], interrupt);
    match (plan.progressive, plan.first, plan.high) {
        (false, ..) => walk(from, sink, &mut Sequential::new(plan)),
        (true, 0, 0) => walk(from, sink, &mut DcFirst::new(plan)),
        (true, 0, _) => walk(from, sink, &mut DcRefine::new(plan)),
        (true, _, 0) => walk(from, sink, &mut AcFirst::new(plan)),
        (true, ..) => walk(from, sink, &mut AcRefine::new(plan)),
    }
}

/// A way to write the blocks of a scan.
pub(crate) trait WriteBlock<S: Sink> {
    /// Sends a block to the sink, or keeps it back for a later one.
    fn write(&mut self, sink: &mut S, cell: &Cell, block: &[i16; 64]) -> Result<(), OutOfRange>;

    /// Sends what was kept back and forgets everything, as an interval ends.
    fn end_interval(&mut self, sink: &mut S);
}

fn walk<S: Sink>(
    (plan, frame, planes, interrupt): (&Plan, &Frame, &[CoefficientPlane], &Interrupt),
    sink: &mut S,
    blocks: &mut impl WriteBlock<S>,
) -> Result<(), Unwritten> {
    let order = plan.order(frame);
    let interval = match plan.restart_interval {
        0 => order.mcus(),
        interval => interval as usize,
    };
    let intervals = order.mcus().div_ceil(interval);
    let (mut left, mut ended) = (interval, 0);
    for y in 0..order.mcus_high {
        if interrupt.is_raised() {
            return Err(Unwritten::Interrupted);
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

/// Number of bits of a magnitude and the bits that tell the value (T.81, F.1.2.1).
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

/// Blocks whole.
struct Sequential<'a> {
    parts: &'a [Part],
    predictions: Predictions,
}

impl<'a> Sequential<'a> {
    fn new(plan: &'a Plan) -> Self {
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
