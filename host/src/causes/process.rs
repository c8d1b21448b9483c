//! How a device process ended.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a process exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Exit {
    /// By itself.
    Code {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended it.
    Signal {
        /// Number of the signal.
        signal: i32,
        /// Whether the system wrote a core dump.
        dumped_core: bool,
    },
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.signal(), status.code()) {
            (Some(signal), _) => Self::Signal { signal, dumped_core: status.core_dumped() },
            // A process that ended without an exit code was ended by a signal.
            (None, code) => Self::Code { code: code.unwrap_or_default() },
        }
    }
}

/// As the standard library writes it: `exit status: 1`, `signal: 9 (SIGKILL)`.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The bit of a wait status that marks a core dump: see wait(2).
        const DUMPED_CORE: i32 = 0x80;
        let raw = match *self {
            Self::Code { code } => code << 8,
            Self::Signal { signal, dumped_core: true } => signal | DUMPED_CORE,
            Self::Signal { signal, dumped_core: false } => signal,
        };
        ExitStatus::from_raw(raw).fmt(f)
    }
}

/// The end of a process and of its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// How it exited.
    pub exit: Exit,
    /// The end of its standard error in one line; empty if it wrote nothing.
    pub detail: String,
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exit, detail } = self;
        match detail.is_empty() {
            true => write!(f, "{exit}"),
            false => write!(f, "{exit} after saying: {detail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exit, ProcessEnd};
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn an_exit_is_written_as_the_standard_library_writes_it() {
        for raw in [0, 3 << 8, 101 << 8, 9, 6 | 0x80] {
            let status = ExitStatus::from_raw(raw);
            assert_eq!(Exit::from(status).to_string(), status.to_string());
        }
        let exit = Exit::Signal { signal: 9, dumped_core: false };
        let end = ProcessEnd { exit, detail: "no memory".to_owned() };
        assert_eq!(end.to_string(), "signal: 9 (SIGKILL) after saying: no memory");
    }
}
