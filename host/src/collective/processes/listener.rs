//! Where rank 0 waits for the others. On a Unix socket it has a name only until all are here.

use super::stream::Stream;
use super::{CollectiveError, Place};
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
    /// Begins to listen. TCP takes port 0 for any that is free.
    pub fn bind(place: &Place) -> Result<Self, CollectiveError> {
        let failed = |error: &dyn std::fmt::Display| {
            place.problem(format_args!("rank 0 cannot listen there: {error}"))
        };
        let socket = match place {
            Place::Unix(path) => {
                Socket::Unix(LocalSocket::bind(path).map_err(|error| failed(&error))?)
            }
            Place::Tcp(address) => {
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

    /// Somebody who came, on a connection whose reads do not wait; `None` when nobody did. A
    /// process of another user that got hold of a Unix socket is nobody.
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

/// Connects to rank 0. What another user listens at is no rank 0, and does not get the token.
pub(super) fn connect(place: &Place) -> io::Result<Stream> {
    match place {
        Place::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            match trusted_peer(&stream) {
                Some(_) => Ok(Stream::Unix(stream)),
                None => Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "a process of another user listens there",
                )),
            }
        }
        Place::Tcp(address) => TcpStream::connect(address).map(Stream::Tcp),
    }
}
