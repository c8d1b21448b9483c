//! The scan to write, and why writing it can fail.

use crate::Error;
use crate::coefficient_reader::Order;
use crate::markers::{Coding, Frame, Scan};

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
pub(crate) struct ScanPlan {
    pub(crate) parts: Vec<Part>,
    pub(crate) progressive: bool,
    /// As in [`Scan`].
    pub(crate) first: u8,
    pub(crate) last: u8,
    pub(crate) high: u8,
    pub(crate) low: u8,
    pub(crate) restart_interval: u32,
}

impl ScanPlan {
    /// A scan of a file, whose header segment has this content.
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

/// A coefficient for which the coding has no symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfRange;

/// Why a scan was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewriteFailure {
    OutOfRange,
    Interrupted,
}

impl From<OutOfRange> for RewriteFailure {
    fn from(_: OutOfRange) -> Self {
        Self::OutOfRange
    }
}

impl RewriteFailure {
    /// Converts to [`Error`]; `out_of_range` is the message for a coefficient out of range.
    pub(crate) fn or(self, out_of_range: Error) -> Error {
        match self {
            Self::OutOfRange => out_of_range,
            Self::Interrupted => Error::Interrupted,
        }
    }
}
