//! Decodes the coefficients of a sequential scan, MCU row by MCU row, whole rows or parts of them.
#![expect(unsafe_code, reason = "a call behind a CPU check")]

use super::bits::{BitPosition, Bits, REFILLED};
use super::entry_points::EntryPoints;
use super::huffman::{
    AcTable, CodeWithoutValue, DC_PEEK_BITS, DcTable, END_OF_BLOCK, PEEK_BITS, RecentTables,
    difference, extend, first_step, first_value, second_step, second_value,
};
use super::markers::{COMPONENTS_MAX, Header, NATURAL, ScanComponent};
use super::rows::BlockRows;
use super::{Block, damaged};
use crate::{Cpu, Error, Interrupt};
use arrayvec::ArrayVec;
use std::ops::Range;

/// Maximum number of blocks of an MCU (T.81 B.2.3).
const UNITS_MAX: usize = 10;

/// Lookups between two refills.
const LOOKUPS_PER_REFILL: u32 = 4;
const _: () = assert!(LOOKUPS_PER_REFILL * PEEK_BITS <= REFILLED, "a refill lasts for all");

/// Lookups between a DC difference of at most [`DIFFERENCE_BITS`] and the next refill.
const FIRST_LOOKUPS: u32 = 3;

/// Most bits of code and difference that leave enough of a refill for the first lookups. 8-bit
/// samples need no more if their code is found by a lookup.
const DIFFERENCE_BITS: u32 = REFILLED - FIRST_LOOKUPS * PEEK_BITS;

/// Maximum bits of a code and its value.
const SYMBOL_BITS_MAX: u32 = 16 + 15;

/// Natural order by zigzag position. Positions past the last one map to the last one: what is
/// written there belongs to a block that is refused, or is the zero of an end of block, written
/// before any other value.
static NATURAL_AND_BEYOND: [u8; 256] = {
    let mut order = [63; 256];
    let mut at = 0;
    while at < 64 {
        order[at] = NATURAL[at];
        at += 1;
    }
    order
};

/// Huffman tables of previous files.
#[derive(Debug, Default)]
pub(super) struct TableCache {
    dc: RecentTables<DcTable>,
    ac: RecentTables<AcTable>,
}

/// A block of an MCU.
#[derive(Debug, Clone, Copy)]
struct Unit<'a> {
    /// Index among the components of the frame.
    component: usize,
    dc: &'a DcTable,
    ac: &'a AcTable,
    /// Horizontal sampling factor of the component.
    h: usize,
    /// Column and row of the block in the MCU.
    column: usize,
    row: usize,
}

/// The position of a scan in the data and among the MCUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    bits: Bits<'a>,
    /// Next MCU, counted through the scan.
    mcu: u32,
    /// DC values of the blocks before.
    dc: [i32; COMPONENTS_MAX],
}

/// A scan of all components, being read.
#[derive(Debug)]
pub(super) struct Sequential<'a> {
    cpu: Cpu,
    interrupt: &'a Interrupt,
    data: &'a [u8],
    /// Offset of `data` in the file.
    data_at: usize,
    units: ArrayVec<Unit<'a>, UNITS_MAX>,
    mcus_wide: u32,
    restart_interval: u32,
    cursor: Cursor<'a>,
    entry_points: Option<EntryPoints<'a>>,
    /// Offsets in `data` after each restart marker.
    restarts: &'a [u32],
}

impl<'a> Sequential<'a> {
    /// Reads the only scan of a file, which must be sequential and of all components.
    pub(super) fn new(
        (cpu, interrupt): (Cpu, &'a Interrupt),
        file: &'a [u8],
        header: &Header,
        tables: &'a mut TableCache,
        restarts: &'a [u32],
        entry_points: Option<EntryPoints<'a>>,
    ) -> Self {
        assert!(cpu.is_available(), "this machine has no {}", cpu.name());
        let scan = &header.scans[0];
        let specs = |part: &ScanComponent| {
            [part.dc, part.ac]
                .map(|index| &header.huffman[index.expect("a sequential scan has both tables")])
        };
        for [dc, ac] in scan.components().iter().map(specs) {
            tables.dc.ensure(dc);
            tables.ac.ensure(ac);
        }
        let mut units = ArrayVec::new();
        for part in scan.components() {
            let [dc, ac] = specs(part);
            let (dc, ac) = (tables.dc.of(dc), tables.ac.of(ac));
            let component = header.frame.components()[part.component];
            let h = component.h as usize;
            for row in 0..component.v as usize {
                for column in 0..component.h as usize {
                    units.push(Unit { component: part.component, dc, ac, h, column, row });
                }
            }
        }
        let data = &file[scan.data.clone()];
        let bits = Bits::new(data, BitPosition { offset: 0, bits: 0 });
        Self {
            cpu,
            interrupt,
            data,
            data_at: scan.data.start,
            units,
            mcus_wide: header.frame.mcus_wide,
            restart_interval: scan.restart_interval,
            cursor: Cursor { bits, mcu: 0, dc: [0; COMPONENTS_MAX] },
            entry_points,
            restarts,
        }
    }

    /// Decodes some MCUs of a row into `rows`, which has their size.
    pub(super) fn row(
        &mut self,
        mcu_row: u32,
        columns: Range<u32>,
        rows: &mut BlockRows,
    ) -> Result<(), Error> {
        let from = mcu_row * self.mcus_wide + columns.start;
        let to = mcu_row * self.mcus_wide + columns.end;
        self.seek(from);
        self.pass(from)?;
        self.run(to, rows)
    }

    /// The position of the scan, and the DC values there.
    pub(super) fn position(&self) -> (BitPosition, [i32; COMPONENTS_MAX]) {
        let position = self.cursor.bits.position();
        (BitPosition { offset: self.data_at + position.offset, ..position }, self.cursor.dc)
    }

    /// Skips MCUs up to one. Polls the interrupt once per row of MCUs.
    pub(super) fn pass(&mut self, to: u32) -> Result<(), Error> {
        while self.cursor.mcu < to {
            self.interrupt.check()?;
            let until = to.min(self.cursor.mcu.saturating_add(self.mcus_wide));
            self.run(until, &mut SkippedBlocks::default())?;
        }
        Ok(())
    }

    /// Jumps to the last position at or before an MCU at which decoding can begin, if it is ahead.
    fn seek(&mut self, mcu: u32) {
        if let Some(entry) = self.entry_points.and_then(|points| points.before(mcu))
            && entry.mcu > self.cursor.mcu
        {
            // An offset past the end is found when it is read.
            let offset = entry.position.offset.saturating_sub(self.data_at).min(self.data.len());
            let bits = Bits::new(self.data, BitPosition { offset, ..entry.position });
            self.cursor = Cursor { bits, mcu: entry.mcu, dc: entry.dc.map(i32::from) };
        }
        if let Some(intervals) = mcu.checked_div(self.restart_interval)
            && let Some(index) = (intervals as usize).min(self.restarts.len()).checked_sub(1)
            && (index as u32 + 1) * self.restart_interval > self.cursor.mcu
        {
            // `run` skips the marker itself.
            let position = BitPosition { offset: self.restarts[index] as usize, bits: 0 };
            let mcu = (index as u32 + 1) * self.restart_interval;
            let bits = Bits::new(self.data, position);
            self.cursor = Cursor { bits, mcu, dc: [0; COMPONENTS_MAX] };
        }
    }

    /// Decodes up to an MCU, into `target`, whose first MCU is at the cursor.
    fn run(&mut self, to: u32, target: &mut impl Target) -> Result<(), Error> {
        match self.cpu {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `new` has checked that the machine has all features of this instruction set.
            Cpu::Avx2 => unsafe { self.run_avx2(to, target) },
            _ => self.run_anywhere(to, target),
        }
    }

    /// The same code, with shifts that leave the flags alone and wider stores.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn run_avx2(&mut self, to: u32, target: &mut impl Target) -> Result<(), Error> {
        self.run_anywhere(to, target)
    }

    #[inline(always)]
    fn run_anywhere(&mut self, to: u32, target: &mut impl Target) -> Result<(), Error> {
        let origin = self.cursor.mcu;
        while self.cursor.mcu < to {
            let mut until = to;
            if let Some(intervals) = self.cursor.mcu.checked_div(self.restart_interval) {
                if intervals != 0 && self.cursor.mcu == intervals * self.restart_interval {
                    self.restart(intervals - 1)?;
                }
                until = to.min((intervals + 1).saturating_mul(self.restart_interval));
            }
            // Separate from the DC values, which are indexed, so that the bits can stay in
            // registers.
            let Cursor { mut bits, mcu, mut dc } = self.cursor;
            for mcu in mcu..until {
                let done = self.mcu((mcu - origin) as usize, &mut bits, &mut dc, target);
                done.map_err(|problem| damaged(self.data_at + bits.offset(), problem))?;
            }
            self.cursor = Cursor { bits, mcu: until, dc };
        }
        if self.cursor.bits.is_overrun() {
            return Err(self.broken("the data end too early"));
        }
        Ok(())
    }

    fn restart(&mut self, number: u32) -> Result<(), Error> {
        if !self.cursor.bits.pass_restart(number) {
            return Err(self.broken("a restart marker is not where it should be"));
        }
        self.cursor.dc = [0; COMPONENTS_MAX];
        Ok(())
    }

    #[inline(always)]
    fn mcu(
        &self,
        mcu: usize,
        bits: &mut Bits<'_>,
        dc: &mut [i32; COMPONENTS_MAX],
        target: &mut impl Target,
    ) -> Result<(), &'static str> {
        for unit in &self.units {
            let column = mcu * unit.h + unit.column;
            let (block, extent) = target.block(unit.component, column, unit.row);
            let dc = &mut dc[unit.component];
            *extent = decode_block(bits, (unit.dc, unit.ac), dc, block)?;
        }
        Ok(())
    }

    fn broken(&self, problem: &str) -> Error {
        damaged(self.data_at + self.cursor.bits.offset(), problem)
    }
}

/// The destination of decoded blocks.
trait Target {
    /// The receiver of the coefficients of a block.
    type Values: Values;

    /// A zeroed block of a component, and where to store the zigzag position of its last
    /// coefficient.
    fn block(
        &mut self,
        component: usize,
        column: usize,
        row: usize,
    ) -> (&mut Self::Values, &mut u8);
}

/// Receives the non-zero coefficients of a block.
trait Values {
    /// The DC coefficient.
    fn put_mean(&mut self, value: i16);

    /// The coefficient of a zigzag position; past the last one, its value is ignored.
    fn put(&mut self, zigzag: u32, value: i16);
}

impl Target for BlockRows {
    type Values = Block;

    #[inline(always)]
    fn block(&mut self, component: usize, column: usize, row: usize) -> (&mut Block, &mut u8) {
        let (block, extent) = self.component_mut(component).block_mut(column, row);
        *block = Block::ZERO;
        (block, extent)
    }
}

impl Values for Block {
    #[inline(always)]
    fn put_mean(&mut self, value: i16) {
        self.0[0] = value;
    }

    #[inline(always)]
    fn put(&mut self, zigzag: u32, value: i16) {
        let natural = NATURAL_AND_BEYOND[(zigzag & 255) as usize];
        // SAFETY: all numbers of the table are below 64.
        unsafe { *self.0.get_unchecked_mut(usize::from(natural)) = value };
    }
}

/// Discards blocks.
#[derive(Default)]
struct SkippedBlocks {
    block: DiscardedBlock,
    extent: u8,
}

/// A discarded block.
#[derive(Default)]
struct DiscardedBlock;

impl Target for SkippedBlocks {
    type Values = DiscardedBlock;

    #[inline(always)]
    fn block(&mut self, _: usize, _: usize, _: usize) -> (&mut DiscardedBlock, &mut u8) {
        (&mut self.block, &mut self.extent)
    }
}

impl Values for DiscardedBlock {
    #[inline(always)]
    fn put_mean(&mut self, _: i16) {}

    #[inline(always)]
    fn put(&mut self, _: u32, _: i16) {}
}

/// Decodes a block (T.81 F.2.2) into zeros; returns the zigzag position of its last coefficient, or
/// a later one.
#[inline(always)]
fn decode_block(
    bits: &mut Bits<'_>,
    (dc_table, ac_table): (&DcTable, &AcTable),
    dc: &mut i32,
    block: &mut impl Values,
) -> Result<u8, &'static str> {
    bits.refill();
    let entry = dc_table.lookup[(bits.next >> (64 - DC_PEEK_BITS)) as usize];
    let difference = if entry != 0 {
        let difference = difference(entry, bits.next);
        bits.skip_low(u32::from(entry));
        difference
    } else {
        decode_long_difference(bits, dc_table)?
    };
    if !(1..=DIFFERENCE_BITS).contains(&(u32::from(entry) & 63)) {
        bits.refill();
    }
    *dc = dc.wrapping_add(difference);
    block.put_mean(*dc as i16);

    // Zigzag position of the last coefficient.
    let mut last = 0;
    let mut ended = take_lookups::<FIRST_LOOKUPS>(bits, ac_table, &mut last, block)?;
    while !ended {
        bits.refill();
        ended = take_lookups::<LOOKUPS_PER_REFILL>(bits, ac_table, &mut last, block)?;
    }
    match last {
        63 => Ok(63),
        END_OF_BLOCK.. => Ok((last - END_OF_BLOCK) as u8),
        _ => Err("a block has more than 64 coefficients"),
    }
}

/// Decodes the AC symbols of `COUNT` lookups, for which enough bits are loaded; fewer if a lookup
/// fails or the block ends. Returns whether it ends.
#[inline(always)]
fn take_lookups<const COUNT: u32>(
    bits: &mut Bits<'_>,
    table: &AcTable,
    last: &mut u32,
    block: &mut impl Values,
) -> Result<bool, &'static str> {
    for _ in 0..COUNT {
        let entry = table.lookup[(bits.next >> (64 - PEEK_BITS)) as usize];
        let first = *last + first_step(entry);
        // A symbol that fills the block must not include the next one, which belongs to the next
        // block.
        if first >= 63 {
            *last = decode_one(bits, (table, entry), *last, block)?;
            return Ok(*last >= 63);
        }
        let second = first + second_step(entry);
        bits.skip_low(entry);
        // In this order: if there is only one symbol, both are written to the same position.
        block.put(second, second_value(entry) as i16);
        block.put(first, first_value(entry) as i16);
        *last = second;
        if second >= 63 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Decodes a DC difference whose code is too long for a lookup.
#[inline(always)]
fn decode_long_difference(bits: &mut Bits<'_>, table: &DcTable) -> Result<i32, &'static str> {
    let (length, size) = table.codes.find(bits.next).ok_or(NO_CODE)?;
    bits.skip(length);
    let size = u32::from(size & 15);
    let difference = extend(bits.next, size);
    bits.skip(size);
    Ok(difference)
}

/// Decodes one AC symbol after a position; returns its position. `entry` is
/// that of the next bits.
#[inline(always)]
fn decode_one(
    bits: &mut Bits<'_>,
    (table, entry): (&AcTable, u32),
    last: u32,
    block: &mut impl Values,
) -> Result<u32, &'static str> {
    if bits.count() < SYMBOL_BITS_MAX {
        bits.refill();
    }
    if let Some(CodeWithoutValue { zeros, size, code }) = CodeWithoutValue::of(entry) {
        let position = last + 1 + zeros;
        block.put(position, extend(bits.next << code, size) as i16);
        bits.skip_low(entry);
        return Ok(position);
    }
    let (length, symbol) = table.codes.find(bits.next).ok_or(NO_CODE)?;
    bits.skip(length);
    let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
    if size == 0 && zeros != 15 {
        return Ok(last + END_OF_BLOCK);
    }
    let position = last + 1 + zeros;
    block.put(position, extend(bits.next, size) as i16);
    bits.skip(size);
    Ok(position)
}

const NO_CODE: &str = "the bits match no Huffman code";

/// Offsets of the restart markers of the only scan, from the beginning of its data; empty without a
/// restart interval. Their number and order must be right, since each marks a position.
pub(super) fn restart_offsets(
    file: &[u8],
    header: &Header,
    offsets: &mut Vec<u32>,
) -> Result<(), Error> {
    offsets.clear();
    let scan = &header.scans[0];
    let mcus = header.frame.mcus_wide * header.frame.mcus_high;
    let Some(expected) = (mcus - 1).checked_div(scan.restart_interval) else { return Ok(()) };
    let data = &file[scan.data.clone()];
    for at in memchr::memchr_iter(0xff, data) {
        if let Some(marker @ 0xd0..=0xd7) = data.get(at + 1) {
            // Decoding a region skips most of them, so markers out of order are found only here.
            if usize::from(marker & 7) != offsets.len() & 7 {
                let problem = "a restart marker is not where it should be";
                return Err(damaged(scan.data.start + at, problem));
            }
            let offset = u32::try_from(at);
            offsets.push(offset.map_err(|_| damaged(at, "its scan is longer than 4 GiB"))?);
        }
    }
    if offsets.len() != expected as usize {
        let problem =
            format_args!("{expected} restart markers, {} found", offsets.len()).to_string();
        return Err(damaged(scan.data.end, format_args!("there should be {problem}")));
    }
    Ok(())
}
