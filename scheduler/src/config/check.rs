//! Validation of configurations.

use crate::config::Config;
use crate::error::{Error, at_least_one};
use crate::strategies::RecordKind;
use crate::terms::Holders;
use crate::types::DeviceId;

/// A device index is a `u16`.
const DEVICES_MAX: usize = u16::MAX as usize;

impl Config {
    /// Checks that an epoch can run with it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.batches == 0 {
            return Err(Error::NoBatches);
        }
        if self.devices.len() > DEVICES_MAX {
            return Err(Error::TooManyDevices { asked: self.devices.len(), limit: DEVICES_MAX });
        }
        at_least_one("host_ahead", self.host_ahead)?;
        at_least_one("ranks", self.ranks)?;
        self.check_holders()?;
        self.check_replay()?;
        if !self.strategy.uses_devices() {
            return Ok(());
        }
        if self.devices.is_empty() {
            if self.strategy.needs_device() {
                return Err(Error::NeedsDevice { strategy: self.strategy.name() });
            }
            return Ok(());
        }
        for device in &self.devices {
            at_least_one("devices.ahead", device.ahead)?;
            at_least_one("devices.spool_slots", device.spool_slots)?;
        }
        at_least_one("fetch_ahead", self.fetch_ahead)?;
        at_least_one("stall_timeout_ns", self.stall_timeout_ns)?;
        at_least_one("stalls_max", self.stalls_max)?;
        self.strategy.check(&self.terms())
    }

    fn check_holders(&self) -> Result<(), Error> {
        let Holders::Interleaved(interleave) = &self.holders else { return Ok(()) };
        let devices = usize::from(interleave.devices());
        if devices != self.devices.len() {
            return Err(Error::HoldersCount { holders: devices, devices: self.devices.len() });
        }
        let held: u64 =
            (0..interleave.devices()).map(|at| u64::from(interleave.count(DeviceId(at)))).sum();
        if held != u64::from(self.batches) {
            return Err(Error::HeldCount { held, batches: self.batches });
        }
        Ok(())
    }

    fn check_replay(&self) -> Result<(), Error> {
        let Some(record) = &self.replay else { return Ok(()) };
        let fits = match self.strategy.is_selector() {
            true => !self.devices.is_empty(),
            false => self.strategy.name() == record.strategy(),
        };
        let refused = || Error::NotReplayed {
            record: record.to_string(),
            strategy: self.strategy.name(),
            batches: self.batches,
        };
        if !fits {
            return Err(refused());
        }
        let numbers = record.numbers();
        let shares = numbers.get(record.numbers_before_shares()..).ok_or_else(refused)?;
        let counts: Vec<u32> = match &self.holders {
            Holders::Shared => vec![self.batches],
            Holders::Interleaved(interleave) => {
                (0..interleave.devices()).map(|at| interleave.count(DeviceId(at))).collect()
            }
        };
        let small = |at: usize| numbers[at] <= u64::from(u32::MAX);
        let turns = match record.strategy().record() {
            RecordKind::None => false,
            RecordKind::Shares => true,
            RecordKind::Turns => small(0) && small(4) && numbers[3] > 0,
        };
        let held = shares.len() == counts.len()
            && shares.iter().zip(&counts).all(|(&share, &count)| share <= u64::from(count));
        if turns && held { Ok(()) } else { Err(refused()) }
    }
}
