//! Why a device is lost.

use super::{ProcessEnd, SystemError};
use meetpoint_diagnose::Remedy;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a device is lost, and how its process ended if that was observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The cause.
    #[serde(flatten)]
    pub cause: LossCause,
    /// How its process ended, if this process started it and it ended soon after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessEnd>,
}

/// Why a device is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossCause {
    /// It ended the link.
    #[error("it ended the link")]
    LinkEnded,
    /// The connection failed.
    #[error("its link broke{}", parenthesized(detail.as_deref()))]
    LinkBroke {
        /// The message with which the device or the protocol ended it, if there is one.
        detail: Option<String>,
    },
    /// It violated the protocol, so the host ended the link.
    #[error("{breach}")]
    Breach {
        /// What it did.
        breach: Breach,
    },
    /// What it sent could not be written to its spool.
    #[error("what it sent cannot be stored: {error}")]
    NotStored {
        /// The system's error.
        error: SystemError,
    },
    /// It had stalled in the previous epoch and had sent nothing since.
    #[error("it was silent at the end of the previous epoch")]
    Silent,
    /// It announced between two epochs that it shuts down.
    #[error("it is shutting down")]
    ShuttingDown,
    /// Its process ended before it was ready; [`Loss::process`] has the exit.
    #[error("its process ended")]
    ProcessEnded,
    /// A signal or a debugger has stopped its process.
    #[error("process {process_id} is stopped by a signal")]
    ProcessStopped {
        /// Id of the process.
        process_id: u32,
    },
    /// Its link was not opened, because of another error.
    #[error("{detail}")]
    NotOpened {
        /// Stable name of the error.
        cause: String,
        /// Its message.
        detail: String,
    },
}

/// How a device violated the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Breach {
    /// It left more messages unread than the host queues.
    #[error("it does not read its messages")]
    MessagesUnread,
    /// It published a slot that does not exist, or that the host owns.
    #[error("it published slot {slot}, which it does not own")]
    SlotNotOwned {
        /// The slot.
        slot: u32,
    },
    /// It sent data of a slot in memory that both ends share.
    #[error("it sent data of slot {slot}, which is in shared memory")]
    SlotShared {
        /// The slot.
        slot: u32,
    },
    /// It sent data of a slot that the host owns.
    #[error("it sent data of slot {slot}, which the host owns")]
    SlotGivenAway {
        /// The slot.
        slot: u32,
    },
    /// It sent data of a slot that does not exist.
    #[error("it sent data of slot {slot}, but slots are 0..{slots}")]
    NoSuchSlot {
        /// The slot.
        slot: u32,
        /// Number of slots.
        slots: u32,
    },
    /// It sent a piece that is not within its slot.
    #[error("it sent {bytes} bytes at offset {offset} of a slot of {slot_bytes} bytes")]
    OutsideOfSlot {
        /// First byte.
        offset: u64,
        /// Bytes of the piece.
        bytes: u64,
        /// Bytes of the slot.
        slot_bytes: u64,
    },
    /// It sent a piece that does not follow the previous one.
    #[error("it sent data of slot {slot} at offset {offset}, expected {expected}")]
    OutOfOrder {
        /// The slot.
        slot: u32,
        /// First byte.
        offset: u64,
        /// The expected first byte.
        expected: u64,
    },
}

impl From<Breach> for LossCause {
    fn from(breach: Breach) -> Self {
        Self::Breach { breach }
    }
}

impl From<LossCause> for Loss {
    fn from(cause: LossCause) -> Self {
        Self { cause, process: None }
    }
}

impl Loss {
    /// The remedy; `None` if none is known, or if the host has already reacted.
    pub fn remedy(&self) -> Option<Remedy> {
        match &self.cause {
            LossCause::ProcessStopped { process_id } => {
                Some(Remedy::advice(format!("continue it with kill -CONT {process_id}")))
            }
            LossCause::LinkEnded
            | LossCause::LinkBroke { .. }
            | LossCause::Breach { .. }
            | LossCause::NotStored { .. }
            | LossCause::Silent
            | LossCause::ShuttingDown
            | LossCause::ProcessEnded
            | LossCause::NotOpened { .. } => None,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, &self.process) {
            (LossCause::ProcessEnded, Some(end)) => write!(f, "its process ended with {end}"),
            (cause, Some(end)) => write!(f, "{cause}; its process ended with {end}"),
            (cause, None) => cause.fmt(f),
        }
    }
}

/// ` (text)`; nothing without a text.
fn parenthesized(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(" ({text})"))
}

#[cfg(test)]
mod tests {
    use super::{Breach, Loss, LossCause};
    use crate::causes::{Exit, ProcessEnd, SystemError};

    #[test]
    fn every_cause_survives_json() {
        let error = SystemError { errno: Some(28), message: "No space left on device".to_owned() };
        let breaches = [
            Breach::MessagesUnread,
            Breach::SlotNotOwned { slot: 3 },
            Breach::SlotShared { slot: 3 },
            Breach::SlotGivenAway { slot: 3 },
            Breach::NoSuchSlot { slot: 9, slots: 4 },
            Breach::OutsideOfSlot { offset: u64::MAX, bytes: 1, slot_bytes: 8192 },
            Breach::OutOfOrder { slot: 0, offset: 8192, expected: 4096 },
        ];
        let causes = [
            LossCause::LinkEnded,
            LossCause::LinkBroke { detail: None },
            LossCause::LinkBroke { detail: Some("it is full".to_owned()) },
            LossCause::NotStored { error },
            LossCause::Silent,
            LossCause::ShuttingDown,
            LossCause::ProcessEnded,
            LossCause::ProcessStopped { process_id: 7 },
            LossCause::NotOpened { cause: "device_timeout".into(), detail: "late".into() },
        ];
        let exit = Exit::Signal { signal: 9, dumped_core: false };
        for process in [None, Some(ProcessEnd { exit, detail: String::new() })] {
            for cause in causes.clone().into_iter().chain(breaches.clone().map(LossCause::from)) {
                let loss = Loss { cause, process: process.clone() };
                let json = serde_json::to_value(&loss).unwrap();
                assert!(json["kind"].is_string(), "{json}");
                assert_eq!(serde_json::from_value::<Loss>(json).unwrap(), loss);
            }
        }
    }

    #[test]
    fn the_end_of_a_process_is_written_once() {
        let exit = Exit::Code { code: 3 };
        let process = Some(ProcessEnd { exit, detail: "no such knob".to_owned() });
        let written = |cause| Loss { cause, process: process.clone() }.to_string();
        let end = "its process ended with exit status: 3 after saying: no such knob";
        assert_eq!(written(LossCause::ProcessEnded), end);
        assert_eq!(written(LossCause::LinkEnded), format!("it ended the link; {end}"));
    }
}
