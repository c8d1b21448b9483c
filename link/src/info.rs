//! The description of a device, as sent to every host.

use crate::Targets;
use meetpoint_format::wire::DescribeReply;
use serde::Serialize;
use std::path::PathBuf;

/// The description of a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceInfo {
    /// Version of the link's protocol.
    pub protocol_version: u32,
    /// Version of its program.
    pub program_version: String,
    /// Process id.
    pub process_id: u32,
    /// Folders whose datasets it serves; over a network, their names.
    pub roots: Vec<PathBuf>,
    /// Its speed limits; `None` for a device that is not slowed down.
    pub emulation: Option<Targets>,
    /// Storage engine in use.
    pub storage_engine: String,
    /// Why it is not io_uring; empty if it is.
    pub storage_note: String,
    /// Process id of the host that it has served longest; `None` while it serves none.
    pub works_for: Option<u32>,
    /// Process ids of all hosts on this machine that it serves.
    pub hosts: Vec<u32>,
    /// Hosts of other machines that it serves, by certificate and address.
    pub remote_hosts: Vec<String>,
    /// Maximum number of hosts that it serves at the same time.
    pub hosts_max: u32,
    /// Batches that it prepares at the same time, for all hosts together.
    pub threads: u32,
}

impl From<DescribeReply> for DeviceInfo {
    fn from(reply: DescribeReply) -> Self {
        Self {
            protocol_version: reply.protocol_version,
            program_version: reply.program_version,
            process_id: reply.process_id,
            roots: reply.roots.into_iter().map(Into::into).collect(),
            emulation: reply.emulation.map(Into::into),
            storage_engine: reply.storage_engine,
            storage_note: reply.storage_note,
            works_for: reply.works_for,
            hosts: reply.hosts,
            remote_hosts: reply.remote_hosts,
            hosts_max: reply.hosts_max,
            threads: reply.threads,
        }
    }
}

impl From<DeviceInfo> for DescribeReply {
    /// Replaces invalid UTF-8 in roots.
    fn from(info: DeviceInfo) -> Self {
        Self {
            protocol_version: info.protocol_version,
            program_version: info.program_version,
            process_id: info.process_id,
            roots: info.roots.iter().map(|root| root.display().to_string()).collect(),
            emulation: info.emulation.map(Into::into),
            storage_engine: info.storage_engine,
            storage_note: info.storage_note,
            works_for: info.works_for,
            hosts: info.hosts,
            remote_hosts: info.remote_hosts,
            hosts_max: info.hosts_max,
            threads: info.threads,
        }
    }
}
