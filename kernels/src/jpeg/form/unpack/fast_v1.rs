//! Unpacks a row of the fast form.

use super::super::error::FormError;
use super::super::geometry::{CLASSES, GROUPS};
use super::super::simd::{self, wide_group};
use super::{RowComponent, Shared, Task, apply, next_run, strips_of_kind, width};

/// Unpacks a row.
pub(in super::super) fn row(
    task: &Task<'_>,
    shared: &mut Shared,
    into: &mut [RowComponent<'_>],
) -> Result<(), FormError> {
    shared.prepare(task);
    let controls = head(task, shared)?;
    shared.sum_dc(task.strips);
    shared.sort(task);
    shared.flat(task, into);
    let all = 0..task.strips.len();
    let groups = (1..CLASSES).map(|class| 2 * class * shared.count(all.clone(), class)).sum();
    let at = widths(task, shared, controls, groups)?;
    if at + total(&shared.widths) != task.length {
        return Err(task.fault("a row has not the length that its widths say"));
    }
    let mut place = (at, 0);
    for kind in 0..2 {
        for class in 1..CLASSES {
            for strip in strips_of_kind(task.strips, kind) {
                place = blocks(task, shared, (class, strip), place, &mut into[strip]);
            }
        }
    }
    Ok(())
}

/// Unpacks the widths of that many groups; gives where the next bytes start.
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

/// Classes and DC differences; gives where the widths of the other groups start.
fn head(task: &Task<'_>, shared: &mut Shared) -> Result<usize, FormError> {
    let row = &task.bytes[..task.length];
    let short = || task.fault("a row ends within its classes");
    let class_bytes = task.blocks.div_ceil(2);
    let classes = row.get(..class_bytes).ok_or_else(short)?;
    if usize::from(simd::nibbles(task.kernel, classes, &mut shared.classes)) >= CLASSES {
        return Err(task.fault("a class is not 0 to 4"));
    }
    let lines = |strip: &super::Strip| strip.rows * strip.wide.div_ceil(GROUPS);
    let groups: usize = task.strips.iter().map(lines).sum();
    let mut at = widths(task, shared, class_bytes, groups)?;
    if at + total(&shared.widths) > task.length {
        return Err(task.fault("a row ends within its DC differences"));
    }
    let mut index = 0;
    for strip in task.strips {
        let (mut first, end) = (strip.first, strip.first + strip.blocks());
        while first < end {
            for place in (first..first + strip.wide).step_by(GROUPS) {
                let width = shared.widths[index];
                let group = wide_group(task.kernel, width, &task.bytes[at..]);
                // The last of a line may write over the next line's start, which comes later.
                shared.dc[place..place + GROUPS].copy_from_slice(&group);
                at += usize::from(width);
                index += 1;
            }
            first += strip.wide;
        }
    }
    Ok(at)
}

/// Unpacks the blocks of a class and strip. Takes and gives where the next bytes and widths start.
fn blocks(
    task: &Task<'_>,
    shared: &mut Shared,
    (class, strip): (usize, usize),
    (mut at, mut group): (usize, usize),
    into: &mut RowComponent<'_>,
) -> (usize, usize) {
    let members = shared.members(task, strip, class);
    let mut targets = &shared.targets[members];
    while !targets.is_empty() {
        let (inside, count) = next_run(task, targets);
        let (run, rest) = targets.split_at(count);
        let widths = &shared.widths[group..][..2 * class * count];
        if inside {
            let chunk = &mut shared.chunk[..count];
            let source = (widths, task.bytes);
            at = simd::expand_widths(task.kernel, class, source, at, chunk, &mut shared.patches);
            simd::spread_folded(task.kernel, class, chunk, run, into);
            apply(&mut shared.patches, run, into.blocks);
        } else {
            at += total(widths);
        }
        targets = rest;
        group += widths.len();
    }
    (at, group)
}
