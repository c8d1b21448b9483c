//! A connection between two ranks: a Unix socket, or TCP.

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
    /// Makes reads and writes return at once.
    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_nonblocking(true),
            Self::Tcp(stream) => stream.set_nonblocking(true),
        }
    }

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
                // Detects a machine that has disappeared.
                rustix::net::sockopt::set_socket_keepalive(stream, true)?;
            }
        }
        Ok(self)
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
