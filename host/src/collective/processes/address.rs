//! The address at which ranks connect.

use crate::collective::CollectiveError;
use meetpoint_link::TcpAddress;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Longest wait for one address of rank 0 to accept a connection.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The address at which ranks connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RendezvousAddress {
    /// A Unix socket: ranks of one machine and one user.
    Unix(PathBuf),
    /// Over a network.
    Tcp(TcpAddress),
}

impl fmt::Display for RendezvousAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Tcp(address) => write!(formatter, "{address}"),
        }
    }
}

impl RendezvousAddress {
    /// `unix:PATH` or `tcp://HOST:PORT`.
    pub fn parse(text: &str) -> Result<Self, CollectiveError> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let problem = match text.parse() {
            Ok(address) => return Ok(Self::Tcp(address)),
            Err(_) if text.starts_with("unix:") => "it has no path".to_owned(),
            Err(error) => format!("{error}"),
        };
        let remedy = Some("give unix:PATH or tcp://HOST:PORT".into());
        Err(CollectiveError::Place { place: text.to_owned(), problem, remedy })
    }
}

/// An address that cannot be used.
pub(super) fn problem(place: &RendezvousAddress, problem: impl fmt::Display) -> CollectiveError {
    let (place, problem) = (place.to_string(), problem.to_string());
    CollectiveError::Place { place, problem, remedy: Some("choose another address".into()) }
}
