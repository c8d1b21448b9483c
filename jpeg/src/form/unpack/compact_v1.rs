//! Unpacks a row of the compact form.

use super::super::bank::{BANK, CODES, CONTEXTS, Code, ESCAPE, context};
use super::super::cursor::Cursor;
use super::super::error::FormError;
use super::super::geometry::{CLASSES, GROUPS};
use super::super::lanes::{Lanes, OVERRUN, SLACK};
use super::super::simd::{self, Zigzag};
use super::{KindCodes, Patch, RowComponent, Shared, Task, apply, next_run, strips_of_kind};
use std::ops::Range;

/// Three classes out of one symbol.
const TRIPLES: [[u8; 3]; 125] = {
    let mut triples = [[0; 3]; 125];
    let mut symbol = 0;
    while symbol < 125 {
        triples[symbol as usize] = [symbol % 5, symbol / 5 % 5, symbol / 25];
        symbol += 1;
    }
    triples
};

/// Memory that is reused from row to row.
#[derive(Debug, Default)]
pub(in super::super) struct Streams {
    symbols: Vec<u8>,
    masks: Vec<u8>,
    values: Vec<u8>,
    mask_plan: Plan,
    value_plan: Plan,
}

/// Numbers that do not fit their codes, in the order in which blocks are unpacked.
struct Escapes<'a> {
    left: &'a [u8],
}

impl Escapes<'_> {
    fn next(&mut self) -> i16 {
        let (value, left) = self.left.split_first_chunk().expect("they were counted");
        self.left = left;
        i16::from_le_bytes(*value)
    }

    fn skip(&mut self, count: usize) {
        self.left = &self.left[2 * count..];
    }
}

/// Unpacks a row with `N` lanes.
pub(in super::super) fn row<const N: usize>(
    task: &Task<'_>,
    codes: &[KindCodes],
    shared: &mut Shared,
    streams: &mut Streams,
    into: &mut [RowComponent<'_>],
) -> Result<(), FormError> {
    // Every DC difference takes a bit, so that no few bytes make a great many blocks.
    if task.length * 8 < task.blocks {
        return Err(task.fault("a row has fewer bits than blocks"));
    }
    shared.prepare(task);
    let (mut lanes, ends) = starts::<N>(task)?;
    let mut reader = Reader { task, lanes: &mut lanes };
    classes(&mut reader, codes, shared, streams);
    let dc_escapes = dc(&mut reader, codes, shared, streams);
    shared.count_classes(task);
    masks(&mut reader, codes, shared, streams);
    let values = values(&mut reader, codes, shared, streams)?;
    let escapes = dc_escapes + simd::count(task.kernel, &streams.values[..values], ESCAPE);
    let escape_start = task.length.checked_sub(2 * escapes);
    let escape_start = escape_start.ok_or_else(|| task.fault("a row lacks its escapes"))?;
    let mut ends = ends;
    ends[N - 1] = escape_start;
    if lanes.0.map(|bits| bits.div_ceil(8)) != ends {
        return Err(task.fault("a lane has not the length that it claims"));
    }
    let mut left = Escapes { left: &task.bytes[escape_start..task.length] };
    finish_dc(task, codes, shared, &mut left, dc_escapes);
    shared.sum_dc(task.kernel, task.strips);
    shared.sort(task);
    shared.flat(task, into);
    let any = escapes > dc_escapes;
    for kind in 0..codes.len() {
        for class in 1..CLASSES {
            let mut source = Source {
                class,
                masks: &streams.masks,
                mask_at: streams.mask_plan.starts_of(kind, class),
                values: &streams.values,
                value_at: streams.value_plan.starts_of(kind, class),
                escapes: any.then_some(&mut left),
            };
            for strip in strips_of_kind(task.strips, kind) {
                blocks(task, shared, strip, &mut source, &mut into[strip])?;
            }
        }
    }
    Ok(())
}

/// Where each lane starts in bits, and where all but the last end in bytes.
fn starts<const N: usize>(task: &Task<'_>) -> Result<(Lanes<N>, [usize; N]), FormError> {
    let mut cursor = Cursor::new(&task.bytes[..task.length]);
    let mut ends = [0; N];
    for end in &mut ends[..N - 1] {
        *end = cursor.number().map_err(|_| task.fault("a row ends within its lengths"))? as usize;
    }
    let mut starts = [0; N];
    let mut at = cursor.at;
    for (start, end) in starts.iter_mut().zip(&mut ends) {
        *start = at * 8;
        at += *end;
        *end = at;
    }
    if at > task.length {
        return Err(task.fault("a lane ends behind its row"));
    }
    Ok((Lanes(starts), ends))
}

/// Reads runs of symbols from a row's lanes.
struct Reader<'a, const N: usize> {
    task: &'a Task<'a>,
    lanes: &'a mut Lanes<N>,
}

impl<const N: usize> Reader<'_, N> {
    /// Reads symbols to the start of `out`, which has room for [`OVERRUN`] more.
    fn read(&mut self, code: &Code, out: &mut [u8], count: usize) {
        let bytes = &self.task.bytes[..self.task.length + SLACK];
        simd::read_lanes(self.task.kernel, self.lanes, bytes, &code.table, out, count);
    }
}

/// Reads the class of each block.
fn classes<const N: usize>(
    reader: &mut Reader<'_, N>,
    codes: &[KindCodes],
    shared: &mut Shared,
    streams: &mut Streams,
) {
    let strips = reader.task.strips;
    for (kind, codes) in codes.iter().enumerate() {
        let of_kind = &strips[strips_of_kind(strips, kind)];
        let count = of_kind.iter().map(|strip| strip.rows * strip.wide.div_ceil(3)).sum();
        streams.symbols.resize(count + OVERRUN, 0);
        reader.read(&BANK.classes[codes.classes], &mut streams.symbols, count);
        let mut symbols = streams.symbols[..count].iter();
        for strip in of_kind {
            for line in 0..strip.rows {
                let first = strip.first + line * strip.wide;
                for (at, symbol) in (first..first + strip.wide).step_by(3).zip(&mut symbols) {
                    // The last of a line may write over the next line's start, which comes later.
                    shared.classes[at..at + 3].copy_from_slice(&TRIPLES[usize::from(*symbol)]);
                }
            }
        }
    }
}

/// Reads the DC differences, with 0 where there is an escape; gives how many there are.
fn dc<const N: usize>(
    reader: &mut Reader<'_, N>,
    codes: &[KindCodes],
    shared: &mut Shared,
    streams: &mut Streams,
) -> usize {
    let strips = reader.task.strips;
    let mut escapes = 0;
    streams.symbols.resize(2 * (reader.task.blocks + OVERRUN), 0);
    let mut first = 0;
    for (kind, codes) in codes.iter().enumerate() {
        let count = strips[strips_of_kind(strips, kind)].iter().map(super::Strip::blocks).sum();
        let (high, low) = streams.symbols.split_at_mut(count + OVERRUN);
        reader.read(&BANK.dc[codes.dc], high, count);
        escapes += simd::count(reader.task.kernel, &high[..count], ESCAPE);
        let dc = &mut shared.dc[first..first + count];
        first += count;
        if codes.dc_shift == 0 {
            for (dc, high) in dc.iter_mut().zip(high) {
                *dc = i16::from(*high as i8);
            }
        } else {
            reader.read(&BANK.flat[codes.dc_shift], low, count);
            for (dc, (high, low)) in dc.iter_mut().zip(high.iter().zip(low)) {
                *dc = i16::from(*high as i8) << codes.dc_shift | i16::from(*low);
            }
        }
    }
    escapes
}

/// Puts escaped DC differences in their places.
fn finish_dc(
    task: &Task<'_>,
    codes: &[KindCodes],
    shared: &mut Shared,
    escapes: &mut Escapes<'_>,
    mut count: usize,
) {
    let mut first = 0;
    for (kind, codes) in codes.iter().enumerate() {
        let of_kind = &task.strips[strips_of_kind(task.strips, kind)];
        let blocks: usize = of_kind.iter().map(super::Strip::blocks).sum();
        for dc in &mut shared.dc[first..first + blocks] {
            if count > 0 && *dc >> codes.dc_shift == -128 {
                let low = *dc & ((1 << codes.dc_shift) - 1);
                *dc = escapes.next() << codes.dc_shift | low;
                count -= 1;
            }
        }
        first += blocks;
    }
}

/// Reads the masks of all groups.
fn masks<const N: usize>(
    reader: &mut Reader<'_, N>,
    codes: &[KindCodes],
    shared: &Shared,
    streams: &mut Streams,
) {
    let strips = reader.task.strips;
    let plan = &mut streams.mask_plan;
    plan.clear();
    for (kind, codes) in codes.iter().enumerate() {
        for class in 1..CLASSES {
            let count = shared.count(strips_of_kind(strips, kind), class);
            for context in context(class, 0)..context(class, 2 * class) {
                plan.push(codes.map[context].1, count);
            }
        }
    }
    let symbols = plan.finish();
    streams.masks.resize(symbols + OVERRUN, 0);
    for (code, run) in plan.runs() {
        reader.read(&BANK.masks[code], &mut streams.masks[run.start..], run.len());
    }
}

/// Reads the values of all groups; gives how many they are.
fn values<const N: usize>(
    reader: &mut Reader<'_, N>,
    codes: &[KindCodes],
    shared: &Shared,
    streams: &mut Streams,
) -> Result<usize, FormError> {
    let task = reader.task;
    let plan = &mut streams.value_plan;
    plan.clear();
    for (kind, codes) in codes.iter().enumerate() {
        for class in 1..CLASSES {
            let count = shared.count(strips_of_kind(task.strips, kind), class);
            let starts = streams.mask_plan.starts_of(kind, class);
            for (group, start) in starts[..2 * class].iter().enumerate() {
                let ones = simd::ones(task.kernel, &streams.masks[*start..start + count]);
                plan.push(codes.map[context(class, group)].0, ones);
            }
        }
    }
    let symbols = plan.finish();
    if symbols > 8 * task.length {
        return Err(task.fault("a row has fewer bits than values"));
    }
    streams.values.resize(symbols + OVERRUN, 0);
    for (code, run) in plan.runs() {
        reader.read(&BANK.values[code], &mut streams.values[run.start..], run.len());
    }
    Ok(symbols)
}

/// Where the symbols of each group of each class of each kind are. All that have the same code
/// are one run, and the runs follow in the order of their codes.
#[derive(Debug)]
struct Plan {
    /// Code and place of each group, in the order of kinds, classes and groups; the place is from
    /// the start of the run until [`Plan::finish`].
    groups: [(u8, usize); 2 * CONTEXTS],
    count: usize,
    /// Where each code's run starts, and behind the last its end.
    runs: [usize; CODES + 1],
}

impl Default for Plan {
    fn default() -> Self {
        Self { groups: [(0, 0); 2 * CONTEXTS], count: 0, runs: [0; CODES + 1] }
    }
}

impl Plan {
    fn clear(&mut self) {
        self.count = 0;
        self.runs = [0; CODES + 1];
    }

    /// Adds the symbols of the next group.
    fn push(&mut self, code: u8, symbols: usize) {
        let run = &mut self.runs[usize::from(code) + 1];
        self.groups[self.count] = (code, *run);
        *run += symbols;
        self.count += 1;
    }

    /// Puts the runs one after another, and gives how many symbols there are.
    fn finish(&mut self) -> usize {
        for code in 0..CODES {
            self.runs[code + 1] += self.runs[code];
        }
        for (code, place) in &mut self.groups[..self.count] {
            *place += self.runs[usize::from(*code)];
        }
        self.runs[CODES]
    }

    /// The runs that are not empty, with their codes.
    fn runs(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let runs = self.runs.windows(2).map(|ends| ends[0]..ends[1]);
        runs.enumerate().filter(|(_, run)| !run.is_empty())
    }

    /// Where the symbols of each group of a class start.
    fn starts_of(&self, kind: usize, class: usize) -> [usize; GROUPS] {
        let first = kind * CONTEXTS + context(class, 0);
        let mut starts = [0; GROUPS];
        for (start, (_, place)) in starts.iter_mut().zip(&self.groups[first..first + 2 * class]) {
            *start = *place;
        }
        starts
    }
}

/// The masks and values of the blocks of a kind and class.
struct Source<'a, 'b> {
    class: usize,
    masks: &'a [u8],
    /// Where the next block's mask of each group is.
    mask_at: [usize; GROUPS],
    values: &'a [u8],
    /// Where the next block's values of each group start.
    value_at: [usize; GROUPS],
    /// Absent where there are none.
    escapes: Option<&'a mut Escapes<'b>>,
}

impl Source<'_, '_> {
    /// Unpacks blocks.
    fn expand(&mut self, task: &Task<'_>, out: &mut [Zigzag]) {
        let masks = simd::Masks { bytes: self.masks, starts: self.mask_at };
        simd::expand_masks(task.kernel, self.class, masks, self.values, &mut self.value_at, out);
        self.mask_at.iter_mut().for_each(|at| *at += out.len());
    }

    /// Passes over blocks.
    fn skip(&mut self, task: &Task<'_>, count: usize) {
        for group in 0..2 * self.class {
            let masks = &self.masks[self.mask_at[group]..][..count];
            let end = self.value_at[group] + simd::ones(task.kernel, masks);
            if let Some(escapes) = &mut self.escapes {
                let values = &self.values[self.value_at[group]..end];
                escapes.skip(simd::count(task.kernel, values, ESCAPE));
            }
            self.value_at[group] = end;
            self.mask_at[group] += count;
        }
    }
}

/// Unpacks the blocks of a class and strip.
fn blocks(
    task: &Task<'_>,
    shared: &mut Shared,
    strip: usize,
    source: &mut Source<'_, '_>,
    into: &mut RowComponent<'_>,
) -> Result<(), FormError> {
    let members = shared.members(task, strip, source.class);
    let mut targets = &shared.targets[members];
    while !targets.is_empty() {
        let (inside, count) = next_run(task, targets);
        let (run, rest) = targets.split_at(count);
        targets = rest;
        if !inside {
            source.skip(task, count);
            continue;
        }
        let chunk = &mut shared.chunk[..count];
        source.expand(task, chunk);
        simd::spread(task.kernel, source.class, chunk, run, into);
        if let Some(escapes) = &mut source.escapes {
            let used = u64::MAX >> (64 - 2 * GROUPS * source.class);
            for (member, bytes) in chunk.iter().enumerate() {
                let found = simd::places_of(task.kernel, bytes, ESCAPE) & used;
                if found != 0 && !unescape(member, bytes, found, escapes, &mut shared.patches) {
                    return Err(task.fault("an escape of nothing"));
                }
            }
            apply(&mut shared.patches, run, into.blocks);
        }
    }
    Ok(())
}

/// Notes the groups of a block with escapes; false if one stands for zero or for no coefficient.
fn unescape(
    member: usize,
    bytes: &Zigzag,
    found: u64,
    escapes: &mut Escapes<'_>,
    patches: &mut Vec<Patch>,
) -> bool {
    let groups = bytes.0.as_chunks::<GROUPS>().0.iter().zip(found.to_le_bytes());
    let mut good = found >> 63 == 0;
    for (group, (bytes, found)) in groups.enumerate().filter(|(_, (_, found))| *found != 0) {
        let mut values = bytes.map(|byte| i16::from(byte as i8));
        for (place, value) in values.iter_mut().enumerate() {
            if found >> place & 1 == 1 {
                *value = escapes.next();
                good &= *value != 0;
            }
        }
        patches.push(Patch { member, group, values });
    }
    good
}
