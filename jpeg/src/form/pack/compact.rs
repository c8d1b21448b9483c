//! Writes the compact form: rows of the fast form, each byte in a prefix code out of a fixed bank.

use super::super::codes::{
    CLASS_CODES, CODES, Choice, Context, DC_PAIRS, ESCAPE, KINDS, LANES, WIDTH_CODES,
    WIDTH_INDICES, Words, width_index,
};
use super::super::cursor::push_number;
use super::super::geometry::Strip;
use super::super::lanes::LaneWriter;
use super::super::reader::check;
use super::super::simd::{CODED_OVERRUN, portable_contexts};
use super::fast::{Parts, group_bytes, parts};
use super::{FormError, Interrupt, McuRow, McuRows};

/// Blocks of a row of MCUs up to which one lane saves more bytes than it costs time.
const ONE_LANE_BLOCKS_MAX: usize = 32;

/// Bits of an escape beside its word.
const ESCAPE_BITS: u64 = 8;

/// How often each byte occurs.
type Counts = [u64; 256];

/// Appends the codes of the picture to `out`, and returns the stored bytes of its rows.
pub(super) fn rows(
    rows: &McuRows<'_>,
    out: &mut Vec<u8>,
    interrupt: &Interrupt,
) -> Result<Vec<Vec<u8>>, FormError> {
    let kinds = rows.strips.len().min(KINDS);
    let mut statistics = vec![Statistics::default(); kinds];
    let of_row = |row: McuRow| {
        check(interrupt)?;
        Ok((parts(&row, rows.strips), row.natural.iter().map(super::fast::bands).collect()))
    };
    let all = rows.iter().map(of_row).collect::<Result<Vec<(Parts, Vec<u8>)>, FormError>>()?;
    for (parts, classes) in &all {
        check(interrupt)?;
        for (kind, statistics) in statistics.iter_mut().enumerate() {
            statistics.add(parts, classes, rows.strips, kind);
        }
    }
    let blocks: usize = rows.strips.iter().map(Strip::blocks).sum();
    let lanes = if blocks <= ONE_LANE_BLOCKS_MAX { 1 } else { LANES };
    out.push(lanes);
    let choices: Vec<Choice> = statistics.iter().map(Statistics::choose).collect();
    for choice in &choices {
        out.push(choice.classes);
        let pairs = choice.widths.chunks(2);
        out.extend(pairs.map(|pair| pair[0] | pair[1] << 4));
    }
    let stored = |(parts, classes): &(Parts, Vec<u8>)| {
        check(interrupt)?;
        Ok(store(parts, classes, rows.strips, &choices, lanes))
    };
    all.iter().map(stored).collect()
}

/// The blocks of a kind.
fn blocks_of(strips: &[Strip], kind: usize) -> std::ops::Range<usize> {
    let of_kind = || strips.iter().filter(move |strip| strip.kind == kind);
    let first = of_kind().map(|strip| strip.first).next().unwrap_or(0);
    first..first + of_kind().map(Strip::blocks).sum::<usize>()
}

/// The statistics that select the codes for the blocks of a kind.
#[derive(Debug, Clone)]
struct Statistics {
    classes: Counts,
    widths: [Counts; WIDTH_INDICES],
}

impl Default for Statistics {
    fn default() -> Self {
        Self { classes: [0; 256], widths: [[0; 256]; WIDTH_INDICES] }
    }
}

impl Statistics {
    fn add(&mut self, parts: &Parts, classes: &[u8], strips: &[Strip], kind: usize) {
        let blocks = blocks_of(strips, kind);
        for pair in &parts.classes[blocks.start.div_ceil(2)..blocks.end.div_ceil(2)] {
            self.classes[usize::from(*pair)] += 1;
        }
        let sum = |classes: &[u8]| classes.iter().map(|class| usize::from(*class)).sum::<usize>();
        let mut widths = parts.widths[sum(&classes[..blocks.start])..].iter();
        for class in classes[blocks].iter().map(|class| usize::from(*class)) {
            for (band, widths) in widths.by_ref().take(class).enumerate() {
                self.widths[width_index(class, band)][usize::from(*widths)] += 1;
            }
        }
    }

    /// The codes with the smallest total number of bits.
    fn choose(&self) -> Choice {
        let of_classes = |choice| CODES.classes(choice);
        let of_widths = |choice| CODES.widths(choice);
        Choice {
            classes: best(CLASS_CODES, of_classes, &self.classes),
            widths: std::array::from_fn(|at| best(WIDTH_CODES, of_widths, &self.widths[at])),
        }
    }
}

/// The choice with the smallest number of bits for these bytes.
fn best(choices: usize, context: impl Fn(u8) -> Context, counts: &Counts) -> u8 {
    let costs = (0..choices as u8).map(|choice| (cost(words(context(choice)), counts), choice));
    costs.min().expect("there are codes").1
}

/// Bits of these bytes in a code, escapes included.
fn cost(words: &Words, counts: &Counts) -> u64 {
    let escape = u64::from(words[usize::from(ESCAPE)].1) + ESCAPE_BITS;
    let costs = counts
        .iter()
        .zip(words)
        .map(|(count, (_, length))| count * if *length == 0 { escape } else { u64::from(*length) });
    costs.sum()
}

/// The code whose table starts at an offset.
fn words(context: Context) -> &'static Words {
    &CODES.words[context.code()]
}

/// A row's stored bytes: lengths of the lanes, lanes, escapes.
fn store(
    parts: &Parts,
    classes: &[u8],
    strips: &[Strip],
    choices: &[Choice],
    lanes: u8,
) -> Vec<u8> {
    let mut writer = LaneWriter::new(usize::from(lanes));
    let mut escapes = Vec::new();
    let mut run = |bytes: &[u8], contexts: &[Context]| {
        let listed = bytes.iter().copied().zip(contexts.iter().map(|context| words(*context)));
        writer.run(listed, &mut escapes);
    };
    let mut of_classes = Vec::new();
    for (kind, choice) in choices.iter().enumerate() {
        let end = blocks_of(strips, kind).end.div_ceil(2);
        of_classes.resize(end, CODES.classes(choice.classes));
    }
    let mut of_head = of_classes;
    of_head.resize(of_head.len() + parts.dc_widths.len(), CODES.dc_widths());
    run(&[&*parts.classes, &*parts.dc_widths].concat(), &of_head);
    let mut of_dc = group_contexts(&parts.dc_widths, &vec![DC_PAIRS; parts.dc_widths.len()]);
    let mut bands = vec![0; parts.widths.len() + CODED_OVERRUN];
    let mut contexts = vec![Context::default(); parts.widths.len() + CODED_OVERRUN];
    let mut at = 0;
    for (kind, choice) in choices.iter().enumerate() {
        let classes = &classes[blocks_of(strips, kind)];
        let of = choice.width_contexts(kind);
        let (contexts, bands) = (&mut contexts[at..], &mut bands[at..]);
        at += portable_contexts::width_contexts(classes, &of, contexts, bands);
    }
    of_dc.extend(&contexts[..at]);
    run(&[&*parts.dc, &*parts.widths].concat(), &of_dc);
    run(&parts.groups, &group_contexts(&parts.widths, &bands));
    let lanes = writer.finish();
    let mut out = Vec::new();
    let mut before = 0i64;
    for (index, lane) in lanes.iter().enumerate() {
        let length = lane.len() as i64;
        let difference = length - before;
        let folded = difference << 1 ^ difference >> 63;
        push_number(&mut out, if index == 0 { length } else { folded } as u32);
        before = length;
    }
    out.extend(lanes.iter().flatten());
    out.append(&mut escapes);
    out
}

/// The contexts of the bytes of groups.
fn group_contexts(widths: &[u8], bands: &[u8]) -> Vec<Context> {
    let mut contexts = vec![Context::default(); group_bytes(widths)];
    portable_contexts::group_contexts(widths, bands, &CODES.pairs, &mut contexts);
    contexts
}
