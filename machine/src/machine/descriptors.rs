//! The descriptors of simulated processes, so that they can be closed when a process is killed.

use super::Machine;
use super::indices::ProcessIndex;
use libc::c_int;
use std::collections::BTreeMap;

/// What a descriptor refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DescriptorKind {
    /// A socket of this machine.
    Socket,
    /// A socket that looks like a network socket to programs.
    Network {
        /// Its port.
        port: u16,
        /// The port at the other end, if it is connected.
        peer: u16,
    },
    /// A set of descriptors (epoll), or a counter of events.
    Events,
    /// A file; `is_spool`: the unnamed file of a spool.
    File { is_spool: bool },
}

/// A descriptor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptor {
    pub(crate) process: ProcessIndex,
    pub(crate) kind: DescriptorKind,
    /// Longest wait of a read, if it is limited.
    pub(crate) read_limit_ns: Option<u64>,
    /// Longest wait of a write, if it is limited.
    pub(crate) write_limit_ns: Option<u64>,
}

/// The descriptors of all processes.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    open: BTreeMap<c_int, Descriptor>,
    /// How often one of them may have become readable or writable.
    changes: u64,
    /// Ports that were given to connections.
    ports: u16,
}

impl Descriptors {
    pub(super) fn changed(&mut self) {
        self.changes += 1;
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn take_those_of(&mut self, process: ProcessIndex) -> Vec<c_int> {
        let of_process: Vec<c_int> = self
            .open
            .iter()
            .filter(|(_, descriptor)| descriptor.process == process)
            .map(|(number, _)| *number)
            .collect();
        for number in &of_process {
            self.open.remove(number);
        }
        of_process
    }
}

impl Machine {
    /// A descriptor was opened.
    pub(crate) fn opened(&mut self, number: c_int, process: ProcessIndex, kind: DescriptorKind) {
        let descriptor = Descriptor { process, kind, read_limit_ns: None, write_limit_ns: None };
        self.descriptors.open.insert(number, descriptor);
    }

    /// A descriptor was closed.
    pub(crate) fn closed(&mut self, number: c_int) {
        self.descriptors.open.remove(&number);
        self.descriptors.changed();
    }

    pub(crate) fn descriptor(&self, number: c_int) -> Option<Descriptor> {
        self.descriptors.open.get(&number).copied()
    }

    pub(crate) fn descriptor_mut(&mut self, number: c_int) -> Option<&mut Descriptor> {
        self.descriptors.open.get_mut(&number)
    }

    /// Some descriptor may have become readable or writable.
    pub(crate) fn descriptors_changed(&mut self) {
        self.descriptors.changed();
    }

    /// A new port for an end of a connection without one.
    pub(crate) fn next_port(&mut self) -> u16 {
        self.descriptors.ports = self.descriptors.ports % 9999 + 1;
        40_000 + self.descriptors.ports
    }

    pub(super) fn name_of_descriptor(&self, number: c_int) -> String {
        match self.descriptor(number).map(|descriptor| descriptor.kind) {
            Some(DescriptorKind::Socket) => format!("socket {number}"),
            Some(DescriptorKind::Network { port, peer }) => {
                format!("network socket {number} ({port} to {peer})")
            }
            Some(DescriptorKind::Events) => format!("event set {number}"),
            Some(DescriptorKind::File { .. }) | None => format!("descriptor {number}"),
        }
    }
}
