//! The listening socket of rank 0. A Unix socket has a name only until all ranks are connected.

use super::stream::Stream;
use super::{CollectiveError, RendezvousAddress};
use meetpoint_storage::{LocalSocket, trusted_peer};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
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

impl Listener {
    /// Begins to listen. On TCP, port 0 selects any free port.
    pub fn bind(place: &RendezvousAddress) -> Result<Self, CollectiveError> {
        let failed = |error: &dyn std::fmt::Display| {
            place.problem(format_args!("rank 0 cannot listen there: {error}"))
        };
        let socket = match place {
            RendezvousAddress::Unix(path) => {
                Socket::Unix(LocalSocket::bind(path).map_err(|error| failed(&error))?)
            }
            RendezvousAddress::Tcp(address) => {
                let socket = TcpListener::bind(address).map_err(|error| failed(&error))?;
                socket.set_nonblocking(true).map_err(|error| place.problem(error))?;
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

    /// A new connection with non-blocking reads, if any. Connections from other users to a Unix
    /// socket are ignored.
    pub(super) fn accept(&self) -> io::Result<Option<Stream>> {
        let accepted = match &self.socket {
            Socket::Unix(socket) => {
                socket.listener().accept().map(|(stream, _)| Stream::Unix(stream))
            }
            Socket::Tcp(socket) => socket.accept().map(|(stream, _)| Stream::Tcp(stream)),
        };
        match accepted {
            Ok(Stream::Unix(stream)) if trusted_peer(&stream).is_none() => Ok(None),
            Ok(stream) => {
                stream.set_nonblocking()?;
                Ok(Some(stream))
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Connects to rank 0. The token is never sent to a process of another user.
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
        RendezvousAddress::Tcp(address) => TcpStream::connect(address).map(Stream::Tcp),
    }
}
