//! The wear of the drive that holds the spool.

use serde::Serialize;

use super::{BYTES_PER_TB, DAYS_PER_YEAR, PowerModel, SECONDS_PER_DAY};

/// Modelled flash wear: written bytes, compared with the vendor's rating.
///
/// A rating is in bytes that the host writes, so it already accounts for the drive's write
/// amplification.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wear {
    /// Bytes written in an epoch.
    pub bytes_per_epoch: u64,
    /// Drive writes per day, if such epochs run one after another.
    pub drive_writes_per_day: f64,
    /// Drive writes per day that the vendor's rating allows.
    pub rated_drive_writes_per_day: f64,
    /// Share of the rated bytes that an epoch uses up.
    pub life_share_per_epoch: f64,
    /// Years until the rated bytes are written, at this rate; `None` if nothing is written.
    pub years: Option<f64>,
    /// Keys of values without a verified source, such as `flash.rated_tbw`.
    pub unverified: Vec<String>,
}

impl PowerModel {
    /// The wear of epochs that each write `bytes_per_epoch` in `epoch_s` seconds, spread evenly
    /// over `drives` drives; `None` if the file has no flash section, or drives or time are zero.
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
