//! Whether the process at the other end of a Unix socket speaks HTTP/2, as a device does.
//!
//! A process that hangs or that accepts no more hosts sends nothing, or only the beginning of what
//! a device sends. A process that is not a device is recognised by the first bytes that it sends.

use std::io::{Error, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The first bytes of an HTTP/2 server: the header of a SETTINGS frame (RFC 9113, sections 3.4,
/// 4.1 and 6.5). Its length, in three bytes of which the first is the highest, is far below 2^16;
/// the fourth byte is the type of the frame.
const SETTINGS: [Option<u8>; 4] = [Some(0), None, None, Some(4)];

/// What the other end speaks, as far as its first bytes tell. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct PeerProtocol(Arc<AtomicBool>);

impl PeerProtocol {
    /// Whether the other end has sent something that no device sends.
    pub fn is_other(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A stream that looks at the first bytes that it receives.
pub(crate) struct FirstBytes<S> {
    stream: S,
    /// How many of [`SETTINGS`] have arrived.
    received: usize,
    protocol: PeerProtocol,
}

impl<S: AsyncRead + Unpin> FirstBytes<S> {
    pub(crate) fn of(stream: S, protocol: PeerProtocol) -> Self {
        Self { stream, received: 0, protocol }
    }

    fn look(&mut self, bytes: &[u8]) {
        for (byte, expected) in bytes.iter().zip(&SETTINGS[self.received..]) {
            self.received += 1;
            if expected.is_some_and(|expected| expected != *byte) {
                self.protocol.0.store(true, Ordering::Release);
            }
        }
    }

    /// Looks at what the other end has sent before it closed the connection, after a write failed
    /// for this reason. Until that can be read, the write is pending: the end of the connection
    /// wakes the task.
    fn look_before_error(
        &mut self,
        error: Error,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize>> {
        let mut bytes = [0; SETTINGS.len()];
        let mut buffer = ReadBuf::new(&mut bytes);
        // An error of the read is another form of that of the write.
        let _ = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
        self.look(buffer.filled());
        Poll::Ready(Err(error))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.look(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        match ready!(Pin::new(&mut self.stream).poll_write(context, bytes)) {
            Err(error) if self.received == 0 => self.look_before_error(error, context),
            written => Poll::Ready(written),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        match ready!(Pin::new(&mut self.stream).poll_write_vectored(context, bytes)) {
            Err(error) if self.received == 0 => self.look_before_error(error, context),
            written => Poll::Ready(written),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream as StdStream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    /// Whether a process that sends `pieces` and hangs up is taken for something else, by reading
    /// and by a write that fails.
    fn is_other(pieces: &[&[u8]]) -> [bool; 2] {
        [false, true].map(|writes| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let (mut other, own) = StdStream::pair().unwrap();
                own.set_nonblocking(true).unwrap();
                let protocol = PeerProtocol::default();
                let stream = UnixStream::from_std(own).unwrap();
                let mut stream = FirstBytes::of(stream, protocol.clone());
                for piece in pieces {
                    other.write_all(piece).unwrap();
                    if !writes {
                        stream.read_exact(&mut vec![0; piece.len()]).await.unwrap();
                    }
                }
                drop(other);
                if writes {
                    stream.write_all(b"PRI * HTTP/2.0").await.unwrap_err();
                }
                protocol.is_other()
            })
        })
    }

    #[test]
    fn a_process_that_sends_anything_but_settings_is_something_else() {
        for says in [&b"220 smtp at your service"[..], b"HTTP/1.1 400", b"2", b"\x00\x00\x12\x01"] {
            assert_eq!(is_other(&[says]), [true, true], "{says:?}");
        }
    }

    #[test]
    fn a_process_that_sends_settings_or_only_their_beginning_may_be_a_device() {
        for says in
            [&b""[..], b"\x00", b"\x00\x00\x12", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x07"]
        {
            assert_eq!(is_other(&[says]), [false, false], "{says:?}");
        }
    }

    #[test]
    fn bytes_are_counted_over_several_reads() {
        assert!(!is_other(&[b"\x00\x00", b"\x12\x04\x01"])[0]);
        assert!(is_other(&[b"\x00\x00", b"\x12", b"\x05"])[0]);
    }
}
