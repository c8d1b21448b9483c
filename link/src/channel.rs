//! A connection to a device.

use hyper_util::rt::TokioIo;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

/// The error of a connection that failed before any answer.
pub const HUNG_UP: &str =
    "it ended the connection: it accepts no more hosts, or does not speak the device link protocol";

/// A connection that failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The path is not a socket.
    #[error("it is {what}, not a socket")]
    NotASocket {
        /// What it is.
        what: &'static str,
    },
    /// The path does not exist.
    #[error("there is no such socket")]
    Missing,
    /// No process listens.
    #[error("no device is listening there")]
    Refused,
    /// Anything else.
    #[error("{0}")]
    Failed(std::io::Error),
    /// The listening process does not speak HTTP/2.
    #[error("{HUNG_UP}")]
    HungUp,
}

/// Connects to a device's socket. The channel has this one connection and never reconnects. The
/// caller bounds the time.
pub async fn connect(socket: &Path) -> Result<Channel, ConnectError> {
    let stream = UnixStream::connect(socket).await.map_err(|error| not_connected(socket, error))?;
    let mut stream = Some(stream);
    // The address is never looked at: the connector returns the stream, once.
    Endpoint::from_static("http://device.invalid")
        .connect_with_connector(tower::service_fn(move |_| {
            let taken = stream.take().map(TokioIo::new);
            async move { taken.ok_or_else(|| std::io::Error::from(ErrorKind::NotConnected)) }
        }))
        .await
        .map_err(|_| ConnectError::HungUp)
}

fn not_connected(socket: &Path, error: std::io::Error) -> ConnectError {
    // The kernel refuses connections to files and folders with the same error.
    if let Ok(found) = std::fs::metadata(socket)
        && !found.file_type().is_socket()
    {
        return ConnectError::NotASocket {
            what: if found.is_dir() { "a folder" } else { "a file" },
        };
    }
    match error.kind() {
        ErrorKind::NotFound => ConnectError::Missing,
        ErrorKind::ConnectionRefused => ConnectError::Refused,
        _ => ConnectError::Failed(error),
    }
}
