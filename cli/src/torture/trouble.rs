//! The faults that a campaign injects, and the errors that each of them may end a run with.

use serde::{Serialize, Serializer};
use std::fmt;

/// A fault of a job. Each job has one at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// None: everything must succeed.
    None,
    /// The device process gets SIGKILL.
    DeviceKilled,
    /// A device is killed, and started again at the same address.
    DeviceRestarted,
    /// The device process gets SIGSTOP, and SIGCONT later.
    DevicePaused,
    /// A device is started only after the host.
    DeviceLate,
    /// The connection ends: the proxy closes both sides of it.
    ConnectionCut,
    /// The proxy forwards nothing for a while, and keeps the connection.
    ConnectionSilent,
    /// A fault that the device itself injects at a batch.
    Injected(Injected),
    /// The spool has the fewest slots that work, or fewer.
    SpoolTiny,
    /// The ring has memory for the fewest batches that work, or fewer.
    MemoryTight,
    /// The worker of the device may use little memory.
    DeviceMemoryTight,
    /// A part of the dataset is damaged.
    Part(PartDamage),
    /// The host process gets SIGKILL, and another one resumes.
    HostKilled,
    /// The host process gets SIGINT.
    HostInterrupted,
    /// The host process gets SIGSTOP, and SIGCONT later.
    HostPaused,
}

/// A fault that a device injects itself, at a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Injected {
    /// It kills itself.
    Die,
    /// It stops responding.
    Stall,
    /// It becomes slower.
    Slow,
    /// A payload is damaged after its checksum was taken.
    Corrupt,
    /// A header is written before its payload.
    Tear,
    /// Writes fail as on a full disk.
    SpoolFull,
    /// It ends its connection.
    DropLink,
}

/// Damage of a part of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartDamage {
    /// One bit is flipped.
    Flipped,
    /// It loses its end.
    Truncated,
    /// Another part takes its name.
    Replaced,
    /// It is removed.
    Removed,
}

impl Injected {
    /// The text of `--fault` for the n-th batch.
    pub(super) fn at(self, n: u32) -> String {
        match self {
            Self::Die => format!("die@{n}"),
            Self::Stall => format!("stall@{n}"),
            Self::Slow => format!("slow@{n}:x8"),
            Self::Corrupt => format!("corrupt@{n}"),
            Self::Tear => format!("tear@{n}"),
            Self::SpoolFull => format!("enospc@{n}"),
            Self::DropLink => format!("drop-link@{n}"),
        }
    }
}

/// What a fault requires of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing.
    AnyJob,
    /// A strategy that uses devices.
    Device,
    /// A device that the campaign starts, not the host.
    OwnDevice,
    /// Such a device on a Unix socket.
    UnixDevice,
    /// Such a device behind a proxy.
    Proxy,
    /// A copy of the dataset.
    Copy,
    /// One rank, and devices that hold the same parts.
    Resume,
}

/// Errors that a run may end with, by their causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reports {
    /// None: the run must succeed.
    Nothing,
    /// One of these.
    Causes(&'static [&'static str]),
    /// Any error that has a cause and a remedy.
    Diagnosed,
}

/// A socket on which no process listens when the host starts is an error of the user, and so is a
/// job that the device refuses. In all other cases, the host starts without the device.
const UNREACHABLE: &[&str] = &["device_unreachable", "device_refused"];

impl Trouble {
    /// Every fault.
    pub(super) const ALL: [Self; 24] = [
        Self::None,
        Self::DeviceKilled,
        Self::DeviceRestarted,
        Self::DevicePaused,
        Self::DeviceLate,
        Self::ConnectionCut,
        Self::ConnectionSilent,
        Self::Injected(Injected::Die),
        Self::Injected(Injected::Stall),
        Self::Injected(Injected::Slow),
        Self::Injected(Injected::Corrupt),
        Self::Injected(Injected::Tear),
        Self::Injected(Injected::SpoolFull),
        Self::Injected(Injected::DropLink),
        Self::SpoolTiny,
        Self::MemoryTight,
        Self::DeviceMemoryTight,
        Self::Part(PartDamage::Flipped),
        Self::Part(PartDamage::Truncated),
        Self::Part(PartDamage::Replaced),
        Self::Part(PartDamage::Removed),
        Self::HostKilled,
        Self::HostInterrupted,
        Self::HostPaused,
    ];

    /// Its name in tables and reports.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::DeviceKilled => "device-killed",
            Self::DeviceRestarted => "device-restarted",
            Self::DevicePaused => "device-paused",
            Self::DeviceLate => "device-late",
            Self::ConnectionCut => "connection-cut",
            Self::ConnectionSilent => "connection-silent",
            Self::Injected(Injected::Die) => "device-died",
            Self::Injected(Injected::Stall) => "device-stalled",
            Self::Injected(Injected::Slow) => "device-slow",
            Self::Injected(Injected::Corrupt) => "slot-corrupted",
            Self::Injected(Injected::Tear) => "slot-torn",
            Self::Injected(Injected::SpoolFull) => "spool-full",
            Self::Injected(Injected::DropLink) => "link-dropped",
            Self::SpoolTiny => "spool-tiny",
            Self::MemoryTight => "memory-tight",
            Self::DeviceMemoryTight => "device-memory-tight",
            Self::Part(PartDamage::Flipped) => "part-flipped",
            Self::Part(PartDamage::Truncated) => "part-truncated",
            Self::Part(PartDamage::Replaced) => "part-replaced",
            Self::Part(PartDamage::Removed) => "part-removed",
            Self::HostKilled => "host-killed",
            Self::HostInterrupted => "host-interrupted",
            Self::HostPaused => "host-paused",
        }
    }

    /// What the job must have.
    pub(super) fn needs(self) -> Needs {
        match self {
            Self::None | Self::MemoryTight | Self::HostInterrupted | Self::HostPaused => {
                Needs::AnyJob
            }
            Self::DeviceKilled | Self::DevicePaused | Self::Injected(_) | Self::SpoolTiny => {
                Needs::Device
            }
            Self::DeviceRestarted => Needs::UnixDevice,
            Self::DeviceLate | Self::DeviceMemoryTight => Needs::OwnDevice,
            Self::ConnectionCut | Self::ConnectionSilent => Needs::Proxy,
            Self::Part(_) => Needs::Copy,
            Self::HostKilled => Needs::Resume,
        }
    }

    /// Whether the files of the dataset change during the run.
    pub(super) fn is_of_part(self) -> bool {
        self.needs() == Needs::Copy
    }

    /// Whether it happens at a moment of the run, rather than being a setting of the job.
    pub(super) fn has_moment(self) -> bool {
        match self {
            Self::DeviceKilled
            | Self::DeviceRestarted
            | Self::DevicePaused
            | Self::ConnectionCut
            | Self::ConnectionSilent
            | Self::Part(_)
            | Self::HostKilled
            | Self::HostInterrupted
            | Self::HostPaused => true,
            Self::None
            | Self::DeviceLate
            | Self::Injected(_)
            | Self::SpoolTiny
            | Self::MemoryTight
            | Self::DeviceMemoryTight => false,
        }
    }

    /// The errors that a run may end with; `has_begun` if it had consumed a batch, `is_own` if its
    /// devices are started by the campaign.
    pub(super) fn reports(self, has_begun: bool, is_own: bool) -> Reports {
        match self {
            Self::DeviceKilled
            | Self::DeviceRestarted
            | Self::DevicePaused
            | Self::ConnectionCut
            | Self::ConnectionSilent
            | Self::Injected(Injected::Die | Injected::Stall | Injected::DropLink)
                if is_own && !has_begun =>
            {
                Reports::Causes(UNREACHABLE)
            }
            Self::DeviceLate | Self::DeviceMemoryTight => Reports::Causes(UNREACHABLE),
            Self::SpoolTiny => Reports::Causes(&["spool_quota_too_small", "job"]),
            Self::MemoryTight => Reports::Causes(&["memory_budget_too_small", "job"]),
            Self::Part(_) => Reports::Diagnosed,
            Self::HostInterrupted => Reports::Causes(&["interrupted"]),
            Self::None
            | Self::DeviceKilled
            | Self::DeviceRestarted
            | Self::DevicePaused
            | Self::ConnectionCut
            | Self::ConnectionSilent
            | Self::Injected(_)
            | Self::HostKilled
            | Self::HostPaused => Reports::Nothing,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Trouble {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Trouble;
    use std::collections::BTreeSet;

    #[test]
    fn every_fault_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Trouble::ALL.iter().map(|it| it.as_str()).collect();
        assert_eq!(names.len(), Trouble::ALL.len());
    }
}
