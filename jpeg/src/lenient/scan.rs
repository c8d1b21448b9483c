//! One damaged scan: its restart markers and the blocks of its MCUs.

use super::super::Block;
use super::super::coefficient_reader::Order;
use super::super::damaged;
use super::super::markers::{COMPONENTS_MAX, Coding};
use super::bits::{Bits, FastBits, MarkerCheckedBits, Table};
use super::blocks::{self, Band};
use super::input::Input;
use super::markers::{Markers, ScanHead};
use crate::Error;

/// Bytes per block of an MCU that must be left for libjpeg to use its fast reader.
const QUICK_BYTES: usize = 512;

/// How the blocks of a scan are coded.
#[derive(Debug, Clone, Copy)]
enum BlockCoding {
    Sequential,
    DcFirst { low: u32 },
    DcRefine { low: u32 },
    AcFirst(Band),
    AcRefine(Band),
}

/// A scan being read.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub(super) input: Input<'a>,
    pub(super) order: Order,
    kind: BlockCoding,
    /// By component of the scan.
    dc_tables: Vec<Table>,
    ac_tables: Vec<Table>,
    restart_interval: u32,
    /// MCUs up to the next restart marker.
    to_restart: u32,
    next_restart: u8,
    bits: Bits,
    /// Whether the interval has no data left.
    pub(super) is_short: bool,
    dc: [i32; COMPONENTS_MAX],
    run: u32,
}

impl<'a> Scan<'a> {
    /// The scan whose header was just read.
    pub(super) fn begin(markers: &mut Markers<'a>, head: &ScanHead) -> Result<Self, Error> {
        markers.begin_scan(head)?;
        let band = Band { first: head.first, last: head.last, low: head.low };
        let low = head.low;
        let kind = match (markers.frame.coding, head.first, head.high) {
            (Coding::Baseline | Coding::Extended, ..) => BlockCoding::Sequential,
            (Coding::Progressive, 0, 0) => BlockCoding::DcFirst { low },
            (Coding::Progressive, 0, _) => BlockCoding::DcRefine { low },
            (Coding::Progressive, _, 0) => BlockCoding::AcFirst(band),
            (Coding::Progressive, ..) => BlockCoding::AcRefine(band),
        };
        let (mut dc_tables, mut ac_tables) = (Vec::new(), Vec::new());
        for part in &head.parts {
            if matches!(kind, BlockCoding::Sequential | BlockCoding::DcFirst { .. }) {
                dc_tables.push(table(markers, 0, part.dc)?);
            }
            if matches!(
                kind,
                BlockCoding::Sequential | BlockCoding::AcFirst(_) | BlockCoding::AcRefine(_)
            ) {
                ac_tables.push(table(markers, 1, part.ac)?);
            }
        }
        let mut components = [0; COMPONENTS_MAX];
        for (index, part) in components.iter_mut().zip(&head.parts) {
            *index = part.component;
        }
        Ok(Self {
            input: markers.input,
            order: Order::of(&markers.frame, &components[..head.parts.len()]),
            kind,
            dc_tables,
            ac_tables,
            restart_interval: markers.restart_interval,
            to_restart: markers.restart_interval,
            next_restart: 0,
            bits: Bits::default(),
            is_short: false,
            dc: [0; COMPONENTS_MAX],
            run: 0,
        })
    }

    /// Whether the remaining MCUs of the scan stay unchanged.
    pub(super) fn is_over(&self) -> bool {
        self.is_short && self.restart_interval == 0
    }

    /// Reads an MCU, whose blocks hold the coefficients of earlier scans.
    pub(super) fn mcu(&mut self, into: &mut [Block]) -> Result<(), Error> {
        if self.restart_interval > 0 {
            if self.to_restart == 0 {
                self.restart();
            }
            self.to_restart -= 1;
        }
        if self.is_short {
            return Ok(());
        }
        let quick = self.restart_interval == 0
            && self.input.unread.is_none()
            && self.input.left() >= QUICK_BYTES * into.len();
        if matches!(self.kind, BlockCoding::Sequential) && quick && self.quick_mcu(into) {
            return Ok(());
        }
        let Self { input, bits, is_short, dc, run, .. } = self;
        let bits = &mut MarkerCheckedBits { input, bits, is_short };
        for (cell, block) in self.order.cells().iter().zip(into) {
            let (slot, dc) = (cell.slot, &mut dc[cell.slot]);
            match self.kind {
                BlockCoding::Sequential => {
                    let tables = (&self.dc_tables[slot], &self.ac_tables[slot]);
                    blocks::sequential(bits, tables, dc, block);
                }
                BlockCoding::DcFirst { low } => {
                    if !blocks::dc_first(bits, &self.dc_tables[slot], low, dc, block) {
                        let reason = "a DC coefficient is beyond all bounds";
                        return Err(damaged(bits.input.offset(), reason));
                    }
                }
                BlockCoding::DcRefine { low } => blocks::dc_refine(bits, low, block),
                BlockCoding::AcFirst(band) => band.first(bits, &self.ac_tables[0], run, block),
                BlockCoding::AcRefine(band) => band.refine(bits, &self.ac_tables[0], run, block),
            }
        }
        Ok(())
    }

    /// Reads an MCU of a sequential scan with the fast reader; false if it fails.
    fn quick_mcu(&mut self, into: &mut [Block]) -> bool {
        let mut dc = self.dc;
        let mut bits = FastBits { input: self.input, bits: self.bits, failed: false };
        for (cell, block) in self.order.cells().iter().zip(into) {
            let tables = (&self.dc_tables[cell.slot], &self.ac_tables[cell.slot]);
            blocks::sequential(&mut bits, tables, &mut dc[cell.slot], block);
        }
        if bits.failed {
            return false;
        }
        (self.input, self.bits, self.dc) = (bits.input, bits.bits, dc);
        true
    }

    fn restart(&mut self) {
        self.bits = Bits::default();
        self.input.pass_restart(self.next_restart);
        self.next_restart = (self.next_restart + 1) % 8;
        self.dc = [0; COMPONENTS_MAX];
        self.run = 0;
        self.to_restart = self.restart_interval;
        // There are no data before the marker.
        if self.input.unread.is_none() {
            self.is_short = false;
        }
    }
}

fn table(markers: &Markers<'_>, class: usize, number: usize) -> Result<Table, Error> {
    let spec = markers.huffman[class].get(number).copied().flatten();
    let missing = || markers.fault("a scan names a missing Huffman table");
    let spec = spec.ok_or_else(missing)?;
    let is_dc = class == 0;
    let table = Table::new(&spec).filter(|_| !is_dc || spec.symbols.iter().all(|size| *size < 16));
    table.ok_or_else(|| markers.fault("a Huffman table is invalid"))
}
