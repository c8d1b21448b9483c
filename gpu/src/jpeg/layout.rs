//! Descriptions as words that kernels read; `cuda/jpeg.cuh` has the same structures.

use super::stuffing::CopiedSegment;
use meetpoint_jpeg::{DecodePlan, PlanColours, PlannedComponent, Segment, UpsamplingKind};

/// Words of structures.
pub(super) const PICTURE_WORDS: usize = 28;
pub(super) const COMPONENT_WORDS: usize = 48;
pub(super) const SEGMENT_WORDS: usize = 8;
pub(super) const GROUP_WORDS: usize = 3;

/// Maximum numbers of tables and blocks of an MCU, as in the kernels.
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
    pub(super) first_component: u32,
    pub(super) tables: &'a [u32],
    pub(super) first_pixel_group: u32,
}

impl PictureRecord<'_> {
    pub(super) fn push(&self, plan: &DecodePlan, words: &mut Vec<u32>) {
        let start = words.len();
        words.extend([self.data_offset, self.first_component]);
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

/// Appends a segment whose data were copied; `blocks_per_mcu` is the number of blocks of an MCU.
pub(super) fn push_segment(
    segment: &Segment,
    copied: &CopiedSegment,
    blocks_per_mcu: u32,
    words: &mut Vec<u32>,
) {
    let CopiedSegment { bit, bit_end, end, end_dc } = *copied;
    words.extend([bit, bit_end]);
    words.extend([segment.mcu, segment.mcu_end].map(|mcu| mcu * blocks_per_mcu));
    words.push(end as u32);
    let ([a, b, c], [d, e, f]) = (segment.dc, end_dc);
    words.extend([[a, b], [c, d], [e, f]].iter().map(pair));
    debug_assert!(words.len().is_multiple_of(SEGMENT_WORDS), "the structure has this size");
}
