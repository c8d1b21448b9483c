//! Lost devices, whose links are reopened in the background.

use super::{Loader, device_id};
use crate::Error;
use crate::device_link::{DeviceLink, LinkSetup, Reopening};
use crate::events::{DeviceLabel, EventKind, Phase, Remaining};
use meetpoint_diagnose::Diagnose;
use std::sync::Arc;

impl Loader {
    /// The parameters with which the link of a device is opened.
    pub(super) fn link_setup(&self, number: usize, is_first: bool) -> LinkSetup {
        LinkSetup {
            device: device_id(number),
            source: self.config.devices[number].clone(),
            job: self.job.clone(),
            batches: self.batches,
            held: self.held[number],
            spool: self.config.spool_of(number).clone(),
            limits: self.limits.spools[number],
            retained_most: self.retained_most(number),
            decode_bytes: self.decode_memory.limit(),
            stop: self.config.stop.clone(),
            cores: self.config.host_cores.clone(),
            begins_with_spool: is_first,
        }
    }

    /// Tries at once to reach each lost device, and waits until each attempt has ended, within the
    /// time limits of [`Self::open`]. If an attempt was already in progress and fails, another
    /// follows.
    ///
    /// This is for callers that need the devices from the first batch of an epoch. Without this
    /// call, lost devices are reopened in the background, and an epoch begins without those that
    /// have not answered.
    pub fn reopen_devices(&mut self) -> Result<(), Error> {
        let is_under_way = |it: &Option<Reopening>| it.as_ref().is_some_and(|it| !it.is_over());
        let were_under_way: Vec<bool> = self.reopening.iter().map(is_under_way).collect();
        self.begin_reopening()?;
        let mut tried = Vec::new();
        for (reopening, was_under_way) in self.reopening.iter().zip(were_under_way) {
            let Some(reopening) = reopening else { continue };
            // Where reopening begins here, one attempt suffices.
            tried.push((reopening, if was_under_way { reopening.hurry() } else { 1 }));
        }
        for (reopening, failed) in tried {
            reopening.await_tries(failed, &self.config.stop)?;
        }
        self.use_reopened();
        Ok(())
    }

    /// Uses the links that were reopened.
    pub(super) fn use_reopened(&mut self) {
        for number in 0..self.links.len() {
            let link = self.reopening[number].as_mut().and_then(Reopening::take_link);
            if let Some(link) = link {
                self.reopening[number] = None;
                self.use_link(number, link);
            }
        }
    }

    /// Begins to reopen lost links, or shortens the pause between attempts that have begun.
    pub(super) fn begin_reopening(&mut self) -> Result<(), Error> {
        for number in 0..self.links.len() {
            let is_alive = self.links[number].as_ref().is_some_and(DeviceLink::is_alive);
            let under_way = self.reopening[number].as_ref().filter(|it| !it.is_over());
            match under_way {
                _ if is_alive => {}
                Some(reopening) => reopening.shorten_pause(),
                None => {
                    let lost = self.links[number].take();
                    let setup = self.link_setup(number, false);
                    let events = Arc::clone(&self.driver) as _;
                    self.reopening[number] = Some(Reopening::begin(setup, lost, events)?);
                }
            }
        }
        Ok(())
    }

    /// The events of devices that were lost before they served a batch.
    pub(super) fn losses_at_start(&mut self) -> Vec<EventKind> {
        let count = self.links.len();
        let remaining = Remaining::of_devices(self.links.iter().flatten().count());
        let lost = std::mem::take(&mut self.lost_at_start);
        let event = |(number, error): (usize, Error)| EventKind::DeviceLost {
            device: DeviceLabel::new(number, count),
            phase: Phase::Start,
            remaining,
            remedy: error.remedy(),
            reason: error.into_loss(),
        };
        lost.into_iter().map(event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceSource, LoaderConfig, RemoteDevice, TcpAddress};
    use meetpoint_format::recipe::Recipe;
    use meetpoint_scheduler::{AnyStrategy, DeviceOnly};
    use std::io::Read;
    use std::net::TcpListener;

    /// A listener that answers nothing, and a loader whose device at its address is lost.
    fn with_silent_device() -> (Loader, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = TcpAddress {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
        };
        let recipe = "operation = [{name = 'decode'}, {name = 'center_crop', size = 8}]";
        let recipe = Arc::new(Recipe::from_toml(recipe).unwrap());
        let mut config = LoaderConfig::new("../datasets/tests/golden/version-3", recipe, 4);
        config.strategy = AnyStrategy::DeviceOnly(DeviceOnly);
        config.devices = vec![DeviceSource::Remote(Box::new(RemoteDevice::new(address)))];
        // Hangs up once, so that the loader opens without the device.
        let accepted = std::thread::spawn(move || {
            drop(listener.accept().unwrap());
            listener
        });
        let loader = Loader::open(config).unwrap();
        (loader, accepted.join().unwrap())
    }

    #[test]
    fn closing_a_loader_ends_an_attempt_before_the_device_answers_or_the_time_limit_ends() {
        let (mut loader, listener) = with_silent_device();
        loader.begin_reopening().unwrap();
        let (mut pending, _) = listener.accept().unwrap();
        let driver = Arc::clone(&loader.driver);
        drop(loader);
        // Only an attempt that ended by itself is recorded.
        assert_eq!(driver.tries_between(), 0);
        let mut greeting = Vec::new();
        pending.read_to_end(&mut greeting).unwrap();
    }

    #[test]
    fn an_interrupt_ends_the_wait_for_devices() {
        let (mut loader, listener) = with_silent_device();
        let stop = loader.stop_handle();
        let waiting = std::thread::spawn(move || loader.reopen_devices());
        let (_pending, _) = listener.accept().unwrap();
        stop.stop();
        assert!(matches!(waiting.join().unwrap(), Err(Error::Interrupted)));
    }
}
