//! Hands the spool's file descriptor to the device, on a connection of its own.

use crate::stop::WAIT_SLICE;
use crate::{Error, StopHandle};
use meetpoint_format::wire::{FD_CHANNEL_BUSY, FdOffer};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Offers `file` under `token` and waits, at most `limit`, until the device holds it.
pub(crate) fn hand_over(
    socket: &Path,
    token: u64,
    file: BorrowedFd<'_>,
    limit: Duration,
    stop: &StopHandle,
) -> Result<(), Error> {
    let deadline = Instant::now() + limit;
    let failed = |error: std::io::Error| Error::DeviceUnreachable {
        socket: socket.to_path_buf(),
        problem: format!("handing over the spool failed: {error}"),
    };
    let offer = FdOffer { token }.encode();
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    stream.set_read_timeout(Some(WAIT_SLICE)).map_err(failed)?;
    stream.set_write_timeout(Some(limit)).map_err(failed)?;
    send(&stream, &offer, file).map_err(failed)?;
    let mut answer = [0; 16];
    let mut filled = 0;
    while filled < answer.len() {
        stop.check()?;
        match stream.read(&mut answer[filled..]) {
            Ok(0) => return Err(failed(ErrorKind::UnexpectedEof.into())),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() >= deadline {
                    let socket = socket.to_path_buf();
                    return Err(Error::DeviceTimeout { socket, step: "take the spool", limit });
                }
            }
            Err(error) => return Err(failed(error)),
        }
    }
    if answer == FD_CHANNEL_BUSY {
        let reason = "it holds as many spools as it can that no host has used yet, and lets them \
                      go after 10 s; try again then, or end the processes that offer them";
        let (socket, step) = (socket.to_path_buf(), "take the spool");
        return Err(Error::DeviceRefused { socket, step, reason: reason.to_owned() });
    }
    if answer != offer {
        let problem = "answered the spool's offer with something else".to_owned();
        return Err(Error::DeviceUnreachable { socket: socket.to_path_buf(), problem });
    }
    Ok(())
}

/// All bytes of the offer go in one message, and the descriptor with it.
fn send(stream: &UnixStream, offer: &[u8; 16], file: BorrowedFd<'_>) -> std::io::Result<()> {
    let descriptors = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    let has_room = attached.push(SendAncillaryMessage::ScmRights(&descriptors));
    assert!(has_room, "the space was made for one descriptor");
    let sent = rustix::io::retry_on_intr(|| {
        sendmsg(stream.as_fd(), &[IoSlice::new(offer)], &mut attached, SendFlags::NOSIGNAL)
    })?;
    // A stream socket takes so few bytes whole or not at all.
    if sent == offer.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::fs::File;
    use std::io::{IoSliceMut, Write};
    use std::os::unix::net::UnixListener;

    /// Takes one offer as a device would; gives back what came.
    fn take(listener: &UnixListener, answer: &[u8]) -> ([u8; 16], Option<File>) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut attached = RecvAncillaryBuffer::new(&mut space);
        let parts = &mut [IoSliceMut::new(&mut bytes)];
        recvmsg(&stream, parts, &mut attached, RecvFlags::CMSG_CLOEXEC).unwrap();
        let mut file = None;
        for message in attached.drain() {
            if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
                file = descriptors.next().map(File::from);
            }
        }
        stream.write_all(answer).unwrap();
        (bytes, file)
    }

    fn offer_to(answer: &'static [u8]) -> (Result<(), Error>, [u8; 16], Option<File>) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let device = std::thread::spawn(move || take(&listener, answer));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"spool").unwrap();
        let limit = Duration::from_secs(60);
        let handed = hand_over(&socket, 77, file.as_fd(), limit, &StopHandle::new());
        let (bytes, file) = device.join().unwrap();
        (handed, bytes, file)
    }

    #[test]
    fn the_device_gets_the_token_and_the_very_file() {
        let echoed: &'static [u8] = Box::leak(Box::new(FdOffer { token: 77 }.encode()));
        let (handed, bytes, file) = offer_to(echoed);
        handed.unwrap();
        assert_eq!(FdOffer::decode(&bytes), Some(FdOffer { token: 77 }));
        assert_eq!(file.unwrap().metadata().unwrap().len(), 5);
    }

    #[test]
    fn an_answer_cut_short_or_of_another_kind_is_an_error() {
        assert!(matches!(offer_to(b"mpspool1").0, Err(Error::DeviceUnreachable { .. })));
        let wrong = offer_to(b"HTTP/2 404 eh no").0.unwrap_err().to_string();
        assert!(wrong.contains("something else"), "{wrong}");
    }

    #[test]
    fn a_device_that_holds_too_many_spools_is_busy_and_not_gone() {
        let error = offer_to(&FD_CHANNEL_BUSY).0.unwrap_err();
        assert!(matches!(error, Error::DeviceRefused { .. }), "{error}");
    }

    #[test]
    fn a_socket_nobody_listens_on_is_an_error_that_names_it() {
        let file = tempfile::tempfile().unwrap();
        let limit = Duration::from_secs(60);
        let socket = Path::new("/nowhere/device.sock");
        let error = hand_over(socket, 1, file.as_fd(), limit, &StopHandle::new()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/device.sock"));
    }
}
