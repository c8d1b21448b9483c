//! Takes a spool's file descriptor from a connection that offers one.

use meetpoint_format::wire::{FD_CHANNEL_BUSY, FdOffer};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{Error, ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;

/// An offer that was read: which token, and what came with it.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) offer: FdOffer,
    pub(crate) fd: OwnedFd,
}

/// Reads one offer. Anything else than sixteen right bytes with exactly one descriptor is an
/// error, and descriptors that came along are closed. The caller bounds the time.
pub(crate) async fn read_offer(stream: &UnixStream) -> std::io::Result<Offered> {
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
    let offer = FdOffer::decode(&bytes).ok_or_else(|| wrong("it is no offer of a spool"))?;
    match <[OwnedFd; 1]>::try_from(fds) {
        Ok([fd]) => Ok(Offered { offer, fd }),
        Err(_) => Err(wrong("an offer has one file descriptor")),
    }
}

/// Says that the descriptor has arrived.
pub(crate) async fn confirm(stream: &mut UnixStream, offer: FdOffer) -> std::io::Result<()> {
    stream.write_all(&offer.encode()).await
}

/// Says that no more descriptors can be held now.
pub(crate) async fn say_busy(stream: &mut UnixStream) -> std::io::Result<()> {
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

fn wrong(problem: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, problem)
}
