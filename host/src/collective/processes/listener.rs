//! The listening socket of rank 0. A Unix socket has a name only until all ranks are connected.

use super::address::{CONNECT_LIMIT, RendezvousAddress, problem};
use super::stream::Stream;
use crate::collective::CollectiveError;
use meetpoint_storage::{LocalSocket, SocketError, trusted_peer};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;

/// A listening socket of rank 0.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Unix(LocalSocket),
    Tcp(TcpListener),
}

/// Why rank 0 cannot listen.
pub(super) enum BindError {
    /// Another process listens there.
    InUse,
    Other(String),
}

impl Listener {
    /// Begins to listen. On TCP, port 0 selects any free port.
    pub fn bind(place: &RendezvousAddress) -> Result<Self, CollectiveError> {
        Self::try_bind(place).map_err(|error| error.at(place))
    }

    pub(super) fn try_bind(place: &RendezvousAddress) -> Result<Self, BindError> {
        let of_io = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse,
            _ => BindError::Other(error.to_string()),
        };
        let socket = match place {
            RendezvousAddress::Unix(path) => {
                Socket::Unix(LocalSocket::bind(path).map_err(|error| match error {
                    SocketError::InUse => BindError::InUse,
                    error => BindError::Other(error.to_string()),
                })?)
            }
            RendezvousAddress::Tcp(address) => {
                let socket = TcpListener::bind((&address.host[..], address.port)).map_err(of_io)?;
                socket.set_nonblocking(true).map_err(of_io)?;
                Socket::Tcp(socket)
            }
        };
        Ok(Self { socket })
    }

    /// The port of TCP.
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            Socket::Unix(_) => None,
            Socket::Tcp(socket) => {
                socket.local_addr().ok().map(|address: SocketAddr| address.port())
            }
        }
    }

    /// A new connection, if any. Connections from other users to a Unix socket are ignored.
    pub(super) fn accept(&self) -> io::Result<Option<Stream>> {
        let accepted = match &self.socket {
            Socket::Unix(socket) => {
                socket.listener().accept().map(|(stream, _)| Stream::Unix(stream))
            }
            Socket::Tcp(socket) => socket.accept().map(|(stream, _)| Stream::Tcp(stream)),
        };
        match accepted {
            Ok(Stream::Unix(stream)) if trusted_peer(&stream).is_none() => Ok(None),
            Ok(stream) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted => Ok(None),
                _ => Err(error),
            },
        }
    }
}

impl BindError {
    pub(super) fn at(self, place: &RendezvousAddress) -> CollectiveError {
        let why = match self {
            Self::InUse => "another process listens there".to_owned(),
            Self::Other(why) => why,
        };
        problem(place, format_args!("rank 0 cannot listen there: {why}"))
    }
}

/// Connects to rank 0, if a process of this user listens on a Unix socket.
pub(super) fn connect(place: &RendezvousAddress) -> io::Result<Stream> {
    match place {
        RendezvousAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            match trusted_peer(&stream) {
                Some(_) => Ok(Stream::Unix(stream)),
                None => Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "a process of another user listens there",
                )),
            }
        }
        RendezvousAddress::Tcp(address) => {
            let mut failed = io::Error::from(io::ErrorKind::NotFound);
            for resolved in (&address.host[..], address.port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&resolved, CONNECT_LIMIT) {
                    Ok(stream) => return Ok(Stream::Tcp(stream)),
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        }
    }
}
