//! Entry points of a file: made at packing, used to begin decoding in the middle.

mod layout;

pub use layout::{ENTRIES_MAX, Entry, EntryPointsError, EntryPointsHead, decode, encode};

use super::bits::Place;
use super::markers::{COMPONENTS_MAX, Coding, Header};
use super::sequential::{Sequential, TableCache};
use super::{check_pixels, damaged};
use crate::checksum::crc32c;
use crate::{Error, Interrupt};

/// How far apart entry points are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// One at the beginning of each row of MCUs.
    McuRow,
    /// One every so many MCUs of a row, not 0, beginning anew in each row.
    Mcus(u16),
}

/// The entry points of a file, as bytes for the dataset's column.
///
/// `None` for a file that is not a sequential JPEG with one scan: there is nothing to enter at.
/// The whole file is decoded for it, so that a damaged one is an error.
pub fn entry_points(file: &[u8], spacing: Spacing) -> Result<Option<Vec<u8>>, Error> {
    entry_points_until(file, spacing, &Interrupt::default())
}

/// The same, until it is interrupted.
pub fn entry_points_until(
    file: &[u8],
    spacing: Spacing,
    interrupt: &Interrupt,
) -> Result<Option<Vec<u8>>, Error> {
    let mut header = Header::default();
    header.parse(file)?;
    check_pixels(header.frame.size())?;
    header.check_data()?;
    if !has_one_sequential_scan(&header) {
        return Ok(None);
    }
    let mut tables = TableCache::default();
    let data_offset = header.scans[0].data.start;
    let how = (crate::Cpu::detect(), interrupt);
    let mut scan = Sequential::new(how, file, &header, &mut tables, &[], None);
    let wide = header.frame.mcus_wide;
    let step = match spacing {
        Spacing::McuRow => wide,
        Spacing::Mcus(step) => u32::from(step).max(1),
    };
    let mut entries = Vec::new();
    for row in 0..header.frame.mcus_high {
        for column in (0..wide).step_by(step as usize) {
            let mcu = row * wide + column;
            if mcu == 0 {
                continue;
            }
            scan.pass(mcu)?;
            let (Place { offset, bits }, dc) = scan.position();
            let offset =
                u32::try_from(offset).map_err(|_| damaged(offset, "it is longer than 4 GiB"))?;
            // What libjpeg keeps of a DC value is its lower 16 bits.
            entries.push(Entry { offset, bits: bits as u8, dc: dc.map(|dc| dc as i16) });
        }
    }
    scan.pass(header.frame.mcus_high * wide)?;
    let head = EntryPointsHead {
        components: header.frame.count,
        spacing: match spacing {
            Spacing::McuRow => 0,
            Spacing::Mcus(step) => step.max(1),
        },
        file_crc32c: crc32c(file),
        data_offset: u32::try_from(data_offset)
            .map_err(|_| damaged(data_offset, "it is longer than 4 GiB"))?,
    };
    Ok(Some(encode(head, &entries)))
}

/// Whether a file can be decoded as its bytes come, without keeping all coefficients.
pub(super) fn has_one_sequential_scan(header: &Header) -> bool {
    header.frame.coding != Coding::Progressive
        && header.scans.len() == 1
        && header.scans[0].components().len() == header.frame.count
}

/// Entry points that belong to the file that is being decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryPoints<'a> {
    entries: &'a [Entry],
    /// MCUs from one to the next.
    step: u32,
    mcus_wide: u32,
}

/// An entry point and the MCU that it leads to.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryAt {
    pub(super) place: Place,
    pub(super) mcu: u32,
    pub(super) dc: [i16; COMPONENTS_MAX],
}

impl<'a> EntryPoints<'a> {
    /// Reads entry points into `entries` and checks that they are of this file.
    ///
    /// `file_crc32c` is that of the file where the caller knows it already.
    pub(super) fn open(
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
        let fits = has_one_sequential_scan(header)
            && head.components == header.frame.count
            && head.data_offset as usize == header.scans[0].data.start
            && entries.len() as u64 + 1 == u64::from(in_row) * u64::from(header.frame.mcus_high);
        if !fits {
            return Err(wrong("they do not fit the frame of the file"));
        }
        Ok(Self { entries, step, mcus_wide })
    }

    /// The last one at or before an MCU; `None` for the beginning of the data.
    pub(super) fn before(&self, mcu: u32) -> Option<EntryAt> {
        let (row, column) = (mcu / self.mcus_wide, mcu % self.mcus_wide);
        let in_row = self.mcus_wide.div_ceil(self.step);
        let index = row * in_row + column / self.step;
        let entry = self.entries[(index as usize).checked_sub(1)?];
        Some(EntryAt {
            place: Place { offset: entry.offset as usize, bits: u32::from(entry.bits) },
            mcu: row * self.mcus_wide + column / self.step * self.step,
            dc: entry.dc,
        })
    }
}
