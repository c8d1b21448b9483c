//! Finds the nearest entry point before an MCU.

use super::layout::{Entry, decode};
use crate::Error;
use crate::bits::BitPosition;
use crate::checksum::crc32c;
use crate::markers::{COMPONENTS_MAX, Header};

/// Entry points of the file that is being decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryPoints<'a> {
    entries: &'a [Entry],
    /// MCUs from one to the next.
    step: u32,
    mcus_wide: u32,
}

/// An entry point and its MCU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryAt {
    pub(crate) position: BitPosition,
    pub(crate) mcu: u32,
    pub(crate) dc: [i16; COMPONENTS_MAX],
}

impl EntryAt {
    fn new(entry: &Entry, mcu: u32) -> Self {
        let position = BitPosition { offset: entry.offset as usize, bits: u32::from(entry.bits) };
        Self { position, mcu, dc: entry.dc }
    }
}

impl<'a> EntryPoints<'a> {
    /// Reads entry points into `entries` and checks that they belong to this file.
    ///
    /// `file_crc32c` is that of the file, if the caller knows it already.
    pub(crate) fn open(
        bytes: &[u8],
        entries: &'a mut Vec<Entry>,
        file: &[u8],
        file_crc32c: Option<u32>,
        header: &Header,
    ) -> Result<Self, Error> {
        let head = decode(bytes, entries)
            .map_err(|error| Error::EntryPoints { reason: error.to_string() })?;
        let wrong = |reason: &str| Error::EntryPoints { reason: reason.to_owned() };
        if head.file_crc32c != file_crc32c.unwrap_or_else(|| crc32c(file)) {
            return Err(wrong("they were made from another file"));
        }
        let mcus_wide = header.frame.mcus_wide;
        let step = if head.spacing == 0 { mcus_wide } else { u32::from(head.spacing) };
        let in_row = mcus_wide.div_ceil(step);
        let fits = header.has_one_sequential_scan()
            && head.components == header.frame.count
            && head.data_offset as usize == header.scans[0].data.start
            && entries.len() as u64 + 1 == u64::from(in_row) * u64::from(header.frame.mcus_high);
        if !fits {
            return Err(wrong("they do not fit the frame of the file"));
        }
        Ok(Self { entries, step, mcus_wide })
    }

    /// The last entry point at or before an MCU; `None` for the beginning of the data.
    pub(crate) fn before(&self, mcu: u32) -> Option<EntryAt> {
        let (row, column) = (mcu / self.mcus_wide, mcu % self.mcus_wide);
        let in_row = self.mcus_wide.div_ceil(self.step);
        let index = row * in_row + column / self.step;
        let entry = self.entries[(index as usize).checked_sub(1)?];
        Some(EntryAt::new(&entry, row * self.mcus_wide + column / self.step * self.step))
    }

    /// The first entry point after an MCU.
    pub(crate) fn after(&self, mcu: u32) -> Option<EntryAt> {
        let (row, column) = (mcu / self.mcus_wide, mcu % self.mcus_wide);
        let in_row = self.mcus_wide.div_ceil(self.step);
        let index = row * in_row + column / self.step;
        let entry = self.entries.get(index as usize)?;
        let next = (column / self.step + 1).saturating_mul(self.step).min(self.mcus_wide);
        Some(EntryAt::new(entry, row * self.mcus_wide + next))
    }
}
