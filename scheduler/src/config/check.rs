//! Which configurations can be run.

use crate::config::{Config, Holders, Split, Strategy};
use crate::error::Error;
use crate::record::{Kind, Record};
use crate::types::DeviceId;

/// A device's number is a `u16`.
const DEVICES_MAX: usize = u16::MAX as usize;

impl Config {
    /// Whether an epoch can be run with it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.batches == 0 {
            return Err(Error::NoBatches);
        }
        if self.devices.len() > DEVICES_MAX {
            return Err(Error::TooManyDevices { asked: self.devices.len(), limit: DEVICES_MAX });
        }
        at_least_one("host_ahead", self.host_ahead)?;
        at_least_one("ranks", self.ranks)?;
        if let Strategy::Windowed { window } = self.strategy {
            at_least_one("window", window)?;
        }
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
        self.check_strategy()
    }

    fn check_strategy(&self) -> Result<(), Error> {
        match self.strategy {
            Strategy::Mte { split: Split::Fixed(split), .. } if split > self.batches => {
                Err(Error::SplitTooLarge { split, batches: self.batches })
            }
            Strategy::Mte { split: Split::EqualFinish | Split::Optimal, .. }
            | Strategy::WrrFrozen
                if !self.profile_known() && self.replay.is_none() =>
            {
                at_least_one("profile_batches", self.profile_batches)
            }
            _ => Ok(()),
        }
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
        let fits = match self.strategy {
            Strategy::Auto { .. } => !self.devices.is_empty(),
            other => other.name() == record.strategy(),
        };
        let refused = || Error::NotReplayed {
            record: record.to_string(),
            strategy: self.strategy.name(),
            batches: self.batches,
        };
        if !fits {
            return Err(refused());
        }
        let before = match record.kind() {
            Kind::WrrFrozen => Record::FROZEN_NUMBERS,
            Kind::Mte | Kind::MteFeedback => 0,
        };
        let shares = record.numbers().get(before..).ok_or_else(refused)?;
        let counts: Vec<u32> = match &self.holders {
            Holders::Shared => vec![self.batches],
            Holders::Interleaved(interleave) => {
                (0..interleave.devices()).map(|at| interleave.count(DeviceId(at))).collect()
            }
        };
        let small = |at: usize| record.numbers()[at] <= u64::from(u32::MAX);
        let turns = before == 0 || (small(0) && small(4) && record.numbers()[3] > 0);
        let held = shares.len() == counts.len()
            && shares.iter().zip(&counts).all(|(&share, &count)| share <= u64::from(count));
        if turns && held { Ok(()) } else { Err(refused()) }
    }

    fn profile_known(&self) -> bool {
        let learned = &self.learned;
        learned.host_ns > 0 && (0..self.devices.len()).all(|at| learned.device_ns(at) > 0)
    }
}

fn at_least_one(field: &'static str, got: impl Into<u64>) -> Result<(), Error> {
    let got = got.into();
    if got == 0 { Err(Error::TooSmall { field, got, least: 1 }) } else { Ok(()) }
}
