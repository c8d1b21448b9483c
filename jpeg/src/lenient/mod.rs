//! Damaged files, whose missing data are filled in as by libjpeg.
//!
//! This follows libjpeg-turbo 2.1 step by step over everything that it warns of: data that end
//! early (the rest of an interval is grey), bits that are not a code, restart markers out of order,
//! bytes between segments, no end marker, progressive files without all of their scans. What
//! libjpeg gives up on is an error here too, except that bytes after the only scan of a file are
//! ignored. It is used for files that the main decoder has refused, and is slower.
//!
//! In reading order: `input` (bytes and markers), `markers` (segments), `bits` and `blocks` (what a
//! scan codes), `scan`, `smooth` (estimated coefficients), [`Lenient`].

mod bits;
mod blocks;
mod input;
mod markers;
mod scan;
mod smooth;

use super::coefficient_reader::zeros;
use super::colours::Colours;
use super::markers::{COMPONENTS_MAX, Coding, Frame, SCANS_MAX};
use super::rows::BlockRows;
use super::{Block, Coefficients, QuantTable, damaged};
use crate::{Error, Interrupt};
use markers::{Markers, ScanHead};
use scan::Scan;
use smooth::{Progress, smooth};
use std::ops::Range;

/// Maximum number of blocks of an MCU (T.81 B.2.3).
const UNITS_MAX: usize = 10;

/// Coefficients of a file with several scans may take this many bytes, or [`FILE_FACTOR`] times
/// those of the file, whichever is more: a damaged header can claim any size.
const COEFFICIENT_BYTES: u64 = 256 << 20;

/// Coefficients of an intact file occupy at most this many times its bytes.
const FILE_FACTOR: u64 = 1024;

/// A file, read up to its first scan.
#[derive(Debug)]
pub(super) struct Lenient<'a> {
    file: &'a [u8],
    markers: Markers<'a>,
    head: ScanHead,
}

impl<'a> Lenient<'a> {
    /// Reads the headers of a file.
    pub(super) fn open(file: &'a [u8]) -> Result<Self, Error> {
        let (markers, head) = Markers::open(file)?;
        Ok(Self { file, markers, head })
    }

    /// The frame.
    pub(super) fn frame(&self) -> &Frame {
        &self.markers.frame
    }

    /// The colour space of the components.
    pub(super) fn colours(&self) -> Colours {
        Colours::guess(&self.markers.frame, self.markers.jfif, self.markers.adobe)
    }

    /// Exif orientation, 1..=8.
    pub(super) fn orientation(&self) -> Option<u8> {
        self.markers.orientation
    }

    /// Whether the file is decoded row by row because it has only one scan.
    pub(super) fn has_one_scan(&self) -> bool {
        let frame = &self.markers.frame;
        frame.coding != Coding::Progressive && self.head.parts.len() == frame.count
    }

    /// The rows of the only scan, and the quantisation tables.
    pub(super) fn rows(
        mut self,
        interrupt: &'a Interrupt,
    ) -> Result<(LenientRows<'a>, Quantisation), Error> {
        let scan = Scan::begin(&mut self.markers, &self.head)?;
        let components = self.head.parts.iter().map(|part| part.component);
        let mut factors = [(0, 0); COMPONENTS_MAX];
        for (factors, component) in factors.iter_mut().zip(self.markers.frame.components()) {
            *factors = (component.h as usize, component.v as usize);
        }
        let mut units = arrayvec::ArrayVec::new();
        for component in components {
            let (h, v) = factors[component];
            for (row, column) in (0..v).flat_map(|row| (0..h).map(move |column| (row, column))) {
                units.push(Unit { component, h, column, row });
            }
        }
        let mcus_wide = self.markers.frame.mcus_wide;
        Ok((LenientRows { interrupt, scan, units, mcus_wide, mcu: 0 }, self.markers.quant))
    }

    /// All coefficients of a file with several scans, and the quantisation tables. A component
    /// without a scan has none, and is grey.
    pub(super) fn whole(
        mut self,
        interrupt: &Interrupt,
    ) -> Result<(Coefficients, Quantisation), Error> {
        let blocks = |wide: u32, high: u32| u64::from(wide) * u64::from(high);
        let components = self.markers.frame.components().iter();
        let blocks: u64 = components.map(|c| blocks(c.blocks_wide, c.blocks_high)).sum();
        let bytes = blocks * size_of::<Block>() as u64;
        if bytes > COEFFICIENT_BYTES.max(FILE_FACTOR * self.file.len() as u64) {
            let reason = "its scans are too short for so large a picture to be filled in";
            return Err(damaged(self.file.len(), reason));
        }
        let mut coefficients = zeros(&self.markers.frame);
        let mut progress = Progress::new();
        let mut scans = 0;
        let mut next = Some(self.head);
        while let Some(head) = next {
            scans += 1;
            if scans > SCANS_MAX {
                return Err(Error::TooMany { what: "scans", limit: SCANS_MAX });
            }
            let mut scan = Scan::begin(&mut self.markers, &head)?;
            progress.begin(&head);
            let down = match head.parts.as_slice() {
                [only] => self.markers.factors_down[only.component],
                _ => 1,
            };
            let last_row = &mut progress.last_row;
            read_scan(&mut scan, &mut coefficients, down, last_row, interrupt)?;
            self.markers.input = scan.input;
            next = self.markers.next_scan()?;
        }
        smooth(&mut coefficients, &self.markers, &progress, interrupt)?;
        Ok((coefficients, self.markers.quant))
    }
}

/// Quantisation tables of the components.
pub(super) type Quantisation = [Option<QuantTable>; COMPONENTS_MAX];

/// Reads all MCUs of a scan. `last_row` is set to the last row of the frame's MCUs that began with
/// data; each has `down` rows of the scan's MCUs.
fn read_scan(
    scan: &mut Scan<'_>,
    coefficients: &mut Coefficients,
    down: u32,
    last_row: &mut u32,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let order = scan.order.clone();
    let mut blocks = [Block::ZERO; UNITS_MAX];
    let blocks = &mut blocks[..order.cells().len()];
    for y in 0..order.mcus_high {
        interrupt.check()?;
        for x in 0..order.mcus_wide {
            if scan.is_over() {
                return Ok(());
            }
            if !scan.is_short {
                *last_row = y as u32 / down;
            }
            for (cell, block) in order.cells().iter().zip(blocks.iter_mut()) {
                *block = coefficients.planes[cell.component].blocks[cell.block(x, y)];
            }
            scan.mcu(blocks)?;
            for (cell, block) in order.cells().iter().zip(blocks.iter()) {
                coefficients.planes[cell.component].blocks[cell.block(x, y)] = *block;
            }
        }
    }
    Ok(())
}

/// A block of an MCU.
#[derive(Debug, Clone, Copy)]
struct Unit {
    component: usize,
    /// Blocks of the component across an MCU.
    h: usize,
    column: usize,
    row: usize,
}

/// The only scan of a file, row of MCUs by row of MCUs.
#[derive(Debug)]
pub(super) struct LenientRows<'a> {
    interrupt: &'a Interrupt,
    scan: Scan<'a>,
    units: arrayvec::ArrayVec<Unit, UNITS_MAX>,
    mcus_wide: u32,
    /// Next MCU, counted through the scan.
    mcu: u32,
}

impl LenientRows<'_> {
    /// Fills `rows`, which has the size of these columns of MCUs. Rows come from top to bottom.
    pub(super) fn row(
        &mut self,
        mcu_row: u32,
        columns: Range<u32>,
        rows: &mut BlockRows,
    ) -> Result<(), Error> {
        let from = mcu_row * self.mcus_wide + columns.start;
        let to = mcu_row * self.mcus_wide + columns.end;
        let mut blocks = [Block::ZERO; UNITS_MAX];
        let blocks = &mut blocks[..self.units.len()];
        while self.mcu < to {
            if self.mcu.is_multiple_of(self.mcus_wide) {
                self.interrupt.check()?;
            }
            blocks.fill(Block::ZERO);
            self.scan.mcu(blocks)?;
            if let Some(column) = self.mcu.checked_sub(from) {
                for (unit, block) in self.units.iter().zip(blocks.iter()) {
                    let column = column as usize * unit.h + unit.column;
                    let rows = rows.component_mut(unit.component);
                    let (into, extent) = rows.block_mut(column, unit.row);
                    (*into, *extent) = (*block, 63);
                }
            }
            self.mcu += 1;
        }
        Ok(())
    }
}
