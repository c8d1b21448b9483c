//! Coefficient forms as words that kernels read; `cuda/jpeg.cuh` has the same structures.

use meetpoint_jpeg::form::CodeBank;
use meetpoint_jpeg::{DecodePlan, PlannedForm};

/// Sizes of the structures in words.
pub(super) const FORM_WORDS: usize = 16;
pub(super) const ROW_WORDS: usize = 8;

/// Bytes that kernels may read past the end of a row.
const SLACK: u64 = 16;

/// Counts for a row of MCUs, which are the same for all rows of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FormRows {
    /// Blocks.
    blocks: u64,
    /// Blocks of the first component.
    first_blocks: u64,
    /// Groups of DC differences.
    dc_groups: u64,
}

impl FormRows {
    pub(super) fn of(plan: &DecodePlan) -> Self {
        let (mut blocks, mut dc_groups) = (Vec::with_capacity(3), 0);
        for component in &plan.components {
            let wide = u64::from(plan.mcus.0) * u64::from(component.h);
            blocks.push(wide * u64::from(component.v));
            dc_groups += wide.div_ceil(8) * u64::from(component.v);
        }
        let first_blocks = blocks.first().copied().unwrap_or(0);
        Self { blocks: blocks.iter().sum(), first_blocks, dc_groups }
    }

    /// Maximum bytes of the fast form for a row of `stored` bytes of the compact form.
    fn bytes_max(self, stored: u64) -> u64 {
        let head = self.blocks.div_ceil(2) + self.dc_groups.div_ceil(2);
        let widest = head + 16 * self.dc_groups + (4 + 8 * 16) * self.blocks;
        // Each byte of the fast form takes at least one bit of the compact form.
        widest.min(8 * stored)
    }

    /// Device memory for the decoded rows of a form, in bytes.
    pub(super) fn scratch_bytes(self, form: &PlannedForm) -> u64 {
        let rows = form.rows.iter().map(|row| self.scratch_bytes_of(form, row.len()));
        rows.sum()
    }

    fn scratch_bytes_of(self, form: &PlannedForm, stored: usize) -> u64 {
        match form.lanes {
            0 => 0,
            _ => (self.bytes_max(stored as u64) + SLACK).next_multiple_of(16),
        }
    }
}

/// Indices and offsets at which the parts of a form begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct FormStarts {
    pub(super) picture: u32,
    pub(super) first_component: u32,
    /// Index of the form.
    pub(super) form: u32,
    /// Offset of the copied bytes in the file, and in the staging area.
    pub(super) copied_from: usize,
    pub(super) copied_to: u32,
    /// Offset in the memory for rows of the fast form.
    pub(super) scratch: u64,
}

/// Appends a form and its rows.
pub(super) fn push(
    plan: &DecodePlan,
    form: &PlannedForm,
    starts: FormStarts,
    forms: &mut Vec<u32>,
    rows: &mut Vec<u32>,
) {
    let sizes @ FormRows { blocks, first_blocks, dc_groups } = FormRows::of(plan);
    let start = forms.len();
    forms.extend([starts.picture, starts.first_component, plan.components.len() as u32]);
    forms.extend([plan.mcus.0, u32::from(form.lanes)]);
    forms.extend([blocks, first_blocks, first_blocks.div_ceil(2), dc_groups].map(|it| it as u32));
    forms.push(u32::from(CodeBank::get().dc_widths));
    for kind in 0..2 {
        let mut codes = [0; 12];
        if let Some(of_kind) = form.codes.get(kind) {
            codes[0] = of_kind.classes;
            codes[1..11].copy_from_slice(&of_kind.widths);
        }
        forms.extend(codes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)));
    }
    debug_assert_eq!(forms.len(), start + FORM_WORDS, "the structure has this size");
    let mut scratch = starts.scratch;
    for (row, bytes) in plan.mcu_rows.clone().zip(&form.rows) {
        let scratch_bytes = sizes.scratch_bytes_of(form, bytes.len());
        let offset = starts.copied_to + (bytes.start - starts.copied_from) as u32;
        rows.extend([starts.form, row, offset, bytes.len() as u32]);
        rows.push(scratch_bytes.saturating_sub(SLACK) as u32);
        rows.extend([scratch as u32, (scratch >> 32) as u32, 0]);
        scratch += scratch_bytes;
    }
}

/// The codes of the compact form: lookups, then maps.
#[derive(Debug)]
pub(super) struct BankWords {
    pub(super) lookups: Vec<u32>,
    pub(super) maps: Vec<u32>,
}

impl BankWords {
    pub(super) fn new() -> Self {
        let CodeBank { lookups, maps, .. } = CodeBank::get();
        let pair = |two: &[u16; 2]| u32::from(two[0]) | u32::from(two[1]) << 16;
        let mut bytes: Vec<u8> = maps.as_flattened().to_vec();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Self {
            lookups: lookups.as_chunks().0.iter().map(pair).collect(),
            maps: bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FormRows;

    #[test]
    fn a_row_has_room_for_its_widest_groups_and_no_more_than_its_bits() {
        let rows = FormRows { blocks: 6, first_blocks: 4, dc_groups: 4 };
        assert_eq!(rows.bytes_max(1 << 20), 3 + 2 + 64 + 6 * 132);
        assert_eq!(rows.bytes_max(10), 80);
    }
}
