//! The description of a device, as sent to every host.

use crate::Targets;
use meetpoint_format::wire::DescribeReply;
use meetpoint_storage::EngineNote;
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
    /// What it works without; `None` if nothing is missing.
    pub storage_note: Option<EngineNote>,
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
            storage_note: note(&reply.storage_note),
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
            storage_note: info.storage_note.as_ref().map(json).unwrap_or_default(),
            works_for: info.works_for,
            hosts: info.hosts,
            remote_hosts: info.remote_hosts,
            hosts_max: info.hosts_max,
            threads: info.threads,
        }
    }
}

/// Longest note that is read, in bytes.
const NOTE_BYTES_MAX: usize = 4096;

/// A note in a description; `None` if there is none that can be parsed.
fn note(json: &[u8]) -> Option<EngineNote> {
    (1..=NOTE_BYTES_MAX).contains(&json.len()).then(|| serde_json::from_slice(json).ok())?
}

/// A note as a description contains it.
fn json(note: &EngineNote) -> Vec<u8> {
    serde_json::to_vec(note).expect("notes are plain data")
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_storage::RingRefusal;

    #[test]
    fn a_note_survives_the_description() {
        let sent = EngineNote::IoUring { refusal: RingRefusal::NotPermitted };
        assert_eq!(note(&json(&sent)), Some(sent));
        assert_eq!(note(b""), None);
    }

    #[test]
    fn a_note_that_is_unknown_or_too_long_is_ignored() {
        let message = "a".repeat(NOTE_BYTES_MAX);
        let error = meetpoint_storage::SystemError { errno: None, message };
        let long = json(&EngineNote::RegisteredBuffers { error });
        for sent in [&b"reading with threads"[..], br#"{"missing":"sleep"}"#, b"[]", &long] {
            assert_eq!(note(sent), None);
        }
    }
}
