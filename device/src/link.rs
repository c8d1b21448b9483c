//! Accepts connections: those of hosts go to the service, spools are received, all others are
//! closed.

use crate::owner::{Cut, Owner, Peer, Unheld};
use meetpoint_format::wire::FD_CHANNEL_MAGIC;
use meetpoint_link::fd_channel::{confirm, read_offer, say_busy};
use rustix::net::{RecvFlags, recv};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tonic::transport::server::Connected;

/// What an HTTP/2 connection begins with (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long a connection may take to identify itself.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum unidentified connections, besides two for each host.
const STRANGERS_MAX: usize = 16;

/// Most connections to the service, besides one for each host.
const CONNECTIONS_MAX: usize = 32;

/// How long to wait when no connection can be accepted, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A connection to the service. Dropping it ends it for both sides, even if other handles exist.
pub(crate) struct HostStream {
    stream: UnixStream,
    peer: Peer,
    owner: Arc<Owner>,
}

impl Drop for HostStream {
    fn drop(&mut self) {
        self.peer.cut.cut();
        self.owner.disconnected(self.peer.connection);
    }
}

impl Connected for HostStream {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for HostStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for HostStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Accepts and sorts connections until dropped; those of hosts come out of `hosts`.
pub(crate) struct Gate {
    listener: UnixListener,
    owner: Arc<Owner>,
    hosts: mpsc::Sender<std::io::Result<HostStream>>,
    refused: Arc<AtomicU64>,
    /// Number of hosts served at a time.
    hosts_max: usize,
}

impl Gate {
    pub(crate) fn new(
        listener: UnixListener,
        owner: Arc<Owner>,
        hosts: mpsc::Sender<std::io::Result<HostStream>>,
        hosts_max: usize,
    ) -> Self {
        Self { listener, owner, hosts, refused: Arc::default(), hosts_max }
    }

    /// Counts connections that were closed because they were not from a host.
    pub(crate) fn refused(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.refused)
    }

    /// Runs for as long as it is polled.
    pub(crate) async fn run(self) {
        let strangers = Arc::new(Semaphore::new(STRANGERS_MAX + 2 * self.hosts_max));
        let mut connection = 0;
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            connection += 1;
            let admitted = (admit(&stream), Arc::clone(&strangers).try_acquire_owned());
            let (Some((process_id, cut)), Ok(permit)) = admitted else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let peer = Peer { connection, process_id, cut: Arc::new(cut) };
            let (owner, hosts) = (Arc::clone(&self.owner), self.hosts.clone());
            let refused = Arc::clone(&self.refused);
            let connections_max = CONNECTIONS_MAX + self.hosts_max;
            tokio::spawn(async move {
                let sorted = sort(stream, peer, owner, hosts, connections_max);
                let sorted = tokio::time::timeout(GREETING_TIMEOUT, sorted).await;
                if !matches!(sorted, Ok(Ok(()))) {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                drop(permit);
            });
        }
    }
}

/// The other process and a handle to the connection, if it runs as the same user or as root.
fn admit(stream: &UnixStream) -> Option<(u32, Cut)> {
    let process_id = meetpoint_storage::trusted_peer(stream)?;
    Some((process_id, Cut::new(stream.as_fd().try_clone_to_owned().ok()?)))
}

/// Identifies a connection and accepts it, or closes it by returning.
async fn sort(
    mut stream: UnixStream,
    peer: Peer,
    owner: Arc<Owner>,
    hosts: mpsc::Sender<std::io::Result<HostStream>>,
    connections_max: usize,
) -> std::io::Result<()> {
    let first = peek_until(&stream, |seen| !seen.is_empty()).await?;
    if first[0] == FD_CHANNEL_MAGIC[0] {
        let offered = read_offer(&stream).await?;
        let spool = (offered.offer.token, offered.fd);
        return match owner.offer(peer.process_id, spool, Instant::now()) {
            Ok(()) => confirm(&mut stream, offered.offer).await,
            Err(Unheld::TokenTaken) => Err(ErrorKind::AlreadyExists.into()),
            Err(Unheld::Full) => {
                say_busy(&mut stream).await?;
                Err(ErrorKind::QuotaExceeded.into())
            }
        };
    }
    let is_wrong = |seen: &[u8]| !HTTP2_PREFACE.starts_with(seen);
    let seen = peek_until(&stream, |seen| seen.len() == 24 || is_wrong(seen)).await?;
    if is_wrong(&seen) || owner.connections() >= connections_max {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    owner.connected();
    let host = HostStream { stream, peer, owner };
    // The service accepts connections immediately; it exits only at the end.
    hosts.send(Ok(host)).await.map_err(|_| ErrorKind::NotConnected.into())
}

/// Looks at the first bytes, up to the 24 of a preface, without taking them, until `enough`. A peer
/// that closed its end before is an error: such a socket stays readable, so waiting would not wait.
async fn peek_until(
    stream: &UnixStream,
    enough: impl Fn(&[u8]) -> bool,
) -> std::io::Result<Vec<u8>> {
    loop {
        let closed = stream.ready(Interest::READABLE).await?.is_read_closed();
        // Reporting "would block" makes `readable` wait for more bytes than there are now.
        let seen = stream.try_io(Interest::READABLE, || {
            let mut bytes = [0; HTTP2_PREFACE.len()];
            let (count, _) = recv(stream, &mut bytes, RecvFlags::PEEK)?;
            match count {
                0 => Err(ErrorKind::UnexpectedEof.into()),
                _ if enough(&bytes[..count]) => Ok(bytes[..count].to_vec()),
                _ => Err(ErrorKind::WouldBlock.into()),
            }
        });
        match seen {
            // Everything sent before the end has arrived, and it is not enough.
            Err(error) if error.kind() == ErrorKind::WouldBlock && closed => {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            seen => return seen,
        }
    }
}
