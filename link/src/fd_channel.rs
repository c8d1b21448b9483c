//! Passes a spool's file descriptor to a device: both ends of a separate connection.
//!
//! A connection whose first byte is that of an [`FdOffer`] is not an HTTP/2 connection. The host
//! sends one offer with the descriptor attached; the device answers with the same bytes once it
//! holds the descriptor, or with [`FD_CHANNEL_BUSY`] if it already holds too many.

use meetpoint_format::wire::{FD_CHANNEL_BUSY, FdOffer};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with,
};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;

/// Longest time between two checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time between two attempts to connect to a device that has no room in its queue.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Connects to a Unix socket without waiting: `WouldBlock` if the process's queue of unaccepted
/// connections is full, for example because the process is stopped.
pub fn connect_now(socket: &Path) -> std::io::Result<BlockingStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let created = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let stream = BlockingStream::from(created);
    connect(&stream, &SocketAddrUnix::new(socket)?)?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A descriptor that a device did not take.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// The connection failed.
    #[error("the connection for the spool failed: {0}")]
    Connection(#[from] std::io::Error),
    /// The device has reached its limit of descriptors that no job uses yet.
    #[error("its limit of unused spools is reached")]
    Busy,
    /// Its answer is invalid.
    #[error("its answer to the spool's offer is invalid")]
    UnknownAnswer,
    /// It did not answer in time.
    #[error("it did not answer the spool's offer within {0:?}")]
    TimedOut(Duration),
    /// `is_stopped` returned true.
    #[error("stopped")]
    Stopped,
}

/// Passes `file` to the device under `token`, and waits until the device holds it: at most `limit`,
/// and only while `is_stopped` returns false.
pub fn hand_over(
    socket: &Path,
    token: u64,
    file: BorrowedFd<'_>,
    limit: Duration,
    is_stopped: &mut dyn FnMut() -> bool,
) -> Result<(), HandOverError> {
    let deadline = Instant::now() + limit;
    let offer = FdOffer { token }.encode();
    let mut stream = loop {
        match connect_now(socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if is_stopped() {
                    return Err(HandOverError::Stopped);
                }
                if Instant::now() >= deadline {
                    return Err(HandOverError::TimedOut(limit));
                }
                std::thread::sleep(RETRY_INTERVAL);
            }
            connected => break connected?,
        }
    };
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    stream.set_write_timeout(Some(limit))?;
    send(&stream, &offer, file)?;
    let mut answer = [0; 16];
    let mut filled = 0;
    while filled < answer.len() {
        if is_stopped() {
            return Err(HandOverError::Stopped);
        }
        match stream.read(&mut answer[filled..]) {
            Ok(0) => return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into()),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() >= deadline {
                    return Err(HandOverError::TimedOut(limit));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    match answer {
        FD_CHANNEL_BUSY => Err(HandOverError::Busy),
        answer if answer == offer => Ok(()),
        _ => Err(HandOverError::UnknownAnswer),
    }
}

/// Sends all bytes of the offer in one message, with the descriptor.
fn send(stream: &BlockingStream, offer: &[u8; 16], file: BorrowedFd<'_>) -> std::io::Result<()> {
    let descriptors = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    let has_room = attached.push(SendAncillaryMessage::ScmRights(&descriptors));
    assert!(has_room, "the space was made for one descriptor");
    let sent = rustix::io::retry_on_intr(|| {
        sendmsg(stream.as_fd(), &[IoSlice::new(offer)], &mut attached, SendFlags::NOSIGNAL)
    })?;
    // A stream socket accepts this few bytes completely or not at all.
    if sent == offer.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

/// A received offer: the token and the descriptor.
#[derive(Debug)]
pub struct ReceivedOffer {
    /// The offer with its token.
    pub offer: FdOffer,
    /// The descriptor.
    pub fd: OwnedFd,
}

/// Reads one offer. Anything other than the sixteen expected bytes with exactly one descriptor is
/// an error, and received descriptors are closed. The caller bounds the time.
pub async fn read_offer(stream: &UnixStream) -> std::io::Result<ReceivedOffer> {
    let mut bytes = [0; 16];
    let (mut filled, mut fds) = (0, Vec::new());
    while filled < bytes.len() {
        stream.readable().await?;
        let received = stream.try_io(Interest::READABLE, || {
            receive(stream, &mut bytes[filled..], &mut fds).map_err(Into::into)
        });
        match received {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let offer = FdOffer::decode(&bytes).ok_or_else(|| wrong("it is not an offer of a spool"))?;
    match <[OwnedFd; 1]>::try_from(fds) {
        Ok([fd]) => Ok(ReceivedOffer { offer, fd }),
        Err(_) => Err(wrong("an offer has one file descriptor")),
    }
}

/// Confirms that the descriptor has arrived.
pub async fn confirm(stream: &mut UnixStream, offer: FdOffer) -> std::io::Result<()> {
    stream.write_all(&offer.encode()).await
}

/// Replies that no more descriptors can be held now.
pub async fn say_busy(stream: &mut UnixStream) -> std::io::Result<()> {
    stream.write_all(&FD_CHANNEL_BUSY).await
}

fn receive(stream: &UnixStream, into: &mut [u8], fds: &mut Vec<OwnedFd>) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(into)];
    let received = recvmsg(stream, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(received.bytes)
}

fn wrong(problem: &'static str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    /// The device's handling of an offer.
    #[derive(Clone, Copy)]
    enum Device {
        Takes,
        IsBusy,
        Answers(&'static [u8]),
    }

    async fn serve(socket: tokio::net::UnixListener, device: Device) -> ReceivedOffer {
        let (mut stream, _) = socket.accept().await.unwrap();
        let offered = read_offer(&stream).await.unwrap();
        match device {
            Device::Takes => confirm(&mut stream, offered.offer).await,
            Device::IsBusy => say_busy(&mut stream).await,
            Device::Answers(bytes) => stream.write_all(bytes).await,
        }
        .unwrap();
        offered
    }

    /// Hands a file of five bytes to a device.
    fn offer_to(device: Device) -> (Result<(), HandOverError>, ReceivedOffer) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = {
            let _entered = runtime.enter();
            tokio::net::UnixListener::bind(&socket).unwrap()
        };
        let served = std::thread::spawn(move || runtime.block_on(serve(listener, device)));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"spool").unwrap();
        let limit = Duration::from_secs(60);
        let result = hand_over(&socket, 77, file.as_fd(), limit, &mut || false);
        (result, served.join().unwrap())
    }

    #[test]
    fn the_device_gets_the_token_and_the_very_file() {
        let (result, offered) = offer_to(Device::Takes);
        result.unwrap();
        assert_eq!(offered.offer, FdOffer { token: 77 });
        assert_eq!(File::from(offered.fd).metadata().unwrap().len(), 5);
    }

    #[test]
    fn an_answer_cut_short_or_of_another_kind_is_an_error() {
        let (result, _) = offer_to(Device::Answers(b"mpspool1"));
        assert!(matches!(result, Err(HandOverError::Connection(_))), "{result:?}");
        let (result, _) = offer_to(Device::Answers(b"HTTP/2 404 eh no"));
        assert!(matches!(result, Err(HandOverError::UnknownAnswer)), "{result:?}");
    }

    #[test]
    fn a_device_that_holds_too_many_spools_is_busy() {
        let (result, _) = offer_to(Device::IsBusy);
        assert!(matches!(result, Err(HandOverError::Busy)), "{result:?}");
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        // Connections wait in the backlog; nobody answers.
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let file = tempfile::tempfile().unwrap();
        let limit = Duration::from_secs(600);
        let result = hand_over(&socket, 1, file.as_fd(), limit, &mut || true);
        assert!(matches!(result, Err(HandOverError::Stopped)), "{result:?}");
    }

    #[test]
    fn a_full_queue_of_connections_ends_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        // The listener's queue has the length that the standard library asks for, at most 4096.
        let mut waiting = Vec::new();
        let full = loop {
            match connect_now(&socket) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
            assert!(waiting.len() < 10_000, "the queue has no end");
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        let file = tempfile::tempfile().unwrap();
        let limit = Duration::from_millis(50);
        let result = hand_over(&socket, 1, file.as_fd(), limit, &mut || false);
        assert!(matches!(result, Err(HandOverError::TimedOut(_))), "{result:?}");
        let result = hand_over(&socket, 1, file.as_fd(), Duration::from_secs(600), &mut || true);
        assert!(matches!(result, Err(HandOverError::Stopped)), "{result:?}");
    }

    #[test]
    fn a_socket_that_is_not_there_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        let limit = Duration::from_secs(60);
        let socket = Path::new("/nowhere/device.sock");
        let result = hand_over(socket, 1, file.as_fd(), limit, &mut || false);
        assert!(matches!(result, Err(HandOverError::Connection(_))), "{result:?}");
    }
}
