//! Accepts connections: those of hosts go to the service, spools are received, all others are
//! closed.
//!
//! Over a network, a host and the device greet each other first, inside TLS where there is any.

use crate::listener::Listener;
use crate::metrics::{ConnectionRefusal, Metrics};
use crate::owner::{DisconnectHandle, Owner, Peer, PeerName, SpoolOfferError};
use crate::reporting::Reporter;
use meetpoint_format::wire::{FD_CHANNEL_MAGIC, NETWORK_GREETING};
use meetpoint_link::fd_channel::{confirm, read_offer, say_busy};
use meetpoint_link::tls::{Acceptor, Duplex, PeerIdentity, TlsError};
use rustix::net::{RecvFlags, recv};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tonic::transport::server::Connected;

/// The preface of an HTTP/2 connection (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long a connection may take to identify itself.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

/// The same over a network, where it takes several round trips.
const NETWORK_GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum pieces of 1 KiB that are read of a connection that does not begin with a greeting.
const UNREAD_PIECES_MAX: usize = 64;

/// Maximum unidentified connections, besides two for each host.
const UNIDENTIFIED_MAX: usize = 16;

/// Maximum number of connections to the service, besides one for each host.
const CONNECTIONS_MAX: usize = 32;

/// Name under which the processes of this machine are counted.
const LOCAL_CLIENT: &str = "local";

/// How long to wait when no connection can be accepted, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A connection to the service. Dropping it ends it for both sides, even if other handles exist.
pub(crate) struct HostStream {
    stream: Box<dyn Duplex>,
    /// Bytes that were already read from the stream, which the next read returns first.
    unread: &'static [u8],
    peer: Peer,
    owner: Arc<Owner>,
}

impl Drop for HostStream {
    fn drop(&mut self) {
        self.peer.disconnect.disconnect();
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
        if !self.unread.is_empty() {
            let (now, later) = self.unread.split_at(self.unread.len().min(into.remaining()));
            into.put_slice(now);
            self.unread = later;
            return Poll::Ready(Ok(()));
        }
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

/// A listener: a Unix socket, or TCP with or without TLS.
enum BoundListener {
    Socket(UnixListener),
    Tcp(TcpListener, Option<Arc<Acceptor>>),
}

/// Accepts and classifies connections until it is dropped; `hosts` receives those of hosts.
pub(crate) struct ConnectionAcceptor {
    listener: BoundListener,
    reporter: Arc<Reporter>,
    owner: Arc<Owner>,
    hosts: mpsc::Sender<std::io::Result<HostStream>>,
    refused: Arc<AtomicU64>,
    metrics: Arc<Metrics>,
    /// Maximum number of hosts served at the same time.
    hosts_max: usize,
}

impl ConnectionAcceptor {
    pub(crate) fn new(
        listener: &Listener,
        owner: Arc<Owner>,
        hosts: mpsc::Sender<std::io::Result<HostStream>>,
        hosts_max: usize,
        (reporter, metrics): (Reporter, Arc<Metrics>),
    ) -> std::io::Result<Self> {
        let listener = match listener {
            Listener::Socket(socket) => {
                BoundListener::Socket(UnixListener::from_std(socket.listener()?)?)
            }
            Listener::Tcp { listener, tls, .. } => {
                BoundListener::Tcp(TcpListener::from_std(listener.try_clone()?)?, tls.clone())
            }
        };
        let (refused, reporter) = (Arc::default(), Arc::new(reporter));
        Ok(Self { listener, reporter, owner, hosts, refused, metrics, hosts_max })
    }

    /// Counts connections that were closed because they were not from a host.
    pub(crate) fn refused(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.refused)
    }

    /// Runs for as long as it is polled.
    pub(crate) async fn run(self) {
        let unidentified = Arc::new(Semaphore::new(UNIDENTIFIED_MAX + 2 * self.hosts_max));
        let mut connection = 0;
        loop {
            let Some(new_connection) = self.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            connection += 1;
            let Ok(permit) = Arc::clone(&unidentified).try_acquire_owned() else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                self.metrics.connection_refused(ConnectionRefusal::Full);
                continue;
            };
            let service = ServiceQueue {
                owner: Arc::clone(&self.owner),
                hosts: self.hosts.clone(),
                connections_max: CONNECTIONS_MAX + self.hosts_max,
            };
            let (refused, reporter) = (Arc::clone(&self.refused), Arc::clone(&self.reporter));
            let metrics = Arc::clone(&self.metrics);
            tokio::spawn(async move {
                if let Err(rejection) = new_connection.admit(connection, service).await {
                    refused.fetch_add(1, Ordering::Relaxed);
                    metrics.connection_refused(rejection.reason);
                    if let Some(sentence) = rejection.sentence {
                        reporter.say(&sentence, Instant::now());
                    }
                }
                drop(permit);
            });
        }
    }

    /// The next connection; `None` if none can be accepted now.
    async fn accept(&self) -> Option<NewConnection> {
        match &self.listener {
            BoundListener::Socket(listener) => {
                Some(NewConnection::Socket(listener.accept().await.ok()?.0))
            }
            BoundListener::Tcp(listener, tls) => {
                let (stream, address) = listener.accept().await.ok()?;
                Some(NewConnection::Tcp(stream, address, tls.clone()))
            }
        }
    }
}

/// A connection whose first bytes have not been read.
enum NewConnection {
    Socket(UnixStream),
    Tcp(TcpStream, SocketAddr, Option<Arc<Acceptor>>),
}

/// Where admitted connections go.
struct ServiceQueue {
    owner: Arc<Owner>,
    hosts: mpsc::Sender<std::io::Result<HostStream>>,
    connections_max: usize,
}

impl ServiceQueue {
    fn is_full(&self) -> bool {
        self.owner.connections() >= self.connections_max
    }

    /// Passes a connection to the service.
    async fn pass(self, stream: Box<dyn Duplex>, unread: &'static [u8], peer: Peer) {
        self.owner.connected();
        let host = HostStream { stream, unread, peer, owner: self.owner };
        // The service accepts connections immediately; it exits only at the end.
        let _ = self.hosts.send(Ok(host)).await;
    }
}

/// Why a connection was closed.
struct Rejection {
    /// The reason under which it is counted.
    reason: ConnectionRefusal,
    /// What is logged.
    sentence: Option<String>,
}

impl Rejection {
    fn silent(reason: ConnectionRefusal) -> Self {
        Self { reason, sentence: None }
    }
}

impl From<std::io::Error> for Rejection {
    fn from(error: std::io::Error) -> Self {
        Self::silent(match error.kind() {
            ErrorKind::QuotaExceeded => ConnectionRefusal::Full,
            ErrorKind::ConnectionRefused => ConnectionRefusal::Greeting,
            _ => ConnectionRefusal::Other,
        })
    }
}

impl NewConnection {
    /// Identifies a connection and passes it on, or closes it by returning.
    async fn admit(self, connection: u64, service: ServiceQueue) -> Result<(), Rejection> {
        match self {
            Self::Socket(stream) => {
                let other_user = || Rejection::silent(ConnectionRefusal::Other);
                let (process_id, disconnect) = admit(&stream).ok_or_else(other_user)?;
                let name = PeerName::Process(process_id);
                let (client, disconnect) = (LOCAL_CLIENT.into(), Arc::new(disconnect));
                let peer = Peer { connection, name, client, disconnect };
                let classified = classify(stream, (process_id, peer), service);
                let classified = tokio::time::timeout(GREETING_TIMEOUT, classified).await;
                let late = |_| Rejection::silent(ConnectionRefusal::Timeout);
                classified.map_err(late)?.map_err(Rejection::from)
            }
            Self::Tcp(stream, address, tls) => {
                let disconnect = DisconnectHandle::new(stream.as_fd().try_clone_to_owned()?);
                let greeted = greet(stream, address, tls.as_deref(), &service);
                let greeted = tokio::time::timeout(NETWORK_GREETING_TIMEOUT, greeted).await;
                let late = |_| {
                    let sentence = format!(
                        "refused a connection from {address}: it did not identify itself within \
                         {NETWORK_GREETING_TIMEOUT:?}"
                    );
                    Rejection { reason: ConnectionRefusal::Timeout, sentence: Some(sentence) }
                };
                let (stream, (name, client)) = greeted.map_err(late)??;
                let (client, disconnect) = (client.into(), Arc::new(disconnect));
                let peer = Peer { connection, name, client, disconnect };
                service.pass(stream, HTTP2_PREFACE, peer).await;
                Ok(())
            }
        }
    }
}

/// Admits a host over a network, up to the beginning of HTTP/2. Also returns who it is, and under
/// which name its use is counted.
async fn greet(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<&Acceptor>,
    service: &ServiceQueue,
) -> Result<(Box<dyn Duplex>, (PeerName, String)), Rejection> {
    let refused = |reason, why: &str| {
        let sentence = Some(format!("refused a connection from {address}: {why}"));
        Rejection { reason, sentence }
    };
    stream.set_nodelay(true)?;
    let (mut stream, name, client) = match tls {
        Some(tls) => match tls.accept(stream).await {
            Ok((stream, PeerIdentity { fingerprint, name })) => {
                (stream, format!("{address} (certificate {fingerprint}…)"), name)
            }
            // It hung up: a health check, or a host that was stopped.
            Err(TlsError::Connection(_)) => {
                return Err(Rejection::silent(ConnectionRefusal::Other));
            }
            Err(error) => return Err(refused(ConnectionRefusal::Tls, &error.to_string())),
        },
        None => {
            let client = address.ip().to_string();
            (Box::new(stream) as Box<dyn Duplex>, address.to_string(), client)
        }
    };
    if service.is_full() {
        let why = "the device has its maximum number of connections";
        return Err(refused(ConnectionRefusal::Full, why));
    }
    let mut greeting = [0; NETWORK_GREETING.len()];
    stream.read_exact(&mut greeting).await?;
    if greeting != NETWORK_GREETING {
        if tls.is_none() {
            say_that_it_is_plain(&mut stream).await?;
        }
        let why = "it did not send the greeting of a host; it may speak TLS or another protocol";
        return Err(refused(ConnectionRefusal::Greeting, why));
    }
    stream.write_all(&NETWORK_GREETING).await?;
    stream.flush().await?;
    let mut preface = [0; HTTP2_PREFACE.len()];
    stream.read_exact(&mut preface).await?;
    match preface == *HTTP2_PREFACE {
        true => Ok((stream, (PeerName::Remote(name), client))),
        false => Err(refused(ConnectionRefusal::Greeting, "it does not speak HTTP/2")),
    }
}

/// Greets a host that may speak TLS, which thereby learns that this device does not. A connection
/// that is closed with unread bytes is reset, and the greeting lost. The caller limits the time.
async fn say_that_it_is_plain(stream: &mut Box<dyn Duplex>) -> std::io::Result<()> {
    stream.write_all(&NETWORK_GREETING).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1 << 10];
    for _ in 0..UNREAD_PIECES_MAX {
        if stream.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}

/// The other process and a handle to the connection, if it runs as the same user or as root.
fn admit(stream: &UnixStream) -> Option<(u32, DisconnectHandle)> {
    let process_id = meetpoint_storage::trusted_peer(stream)?;
    Some((process_id, DisconnectHandle::new(stream.as_fd().try_clone_to_owned().ok()?)))
}

/// Identifies a connection and accepts it, or closes it by returning.
async fn classify(
    mut stream: UnixStream,
    (process_id, peer): (u32, Peer),
    service: ServiceQueue,
) -> std::io::Result<()> {
    let first = peek_until(&stream, |seen| !seen.is_empty()).await?;
    if first[0] == FD_CHANNEL_MAGIC[0] {
        let offered = read_offer(&stream).await?;
        let spool = (offered.offer.token, offered.fd);
        return match service.owner.offer(process_id, spool, Instant::now()) {
            Ok(()) => confirm(&mut stream, offered.offer).await,
            Err(SpoolOfferError::TokenTaken) => Err(ErrorKind::AlreadyExists.into()),
            Err(SpoolOfferError::Full) => {
                say_busy(&mut stream).await?;
                Err(ErrorKind::QuotaExceeded.into())
            }
        };
    }
    let is_wrong = |seen: &[u8]| !HTTP2_PREFACE.starts_with(seen);
    let seen = peek_until(&stream, |seen| seen.len() == 24 || is_wrong(seen)).await?;
    if is_wrong(&seen) || service.is_full() {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    // The preface was not taken out of the socket.
    service.pass(Box::new(stream), &[], peer).await;
    Ok(())
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
            // The peer has closed the connection, and has sent too few bytes.
            Err(error) if error.kind() == ErrorKind::WouldBlock && closed => {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            seen => return seen,
        }
    }
}
