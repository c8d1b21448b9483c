//! Which configurations can be run.

use crate::config::{Config, Holders, Split, Strategy};
use crate::error::Error;

/// A device's number is a `u16`, and the highest stands for the host.
const DEVICES_MAX: usize = u16::MAX as usize;

impl Config {
    /// Whether an epoch can be run with it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.batches == 0 {
            return Err(Error::NoBatches);
        }
        self.check_available()?;
        if self.devices.len() > DEVICES_MAX {
            return Err(Error::TooManyDevices { asked: self.devices.len(), limit: DEVICES_MAX });
        }
        at_least_one("host_ahead", self.host_ahead)?;
        at_least_one("ranks", self.ranks)?;
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
        match self.strategy {
            Strategy::Mte { split: Split::Fixed(split), .. } if split > self.batches => {
                Err(Error::SplitTooLarge { split, batches: self.batches })
            }
            Strategy::Mte { split: Split::EqualFinish, .. } if !self.profile_known() => {
                at_least_one("profile_batches", self.profile_batches)
            }
            _ => Ok(()),
        }
    }

    /// Whether what is asked for is there.
    fn check_available(&self) -> Result<(), Error> {
        let refuse = |what| Err(Error::NotAvailable { what });
        match self.strategy {
            Strategy::HostOnly | Strategy::DeviceOnly | Strategy::Wrr => {}
            Strategy::Mte { split: Split::EqualFinish | Split::Fixed(_), .. } => {}
            Strategy::Mte { split: Split::Optimal, .. } => {
                return refuse("the optimal split of mte");
            }
            Strategy::WrrFrozen => return refuse("strategy wrr-frozen"),
            Strategy::MteFeedback => return refuse("strategy mte-feedback"),
            Strategy::Windowed { .. } => return refuse("strategy windowed"),
            Strategy::Auto { .. } => return refuse("strategy auto"),
        }
        if self.devices.len() > 1 {
            return refuse("more than one device");
        }
        if matches!(self.holders, Holders::Interleaved(_)) {
            return refuse("batches held by one device each");
        }
        if self.ranks > 1 {
            return refuse("more than one rank");
        }
        if self.replay.is_some() {
            return refuse("replaying a record");
        }
        Ok(())
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
