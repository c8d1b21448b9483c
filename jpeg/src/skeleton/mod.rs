//! The part of a JPEG that its coefficients do not determine: from both, the file is restored byte
//! for byte.
//!
//! A skeleton holds all bytes outside of entropy-coded data, and the encoder's free choices inside
//! them: the bits that fill up bytes and the bytes after the last block. The rest equals what
//! libjpeg would write with the file's tables; a file that differs is refused. Huffman tables that
//! are optimal for their scan, as written by an optimising encoder, are left out and rebuilt.

mod bytes;
mod dictionary;
mod tables;
#[cfg(test)]
mod tests;

use super::markers::{Component, Header, Scan};
use super::rewrite::{Both, Counter, Padding, ScanPlan, Tape, Writer, original_tables, write_scan};
use super::{CoefficientPlane, Coefficients, coefficient_reader};
use crate::{Error, Interrupt};

/// All of a JPEG but its coefficients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skeleton {
    /// The file without entropy-coded data; tables that follow from the coefficients are empty.
    outside: Vec<u8>,
    /// How each scan ends; scans after the list end plainly.
    endings: Vec<ScanEnding>,
}

/// How a scan ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ScanEnding {
    filling: Filling,
    /// Bytes after the last block that code nothing.
    tail: Vec<u8>,
}

/// The bits that fill up the last byte of each interval.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Filling {
    Ones,
    Zeros,
    /// By interval.
    Each(Vec<u8>),
}

/// How a scan of libjpeg ends.
static PLAIN: ScanEnding = ScanEnding { filling: Filling::Ones, tail: Vec::new() };

impl Filling {
    /// From bits below a one, as they were read.
    fn of(paddings: Vec<u8>) -> Self {
        if paddings.iter().all(|bits| (u16::from(*bits) + 1).is_power_of_two()) {
            Self::Ones
        } else if paddings.iter().all(|bits| bits.is_power_of_two()) {
            Self::Zeros
        } else {
            Self::Each(paddings)
        }
    }
}

impl ScanEnding {
    fn padding(&self) -> Padding<'_> {
        match &self.filling {
            Filling::Ones => Padding::Same(0xff),
            Filling::Zeros => Padding::Same(0),
            Filling::Each(bits) => Padding::Each(bits),
        }
    }
}

/// Splits a file. [`assemble`] restores it from the two parts, byte for byte; if it could not, this
/// is the error [`Error::NotReproducible`].
pub fn dismantle(file: &[u8]) -> Result<(Skeleton, Coefficients), Error> {
    dismantle_until(file, &Interrupt::default())
}

/// The same, until it is interrupted.
pub(super) fn dismantle_until(
    file: &[u8],
    interrupt: &Interrupt,
) -> Result<(Skeleton, Coefficients), Error> {
    let mut header = Header::default();
    header.parse(file)?;
    let (coefficients, read) = coefficient_reader::read(file, &header, interrupt)?;
    let mut outside = Vec::new();
    let mut endings = Vec::with_capacity(read.len());
    let mut at = 0;
    for (scan, ending) in header.scans.iter().zip(read) {
        outside.extend_from_slice(&file[at..scan.data.start]);
        let tail = file[ending.end..scan.data.end].to_vec();
        endings.push(ScanEnding { filling: Filling::of(ending.paddings), tail });
        at = scan.data.end;
    }
    outside.extend_from_slice(&file[at..]);
    let exceptions = endings.iter().rposition(|ending| *ending != PLAIN);
    endings.truncate(exceptions.map_or(0, |last| last + 1));
    let skeleton = Skeleton { outside, endings };
    if skeleton.outside.len() > bytes::OUTSIDE_MAX {
        return Err(damaged("too many bytes are outside of the scans"));
    }
    let mut counters = Vec::new();
    let counted = Blocks::Counted(&mut counters);
    let again = skeleton.with_scans(&coefficients, counted, interrupt)?;
    if again != file {
        let same = again.iter().zip(file).take_while(|(one, other)| one == other).count();
        return Err(Error::NotReproducible { offset: same });
    }
    Ok((tables::empty(skeleton, &counters)?, coefficients))
}

/// Restores a file. Coefficients whose size differs from the skeleton's frame are an error; other
/// coefficients of that size yield another picture's file, or an error if its tables lack a code.
pub fn assemble(skeleton: &Skeleton, coefficients: &Coefficients) -> Result<Vec<u8>, Error> {
    assemble_until(skeleton, coefficients, &Interrupt::default())
}

/// The same, until it is interrupted.
pub(super) fn assemble_until(
    skeleton: &Skeleton,
    coefficients: &Coefficients,
    interrupt: &Interrupt,
) -> Result<Vec<u8>, Error> {
    match tables::fill(skeleton, coefficients, interrupt)? {
        Some((filled, tapes)) => filled.with_scans(coefficients, Blocks::Taped(&tapes), interrupt),
        None => skeleton.with_scans(coefficients, Blocks::Taped(&[]), interrupt),
    }
}

/// The source or the counts of the symbols of a scan's blocks.
enum Blocks<'a> {
    /// They are on tapes, by scan, or else recomputed.
    Taped(&'a [Option<Tape>]),
    /// They are counted, by scan.
    Counted(&'a mut Vec<Counter>),
}

impl Skeleton {
    /// Exif orientation of the file, 1..=8.
    pub(crate) fn orientation(&self) -> Result<u8, Error> {
        let mut header = Header::default();
        self.parse_into(&mut header)?;
        Ok(header.orientation.unwrap_or(1))
    }

    /// Parses the bytes outside of the scans.
    pub(crate) fn parse_into(&self, header: &mut Header) -> Result<(), Error> {
        header.parse(&self.outside)
    }

    /// Parses the bytes outside of the scans and checks that the coefficients fit.
    fn header(&self, coefficients: &Coefficients) -> Result<Header, Error> {
        let mut header = Header::default();
        header.parse(&self.outside)?;
        let empty = |scan: &Scan| scan.data.is_empty();
        coefficient_reader::check_scans(&header)?;
        if !header.scans.iter().all(empty) || self.endings.len() > header.scans.len() {
            return Err(damaged("it contradicts its own scans"));
        }
        let components = header.frame.components();
        let fits = |(component, plane): (&Component, &CoefficientPlane)| {
            let (wide, high) = (component.blocks_wide, component.blocks_high);
            (plane.blocks_wide, plane.blocks_high) == (wide, high)
                && plane.blocks.len() as u64 == u64::from(wide) * u64::from(high)
        };
        let planes = &coefficients.planes;
        if planes.len() != components.len() || !components.iter().zip(planes).all(fits) {
            return Err(damaged("the coefficients have another size"));
        }
        Ok(header)
    }

    /// The file, if no table was left out.
    fn with_scans(
        &self,
        coefficients: &Coefficients,
        mut blocks: Blocks<'_>,
        interrupt: &Interrupt,
    ) -> Result<Vec<u8>, Error> {
        let header = self.header(coefficients)?;
        let mut file = Vec::with_capacity(self.outside.len() + capacity(coefficients));
        let mut at = 0;
        for (index, scan) in header.scans.iter().enumerate() {
            file.extend_from_slice(&self.outside[at..scan.data.start]);
            at = scan.data.start;
            let plan = plan(&self.outside, &header, index);
            let ending = self.endings.get(index).unwrap_or(&PLAIN);
            let tables = original_tables(&header, scan, &plan)?;
            let frame = &header.frame;
            let mut writer = Writer::new(&mut file, &tables, ending.padding());
            let written = match &mut blocks {
                Blocks::Taped(tapes) => match tapes.get(index) {
                    Some(Some(tape)) => tape.play(&mut writer, interrupt),
                    _ => write_scan(&plan, frame, coefficients, &mut writer, interrupt),
                },
                Blocks::Counted(counters) => {
                    let mut counter = Counter::new();
                    let mut sink = Both(&mut writer, &mut counter);
                    let written = write_scan(&plan, frame, coefficients, &mut sink, interrupt);
                    counters.push(counter);
                    written
                }
            };
            written.map_err(|why| why.or(damaged("a coefficient is out of range")))?;
            if writer.lacks_code {
                return Err(damaged("a Huffman table lacks a code"));
            }
            file.extend_from_slice(&ending.tail);
        }
        file.extend_from_slice(&self.outside[at..]);
        Ok(file)
    }
}

fn damaged(reason: &'static str) -> Error {
    Error::Skeleton { reason }
}

/// Bytes to reserve for scans: an estimate that photographs seldom exceed.
fn capacity(coefficients: &Coefficients) -> usize {
    coefficients.planes.iter().map(|plane| plane.blocks.len() * 16).sum()
}

/// The scan of an index, as its header segment describes it.
fn plan(outside: &[u8], header: &Header, index: usize) -> ScanPlan {
    let scan = &header.scans[index];
    let length = 4 + 2 * scan.components().len();
    let content = &outside[scan.data.start - length..scan.data.start];
    ScanPlan::of(scan, content, header.frame.coding)
}
