//! The job and the faults that a seed determines.

use super::sizes::{EPOCHS_MAX, JOB_SEEDS, SAMPLES};
use crate::machine::{Interleaving, Random};
use meetpoint_scheduler::{AnyStrategy, StrategyName};
use std::fmt;

const MS: u64 = 1_000_000;

/// A simulated training.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) strategy: AnyStrategy,
    pub(crate) devices: Vec<DevicePlan>,
    /// Whether every device may prepare any batch.
    pub(crate) is_shared: bool,
    pub(crate) workers: u32,
    pub(crate) prefetch: u32,
    pub(crate) batch_size: u32,
    pub(crate) drops_last: bool,
    /// Epochs before the last one, which has no faults.
    pub(crate) epochs: u32,
    pub(crate) job_seed: u64,
    /// Time of a step.
    pub(crate) step_ns: u64,
    /// Time in which a thread of the host prepares a sample.
    pub(crate) sample_ns: u64,
    /// Memory for batches, each of which takes a huge page.
    pub(crate) memory_bytes: u64,
    /// Batches that the consumer retains while it asks for the next.
    pub(crate) retained: usize,
    pub(crate) stall_timeout_ms: u64,
    /// Whether devices begin the next epoch early.
    pub(crate) runs_ahead: bool,
    /// Epochs that are cancelled, and after how many batches.
    pub(crate) cancels: Vec<Cancel>,
    pub(crate) faults: Vec<PlannedFault>,
    pub(crate) interleaving: Interleaving,
}

/// An epoch that the consumer cancels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancel {
    pub(crate) epoch: u32,
    /// Number of batches that it consumes before.
    pub(crate) after: u32,
    /// Whether the consumer resumes the epoch; otherwise it restarts the epoch.
    pub(crate) resumes: bool,
}

/// A device.
#[derive(Debug, Clone)]
pub(crate) struct DevicePlan {
    /// Whether it is reached over a network, and sends its batches.
    pub(crate) is_remote: bool,
    /// Whether its spool is a file.
    pub(crate) has_spool_file: bool,
    pub(crate) spool_bytes: u64,
    pub(crate) threads: u32,
    /// Time in which it prepares a sample.
    pub(crate) sample_ns: u64,
    /// Time that a message takes, and by how much it varies.
    pub(crate) latency_ns: u64,
    pub(crate) jitter_ns: u64,
    /// Whether messages arrive in pieces.
    pub(crate) splits: bool,
    /// Faults that the device injects itself.
    pub(crate) own_faults: Vec<meetpoint_link::Fault>,
}

/// A fault, and when it happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedFault {
    /// After this many batches were consumed.
    pub(crate) after: u64,
    /// Delay after that.
    pub(crate) delay_ns: u64,
    pub(crate) fault: Fault,
}

/// A fault that the operator injects.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The host is killed, and another one resumes the training after a time.
    HostKilled { for_ns: u64 },
    /// The host is stopped for a time.
    HostPaused { for_ns: u64 },
    /// Reads of the host, or only those of spool files, are slow for a time.
    HostStorage { for_ns: u64, what: StorageFault },
    /// A device is killed, and started again after a time.
    Killed { device: usize, for_ns: u64 },
    /// A device shuts down, and is started again after a time.
    Drained { device: usize, for_ns: u64 },
    /// A device is stopped for a time.
    Paused { device: usize, for_ns: u64 },
    /// The storage of a device fails for a time.
    Storage { device: usize, for_ns: u64, what: StorageFault },
    /// Nothing arrives for a time.
    Partitioned { device: usize, for_ns: u64 },
    /// Messages take longer for a time.
    Congested { device: usize, for_ns: u64, delay_ns: u64 },
    /// New connections are refused for a time.
    Refused { device: usize, for_ns: u64 },
    /// All connections are reset.
    Reset { device: usize },
    /// All connections end in the middle of a message.
    Torn { device: usize },
    /// Nothing that one end sends arrives any more, not even the end of the connection.
    HalfOpen { device: usize, is_to_device: bool },
}

/// A fault of storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StorageFault {
    /// Each read and write takes longer.
    Slow { delay_ns: u64 },
    /// Reads and writes fail.
    Fails,
    /// Writes fail for lack of space.
    Full,
    /// A bit of what is read is flipped.
    Corrupts,
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let random = &mut Random::new(seed, 3);
        let devices = *random.choose(&[1, 1, 1, 2, 2, 3]);
        let name = *random.choose(&StrategyName::ALL);
        let strategy = name.with_defaults();
        let epochs = u32::try_from(random.within(1, u64::from(EPOCHS_MAX))).expect("it is small");
        let batch_size = u32::try_from(random.within(3, 6)).expect("it is small");
        let mut plan = Self {
            seed,
            strategy,
            devices: (0..devices).map(|_| DevicePlan::of(random)).collect(),
            is_shared: devices == 1 || random.one_in(2),
            workers: u32::try_from(random.below(3)).expect("it is small"),
            prefetch: u32::try_from(random.within(1, 3)).expect("it is small"),
            batch_size,
            drops_last: random.one_in(4),
            epochs,
            job_seed: random.below(JOB_SEEDS),
            step_ns: random.within(1, 12) * MS,
            sample_ns: random.within(200, 3000) * 1000,
            memory_bytes: *random.choose(&[8 << 20, 12 << 20, 32 << 20]),
            retained: usize::try_from(random.below(3)).expect("it is small"),
            stall_timeout_ms: *random.choose(&[1000, 1500, 2000, 3000]),
            runs_ahead: random.one_in(3),
            cancels: Vec::new(),
            faults: Vec::new(),
            interleaving: Interleaving {
                preempt_one_in: *random.choose(&[3, 8, 16, 64]),
                spurious_one_in: *random.choose(&[0, 16, 64]),
                delay_one_in: *random.choose(&[0, 200, 1000]),
            },
        };
        plan.cancels = plan.make_cancels(random);
        plan.faults = plan.make_faults(random);
        plan
    }

    /// Approximate number of batches of an epoch.
    fn batches(&self) -> u64 {
        SAMPLES / u64::from(self.batch_size)
    }

    fn make_cancels(&self, random: &mut Random) -> Vec<Cancel> {
        let can_resume = self.devices.len() == 1 || self.is_shared;
        let epochs = (0..self.epochs).filter(|_| random.one_in(3)).collect::<Vec<u32>>();
        let mut cancel = |epoch| Cancel {
            epoch,
            after: u32::try_from(random.within(1, self.batches() - 1)).expect("it is small"),
            resumes: can_resume && random.one_in(2),
        };
        epochs.into_iter().map(&mut cancel).collect()
    }

    fn make_faults(&self, random: &mut Random) -> Vec<PlannedFault> {
        let count = *random.choose(&[0, 1, 1, 2, 3, 5, 8]);
        let batches = self.batches() * u64::from(self.epochs);
        let mut faults: Vec<PlannedFault> = (0..count)
            .map(|_| PlannedFault {
                after: random.below(batches),
                delay_ns: random.below(30 * MS),
                fault: self.make_fault(random),
            })
            .collect();
        faults.sort_by_key(|fault| fault.after);
        faults
    }

    fn make_fault(&self, random: &mut Random) -> Fault {
        let device = usize::try_from(random.below(self.devices.len() as u64)).expect("it is small");
        let longest_ms = *random.choose(&[30, 300, 3000, 8000]);
        let for_ns = random.within(1, longest_ms) * MS;
        // A host that is replaced resumes its epoch only if any device may prepare any batch.
        let can_resume = self.devices.len() == 1 || self.is_shared;
        match random.below(18) {
            0 | 1 => Fault::Killed { device, for_ns },
            2 => Fault::Drained { device, for_ns },
            3 | 4 => Fault::Paused { device, for_ns },
            5 | 6 => Fault::Storage { device, for_ns, what: StorageFault::of(random, true) },
            7 | 8 => Fault::Partitioned { device, for_ns },
            9 => {
                let delay_ns = random.within(1, 200) * MS;
                Fault::Congested { device, for_ns, delay_ns }
            }
            10 => Fault::Refused { device, for_ns },
            11 => Fault::Reset { device },
            12 => Fault::Torn { device },
            13 | 14 => Fault::HalfOpen { device, is_to_device: random.one_in(2) },
            15 if can_resume => Fault::HostKilled { for_ns },
            15 | 16 => Fault::HostPaused { for_ns },
            _ => Fault::HostStorage { for_ns, what: StorageFault::of(random, false) },
        }
    }
}

impl StorageFault {
    fn of(random: &mut Random, can_be_full: bool) -> Self {
        match random.below(4) {
            0 => Self::Fails,
            1 if can_be_full => Self::Full,
            2 => Self::Corrupts,
            _ => Self::Slow { delay_ns: random.within(1, 60) * MS },
        }
    }
}

impl DevicePlan {
    fn of(random: &mut Random) -> Self {
        use meetpoint_link::Fault as Own;
        let mut own_faults = Vec::new();
        while random.one_in(3) && own_faults.len() < 3 {
            let n = random.within(1, 14);
            let duration_ms = random.within(10, 5000);
            own_faults.push(match random.below(7) {
                0 => Own::DieAt(n),
                1 => {
                    let duration = Some(std::time::Duration::from_millis(duration_ms));
                    Own::StallAt { n, duration }
                }
                2 => Own::StallAt { n, duration: None },
                3 => Own::CorruptAt(n),
                4 => Own::TearAt(n),
                5 => Own::SpoolFullAt(n),
                _ => Own::DropLinkAt(n),
            });
        }
        let is_remote = random.one_in(3);
        Self {
            is_remote,
            has_spool_file: !is_remote && random.one_in(3),
            spool_bytes: *random.choose(&[5, 5, 6, 8, 12, 24]) * 8192,
            threads: u32::try_from(random.within(1, 2)).expect("it is small"),
            sample_ns: random.within(200, 4000) * 1000,
            latency_ns: *random.choose(&[10_000, 100_000, 1_000_000, 5_000_000]),
            jitter_ns: *random.choose(&[1000, 100_000, 3_000_000]),
            splits: random.one_in(2),
            own_faults,
        }
    }
}

/// One line, for the trace and for failures.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { strategy, workers, prefetch, batch_size, epochs, .. } = self;
        write!(f, "{}, {workers} workers, prefetch {prefetch}, ", strategy.name())?;
        write!(f, "batches of {batch_size}, {epochs} epochs and the last")?;
        for device in &self.devices {
            let what = match (device.is_remote, device.has_spool_file) {
                (true, _) => "remote",
                (false, true) => "spool file",
                (false, false) => "shared memory",
            };
            write!(f, "; {what}, {} threads", device.threads)?;
            for fault in &device.own_faults {
                write!(f, ", {fault}")?;
            }
        }
        for Cancel { epoch, after, resumes } in &self.cancels {
            let then = if *resumes { "resumed" } else { "begun again" };
            write!(f, "; epoch {epoch} cancelled after {after} and {then}")?;
        }
        for PlannedFault { after, fault, .. } in &self.faults {
            write!(f, "; after {after}: {fault:?}")?;
        }
        Ok(())
    }
}
