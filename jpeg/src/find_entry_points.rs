//! Finds the entry points of a file.

use crate::bits::BitPosition;
use crate::checksum::crc32c;
use crate::entry_points::{Entry, EntryPointsHead, encode};
use crate::error::damaged;
use crate::limits::check_pixels;
use crate::markers::Header;
use crate::sequential::{Sequential, TableCache};
use crate::{Error, Interrupt};

/// How far apart entry points are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// One at the beginning of each row of MCUs.
    McuRow,
    /// One per this number of MCUs, not 0; the count restarts in each row.
    Mcus(u16),
}

/// The entry points of a file, as bytes for the dataset's column.
///
/// `None` for a file that is not a sequential JPEG with one scan, in which decoding cannot start in
/// the middle. The whole file is decoded, so that a damaged one is an error.
pub fn entry_points(file: &[u8], spacing: Spacing) -> Result<Option<Vec<u8>>, Error> {
    entry_points_until(file, spacing, &Interrupt::default())
}

/// [`entry_points`] with an interrupt.
pub fn entry_points_until(
    file: &[u8],
    spacing: Spacing,
    interrupt: &Interrupt,
) -> Result<Option<Vec<u8>>, Error> {
    let mut header = Header::default();
    header.parse(file)?;
    check_pixels(header.frame.size())?;
    header.check_data()?;
    if !header.has_one_sequential_scan() {
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
            let (BitPosition { offset, bits }, dc) = scan.position();
            let offset =
                u32::try_from(offset).map_err(|_| damaged(offset, "it is longer than 4 GiB"))?;
            // libjpeg retains the lower 16 bits of a DC value.
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
