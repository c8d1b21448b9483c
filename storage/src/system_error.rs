//! An error of the operating system, as a value that reports contain.

use serde::{Deserialize, Serialize};

/// An error of the operating system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct SystemError {
    /// The error number; `None` for errors that the system did not return.
    pub errno: Option<i32>,
    /// The system's message.
    pub message: String,
}

impl From<std::io::Error> for SystemError {
    fn from(error: std::io::Error) -> Self {
        Self { errno: error.raw_os_error(), message: error.to_string() }
    }
}

impl SystemError {
    /// Whether the system refused it for lack of a permission.
    pub fn is_permission_denied(&self) -> bool {
        let kind = self.errno.map(|errno| std::io::Error::from_raw_os_error(errno).kind());
        kind == Some(std::io::ErrorKind::PermissionDenied)
    }
}
