//! Writes a row of the fast form: groups of eight numbers, each group in as few bits as it needs.

use super::super::geometry::{BANDS, GROUPS, Strip, group_places, width};
use super::super::lanes::BitWriter;
use super::McuRow;

/// The parts of a row, which follow one another.
pub(super) struct Parts {
    /// Two classes a byte.
    pub(super) classes: Vec<u8>,
    /// Widths of two groups of DC differences a byte.
    pub(super) dc_widths: Vec<u8>,
    /// The groups of DC differences.
    pub(super) dc: Vec<u8>,
    /// Widths of two groups a byte.
    pub(super) widths: Vec<u8>,
    /// The groups.
    pub(super) groups: Vec<u8>,
}

/// The stored bytes of a row.
pub(super) fn row(row: &McuRow, strips: &[Strip]) -> Vec<u8> {
    let Parts { classes, dc_widths, dc, widths, groups } = parts(row, strips);
    [classes, dc_widths, dc, widths, groups].concat()
}

/// The parts of a row.
pub(super) fn parts(row: &McuRow, strips: &[Strip]) -> Parts {
    let bands = row.natural.iter().map(bands);
    let classes = nibbles(&bands.clone().collect::<Vec<_>>());
    let (mut dc, mut widths, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    let dc_widths: Vec<u8> = strips
        .iter()
        .flat_map(|strip| row.dc[strip.first..][..strip.blocks()].chunks(strip.wide))
        .flat_map(|line| line.chunks(GROUPS))
        .map(|group| push_group(group, folded, &mut dc))
        .collect();
    for (block, bands) in row.natural.iter().zip(bands) {
        let group = |group| group_places(group).map(|place| block[place]);
        let codes: Vec<u8> = (0..2 * usize::from(bands))
            .map(|index| push_group(&group(index), |value| *value as u16, &mut groups))
            .collect();
        widths.extend(nibbles(&codes));
    }
    Parts { classes, dc_widths: nibbles(&dc_widths), dc, widths, groups }
}

/// Bytes of the groups of these widths.
pub(super) fn group_bytes(widths: &[u8]) -> usize {
    let bytes = |pair: &u8| usize::from(width(pair & 15)) + usize::from(width(pair >> 4));
    widths.iter().map(bytes).sum()
}

/// Bands of a block up to the last that is not all zero, which is its class.
pub(super) fn bands(block: &[i16; 64]) -> u8 {
    let end = block.iter().rposition(|value| *value != 0).map_or(0, |last| last + 1);
    end.div_ceil(64 / BANDS) as u8
}

/// 0, -1, 1, -2, .. as 0, 1, 2, 3, ..
fn folded(value: &i16) -> u16 {
    ((value << 1) ^ (value >> 15)) as u16
}

/// Appends up to eight numbers as `stored` makes them and returns the code of their width.
fn push_group(group: &[i16], stored: fn(&i16) -> u16, out: &mut Vec<u8>) -> u8 {
    // Folded and in two's complement a number has the same bits.
    let bits = group.iter().map(|value| 16 - folded(value).leading_zeros()).max().unwrap_or(0);
    // There is no code for 15 bits: 16 is used.
    let code = bits.min(15) as u8;
    let width = u32::from(width(code));
    let mut writer = BitWriter::default();
    for value in group {
        writer.push(u64::from(stored(value)) & ((1 << width) - 1), width);
    }
    let mut bytes = writer.finish();
    bytes.resize(width as usize, 0);
    out.append(&mut bytes);
    code
}

/// Two numbers below 16 in a byte, the first one low.
fn nibbles(numbers: &[u8]) -> Vec<u8> {
    numbers.chunks(2).map(|pair| pair[0] | pair.get(1).map_or(0, |high| high << 4)).collect()
}
