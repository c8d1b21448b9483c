//! Descriptions of the pictures of a batch, and their totals.

use super::form::{FORM_WORDS, FormRows, ROW_WORDS};
use super::layout::{
    COMPONENT_WORDS, GROUP_BLOCKS, GROUP_ITEMS, GROUP_WORDS, ITEM_PIXELS, PICTURE_WORDS,
    SEGMENT_WORDS,
};
use super::tables::TABLE_WORDS;
use meetpoint_jpeg::{DecodePlan, PlannedComponent};

/// Blocks of threads that keep a large GPU busy while each decodes a few segments.
const GROUPS_WANTED: usize = 2048;

/// Fewest and most segments that a block of threads decodes, one by each thread.
const GROUP_SEGMENTS: [usize; 2] = [4, 32];

/// Segments that a block of threads decodes, one by each of its warps.
const GROUP_WARPS: usize = 8;

/// What decodes each segment of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentDecoder {
    Thread,
    Warp,
    Block,
}

impl SegmentDecoder {
    pub(super) const ALL: [Self; 3] = [Self::Thread, Self::Warp, Self::Block];
}

/// The segments of a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentRange {
    pub(super) team: SegmentDecoder,
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Lists in the staging area behind the data of the pictures, each of which is aligned.
const SECTIONS: usize = 13;

/// Maximum words of the codes of the compact form: 64 codes, and a map for each group.
const BANK_WORDS_MAX: usize = (64 << 9) / 2 + 17 * 136 / 4;

/// Alignment of pictures.
const PICTURE_ALIGNMENT: u64 = 256;

/// Descriptions of the pictures of the batch.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) pictures: Vec<u32>,
    pub(super) components: Vec<u32>,
    pub(super) tables: Vec<u32>,
    pub(super) segments: Vec<u32>,
    pub(super) forms: Vec<u32>,
    pub(super) form_rows: Vec<u32>,
    /// The codes of the compact form, if the batch contains such a picture.
    pub(super) lookups: Vec<u32>,
    pub(super) maps: Vec<u32>,
    /// The segments of each picture.
    pub(super) ranges: Vec<SegmentRange>,
    /// Segments of one block of threads, by [`SegmentDecoder`].
    pub(super) groups: [Vec<u32>; 3],
    pub(super) descriptors: Vec<u32>,
    pub(super) status: Vec<u32>,
}

/// The totals of the pictures of the batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) components: u64,
    pub(super) segments: usize,
    pub(super) blocks: u64,
    pub(super) block_groups: u64,
    pub(super) pixel_groups: u64,
    pub(super) pixel_bytes: u64,
    /// Rows of coefficient forms, and bytes for the decoded rows of compact forms.
    pub(super) form_rows: u64,
    pub(super) scratch_bytes: u64,
}

impl Words {
    /// Begins a batch.
    pub(super) fn clear(&mut self) {
        let Self { pictures, components, tables, segments, ranges, .. } = self;
        let Self { forms, form_rows, lookups, maps, .. } = self;
        let of_forms = [forms, form_rows, lookups, maps];
        for words in [pictures, components, tables, segments].into_iter().chain(of_forms) {
            words.clear();
        }
        ranges.clear();
    }

    /// Bytes that they take in the staging area, without those that [`Words::group`] adds.
    pub(super) fn bytes(&self) -> usize {
        let Self { pictures, components, tables, segments, .. } = self;
        let Self { forms, form_rows, lookups, maps, .. } = self;
        let lists = [pictures, components, tables, segments, forms, form_rows, lookups, maps];
        4 * lists.map(Vec::len).iter().sum::<usize>()
    }

    /// Maximum bytes that they take in the staging area with those that [`Words::group`] adds.
    pub(super) fn bytes_bound(&self) -> usize {
        // Each segment may be a group, and each picture has a descriptor and a status.
        let segments = self.segments.len() / SEGMENT_WORDS;
        let pictures = self.pictures.len() / PICTURE_WORDS;
        self.bytes() + 4 * (segments * GROUP_WORDS + pictures * 7) + SECTIONS * 16
    }

    /// Maximum bytes that a picture adds to the staging area besides its data.
    pub(super) fn bytes_max(plan: &DecodePlan) -> usize {
        // Each segment may be a group, and each picture has a descriptor and a status.
        let segments = plan.segments.len() * (SEGMENT_WORDS + GROUP_WORDS);
        let tables = plan.huffman.len() * TABLE_WORDS;
        let components = plan.components.len() * COMPONENT_WORDS;
        let form = plan
            .form
            .as_ref()
            .map_or(0, |form| FORM_WORDS + form.rows.len() * ROW_WORDS + BANK_WORDS_MAX);
        4 * (segments + tables + components + form + PICTURE_WORDS + 7) + SECTIONS * 16
    }

    /// Divides the segments among blocks of threads.
    pub(super) fn group(&mut self) {
        let by_thread = self.ranges.iter().filter(|range| range.team == SegmentDecoder::Thread);
        let [fewest, most] = GROUP_SEGMENTS;
        let by_thread: usize = by_thread.map(|range| range.count).sum();
        let lanes = by_thread.div_ceil(GROUPS_WANTED).next_power_of_two().clamp(fewest, most);
        self.groups.iter_mut().for_each(Vec::clear);
        for (picture, range) in (0..).zip(&self.ranges) {
            let each = match range.team {
                SegmentDecoder::Thread => lanes,
                SegmentDecoder::Warp => GROUP_WARPS,
                SegmentDecoder::Block => 1,
            };
            let groups = &mut self.groups[range.team as usize];
            for start in (0..range.count).step_by(each) {
                let size = each.min(range.count - start);
                groups.extend([picture, (range.first + start) as u32, size as u32]);
            }
        }
    }

    /// Blocks of threads for the segments of a team.
    pub(super) fn group_count(&self, team: SegmentDecoder) -> u64 {
        (self.groups[team as usize].len() / GROUP_WORDS) as u64
    }
}

impl Totals {
    /// What a batch takes with one more picture.
    pub(super) fn with(mut self, plan: &DecodePlan) -> Self {
        for component in &plan.components {
            let blocks = blocks_of(component);
            self.block_groups += blocks.div_ceil(GROUP_BLOCKS);
            self.blocks += blocks;
        }
        self.components += plan.components.len() as u64;
        if let Some(form) = &plan.form {
            self.form_rows += form.rows.len() as u64;
            self.scratch_bytes += FormRows::of(plan).scratch_bytes(form);
        }
        self.segments += plan.segments.len();
        let (width, height) = plan.region;
        let items = u64::from(width).div_ceil(ITEM_PIXELS) * u64::from(height);
        self.pixel_groups += items.div_ceil(GROUP_ITEMS);
        let plane = u64::from(width.next_multiple_of(16)) * u64::from(height);
        self.pixel_bytes += (3 * plane).next_multiple_of(PICTURE_ALIGNMENT);
        self
    }

    /// Bytes of coefficients, samples, pixels and rows of forms.
    pub(super) fn device_bytes(&self) -> u64 {
        self.blocks * (128 + 64) + self.pixel_bytes + self.scratch_bytes
    }
}

/// Blocks of a component that are stored.
pub(super) fn blocks_of(component: &PlannedComponent) -> u64 {
    let (columns, rows) = (component.block_columns(), component.block_rows());
    u64::from(columns.end - columns.start) * u64::from(rows.end - rows.start)
}
