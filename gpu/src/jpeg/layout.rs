//! Descriptions as words that kernels read; `cuda/jpeg.cuh` has the same structures.

use meetpoint_jpeg::{
    DecodePlan, PlanColours, PlannedComponent, Segment, SegmentEnd, UpsamplingKind,
};

/// Words of structures.
pub(super) const PICTURE_WORDS: usize = 29;
pub(super) const COMPONENT_WORDS: usize = 48;
pub(super) const SEGMENT_WORDS: usize = 10;
pub(super) const GROUP_WORDS: usize = 3;
pub(super) const STREAM_WORDS: usize = 9;
pub(super) const CHECK_WORDS: usize = 4;

/// Most tables and blocks of an MCU, as in the kernels.
pub(super) const TABLES_MAX: usize = 6;
pub(super) const UNITS_MAX: usize = 10;

/// Blocks of coefficients that a block of threads transforms, and times [`ITEM_PIXELS`] that one
/// makes.
pub(super) const GROUP_BLOCKS: u64 = 128;
pub(super) const GROUP_ITEMS: u64 = 1024;

/// Pixels of a row that a thread makes.
pub(super) const ITEM_PIXELS: u64 = 8;

/// A picture.
pub(super) struct PictureRecord<'a> {
    pub(super) data_offset: u32,
    pub(super) data_bytes: u32,
    pub(super) first_component: u32,
    pub(super) tables: &'a [u32],
    pub(super) first_pixel_group: u32,
}

impl PictureRecord<'_> {
    pub(super) fn push(&self, plan: &DecodePlan, words: &mut Vec<u32>) {
        let start = words.len();
        words.extend([self.data_offset, self.data_bytes, self.first_component]);
        words.extend([plan.components.len() as u32, plan.mcus.0]);
        words.push(self.tables.len() as u32);
        words.extend((0..TABLES_MAX).map(|at| self.tables.get(at).copied().unwrap_or(0)));
        words.push(plan.units.len() as u32);
        words.extend((0..UNITS_MAX).map(|at| {
            let Some(unit) = plan.units.get(at) else { return 0 };
            let parts = [unit.component, unit.column, unit.row, unit.dc, unit.ac];
            parts.iter().rev().fold(0, |word, part| word << 4 | u32::from(*part))
        }));
        words.push(match plan.colours {
            PlanColours::Grey => 0,
            PlanColours::YCbCrToRgb => 1,
            PlanColours::Rgb => 2,
            PlanColours::RgbToGrey => 3,
        });
        words.extend([plan.origin.0, plan.origin.1, plan.region.0, plan.region.1]);
        words.push(self.first_pixel_group);
        words.resize(start + PICTURE_WORDS, 0);
    }
}

/// Appends a component whose blocks begin at an index.
pub(super) fn push_component(
    component: &PlannedComponent,
    first_group: u32,
    first_block: u32,
    words: &mut Vec<u32>,
) {
    let (columns, rows) = (component.block_columns(), component.block_rows());
    let (kind, across, down) = match component.upsampling {
        UpsamplingKind::None => (0, 1, 1),
        UpsamplingKind::FancyH2V1 => (1, 2, 1),
        UpsamplingKind::FancyH1V2 => (2, 1, 2),
        UpsamplingKind::FancyH2V2 => (3, 2, 2),
        UpsamplingKind::Replicate { columns, rows } => (4, columns, rows),
    };
    let start = words.len();
    words.extend([first_group, first_block, columns.start, rows.start]);
    words.extend([columns.end - columns.start, rows.end - rows.start]);
    words.extend([component.h, component.v, component.width, component.height]);
    words.extend([kind, across, down, 0, 0, 0]);
    words.extend(component.steps.as_chunks::<2>().0.iter().map(pair));
    debug_assert_eq!(words.len(), start + COMPONENT_WORDS, "the structure has this size");
}

/// Two 16-bit values as a word.
fn pair(values: &[i16; 2]) -> u32 {
    u32::from(values[0] as u16) | u32::from(values[1] as u16) << 16
}

/// Appends a segment of a picture whose data begin at an offset in the file.
pub(super) fn push_segment(segment: &Segment, data_start: usize, words: &mut Vec<u32>) {
    let at = |offset: usize| offset.saturating_sub(data_start) as u32;
    let (kind, offset, bits, end_dc) = match segment.end {
        SegmentEnd::Any => (0, data_start, 0, [0; 3]),
        SegmentEnd::EntryPoint { offset, bits, dc } => (1, offset, bits, dc),
        SegmentEnd::RestartMarker { offset } => (2, offset, 0, [0; 3]),
    };
    words.extend([at(segment.offset), u32::from(segment.bits), segment.mcu, segment.mcu_end]);
    words.extend([kind, at(offset), u32::from(bits)]);
    let ([a, b, c], [d, e, f]) = (segment.dc, end_dc);
    words.extend([[a, b], [c, d], [e, f]].iter().map(pair));
    debug_assert!(words.len().is_multiple_of(SEGMENT_WORDS), "the structure has this size");
}

/// A picture that a block of threads decodes.
pub(super) struct StreamRecord {
    pub(super) picture: u32,
    /// Bits of its data without stuffed bytes.
    pub(super) bits: u32,
    pub(super) block_end: u32,
    pub(super) first_check: u32,
    pub(super) check_count: u32,
}

impl StreamRecord {
    /// Appends it with the beginning of its first segment.
    pub(super) fn push(&self, first: &Segment, blocks_per_mcu: u32, words: &mut Vec<u32>) {
        words.extend([self.picture, self.bits, self.block_end]);
        words.extend([u32::from(first.bits), first.mcu * blocks_per_mcu]);
        words.extend(dc_words(first.dc));
        words.extend([self.first_check, self.check_count]);
        debug_assert!(words.len().is_multiple_of(STREAM_WORDS), "the structure has this size");
    }
}

/// Appends what decoding must find at the beginning of a segment, at an offset in the data without
/// stuffed bytes.
pub(super) fn push_check(
    segment: &Segment,
    offset: usize,
    blocks_per_mcu: u32,
    words: &mut Vec<u32>,
) {
    words.extend([segment.mcu * blocks_per_mcu, offset as u32 * 8 + u32::from(segment.bits)]);
    words.extend(dc_words(segment.dc));
    debug_assert!(words.len().is_multiple_of(CHECK_WORDS), "the structure has this size");
}

fn dc_words([first, second, third]: [i16; 3]) -> [u32; 2] {
    [pair(&[first, second]), pair(&[third, 0])]
}
