//! Unpacks a row of the fast form.

use super::super::geometry::{CLASSES, GROUPS, Strip, width};
use super::super::simd::{self, GroupedBlocks, wide_group};
use super::{RowComponent, Shared, Task};
use crate::form_error::FormError;

/// Unpacks a row.
pub(in super::super) fn row(
    task: &Task<'_>,
    shared: &mut Shared,
    into: &mut [RowComponent<'_>],
) -> Result<(), FormError> {
    shared.prepare(task);
    let widths_at = head(task, shared)?;
    shared.sum_dc(task.kernel, task.strips);
    let classes = &shared.classes[..task.blocks];
    let row = &task.bytes[..task.length];
    let groups_at = widths_at + simd::sum(task.kernel, classes);
    let widths = row.get(widths_at..groups_at);
    let widths = widths.ok_or_else(|| task.fault("a row ends within its widths"))?;
    if groups_at + simd::group_bytes(task.kernel, widths) != task.length {
        return Err(task.fault("the length of a row does not match its widths"));
    }
    let mut at = Offsets { block: 0, widths: widths_at, groups: groups_at };
    for (strip, into) in task.strips.iter().zip(into) {
        let columns = task.columns.start * strip.horizontal..task.columns.end * strip.horizontal;
        let blocks = into.blocks.chunks_exact_mut(columns.len());
        let lines = blocks.zip(into.extents.chunks_exact_mut(columns.len()));
        for (line, (blocks, extents)) in lines.enumerate() {
            let first = strip.first + line * strip.wide + columns.start;
            at.skip_to(task, shared, first);
            let end = first + columns.len();
            let from = GroupedBlocks {
                classes: &shared.classes[first..end],
                dc: &shared.dc[first..end],
                widths: &task.bytes[at.widths..],
                groups: &task.bytes[at.groups..],
            };
            let (widths, groups) = simd::unpack_groups(task.kernel, from, blocks, extents);
            at = Offsets { block: end, widths: at.widths + widths, groups: at.groups + groups };
        }
    }
    Ok(())
}

/// A block, and the offsets of its widths and groups.
struct Offsets {
    block: usize,
    widths: usize,
    groups: usize,
}

impl Offsets {
    /// Skips the blocks up to one.
    fn skip_to(&mut self, task: &Task<'_>, shared: &Shared, block: usize) {
        if block > self.block {
            let count = simd::sum(task.kernel, &shared.classes[self.block..block]);
            let widths = &task.bytes[self.widths..][..count];
            self.groups += simd::group_bytes(task.kernel, widths);
            self.widths += count;
            self.block = block;
        }
    }
}

/// Reads classes and DC differences; returns where the widths of the other groups start.
fn head(task: &Task<'_>, shared: &mut Shared) -> Result<usize, FormError> {
    let row = &task.bytes[..task.length];
    let short = || task.fault("a row ends within its classes");
    let class_bytes = task.blocks.div_ceil(2);
    let classes = row.get(..class_bytes).ok_or_else(short)?;
    if usize::from(simd::nibbles(task.kernel, classes, &mut shared.classes)) >= CLASSES {
        return Err(task.fault("a class is not 0 to 4"));
    }
    let lines = |strip: &Strip| strip.rows * strip.wide.div_ceil(GROUPS);
    let groups: usize = task.strips.iter().map(lines).sum();
    let mut at = widths(task, shared, class_bytes, groups)?;
    if at + total(&shared.widths) > task.length {
        return Err(task.fault("a row ends within its DC differences"));
    }
    let mut index = 0;
    for strip in task.strips {
        let (mut first, end) = (strip.first, strip.first + strip.blocks());
        while first < end {
            for block in (first..first + strip.wide).step_by(GROUPS) {
                let width = shared.widths[index];
                let group = wide_group(task.kernel, width, &task.bytes[at..]);
                // The end of a line may overwrite the start of the next one, which is written
                // later.
                shared.dc[block..block + GROUPS].copy_from_slice(&group);
                at += usize::from(width);
                index += 1;
            }
            first += strip.wide;
        }
    }
    Ok(at)
}

/// Reads the widths of that many groups; returns where the next bytes start.
fn widths(
    task: &Task<'_>,
    shared: &mut Shared,
    at: usize,
    groups: usize,
) -> Result<usize, FormError> {
    let end = at + groups.div_ceil(2);
    let codes = task.bytes[..task.length].get(at..end);
    let codes = codes.ok_or_else(|| task.fault("a row ends within its widths"))?;
    shared.widths.resize(2 * codes.len(), 0);
    if simd::nibbles(task.kernel, codes, &mut shared.widths) == 15 {
        shared.widths.iter_mut().for_each(|code| *code = width(*code));
    }
    Ok(end)
}

/// Bytes of groups of these widths.
fn total(widths: &[u8]) -> usize {
    let (words, rest) = widths.as_chunks::<8>();
    // The top byte of the product is the sum of the eight, which is up to 128.
    let sum = |word: &[u8; 8]| u64::from_le_bytes(*word).wrapping_mul(0x0101_0101_0101_0101) >> 56;
    let words: u64 = words.iter().map(sum).sum();
    words as usize + rest.iter().map(|width| usize::from(*width)).sum::<usize>()
}
