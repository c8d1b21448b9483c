//! A connection between two ranks: a Unix socket, or TCP.

use rustix::net::{RecvFlags, recv};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Write timeout of a message.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Either transport.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Sets a read timeout of `slice`.
    pub(super) fn prepare(self, slice: Duration) -> io::Result<Self> {
        match &self {
            Self::Unix(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(slice))?;
                stream.set_write_timeout(Some(WRITE_LIMIT))?;
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(slice))?;
                stream.set_write_timeout(Some(WRITE_LIMIT))?;
                // Messages are a few hundred bytes, and a rank waits for each.
                stream.set_nodelay(true)?;
            }
        }
        Ok(self)
    }

    /// Whether both ends are on this machine, so that the end of a process closes its connection.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(stream) => stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()),
        }
    }

    /// Reads without waiting: `WouldBlock` if no bytes are available.
    pub(super) fn now(&self) -> ReadNow<'_> {
        ReadNow(self)
    }

    /// Closes it in both directions, even if a copy of the socket is open in another process.
    pub(super) fn end(&self) {
        // It may be closed already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// Reads that do not wait.
#[derive(Debug)]
pub(super) struct ReadNow<'s>(&'s Stream);

impl Read for ReadNow<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (bytes, _) = match self.0 {
            Stream::Unix(stream) => recv(stream, to, RecvFlags::DONTWAIT)?,
            Stream::Tcp(stream) => recv(stream, to, RecvFlags::DONTWAIT)?,
        };
        Ok(bytes)
    }
}

impl Read for &Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).read(to),
            Stream::Tcp(stream) => (&mut &*stream).read(to),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).write(from),
            Stream::Tcp(stream) => (&mut &*stream).write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
