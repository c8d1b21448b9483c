//! Reads a whole file into quantised coefficients: baseline, extended and progressive.
//!
//! It serves rewriting and coefficient forms, not pixels. The file must be complete and consistent:
//! where libjpeg only warns, this is an error with the offset of the byte. Coefficients out of the
//! range of 8-bit samples are errors too.
//!
//! A file has at most [`crate::PIXELS_MAX`] pixels and 100 scans. Every block costs at least one
//! bit in its first scan, which is checked before memory is allocated, so coefficients take at most
//! 1,024 times the length of the file.

mod bits;
mod order;
mod progressive;
mod sequential;
mod table;
#[cfg(test)]
pub(super) mod tests;

pub(super) use order::{Cell, Order};

use super::markers::{COMPONENTS_MAX, Coding, Component, Frame, Header, HuffmanSpec, Scan, code};
use super::{Block, CoefficientPlane, Coefficients, damaged};
use crate::PIXELS_MAX;
use crate::{Error, Interrupt};
use bits::{Bits, stuffed_offset, unstuff};
use progressive::{AcFirst, AcRefine, DcFirst, DcRefine};
use sequential::Sequential;
use table::{RunTable, SymbolTable};

/// Maximum bits of an AC coefficient's magnitude (T.81 Table F.2).
pub(super) const AC_SIZE_MAX: u32 = 10;

/// Maximum bits of a DC difference's magnitude (T.81 Table F.1).
pub(super) const DC_SIZE_MAX: u32 = 11;

/// Largest magnitude of a DC coefficient.
const DC_MAX: i32 = (1 << DC_SIZE_MAX) - 1;

/// Largest magnitude of an AC coefficient.
const AC_MAX: i32 = (1 << AC_SIZE_MAX) - 1;

/// Reads all coefficients of a file, as libjpeg's `jpeg_read_coefficients` does.
pub fn read_coefficients(file: &[u8]) -> Result<Coefficients, Error> {
    let mut header = Header::default();
    header.parse(file)?;
    Ok(read(file, &header, &Interrupt::default())?.0)
}

/// The part of a scan that its coefficients do not determine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScanEnd {
    /// The bits that fill up the last byte before each restart marker and at the end, below a one.
    pub(super) paddings: Vec<u8>,
    /// Offset of the first byte after the last one that codes anything.
    pub(super) end: usize,
}

/// Reads all coefficients of a file whose header is parsed, and how each scan ends. Polls the
/// interrupt in every row of MCUs of every scan.
pub(super) fn read(
    file: &[u8],
    header: &Header,
    interrupt: &Interrupt,
) -> Result<(Coefficients, Vec<ScanEnd>), Error> {
    check_scans(header)?;
    check_sizes(header)?;
    let mut coefficients = zeros(&header.frame);
    let mut endings = Vec::with_capacity(header.scans.len());
    for scan in &header.scans {
        let planes = &mut coefficients.planes;
        let mut reader = ScanReader::new(file, header, scan, interrupt);
        let part = |class: usize, slot: usize| spec(header, scan, class, slot);
        let slots = 0..scan.components().len();
        let ending = if header.frame.coding != Coding::Progressive {
            let dc = slots.clone().map(|slot| Ok(SymbolTable::new(part(0, slot)?)));
            let ac = slots.map(|slot| Ok(RunTable::new(part(1, slot)?)));
            let (dc, ac) =
                (dc.collect::<Result<Vec<_>, Error>>()?, ac.collect::<Result<Vec<_>, Error>>()?);
            reader.run(&mut Sequential::new(planes, dc, ac))?
        } else if scan.first == 0 && scan.high == 0 {
            let tables = slots.map(|slot| Ok(SymbolTable::new(part(0, slot)?)));
            reader.run(&mut DcFirst::new(planes, tables.collect::<Result<_, Error>>()?, scan))?
        } else if scan.first == 0 {
            reader.run(&mut DcRefine::new(planes, scan))?
        } else if scan.high == 0 {
            reader.run(&mut AcFirst::new(planes, SymbolTable::new(part(1, 0)?), scan))?
        } else {
            reader.run(&mut AcRefine::new(planes, SymbolTable::new(part(1, 0)?), scan))?
        };
        endings.push(ending);
    }
    Ok((coefficients, endings))
}

/// Planes of zeros for a frame.
pub(super) fn zeros(frame: &Frame) -> Coefficients {
    let plane = |component: &Component| {
        let (blocks_wide, blocks_high) = (component.blocks_wide, component.blocks_high);
        let blocks = vec![Block::ZERO; blocks_wide as usize * blocks_high as usize];
        CoefficientPlane { blocks_wide, blocks_high, blocks }
    };
    Coefficients { planes: frame.components().iter().map(plane).collect() }
}

/// The Huffman table of a scan's component, DC or AC.
pub(super) fn spec<'a>(
    header: &'a Header,
    scan: &Scan,
    class: usize,
    slot: usize,
) -> Result<&'a HuffmanSpec, Error> {
    let part = scan.components()[slot];
    let index = if class == 0 { part.dc } else { part.ac };
    index
        .and_then(|index| header.huffman.get(index))
        .ok_or_else(|| damaged(scan.data.start, "a scan names a Huffman table that is not there"))
}

/// The order of a scan's blocks.
pub(super) fn order(frame: &Frame, scan: &Scan) -> Order {
    let mut components = [0; COMPONENTS_MAX];
    for (index, part) in components.iter_mut().zip(scan.components()) {
        *index = part.component;
    }
    Order::of(frame, &components[..scan.components().len()])
}

/// Refuses scans that contradict each other, so that each bit of a coefficient is coded once.
pub(super) fn check_scans(header: &Header) -> Result<(), Error> {
    let frame = &header.frame;
    // By component and zigzag position: the lowest bit of the last scan.
    let mut reached = [[None::<u8>; 64]; COMPONENTS_MAX];
    for scan in &header.scans {
        let at = scan.data.start;
        for part in scan.components() {
            let reached = &mut reached[part.component];
            if scan.first > 0 && reached[0].is_none() {
                return Err(damaged(at, "a scan of AC coefficients comes before that of DC"));
            }
            for bit in &mut reached[usize::from(scan.first)..=usize::from(scan.last)] {
                let expected = if scan.high == 0 { None } else { Some(scan.high) };
                if *bit != expected {
                    return Err(damaged(at, "a scan does not continue those before it"));
                }
                *bit = Some(scan.low);
            }
        }
    }
    if reached[..frame.count].iter().any(|reached| reached[0].is_none()) {
        return Err(damaged(header.end, "a component has no scan of DC coefficients"));
    }
    Ok(())
}

/// Refuses pictures that are too large and scans that are too short for their blocks, before memory
/// is allocated.
fn check_sizes(header: &Header) -> Result<(), Error> {
    let frame = &header.frame;
    let (width, height) = (frame.width, frame.height);
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(Error::TooLarge { width, height, limit: PIXELS_MAX });
    }
    for scan in &header.scans {
        let bits_per_block = match (frame.coding, scan.first) {
            // Blocks in a run without AC coefficients cost no bits.
            (Coding::Progressive, 1..) => 0,
            (Coding::Progressive, 0) => 1,
            _ => 2,
        };
        let needed = (order(frame, scan).blocks() as u64 * bits_per_block).div_ceil(8);
        let length = scan.data.len();
        if (length as u64) < needed {
            return Err(damaged(
                scan.data.end,
                format_args!("a scan of {length} bytes cannot hold its blocks: it is truncated"),
            ));
        }
    }
    Ok(())
}

/// Errors in entropy-coded data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Bits that are not a code of the table.
    NoCode,
    /// A position past the last one.
    TooFar,
    /// A value too large.
    TooLarge,
    /// A symbol without meaning in this kind of scan.
    NoMeaning,
    /// The data end inside a block.
    Overrun,
}

impl Fault {
    fn reason(self) -> &'static str {
        match self {
            Self::NoCode => "bits that are not a Huffman code",
            Self::TooFar => "a run of zeros goes beyond the last coefficient",
            Self::TooLarge => "a coefficient is out of range",
            Self::NoMeaning => "a Huffman symbol has no meaning here",
            Self::Overrun => "the data of a scan end before its last block",
        }
    }
}

/// Reads the blocks of a scan.
trait ReadBlock {
    /// Resets the state at a restart marker.
    fn restart(&mut self);

    /// Reads a block.
    fn read(&mut self, bits: &mut Bits<'_>, cell: &Cell, block: usize) -> Result<(), Fault>;
}

/// Iterates over the MCUs of a scan.
struct ScanReader<'a> {
    interrupt: &'a Interrupt,
    file: &'a [u8],
    scan: &'a Scan,
    order: Order,
    unstuffed: Vec<u8>,
}

impl<'a> ScanReader<'a> {
    fn new(file: &'a [u8], header: &Header, scan: &'a Scan, interrupt: &'a Interrupt) -> Self {
        let order = order(&header.frame, scan);
        let unstuffed = Vec::with_capacity(scan.data.len());
        Self { interrupt, file, scan, order, unstuffed }
    }

    fn run(&mut self, blocks: &mut impl ReadBlock) -> Result<ScanEnd, Error> {
        let mcus = self.order.mcus();
        let length = match self.scan.restart_interval {
            0 => mcus,
            interval => interval as usize,
        };
        let mut ending = ScanEnd { paddings: Vec::new(), end: self.scan.data.start };
        let mut first = 0;
        while first < mcus {
            if first > 0 {
                self.pass_restart_marker(&mut ending)?;
                blocks.restart();
            }
            self.interval(first, (first + length).min(mcus), blocks, &mut ending)?;
            first += length;
        }
        self.check_behind(ending.end)?;
        Ok(ending)
    }

    /// Refuses restart markers after the last interval, if the file defines a restart interval.
    fn check_behind(&self, end: usize) -> Result<(), Error> {
        let rest = &self.file[end..self.scan.data.end];
        let is_marker = |two: &[u8]| two[0] == 0xff && (code::RST0..=code::RST7).contains(&two[1]);
        match rest.windows(2).position(is_marker) {
            Some(at) if self.scan.restart_interval > 0 => {
                Err(damaged(end + at, "there are more restart markers than intervals"))
            }
            _ => Ok(()),
        }
    }

    /// Reads the MCUs up to a restart marker or the end.
    fn interval(
        &mut self,
        first: usize,
        end: usize,
        blocks: &mut impl ReadBlock,
        ending: &mut ScanEnd,
    ) -> Result<(), Error> {
        let start = ending.end;
        self.unstuffed.clear();
        let data_end = unstuff(self.file, start..self.scan.data.end, &mut self.unstuffed);
        let mut bits = Bits::new(&self.unstuffed);
        let (mut x, mut y) = (first % self.order.mcus_wide, first / self.order.mcus_wide);
        for _ in first..end {
            if x == 0 {
                self.interrupt.check()?;
            }
            for cell in self.order.cells() {
                let read = blocks.read(&mut bits, cell, cell.block(x, y));
                if read.is_err() || bits.overrun() {
                    let fault = read.err().filter(|_| !bits.overrun()).unwrap_or(Fault::Overrun);
                    let byte = (bits.position() / 8).min(self.unstuffed.len());
                    let at = stuffed_offset(self.file, start, byte);
                    return Err(damaged(at, fault.reason()));
                }
            }
            x += 1;
            if x == self.order.mcus_wide {
                (x, y) = (0, y + 1);
            }
        }
        ending.paddings.push(bits.take_padding());
        let consumed = bits.position() / 8;
        ending.end = if consumed == self.unstuffed.len() {
            data_end
        } else {
            stuffed_offset(self.file, start, consumed)
        };
        Ok(())
    }

    /// Expects the next restart marker at the end of the last interval.
    fn pass_restart_marker(&self, ending: &mut ScanEnd) -> Result<(), Error> {
        let code = restart_marker(ending.paddings.len() - 1);
        let at = ending.end;
        let data = &self.file[at..self.scan.data.end];
        // Any number of 0xff may precede a marker, which begins with one.
        let fill = data.iter().take_while(|byte| **byte == 0xff).count();
        if fill == 0 || data.get(fill) != Some(&code) {
            return Err(damaged(at, "a restart marker is not where it must be"));
        }
        ending.end = at + fill + 1;
        Ok(())
    }
}

/// The restart marker after an interval, counted from 0.
pub(super) fn restart_marker(interval: usize) -> u8 {
    super::markers::code::RST0 + (interval % 8) as u8
}
