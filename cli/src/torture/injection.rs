//! Injects the fault of a job when it is due, and removes it later.

use super::child::Running;
use super::damage::damage;
use super::job::TortureJob;
use super::processes;
use super::served::Devices;
use super::sets;
use super::trouble::Trouble;
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the device of a job with many epochs is killed.
const ENDURANCE_KILLS: u64 = 8;

/// The fault of a job, and the processes that it hits.
pub(super) struct Injection<'a> {
    job: &'a TortureJob,
    /// The dataset that the job reads.
    set: PathBuf,
    pub(super) devices: Devices,
    is_injected: bool,
    /// Number of consumed batches after which the next fault happens.
    next_after: u64,
    /// Actions to take later, and when.
    pending: Vec<(Instant, Later)>,
}

/// An action that ends a lasting fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Later {
    /// Continue a stopped process.
    Continue(u32),
    /// Start a killed device again.
    Restart(usize),
    /// Forward again.
    Speak,
    /// Start the devices.
    StartDevices,
}

impl<'a> Injection<'a> {
    pub(super) fn new(job: &'a TortureJob, set: PathBuf, devices: Devices) -> Self {
        let next_after = job.after_batches;
        Self { job, set, devices, is_injected: false, next_after, pending: Vec::new() }
    }

    /// Whether the fault has happened.
    pub(super) fn is_injected(&self) -> bool {
        self.is_injected
    }

    /// Whether a fault lasts.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Starts the devices after the pause of the job.
    pub(super) fn start_devices_later(&mut self) {
        self.later(Later::StartDevices);
    }

    fn later(&mut self, what: Later) {
        self.pending.push((Instant::now() + Duration::from_millis(self.job.pause_ms), what));
    }

    /// Injects the fault when it is due.
    pub(super) fn inject_if_due(&mut self, host: &mut Running, batches: u64) -> anyhow::Result<()> {
        let trouble = self.job.trouble;
        if !trouble.has_moment() {
            self.is_injected = true;
            return Ok(());
        }
        let repeats = self.job.is_endurance;
        if batches < self.next_after || (self.is_injected && !repeats) {
            return Ok(());
        }
        let device = self.job.detail as usize % 64;
        let spawned = || processes::devices_of(host.id());
        let ids = if self.job.has_own_devices() { self.devices.ids() } else { spawned() };
        let id = (!ids.is_empty()).then(|| ids[device % ids.len()]);
        match trouble {
            Trouble::DeviceKilled => match id {
                Some(_) if self.job.has_own_devices() => self.devices.kill(device)?,
                Some(id) => processes::signal(id, Signal::KILL),
                // A device starts soon, or the host ends.
                None => return Ok(()),
            },
            Trouble::DeviceRestarted if self.job.has_own_devices() => {
                self.devices.kill(device)?;
                self.later(Later::Restart(device));
            }
            Trouble::DevicePaused => {
                let Some(id) = id else { return Ok(()) };
                processes::signal(id, Signal::STOP);
                self.later(Later::Continue(id));
            }
            Trouble::ConnectionCut => self.devices.relays().for_each(|relay| relay.cut()),
            Trouble::ConnectionSilent => {
                self.devices.relays().for_each(|relay| relay.set_silent(true));
                self.later(Later::Speak);
            }
            Trouble::HostKilled => host.signal(Signal::KILL),
            Trouble::HostInterrupted => host.signal(Signal::INT),
            Trouble::HostPaused => {
                host.signal(Signal::STOP);
                self.later(Later::Continue(host.id()));
            }
            Trouble::Part(kind) => damage(kind, &self.set, self.job.detail)?,
            // The campaign restarts only devices that it started; the others are settings.
            Trouble::DeviceRestarted
            | Trouble::None
            | Trouble::DeviceLate
            | Trouble::Injected(_)
            | Trouble::SpoolTiny
            | Trouble::MemoryTight
            | Trouble::DeviceMemoryTight => {}
        }
        self.is_injected = true;
        let total =
            u64::from(self.job.epochs) * u64::from(sets::SAMPLES.div_ceil(self.job.batch_size));
        self.next_after = batches + (total / ENDURANCE_KILLS).max(1);
        Ok(())
    }

    /// Ends faults whose time is over, or all of them.
    pub(super) fn end_faults(&mut self, all: bool) -> anyhow::Result<()> {
        let now = Instant::now();
        let (due, pending) =
            std::mem::take(&mut self.pending).into_iter().partition(|(at, _)| all || *at <= now);
        self.pending = pending;
        let due: Vec<(Instant, Later)> = due;
        for (_, later) in due {
            match later {
                Later::Continue(pid) => processes::signal(pid, Signal::CONT),
                // Nothing would use them any more.
                Later::Restart(_) | Later::StartDevices if all => {}
                Later::Restart(number) => self.devices.restart(self.job, number)?,
                Later::Speak => self.devices.relays().for_each(|relay| relay.set_silent(false)),
                Later::StartDevices => self.devices.start(self.job)?,
            }
        }
        Ok(())
    }
}
