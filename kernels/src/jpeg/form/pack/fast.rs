//! Writes a row of the fast form: groups of eight numbers, each group in as few bits as it needs.

use super::super::geometry::{CLASSES, GROUPS, Strip};
use super::super::lanes::BitWriter;
use super::super::unpack::width;
use super::Row;

/// The stored bytes of a row.
pub(super) fn row(row: &Row, strips: &[Strip]) -> Vec<u8> {
    let mut out = nibbles(&row.classes);
    let mut bytes = Vec::new();
    let dc: Vec<u8> = strips
        .iter()
        .flat_map(|strip| row.dc[strip.first..][..strip.blocks()].chunks(strip.wide))
        .flat_map(|line| line.chunks(GROUPS))
        .map(|group| push_group(group, &mut bytes))
        .collect();
    out.extend(nibbles(&dc));
    out.append(&mut bytes);
    for kind in 0..2 {
        for class in 1..CLASSES {
            for block in row.members(strips, kind, class) {
                let groups = row.ac[block][..2 * class * GROUPS].chunks(GROUPS);
                let codes: Vec<u8> = groups.map(|group| push_group(group, &mut bytes)).collect();
                out.extend(nibbles(&codes));
            }
        }
    }
    out.append(&mut bytes);
    out
}

/// Appends up to eight numbers and gives the code of their width.
fn push_group(group: &[i16], out: &mut Vec<u8>) -> u8 {
    let folded = |value: &i16| ((value << 1) ^ (value >> 15)) as u16;
    let bits = group.iter().map(|value| 16 - folded(value).leading_zeros()).max().unwrap_or(0);
    // There is no code for 15 bits: 16 take it.
    let code = bits.min(15) as u8;
    let mut writer = BitWriter::default();
    for value in group {
        writer.push(u64::from(folded(value)), u32::from(width(code)));
    }
    let mut bytes = writer.finish();
    bytes.resize(usize::from(width(code)), 0);
    out.append(&mut bytes);
    code
}

/// Two numbers below 16 in a byte, the first one low.
fn nibbles(numbers: &[u8]) -> Vec<u8> {
    numbers.chunks(2).map(|pair| pair[0] | pair.get(1).map_or(0, |high| high << 4)).collect()
}
