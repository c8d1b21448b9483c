//! Divides the data of a scan into segments at entry points and restart markers.

use super::plan::{PlanError, Segment, SegmentEnd};
use crate::bits::BitPosition;
use crate::entry_points::{EntryAt, EntryPoints};
use std::ops::Range;

/// Bytes behind the position of a boundary that a reader may look at: the rest of its byte, and the
/// zero stuffed behind it.
const LOOKAHEAD: usize = 2;

/// The data of a scan, and the MCUs that are needed.
#[derive(Debug)]
pub(super) struct DataLayout<'a> {
    pub(super) file: &'a [u8],
    /// Bytes of the file.
    pub(super) data: Range<usize>,
    pub(super) mcus_wide: u32,
    pub(super) columns: Range<u32>,
    pub(super) rows: Range<u32>,
}

impl DataLayout<'_> {
    /// The last needed MCU before one, if there is any.
    fn last_before(&self, mcu: u32) -> Option<u32> {
        let last = mcu.checked_sub(1)?;
        let (mut row, mut column) = (last / self.mcus_wide, last % self.mcus_wide);
        if row >= self.rows.end {
            (row, column) = (self.rows.end - 1, self.mcus_wide - 1);
        }
        if column < self.columns.start {
            (row, column) = (row.checked_sub(1)?, self.mcus_wide - 1);
        }
        let is_needed = row >= self.rows.start;
        is_needed.then(|| row * self.mcus_wide + column.min(self.columns.end - 1))
    }
}

/// The positions at which decoding can begin.
#[derive(Debug)]
pub(super) struct Boundaries<'a> {
    pub(super) layout: &'a DataLayout<'a>,
    /// MCUs between restart markers, 0 for none, and offsets of the markers in the data.
    pub(super) restarts: (u32, &'a [u32]),
    pub(super) entry_points: Option<EntryPoints<'a>>,
}

/// A position where decoding can begin.
#[derive(Debug, Clone, Copy)]
struct Boundary {
    mcu: u32,
    offset: usize,
    bits: u8,
    dc: [i16; 3],
    /// As the end of the segment before.
    end: SegmentEnd,
}

impl Boundaries<'_> {
    /// The segments that hold needed MCUs, and the bytes of the file that they read.
    pub(super) fn segments(&self, segments: &mut Vec<Segment>) -> Result<Range<usize>, PlanError> {
        segments.clear();
        let layout = self.layout;
        let mcus_end = layout.rows.end * layout.mcus_wide;
        let first_needed = layout.rows.start * layout.mcus_wide + layout.columns.start;
        let mut boundary = self.at_or_before(first_needed);
        loop {
            let after = self.after(boundary.mcu);
            let limit = after.map_or(mcus_end, |after| after.mcu.min(mcus_end));
            let needed = layout.last_before(limit).filter(|last| *last >= boundary.mcu);
            if let Some(last) = needed {
                self.check_marker(&boundary)?;
                let is_whole = after.is_some_and(|after| after.mcu == last + 1);
                let end = after.filter(|_| is_whole).map_or(SegmentEnd::Any, |after| after.end);
                let offset_end = after.map_or(layout.data.end, |after| {
                    after.offset.saturating_add(LOOKAHEAD).min(layout.data.end)
                });
                segments.push(Segment {
                    offset: boundary.offset.min(layout.data.end),
                    bits: boundary.bits,
                    dc: boundary.dc,
                    mcu: boundary.mcu,
                    mcu_end: last + 1,
                    offset_end,
                    end,
                });
            }
            match after.filter(|after| after.mcu < mcus_end) {
                Some(after) => boundary = after,
                None => break,
            }
        }
        let start = segments.first().map_or(layout.data.end, |segment| segment.offset);
        let end = segments.iter().map(|segment| segment.offset_end).max();
        Ok(start..end.unwrap_or(start).max(start))
    }

    /// Refuses an entry point at the same MCU as a restart marker unless less than a byte lies
    /// between them: the decoder begins at the entry point and skips the marker.
    fn check_marker(&self, boundary: &Boundary) -> Result<(), PlanError> {
        let SegmentEnd::RestartMarker { offset: marker } = boundary.end else { return Ok(()) };
        let entry = self.entry_points.and_then(|points| points.before(boundary.mcu));
        let Some(entry) = entry.filter(|entry| entry.mcu == boundary.mcu) else { return Ok(()) };
        let file = self.layout.file;
        let BitPosition { offset, bits } = entry.position;
        // The rest of a byte that is partly read, with the zero stuffed behind it, is padding.
        let padding = match file.get(offset..) {
            _ if bits == 0 => 0,
            Some([0xff, 0, ..]) => 2,
            _ => 1,
        };
        let fill = file.get(offset.saturating_add(padding)..=marker);
        match fill {
            Some(fill) if !fill.is_empty() && fill.iter().all(|byte| *byte == 0xff) => Ok(()),
            _ => Err(PlanError::ContradictoryEntryPoints),
        }
    }

    /// The last boundary at or before an MCU.
    fn at_or_before(&self, mcu: u32) -> Boundary {
        let restart = self.restart(mcu.checked_div(self.restarts.0).unwrap_or(0));
        let entry = self.entry_points.and_then(|points| points.before(mcu));
        // At the same MCU, the entry point precedes the marker.
        match entry.filter(|entry| entry.mcu > restart.mcu) {
            Some(entry) => Boundary::of_entry(entry.mcu, &entry),
            None => restart,
        }
    }

    /// The first boundary after that of an MCU.
    fn after(&self, mcu: u32) -> Option<Boundary> {
        let number = mcu.checked_div(self.restarts.0).map(|number| number + 1);
        let restart = number.filter(|number| *number as usize <= self.restarts.1.len());
        let restart = restart.map(|number| self.restart(number));
        let entry = self.entry_points.and_then(|points| points.after(mcu));
        let entry = entry.map(|entry| Boundary::of_entry(entry.mcu, &entry));
        match (restart, entry) {
            (Some(restart), Some(entry)) if entry.mcu < restart.mcu => Some(entry),
            (restart, entry) => restart.or(entry),
        }
    }

    /// The position after a restart marker, counted from 1; for 0, the beginning of the data.
    fn restart(&self, number: u32) -> Boundary {
        let (interval, offsets) = self.restarts;
        let marker = (number as usize).min(offsets.len());
        let at = |index: usize| self.layout.data.start + offsets[index] as usize;
        let end = marker
            .checked_sub(1)
            .map_or(SegmentEnd::Any, |index| SegmentEnd::RestartMarker { offset: at(index) });
        let offset = marker.checked_sub(1).map_or(self.layout.data.start, |index| at(index) + 2);
        Boundary { mcu: marker as u32 * interval, offset, bits: 0, dc: [0; 3], end }
    }
}

impl Boundary {
    fn of_entry(mcu: u32, entry: &EntryAt) -> Self {
        let (offset, bits) = (entry.position.offset, entry.position.bits as u8);
        let [first, second, third, _] = entry.dc;
        let dc = [first, second, third];
        Self { mcu, offset, bits, dc, end: SegmentEnd::EntryPoint { offset, bits, dc } }
    }
}
