//! Which device holds which samples: whole parts of a dataset, each on one device.

use crate::interleave::DEVICES_MAX;
use std::sync::Arc;

/// Parts that cannot be assigned to devices as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldersError {
    /// No device, or more devices than device numbers.
    #[error("{devices} devices: there are from 1 to 65536")]
    Devices {
        /// The given number.
        devices: u32,
    },
    /// A list whose length is not the number of parts.
    #[error(
        "the list of devices has {named} entries, but the dataset has {parts} parts: give one \
         device for each part"
    )]
    Parts {
        /// Entries of the list.
        named: usize,
        /// Parts of the dataset.
        parts: usize,
    },
    /// A part on a device that does not exist.
    #[error("part {part}: device index {device} out of range 0..{devices}")]
    NoSuchDevice {
        /// Part.
        part: usize,
        /// The given value.
        device: u32,
        /// The number of devices.
        devices: u32,
    },
}

/// Which device holds which samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders(Option<Arc<Spread>>);

#[derive(Debug, PartialEq, Eq)]
struct Spread {
    /// By device.
    held: Vec<Held>,
    /// By part: its device.
    of_part: Vec<u32>,
}

/// What one device holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Held {
    samples: u64,
    /// For each run of consecutive samples: how many of the device's samples precede it, and its
    /// first sample.
    runs: Vec<(u64, u64)>,
}

impl Held {
    /// Every sample of a dataset.
    pub(crate) fn all(samples: u64) -> Self {
        Self { samples, runs: vec![(0, 0)] }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// The index in the dataset of the device's n-th sample.
    pub(crate) fn sample(&self, n: u64) -> u64 {
        let after = self.runs.partition_point(|(before, _)| *before <= n);
        let (before, first) = self.runs[after - 1];
        first + (n - before)
    }

    /// How many of the device's samples precede a sample of the dataset, which the device need not
    /// hold.
    pub(crate) fn before(&self, sample: u64) -> u64 {
        let after = self.runs.partition_point(|(_, first)| *first <= sample);
        let Some((before, first)) = after.checked_sub(1).map(|run| self.runs[run]) else {
            return 0;
        };
        let end = self.runs.get(after).map_or(self.samples, |(before, _)| *before);
        (before + (sample - first)).min(end)
    }

    /// Whether the device holds a sample of the dataset.
    pub(crate) fn holds(&self, sample: u64) -> bool {
        let after = self.runs.partition_point(|(_, first)| *first <= sample);
        let Some((before, first)) = after.checked_sub(1).map(|run| self.runs[run]) else {
            return false;
        };
        let end = self.runs.get(after).map_or(self.samples, |(before, _)| *before);
        sample - first < end - before
    }
}

impl Holders {
    /// For devices that all hold the same parts, or for a single device.
    pub fn all_alike() -> Self {
        Self(None)
    }

    /// Whole parts on devices: part p, of `part_samples[p]` samples, on device `of_part[p]`, or on
    /// p mod `devices` if `of_part` is empty. One device is the same as [`Self::all_alike`].
    pub fn of_parts(
        part_samples: &[u64],
        devices: u32,
        of_part: &[u32],
    ) -> Result<Self, HoldersError> {
        let parts = part_samples.len();
        if devices == 0 || devices as usize > DEVICES_MAX {
            return Err(HoldersError::Devices { devices });
        }
        if !of_part.is_empty() && of_part.len() != parts {
            return Err(HoldersError::Parts { named: of_part.len(), parts });
        }
        let mut held = vec![Held::default(); devices as usize];
        let of_part: Vec<u32> = match of_part {
            [] => (0..devices).cycle().take(parts).collect(),
            listed => listed.to_vec(),
        };
        let mut first = 0;
        for (part, (samples, device)) in part_samples.iter().zip(&of_part).enumerate() {
            let own = held.get_mut(*device as usize);
            let device = *device;
            let own = own.ok_or(HoldersError::NoSuchDevice { part, device, devices })?;
            if *samples > 0 {
                own.runs.push((own.samples, first));
            }
            own.samples += samples;
            first += samples;
        }
        Ok(Self((devices > 1).then(|| Arc::new(Spread { held, of_part }))))
    }

    /// Number of devices that hold different samples; 1 if all hold the same.
    pub fn devices(&self) -> u32 {
        let devices = self.0.as_ref().map_or(1, |spread| spread.held.len());
        u32::try_from(devices).expect("at most 65536")
    }

    /// Samples that a device holds; `None` if all hold the same.
    pub fn samples_of(&self, device: u16) -> Option<u64> {
        self.held(device).map(Held::samples)
    }

    /// The device of each part, as [`Self::of_parts`] takes it; empty if all hold the same.
    pub fn of_part(&self) -> &[u32] {
        self.0.as_ref().map_or(&[], |spread| &spread.of_part)
    }

    pub(crate) fn devices_held(&self) -> Option<&[Held]> {
        self.0.as_ref().map(|spread| &spread.held[..])
    }

    pub(crate) fn held(&self, device: u16) -> Option<&Held> {
        self.devices_held()?.get(usize::from(device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples_of(holders: &Holders, device: u16) -> Vec<u64> {
        let held = holders.held(device).unwrap();
        (0..held.samples()).map(|n| held.sample(n)).collect()
    }

    #[test]
    fn parts_are_assigned_round_robin_unless_they_are_listed() {
        let holders = Holders::of_parts(&[3, 0, 2, 1, 4], 2, &[]).unwrap();
        assert_eq!(holders.devices(), 2);
        assert_eq!(samples_of(&holders, 0), [0, 1, 2, 3, 4, 6, 7, 8, 9]);
        assert_eq!(samples_of(&holders, 1), [5]);
        let listed = Holders::of_parts(&[3, 0, 2, 1, 4], 3, &[2, 0, 0, 2, 0]).unwrap();
        assert_eq!(samples_of(&listed, 0), [3, 4, 6, 7, 8, 9]);
        assert!(samples_of(&listed, 1).is_empty());
        assert_eq!(samples_of(&listed, 2), [0, 1, 2, 5]);
        assert_eq!(listed.samples_of(2), Some(4));
        assert_eq!(listed.of_part(), [2, 0, 0, 2, 0]);
        for device in 0..3 {
            let held = listed.held(device).unwrap();
            let all: Vec<u64> = (0..12).filter(|sample| held.holds(*sample)).collect();
            assert_eq!(all, samples_of(&listed, device));
        }
        assert_eq!(holders.of_part(), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn one_device_is_equivalent_to_no_assignment() {
        assert_eq!(Holders::of_parts(&[3, 4], 1, &[]).unwrap(), Holders::all_alike());
        assert_eq!(Holders::all_alike().devices(), 1);
        assert_eq!(Holders::all_alike().samples_of(0), None);
    }

    #[test]
    fn parts_that_cannot_be_assigned_are_refused() {
        let error = |parts: &[u64], devices, of_part: &[u32]| {
            Holders::of_parts(parts, devices, of_part).unwrap_err().to_string()
        };
        assert!(error(&[1], 0, &[]).contains("0 devices"));
        assert!(error(&[1], 65537, &[]).contains("65537 devices"));
        assert!(error(&[1, 1], 2, &[0]).contains("1 entries, but the dataset has 2 parts"));
        assert!(error(&[1, 1], 2, &[0, 2]).contains("part 1: device index 2 out of range"));
        assert!(Holders::of_parts(&[1, 1], 1, &[0, 1]).is_err());
    }
}
