//! Where rank 0 waits for the others. On a Unix socket it has a name only until all are here.

use super::stream::Stream;
use super::{CollectiveError, Place};
use rustix::fs::Mode;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

/// A listening socket of rank 0.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    /// Begins to listen. TCP takes port 0 for any that is free.
    pub fn bind(place: &Place) -> Result<Self, CollectiveError> {
        let socket = match place {
            Place::Unix(path) => bind_unix(path).map(|it| Socket::Unix(it, path.clone())),
            Place::Tcp(address) => TcpListener::bind(address).map(Socket::Tcp),
        };
        let socket = socket.map_err(|error| {
            place.problem(format_args!("rank 0 cannot listen there: {error}; give another place"))
        })?;
        let listener = Self { socket };
        let set = match &listener.socket {
            Socket::Unix(socket, _) => socket.set_nonblocking(true),
            Socket::Tcp(socket) => socket.set_nonblocking(true),
        };
        set.map_err(|error| place.problem(error))?;
        Ok(listener)
    }

    /// The port of TCP.
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            Socket::Unix(..) => None,
            Socket::Tcp(socket) => {
                socket.local_addr().ok().map(|address: SocketAddr| address.port())
            }
        }
    }

    /// Somebody who came; `None` when nobody did.
    pub(super) fn accept(&self) -> io::Result<Option<Stream>> {
        let accepted = match &self.socket {
            Socket::Unix(socket, _) => socket.accept().map(|(stream, _)| Stream::Unix(stream)),
            Socket::Tcp(socket) => socket.accept().map(|(stream, _)| Stream::Tcp(stream)),
        };
        match accepted {
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

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.socket {
            // Somebody may have taken it away.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens at a path that only this user may connect to. A name that somebody left who listens no
/// more is taken over.
fn bind_unix(path: &PathBuf) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match UnixStream::connect(path) {
            Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            _ => return Err(error),
        },
        bound => bound?,
    };
    rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
    Ok(listener)
}

/// Connects to rank 0.
pub(super) fn connect(place: &Place) -> io::Result<Stream> {
    match place {
        Place::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
        Place::Tcp(address) => TcpStream::connect(address).map(Stream::Tcp),
    }
}
