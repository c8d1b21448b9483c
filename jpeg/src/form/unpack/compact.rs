//! Unpacks a row of the compact form: the bytes of a row of the fast form, each in a prefix code.

use super::super::codes::{CODES, Choice, Context, DC_PAIRS, WidthContexts};
use super::super::cursor::Cursor;
use super::super::geometry::{CLASSES, GROUPS, Strip};
use super::super::lanes::{Lanes, SLACK};
use super::super::simd::{self, CODED_OVERRUN as OVERRUN};
use super::{RowComponent, Shared, Task, fast, strips_of_kind};
use crate::form_error::FormError;
use std::ops::Range;

/// The tables that a picture has selected for a kind.
#[derive(Debug)]
pub(in super::super) struct SelectedTables {
    classes: Context,
    widths: WidthContexts,
}

impl SelectedTables {
    /// Of a kind.
    pub(in super::super) fn new(choice: &Choice, kind: usize) -> Self {
        let (classes, widths) = (CODES.classes(choice.classes), choice.width_contexts(kind));
        Self { classes, widths }
    }
}

/// Memory that is reused from row to row.
#[derive(Debug, Default)]
pub(in super::super) struct Decoded {
    /// The row of the fast form.
    row: Vec<u8>,
    /// The class of each block.
    classes: Vec<u8>,
    /// The code of each byte of a run.
    contexts: Vec<Context>,
    /// The band and type that each byte of widths belongs to.
    bands: Vec<u8>,
    /// Where the escapes of a run are applied.
    places: Vec<u32>,
}

/// Unpacks a row with `N` lanes.
pub(in super::super) fn row<const N: usize>(
    task: &Task<'_>,
    choices: &[SelectedTables],
    shared: &mut Shared,
    decoded: &mut Decoded,
    into: &mut [RowComponent<'_>],
) -> Result<(), FormError> {
    // Two classes use at least one bit, so few bytes cannot claim many blocks.
    if task.length * 16 < task.blocks {
        return Err(task.fault("a row has fewer bits than pairs of blocks"));
    }
    let (lanes, ends) = starts::<N>(task)?;
    let escapes = &task.bytes[ends[N - 1]..task.length];
    let mut source = Source { task, lanes, escapes, decoded, at: 0 };
    let dc_widths = classes(&mut source, choices)?;
    let widths = widths(&mut source, choices, dc_widths)?;
    groups(&mut source, widths)?;
    let Source { lanes, escapes, at, .. } = source;
    if lanes.0.map(|bits| bits.div_ceil(8)) != ends {
        return Err(task.fault("a lane does not have the length that it claims"));
    }
    if !escapes.is_empty() {
        return Err(task.fault("a row has more escapes than it uses"));
    }
    let task = Task {
        kernel: task.kernel,
        strips: task.strips,
        blocks: task.blocks,
        columns: task.columns.clone(),
        bytes: &decoded.row,
        length: at,
        offset: task.offset,
    };
    fast::row(&task, shared, into)
}

/// The start of each lane in bits, and its end in bytes.
fn starts<const N: usize>(task: &Task<'_>) -> Result<(Lanes<N>, [usize; N]), FormError> {
    let mut cursor = Cursor::new(&task.bytes[..task.length]);
    let mut lengths = [0; N];
    let mut before = 0i64;
    for (index, length) in lengths.iter_mut().enumerate() {
        let number = cursor.number().map_err(|_| task.fault("a row ends within its lengths"))?;
        let number = i64::from(number);
        before += if index == 0 { number } else { number >> 1 ^ -(number & 1) };
        let found = usize::try_from(before).ok().filter(|length| *length <= task.length);
        *length = found.ok_or_else(|| task.fault("a lane ends outside of its row"))?;
    }
    let (mut starts, mut ends) = ([0; N], [0; N]);
    let mut at = cursor.at;
    for ((start, end), length) in starts.iter_mut().zip(&mut ends).zip(lengths) {
        *start = at * 8;
        at += length;
        *end = at;
    }
    if at > task.length {
        return Err(task.fault("a lane ends outside of its row"));
    }
    Ok((Lanes(starts), ends))
}

/// A row's lanes, and the bytes read from them.
struct Source<'a, 'b, const N: usize> {
    task: &'a Task<'a>,
    lanes: Lanes<N>,
    /// Those that are left.
    escapes: &'a [u8],
    decoded: &'b mut Decoded,
    /// Bytes of the row of the fast form so far.
    at: usize,
}

impl<const N: usize> Source<'_, '_, N> {
    /// Grows the contexts to hold this many bytes.
    fn prepare(&mut self, bytes: usize) -> Result<(), FormError> {
        if self.at + bytes > 8 * self.task.length {
            return Err(self.task.fault("a row has fewer bits than bytes"));
        }
        let contexts = &mut self.decoded.contexts;
        contexts.resize(contexts.len().max(bytes + OVERRUN), Context::default());
        Ok(())
    }

    /// Reads a run of this many bytes, whose contexts are listed.
    fn read(&mut self, bytes: usize) -> Result<(), FormError> {
        let Decoded { row, contexts, places, .. } = &mut *self.decoded;
        let end = self.at + bytes;
        row.resize(row.len().max(end + SLACK), 0);
        let out = &mut row[self.at..end];
        let stored = self.task.bytes;
        let kernel = self.task.kernel;
        simd::read_coded(kernel, &mut self.lanes, stored, &CODES.tables, &contexts[..bytes], out);
        let count = simd::find_escapes(kernel, out, places);
        let escapes = self.escapes.split_at_checked(count);
        let (escapes, left) = escapes.ok_or_else(|| self.task.fault("a row lacks its escapes"))?;
        for (place, escape) in places.iter().zip(escapes) {
            out[*place as usize] = *escape;
        }
        self.escapes = left;
        self.at = end;
        Ok(())
    }
}

/// Reads classes and widths of DC differences; returns the position of the latter.
fn classes<const N: usize>(
    source: &mut Source<'_, '_, N>,
    choices: &[SelectedTables],
) -> Result<Range<usize>, FormError> {
    let task = source.task;
    let bytes = task.blocks.div_ceil(2);
    let groups = |strip: &Strip| strip.rows * strip.wide.div_ceil(GROUPS);
    let end = bytes + task.strips.iter().map(groups).sum::<usize>().div_ceil(2);
    source.prepare(end)?;
    // A byte is of the kind of its first block.
    let of_first = task.strips[0].blocks().div_ceil(2);
    let contexts = &mut source.decoded.contexts[..end];
    contexts[bytes..].fill(CODES.dc_widths());
    for (part, choice) in [0..of_first, of_first..bytes].into_iter().zip(choices) {
        contexts[part].fill(choice.classes);
    }
    source.read(end)?;
    let Decoded { row, classes, .. } = &mut *source.decoded;
    classes.resize(2 * bytes, 0);
    if usize::from(simd::nibbles(task.kernel, &row[..bytes], classes)) >= CLASSES {
        return Err(task.fault("a class is not 0 to 4"));
    }
    Ok(bytes..end)
}

/// Reads DC differences and the widths of all other groups; returns the position of the latter.
fn widths<const N: usize>(
    source: &mut Source<'_, '_, N>,
    choices: &[SelectedTables],
    dc_widths: Range<usize>,
) -> Result<Range<usize>, FormError> {
    let task = source.task;
    let dc = simd::group_bytes(task.kernel, &source.decoded.row[dc_widths.clone()]);
    let widths = simd::sum(task.kernel, &source.decoded.classes[..task.blocks]);
    source.prepare(dc + widths)?;
    let Decoded { row, classes, contexts, bands, .. } = &mut *source.decoded;
    bands.clear();
    bands.resize(dc_widths.len().max(widths) + OVERRUN, DC_PAIRS);
    let of_dc = &mut contexts[..dc + OVERRUN];
    simd::group_contexts(task.kernel, &row[dc_widths], bands, &CODES.pairs, of_dc);
    let mut at = 0;
    for (kind, choice) in choices.iter().enumerate() {
        let strips = &task.strips[strips_of_kind(task.strips, kind)];
        let first = strips.first().map_or(0, |strip| strip.first);
        let blocks: usize = strips.iter().map(Strip::blocks).sum();
        let (contexts, bands) = (&mut contexts[dc + at..], &mut bands[at..]);
        let classes = &classes[first..first + blocks];
        at += simd::width_contexts(task.kernel, classes, &choice.widths, contexts, bands);
    }
    let start = source.at + dc;
    source.read(dc + widths)?;
    Ok(start..source.at)
}

/// Reads the groups of these widths.
fn groups<const N: usize>(
    source: &mut Source<'_, '_, N>,
    widths: Range<usize>,
) -> Result<(), FormError> {
    let kernel = source.task.kernel;
    let bytes = simd::group_bytes(kernel, &source.decoded.row[widths.clone()]);
    source.prepare(bytes)?;
    let Decoded { row, contexts, bands, .. } = &mut *source.decoded;
    let contexts = &mut contexts[..bytes + OVERRUN];
    simd::group_contexts(kernel, &row[widths], bands, &CODES.pairs, contexts);
    source.read(bytes)
}
