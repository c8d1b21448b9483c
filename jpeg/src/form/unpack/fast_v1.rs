//! Unpacks a row of the fast form in version 1: zigzag groups, blocks in order of classes.

use super::super::error::FormError;
use super::super::geometry::CLASSES;
use super::super::simd;
use super::fast::{head, total, widths};
use super::{RowComponent, Shared, Task, apply, next_run, strips_of_kind};

/// Unpacks a row.
pub(in super::super) fn row(
    task: &Task<'_>,
    shared: &mut Shared,
    into: &mut [RowComponent<'_>],
) -> Result<(), FormError> {
    shared.prepare(task);
    let controls = head(task, shared)?;
    shared.sum_dc(task.kernel, task.strips);
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
