//! Unpacks a row of MCUs: first what all its blocks share, then class by class the blocks.

pub(super) mod compact;
pub(super) mod compact_v1;
pub(super) mod fast;
pub(super) mod fast_v1;

use super::bank::CodeMap;
use super::error::{FormError, damaged};
use super::geometry::{CLASSES, GROUPS, NATURAL, Strip};
use super::simd::{self, Kernel, Zigzag};
use crate::Block;
use std::ops::Range;

/// Most low bits of a DC difference that are coded apart.
pub(super) const DC_SHIFT_MAX: usize = 8;

/// In the second byte of a kind's codes: a map follows.
pub(super) const EXPLICIT: u8 = 0x80;

/// Blocks that are unpacked together: their bytes stay in the first-level cache.
pub(super) const CHUNK: usize = 32;

/// The codes of a kind, as indices into the bank.
#[derive(Debug, Clone)]
pub(super) struct KindCodes {
    pub(super) classes: usize,
    pub(super) dc: usize,
    pub(super) dc_shift: usize,
    pub(super) map: CodeMap,
}

/// Bits of a number in a group with this code, and bytes of the group.
#[inline(always)]
pub(super) fn width(code: u8) -> u8 {
    code + u8::from(code == 15)
}

/// Where a block goes: its index in the buffer that was passed in, and its DC.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Target {
    pub(super) index: u32,
    pub(super) dc: i16,
}

impl Target {
    /// The index of a block outside the region.
    const OUTSIDE: u32 = u32::MAX;
}

/// A group that does not fit bytes, to be put in its place when the others are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patch {
    /// Index into the targets of the blocks that are unpacked together.
    pub(super) member: usize,
    pub(super) group: usize,
    pub(super) values: [i16; GROUPS],
}

/// One component's blocks of a row of MCUs, and how far their coefficients reach.
///
/// An *extent* is the zigzag index of a block's last coefficient that is not zero, 0 if there is
/// none but DC; or, where that is quicker to find, 9 if all lie among the four lowest frequencies
/// both across and down, and 63 if not.
#[derive(Debug)]
pub struct RowComponent<'a> {
    /// The component's block rows one below the other, each of the columns asked for.
    pub blocks: &'a mut [Block],
    /// One for each block.
    pub extents: &'a mut [u8],
}

/// What a row's bytes are unpacked with.
pub(super) struct Task<'a> {
    pub(super) kernel: Kernel,
    pub(super) strips: &'a [Strip],
    /// Blocks of all strips.
    pub(super) blocks: usize,
    /// Columns of MCUs that are wanted.
    pub(super) columns: Range<usize>,
    /// Whether they are all columns.
    pub(super) whole: bool,
    /// The row's bytes and [`super::lanes::SLACK`] more, or still more.
    pub(super) bytes: &'a [u8],
    /// How many bytes are the row's.
    pub(super) length: usize,
    /// Where they start in the stored bytes.
    pub(super) offset: usize,
}

impl Task<'_> {
    fn fault(&self, reason: &'static str) -> FormError {
        damaged(self.offset, reason)
    }
}

/// Memory that is reused from row to row.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Class of each block.
    classes: Vec<u8>,
    /// DC of each block; before [`Shared::sum_dc`] differences.
    dc: Vec<i16>,
    /// Blocks of each class, one class after the other, with room for all blocks in each.
    targets: Vec<Target>,
    /// Where a strip's blocks of a class start among those of the class.
    starts: Vec<[usize; CLASSES]>,
    /// Widths of groups.
    widths: Vec<u8>,
    chunk: Vec<Zigzag>,
    patches: Vec<Patch>,
}

impl Shared {
    /// Makes room for what there is one of for each block of a row.
    fn prepare_lists(&mut self, task: &Task<'_>) {
        // Three classes come in one code, the last of a line with up to two that mean nothing.
        self.classes.resize(task.blocks + 3, 0);
        // Groups of eight are stored whole, at the end of a line too.
        self.dc.resize(task.blocks + GROUPS, 0);
    }

    /// Makes room for a row whose blocks are in order of classes.
    fn prepare(&mut self, task: &Task<'_>) {
        self.prepare_lists(task);
        self.targets.resize(task.blocks * CLASSES, Target::default());
        self.chunk.resize(CHUNK, Zigzag::default());
        // A damaged row may have left some.
        self.patches.clear();
    }

    /// Turns differences of DC into DC.
    fn sum_dc(&mut self, kernel: Kernel, strips: &[Strip]) {
        for strip in strips {
            let mut above = 0;
            for line in self.dc[strip.first..][..strip.blocks()].chunks_exact_mut(strip.wide) {
                simd::prefix_sums(kernel, above, line);
                above = line[0];
            }
        }
    }

    /// Counts the blocks of each strip and class.
    fn count_classes(&mut self, task: &Task<'_>) {
        let mut counts = [0; CLASSES];
        self.starts.clear();
        for strip in task.strips {
            self.starts.push(counts);
            let classes = &self.classes[strip.first..][..strip.blocks()];
            for (class, count) in counts.iter_mut().enumerate() {
                *count += simd::count(task.kernel, classes, class as u8);
            }
        }
        self.starts.push(counts);
    }

    /// Sorts the blocks by class, which counts them along the way.
    fn sort(&mut self, task: &Task<'_>) {
        let mut counts = [0; CLASSES];
        self.starts.clear();
        // Five lists, and three that no class has.
        let mut lists = self.targets.chunks_exact_mut(task.blocks);
        let mut lists: [&mut [Target]; 8] =
            std::array::from_fn(|_| lists.next().unwrap_or(&mut []));
        for strip in task.strips {
            self.starts.push(counts);
            let columns =
                task.columns.start * strip.horizontal..task.columns.end * strip.horizontal;
            let classes = self.classes[strip.first..][..strip.blocks()].chunks_exact(strip.wide);
            let dc = self.dc[strip.first..][..strip.blocks()].chunks_exact(strip.wide);
            let mut next: [usize; 8] =
                std::array::from_fn(|class| counts.get(class).copied().unwrap_or(0));
            let mut put = |class: u8, target: Target| {
                let class = usize::from(class) & 7;
                if let Some(to) = lists[class].get_mut(next[class]) {
                    *to = target;
                }
                next[class] += 1;
            };
            for (line, (classes, dc)) in classes.zip(dc).enumerate() {
                let first = line * columns.len();
                for (class, dc) in classes[..columns.start].iter().zip(dc) {
                    put(*class, Target { index: Target::OUTSIDE, dc: *dc });
                }
                let inside = classes[columns.clone()].iter().zip(&dc[columns.clone()]);
                for (index, (class, dc)) in (first as u32..).zip(inside) {
                    put(*class, Target { index, dc: *dc });
                }
                for (class, dc) in classes[columns.end..].iter().zip(dc) {
                    put(*class, Target { index: Target::OUTSIDE, dc: *dc });
                }
            }
            counts.copy_from_slice(&next[..CLASSES]);
        }
        self.starts.push(counts);
    }

    /// Blocks of a class in these strips.
    fn count(&self, strips: Range<usize>, class: usize) -> usize {
        self.starts[strips.end][class] - self.starts[strips.start][class]
    }

    /// Where the blocks of a strip and class are in `targets`.
    fn members(&self, task: &Task<'_>, strip: usize, class: usize) -> Range<usize> {
        let first = class * task.blocks;
        first + self.starts[strip][class]..first + self.starts[strip + 1][class]
    }

    /// Writes the blocks that have no other coefficient than DC.
    fn flat(&self, task: &Task<'_>, into: &mut [RowComponent<'_>]) {
        for (strip, into) in into.iter_mut().enumerate() {
            for target in &self.targets[self.members(task, strip, 0)] {
                if target.index != Target::OUTSIDE {
                    let block = &mut into.blocks[target.index as usize];
                    *block = Block([0; 64]);
                    block.0[0] = target.dc;
                    into.extents[target.index as usize] = 0;
                }
            }
        }
    }
}

/// The strips of a kind: the first component, or all others.
fn strips_of_kind(strips: &[Strip], kind: usize) -> Range<usize> {
    if kind == 0 { 0..1 } else { 1..strips.len() }
}

/// The next blocks of a class that lie inside the region, up to [`CHUNK`], or outside.
fn next_run(task: &Task<'_>, targets: &[Target]) -> (bool, usize) {
    if task.whole {
        return (true, targets.len().min(CHUNK));
    }
    let inside = |target: &Target| target.index != Target::OUTSIDE;
    let first = targets.first().is_some_and(inside);
    let limit = if first { targets.len().min(CHUNK) } else { targets.len() };
    let same = targets[..limit].iter().take_while(|target| inside(target) == first).count();
    (first, same)
}

/// Puts the groups that do not fit bytes into their places.
fn apply(patches: &mut Vec<Patch>, targets: &[Target], blocks: &mut [Block]) {
    for patch in patches.drain(..) {
        let block = &mut blocks[targets[patch.member].index as usize].0;
        let places = &NATURAL[patch.group * GROUPS + 1..];
        for (place, value) in places.iter().zip(patch.values) {
            block[usize::from(*place)] = value;
        }
    }
}
