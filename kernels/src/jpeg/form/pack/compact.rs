//! Writes the compact form: prefix codes out of a fixed bank, chosen for the picture.

use super::super::bank::{BANK, CODES, CONTEXTS, Code, CodeMap, ESCAPE, context};
use super::super::cursor::push_number;
use super::super::geometry::{CLASSES, GROUPS, Strip};
use super::super::lanes::LaneWriter;
use super::super::unpack::{DC_SHIFT_MAX, EXPLICIT, KindCodes};
use super::{Row, Rows};

/// Blocks of a row of MCUs up to which one lane is shorter than four by more than it is slower.
const ONE_LANE_BLOCKS_MAX: usize = 32;

/// Bits of a number in the list of escapes.
const ESCAPE_BITS: u64 = 16;

/// Codes of values that a picture uses, and as many of masks. With more of them some 0.3 % of the
/// bytes could be saved, but the tables would not stay in the first-level cache.
const CODES_MAX: usize = 6;

/// How often each byte occurs.
type Counts = [u64; 256];

/// Appends how the picture is coded to `out`, and gives the stored bytes of its rows.
pub(super) fn rows(rows: &Rows<'_>, out: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let kinds = rows.strips.len().min(2);
    let mut statistics = vec![Statistics::default(); kinds];
    for row in rows.iter() {
        for (kind, statistics) in statistics.iter_mut().enumerate() {
            statistics.add(&row, rows.strips, kind);
        }
    }
    let blocks: usize = rows.strips.iter().map(Strip::blocks).sum();
    let lanes = if blocks <= ONE_LANE_BLOCKS_MAX { 1 } else { 4 };
    out.push(lanes as u8);
    let maps = maps(&statistics);
    let kinds = statistics.iter().zip(maps);
    let codes: Vec<KindCodes> = kinds.map(|(of_kind, map)| of_kind.choose(map, out)).collect();
    rows.iter().map(|row| store(&row, rows.strips, &codes, lanes)).collect()
}

/// For each kind the map that takes the fewest bits with no more than [`CODES_MAX`] codes of
/// values, and of masks.
fn maps(statistics: &[Statistics]) -> Vec<CodeMap> {
    let costs = |codes: &[Code], counts: fn(&Statistics) -> &[Counts; CONTEXTS]| -> Vec<Vec<u64>> {
        let contexts = statistics.iter().flat_map(counts);
        contexts.map(|counts| codes.iter().map(|code| cost(code, counts)).collect()).collect()
    };
    let values = few(&costs(&BANK.values, |statistics| &statistics.values));
    let masks = few(&costs(&BANK.masks, |statistics| &statistics.masks));
    let pairs: Vec<(u8, u8)> = values.into_iter().zip(masks).collect();
    pairs.as_chunks::<CONTEXTS>().0.to_vec()
}

/// For each context one of few codes. They are added one by one, each the one that saves most.
fn few(costs: &[Vec<u64>]) -> Vec<u8> {
    let mut chosen: Vec<usize> = Vec::new();
    let least = |costs: &[u64], codes: &[usize]| codes.iter().map(|code| costs[*code]).min();
    for _ in 0..CODES_MAX {
        let with = |code: usize| {
            let codes = [chosen.as_slice(), &[code]].concat();
            costs.iter().filter_map(|costs| least(costs, &codes)).sum::<u64>()
        };
        chosen.extend((0..CODES).min_by_key(|code| with(*code)));
    }
    let best = |costs: &Vec<u64>| chosen.iter().min_by_key(|code| costs[**code]).copied();
    costs.iter().filter_map(best).map(|code| code as u8).collect()
}

/// What decides which codes suit the blocks of a kind.
#[derive(Debug, Clone)]
struct Statistics {
    classes: Counts,
    /// For every number of low bits.
    dc: [Counts; DC_SHIFT_MAX + 1],
    masks: [Counts; CONTEXTS],
    values: [Counts; CONTEXTS],
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            classes: [0; 256],
            dc: [[0; 256]; DC_SHIFT_MAX + 1],
            masks: [[0; 256]; CONTEXTS],
            values: [[0; 256]; CONTEXTS],
        }
    }
}

impl Statistics {
    fn add(&mut self, row: &Row, strips: &[Strip], kind: usize) {
        for three in triples(row, strips, kind) {
            self.classes[usize::from(three)] += 1;
        }
        for difference in dc(row, strips, kind) {
            for (shift, counts) in self.dc.iter_mut().enumerate() {
                counts[usize::from(byte(difference >> shift))] += 1;
            }
        }
        for class in 1..CLASSES {
            for block in row.members(strips, kind, class) {
                let groups = row.ac[block][..2 * class * GROUPS].chunks(GROUPS);
                for (group, values) in groups.enumerate() {
                    let context = context(class, group);
                    self.masks[context][usize::from(mask(values))] += 1;
                    for value in values.iter().filter(|value| **value != 0) {
                        self.values[context][usize::from(byte(*value))] += 1;
                    }
                }
            }
        }
    }

    /// The codes that take the fewest bits; their description goes to `out`.
    fn choose(&self, explicit: CodeMap, out: &mut Vec<u8>) -> KindCodes {
        let bank = &*BANK;
        let (_, classes) = best(&bank.classes, &self.classes);
        let shifts = self.dc.iter().enumerate().map(|(shift, counts)| {
            let low_bits = shift as u64 * counts.iter().sum::<u64>();
            let (cost, dc) = best(&bank.dc, counts);
            (cost + low_bits, shift, dc)
        });
        let (_, dc_shift, dc) = shifts.min().expect("there is more than one shift");
        let presets = bank.presets.iter().enumerate().map(|(index, map)| (self.cost(map), index));
        let (preset_cost, preset) = presets.min().expect("there are presets");
        let explicit_cost = self.cost(&explicit) + 8 * CONTEXTS as u64;
        out.push((dc | dc_shift << 3) as u8);
        let map = if preset_cost <= explicit_cost {
            out.push((classes | preset << 3) as u8);
            bank.presets[preset]
        } else {
            out.push(classes as u8 | EXPLICIT);
            out.extend(explicit.iter().map(|(values, masks)| values | masks << 4));
            explicit
        };
        KindCodes { classes, dc, dc_shift, map }
    }

    /// Bits of masks and values with this map.
    fn cost(&self, map: &CodeMap) -> u64 {
        let contexts = map.iter().zip(self.values.iter().zip(&self.masks));
        let costs = contexts.map(|((value_code, mask_code), (values, masks))| {
            cost(&BANK.values[usize::from(*value_code)], values)
                + cost(&BANK.masks[usize::from(*mask_code)], masks)
        });
        costs.sum()
    }
}

/// The code that takes the fewest bits for these symbols: the bits and its index.
fn best(codes: &[Code], counts: &Counts) -> (u64, usize) {
    let costs = codes.iter().enumerate().map(|(index, code)| (cost(code, counts), index));
    costs.min().expect("the bank has codes")
}

/// Bits of these symbols; what the code lacks is escaped.
fn cost(code: &Code, counts: &Counts) -> u64 {
    let escape = u64::from(code.lengths[usize::from(ESCAPE)]) + ESCAPE_BITS;
    let costs = counts.iter().zip(code.lengths).enumerate().map(|(symbol, (count, length))| {
        let escaped = length == 0 || symbol == usize::from(ESCAPE);
        count * if escaped { escape } else { u64::from(length) }
    });
    costs.sum()
}

/// A row's stored bytes: lengths of all lanes but the last, lanes, escapes.
fn store(row: &Row, strips: &[Strip], codes: &[KindCodes], lanes: usize) -> Vec<u8> {
    let bank = &*BANK;
    let mut writer = LaneWriter::new(lanes);
    let mut escapes = Vec::new();
    for (kind, codes) in codes.iter().enumerate() {
        writer.run(&bank.classes[codes.classes], triples(row, strips, kind));
    }
    for (kind, codes) in codes.iter().enumerate() {
        let (shift, code) = (codes.dc_shift, &bank.dc[codes.dc]);
        let differences: Vec<i16> = dc(row, strips, kind).collect();
        let high = differences.iter().map(|difference| difference >> shift);
        let high: Vec<u8> = high.map(|high| symbol(code, high, &mut escapes)).collect();
        writer.run(code, high);
        if shift > 0 {
            let mask = (1u16 << shift) - 1;
            let low = differences.iter().map(|difference| (*difference as u16 & mask) as u8);
            writer.run(&bank.flat[shift], low);
        }
    }
    let mut masks = vec![Vec::new(); CODES];
    let mut values = vec![Vec::new(); CODES];
    for (kind, codes) in codes.iter().enumerate() {
        for class in 1..CLASSES {
            let (of_masks, of_values) = streams(row, strips, (kind, class), codes, &mut escapes);
            let map = &codes.map[context(class, 0)..];
            for (code, (mut of_masks, mut of_values)) in
                map.iter().zip(of_masks.into_iter().zip(of_values))
            {
                values[usize::from(code.0)].append(&mut of_values);
                masks[usize::from(code.1)].append(&mut of_masks);
            }
        }
    }
    for (code, symbols) in bank.masks.iter().zip(masks).chain(bank.values.iter().zip(values)) {
        writer.run(code, symbols);
    }
    let lanes = writer.finish();
    let mut out = Vec::new();
    for lane in &lanes[..lanes.len() - 1] {
        push_number(&mut out, lane.len() as u32);
    }
    out.extend(lanes.iter().flatten());
    out.extend(escapes.iter().flat_map(|value: &i16| value.to_le_bytes()));
    out
}

/// Masks and values of the blocks of a kind and class, by group.
fn streams(
    row: &Row,
    strips: &[Strip],
    (kind, class): (usize, usize),
    codes: &KindCodes,
    escapes: &mut Vec<i16>,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut masks = vec![Vec::new(); 2 * class];
    let mut values = vec![Vec::new(); 2 * class];
    for block in row.members(strips, kind, class) {
        let groups = row.ac[block][..2 * class * GROUPS].chunks(GROUPS);
        for (group, numbers) in groups.enumerate() {
            masks[group].push(mask(numbers));
            let code = &BANK.values[usize::from(codes.map[context(class, group)].0)];
            let nonzero = numbers.iter().filter(|number| **number != 0);
            values[group].extend(nonzero.map(|number| symbol(code, *number, escapes)));
        }
    }
    (masks, values)
}

/// The symbol of a number, [`ESCAPE`] where the code has none, with the number as an escape.
fn symbol(code: &Code, number: i16, escapes: &mut Vec<i16>) -> u8 {
    let symbol = byte(number);
    if symbol == ESCAPE || code.lengths[usize::from(symbol)] == 0 {
        escapes.push(number);
        return ESCAPE;
    }
    symbol
}

/// A number in two's complement, [`ESCAPE`] if it does not fit; -128 does not either.
fn byte(number: i16) -> u8 {
    if (-127..=127).contains(&number) { number as u8 } else { ESCAPE }
}

/// Which of eight numbers are not zero, the first in the lowest bit.
fn mask(numbers: &[i16]) -> u8 {
    numbers.iter().rev().fold(0, |mask, number| mask << 1 | u8::from(*number != 0))
}

/// The DC differences of the blocks of a kind.
fn dc(row: &Row, strips: &[Strip], kind: usize) -> impl Iterator<Item = i16> {
    let of_kind = strips.iter().filter(move |strip| strip.kind == kind);
    of_kind.flat_map(|strip| row.dc[strip.first..][..strip.blocks()].iter().copied())
}

/// The classes of the blocks of a kind, three neighbours of a line in one number.
fn triples(row: &Row, strips: &[Strip], kind: usize) -> impl Iterator<Item = u8> {
    let of_kind = strips.iter().filter(move |strip| strip.kind == kind);
    of_kind
        .flat_map(|strip| row.classes[strip.first..][..strip.blocks()].chunks(strip.wide))
        .flat_map(|line| line.chunks(3))
        .map(|three| three.iter().rev().fold(0, |number, class| number * 5 + class))
}
