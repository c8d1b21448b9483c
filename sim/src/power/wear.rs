//! What the spool does to the rated life of the drive that holds it.

use serde::Serialize;

use super::{BYTES_PER_TB, DAYS_PER_YEAR, PowerModel, SECONDS_PER_DAY};

/// Wear of flash by the model: bytes that were written, against the maker's rating.
///
/// A rating is in bytes that the host writes, so the drive's own write amplification is within it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wear {
    /// Bytes written in an epoch.
    pub bytes_per_epoch: u64,
    /// Whole drives written in a day of such epochs, one after the other.
    pub drive_writes_per_day: f64,
    /// Drive writes a day that the maker rates the drive for.
    pub rated_drive_writes_per_day: f64,
    /// Share of the rated bytes that an epoch uses up.
    pub life_share_per_epoch: f64,
    /// Years until the rated bytes are written, at this rate; `None` where nothing is written.
    pub years: Option<f64>,
    /// Values that have no checked source, as `flash.rated_tbw`.
    pub unverified: Vec<String>,
}

impl PowerModel {
    /// The wear of epochs that write a given number of bytes in a given number of seconds, spread
    /// evenly over `drives` drives; `None` where the file says nothing of flash, or there is no
    /// drive or no time.
    pub fn wear(&self, bytes_per_epoch: u64, epoch_s: f64, drives: u32) -> Option<Wear> {
        let flash = self.file.flash.as_ref()?;
        if drives == 0 || epoch_s.is_nan() || epoch_s <= 0.0 {
            return None;
        }
        let capacity = flash.value("capacity_tb") * BYTES_PER_TB;
        let rated_bytes = flash.value("rated_tbw") * BYTES_PER_TB;
        let rated_days = flash.value("rated_years") * DAYS_PER_YEAR;
        let bytes_of_a_drive = bytes_per_epoch as f64 / f64::from(drives);
        let bytes_per_day = bytes_of_a_drive * (SECONDS_PER_DAY / epoch_s);
        Some(Wear {
            bytes_per_epoch,
            drive_writes_per_day: bytes_per_day / capacity,
            rated_drive_writes_per_day: rated_bytes / capacity / rated_days,
            life_share_per_epoch: bytes_of_a_drive / rated_bytes,
            years: (bytes_per_epoch > 0).then(|| rated_bytes / bytes_per_day / DAYS_PER_YEAR),
            unverified: self.unverified(&["flash"]),
        })
    }
}
