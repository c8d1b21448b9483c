//! Rewrites a JPEG without loss: other tables, restart markers or order of scans, the same
//! coefficients.
//!
//! The output is returned only after it was read back and its coefficients compared.

mod bits;
mod block;
mod optimal;
mod plan;
mod present;
mod progressive;
mod scan;
mod script;
mod sink;
#[cfg(test)]
mod tests;

pub(super) use plan::ScanPlan;
pub(super) use scan::write_scan;
pub(super) use sink::{Both, Counter, Padding, TABLES, Tape, Writer};

use super::Coefficients;
use super::coefficient_reader::{self, spec};
use super::markers::{Coding, Frame, Header, HuffmanSpec, Scan, Segment, code};
use crate::{Error, Interrupt};

/// How restart markers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restarts {
    /// The file's own intervals, in MCUs of each scan.
    #[default]
    Keep,
    /// None.
    Remove,
    /// One after every this many MCUs; none for 0.
    EveryMcus(u16),
    /// One after every this many rows of MCUs, 65,535 MCUs at most; none for 0.
    EveryMcuRows(u16),
}

/// How Huffman tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HuffmanTables {
    /// The file's own. It is an error if they lack a code, as they may when restart markers change,
    /// or if the scans change.
    Keep,
    /// The best for each scan, as libjpeg makes them.
    #[default]
    Optimise,
}

/// How scans are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Process {
    /// The file's own.
    #[default]
    Keep,
    /// Sequential, in one scan unless the format forbids that.
    Baseline,
    /// Progressive, in the scans of libjpeg's `jpeg_simple_progression`. They cannot represent
    /// padding outside the picture, except its DC coefficients.
    Progressive,
}

/// How to rewrite a JPEG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewrite {
    /// Restart markers.
    pub restarts: Restarts,
    /// Huffman tables.
    pub tables: HuffmanTables,
    /// Order of coefficients.
    pub process: Process,
}

/// Rewrites a JPEG.
///
/// All segments but those for Huffman tables, restart intervals and scans stay byte for byte, and
/// so do bytes after the end marker. If the scans change, segments between them move before the
/// first. Bytes in the data of a scan that code nothing are dropped, including those that would
/// follow the data because a segment was removed; bits that fill up a byte are ones.
pub fn rewrite(file: &[u8], how: &Rewrite) -> Result<Vec<u8>, Error> {
    rewrite_until(file, how, &Interrupt::default())
}

/// [`rewrite`] with an interrupt.
pub fn rewrite_until(file: &[u8], how: &Rewrite, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let mut header = Header::default();
    header.parse(file)?;
    let (coefficients, _) = coefficient_reader::read(file, &header, interrupt)?;
    let output = Output::new((file, &header), &coefficients, how, interrupt);
    let output = match new_plans(&header, how.process) {
        None => output.with_same_scans()?,
        Some(_) if how.tables == HuffmanTables::Keep => {
            return Err(Error::Rewrite { reason: "its Huffman tables are made for other scans" });
        }
        Some(plans) => {
            // With other scans it would no longer look unfinished.
            header.check_progress()?;
            output.with_scans(plans)?
        }
    };
    verify((file, &header), &coefficients, how, &output, interrupt)?;
    Ok(output)
}

/// The scans to write if they differ from those of the file.
fn new_plans(header: &Header, process: Process) -> Option<Vec<ScanPlan>> {
    let is_progressive = header.frame.coding == Coding::Progressive;
    match process {
        Process::Keep => None,
        Process::Progressive => Some(script::progressive(header)),
        Process::Baseline => {
            let plans = script::sequential(header);
            (is_progressive || header.scans.len() != plans.len()).then_some(plans)
        }
    }
}

/// Reads the output back and compares it.
fn verify(
    (file, header): (&[u8], &Header),
    coefficients: &Coefficients,
    how: &Rewrite,
    output: &[u8],
    interrupt: &Interrupt,
) -> Result<(), Error> {
    const DIFFERS: Error = Error::Rewrite { reason: "the written file does not read back equal" };
    // Bytes between segments may move to the front, where programs look for the signature of a
    // JPEG.
    let is_recognised = |bytes: &[u8]| bytes.starts_with(b"\xff\xd8\xff");
    if is_recognised(output) != is_recognised(file) {
        return Err(DIFFERS);
    }
    let mut written = Header::default();
    written.parse(output).map_err(|_| DIFFERS)?;
    let (read, _) =
        coefficient_reader::read(output, &written, interrupt).map_err(|error| match error {
            Error::Interrupted => error,
            _ => DIFFERS,
        })?;
    let same = match how.process {
        Process::Progressive => same_picture(&header.frame, coefficients, &read),
        _ => same_coefficients(coefficients, &read, interrupt)?,
    };
    let count = header.frame.count;
    if same && written.quant[..count] == header.quant[..count] { Ok(()) } else { Err(DIFFERS) }
}

/// Whether all blocks are the same.
fn same_coefficients(
    one: &Coefficients,
    other: &Coefficients,
    interrupt: &Interrupt,
) -> Result<bool, Error> {
    /// Blocks between two polls of the interrupt.
    const BLOCKS: usize = 1 << 17;
    if one.planes.len() != other.planes.len() {
        return Ok(false);
    }
    for (one, other) in one.planes.iter().zip(&other.planes) {
        let sizes = [one, other].map(|plane| (plane.blocks_wide, plane.blocks_high));
        if sizes[0] != sizes[1] || one.blocks.len() != other.blocks.len() {
            return Ok(false);
        }
        for (one, other) in one.blocks.chunks(BLOCKS).zip(other.blocks.chunks(BLOCKS)) {
            interrupt.check()?;
            if one != other {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether all blocks that are not padding are the same.
fn same_picture(frame: &Frame, one: &Coefficients, other: &Coefficients) -> bool {
    let planes = frame.components().iter().zip(one.planes.iter().zip(&other.planes));
    planes.into_iter().all(|(component, (one, other))| {
        let (wide, high) = component.blocks_alone();
        let pitch = one.blocks_wide as usize;
        (one.blocks_wide, one.blocks_high) == (other.blocks_wide, other.blocks_high)
            && (0..high as usize)
                .map(|y| y * pitch..y * pitch + wide as usize)
                .all(|row| one.blocks[row.clone()] == other.blocks[row])
    })
}

/// The tables of a file's scan by their destinations.
pub(super) fn original_tables(
    header: &Header,
    scan: &Scan,
    plan: &ScanPlan,
) -> Result<[Option<HuffmanSpec>; TABLES], Error> {
    let mut tables = [None; TABLES];
    for (slot, part) in plan.parts.iter().enumerate() {
        for (class, table) in [(0, part.dc), (1, 4 + part.ac)] {
            if plan.tables().contains(&table) {
                tables[table] = Some(*spec(header, scan, class, slot)?);
            }
        }
    }
    Ok(tables)
}

/// The output file.
struct Output<'a> {
    interrupt: &'a Interrupt,
    file: &'a [u8],
    header: &'a Header,
    coefficients: &'a Coefficients,
    how: &'a Rewrite,
    out: Vec<u8>,
    /// The restart interval in effect.
    restart_now: u32,
}

impl<'a> Output<'a> {
    fn new(
        (file, header): (&'a [u8], &'a Header),
        coefficients: &'a Coefficients,
        how: &'a Rewrite,
        interrupt: &'a Interrupt,
    ) -> Self {
        let out = Vec::with_capacity(file.len() + file.len() / 8);
        Self { interrupt, file, header, coefficients, how, out, restart_now: 0 }
    }

    /// Whether a segment is retained.
    fn stays(&self, segment: &Segment) -> bool {
        match segment.marker {
            code::DHT => self.how.tables == HuffmanTables::Keep,
            code::DRI => self.how.restarts == Restarts::Keep && self.how.process == Process::Keep,
            _ => true,
        }
    }

    /// Writes the file with its own scans.
    fn with_same_scans(mut self) -> Result<Vec<u8>, Error> {
        let mut at = 0;
        // Bytes outside segments would become data if they followed the data of a scan.
        let mut behind_data = false;
        let mut scans = self.header.scans.iter();
        for segment in &self.header.segments {
            if !behind_data {
                self.out.extend_from_slice(&self.file[at..segment.bytes.start]);
            }
            at = segment.bytes.end;
            if segment.marker != code::SOS {
                if self.stays(segment) {
                    self.out.extend_from_slice(&self.file[segment.bytes.clone()]);
                    behind_data = false;
                }
                continue;
            }
            let scan = scans.next().expect("the parser lists a scan for each of its headers");
            let content = &self.file[segment.content.clone()];
            let mut plan = ScanPlan::of(scan, content, self.header.frame.coding);
            plan.restart_interval = self.restart_interval(&plan, scan.restart_interval);
            let tables = match self.how.tables {
                HuffmanTables::Keep => Some(original_tables(self.header, scan, &plan)?),
                HuffmanTables::Optimise => None,
            };
            self.scan(&plan, tables, &self.file[segment.bytes.clone()])?;
            at = scan.data.end;
            behind_data = true;
        }
        let rest = if behind_data { self.header.end - 2 } else { at };
        self.out.extend_from_slice(&self.file[rest..]);
        Ok(self.out)
    }

    /// Writes the file with other scans.
    fn with_scans(mut self, plans: Vec<ScanPlan>) -> Result<Vec<u8>, Error> {
        let mut at = 0;
        let mut scans = self.header.scans.iter();
        for segment in &self.header.segments {
            // Bytes between segments belong to none, but are retained up to the first scan.
            if self.header.scans[0].data.start > segment.bytes.start {
                self.out.extend_from_slice(&self.file[at..segment.bytes.start]);
            }
            at = segment.bytes.end;
            let from = self.out.len();
            match segment.marker {
                code::SOS => at = scans.next().map_or(at, |scan| scan.data.end),
                _ if !self.stays(segment) => (),
                _ => self.out.extend_from_slice(&self.file[segment.bytes.clone()]),
            }
            if (code::SOF0..=code::SOF2).contains(&segment.marker) {
                self.out[from + 1] = self.frame_marker();
            }
        }
        let interval = self.header.scans[0].restart_interval;
        for mut plan in plans {
            plan.restart_interval = self.restart_interval(&plan, interval);
            let header = self.scan_header(&plan);
            self.scan(&plan, None, &header)?;
        }
        self.out.extend_from_slice(&self.file[self.header.end - 2..]);
        Ok(self.out)
    }

    /// The frame's marker if the scans change.
    fn frame_marker(&self) -> u8 {
        let is_wide = |segment: &Segment| {
            segment.marker == code::DQT && self.file[segment.content.start] >> 4 != 0
        };
        match self.how.process {
            Process::Progressive => code::SOF2,
            // Baseline has quantisation tables of 8 bits only (T.81, B.2.4.1).
            _ if self.header.segments.iter().any(is_wide) => code::SOF1,
            _ => code::SOF0,
        }
    }

    fn restart_interval(&self, plan: &ScanPlan, kept: u32) -> u32 {
        match self.how.restarts {
            Restarts::Keep => kept,
            Restarts::Remove => 0,
            Restarts::EveryMcus(mcus) => u32::from(mcus),
            Restarts::EveryMcuRows(rows) => {
                let wide = plan.order(&self.header.frame).mcus_wide as u32;
                (u32::from(rows) * wide).min(u32::from(u16::MAX))
            }
        }
    }

    /// The segment that begins a scan.
    fn scan_header(&self, plan: &ScanPlan) -> Vec<u8> {
        let components = self.header.frame.components();
        let count = plan.parts.len() as u8;
        let mut bytes = vec![0xff, code::SOS, 0, 6 + 2 * count, count];
        for part in &plan.parts {
            // Tables that a scan does not use are written as 0.
            let used = |table: usize| plan.tables().contains(&table);
            let dc = if used(part.dc) { part.dc } else { 0 };
            let ac = if used(4 + part.ac) { part.ac } else { 0 };
            bytes.extend([components[part.component].id, (dc << 4 | ac) as u8]);
        }
        bytes.extend([plan.first, plan.last, plan.high << 4 | plan.low]);
        bytes
    }

    /// Writes a scan and the segments before it; `None` for optimal tables.
    fn scan(
        &mut self,
        plan: &ScanPlan,
        tables: Option<[Option<HuffmanSpec>; TABLES]>,
        header: &[u8],
    ) -> Result<(), Error> {
        const RANGE: Error = Error::Rewrite { reason: "a coefficient is out of range" };
        let frame = &self.header.frame;
        let (tables, tape) = match tables {
            Some(tables) => (tables, None),
            None => {
                let (mut counter, mut tape) = (Counter::new(), Tape::default());
                let mut sink = Both(&mut counter, &mut tape);
                write_scan(plan, frame, self.coefficients, &mut sink, self.interrupt)
                    .map_err(|unwritten| unwritten.or(RANGE))?;
                let mut tables = [None; TABLES];
                for index in plan.tables() {
                    tables[index] = counter.table(index);
                    write_table(&mut self.out, index, tables[index].as_ref());
                }
                (tables, Some(tape))
            }
        };
        let dri_stays = self.how.restarts == Restarts::Keep && self.how.process == Process::Keep;
        if !dri_stays && plan.restart_interval != self.restart_now {
            let [high, low] = (plan.restart_interval as u16).to_be_bytes();
            self.out.extend([0xff, code::DRI, 0, 4, high, low]);
            self.restart_now = plan.restart_interval;
        }
        self.out.extend_from_slice(header);
        let mut writer = Writer::new(&mut self.out, &tables, Padding::Same(0xff));
        let written = match tape {
            Some(tape) => tape.play(&mut writer, self.interrupt),
            None => write_scan(plan, frame, self.coefficients, &mut writer, self.interrupt),
        };
        written.map_err(|unwritten| unwritten.or(RANGE))?;
        if writer.lacks_code {
            return Err(Error::Rewrite { reason: "a retained Huffman table lacks a code" });
        }
        Ok(())
    }
}

/// Writes the segment of a Huffman table.
fn write_table(out: &mut Vec<u8>, index: usize, table: Option<&HuffmanSpec>) {
    let Some(table) = table else {
        return;
    };
    let length = (2 + 1 + 16 + table.len()) as u16;
    let [high, low] = length.to_be_bytes();
    out.extend([0xff, code::DHT, high, low, (16 * (index / 4) + index % 4) as u8]);
    out.extend_from_slice(&table.counts);
    out.extend_from_slice(&table.symbols[..table.len()]);
}
