//! A connection to a device: over a Unix socket, or over a network.

use crate::first_bytes::{FirstBytes, PeerProtocol};
use crate::tls::{Connector, Duplex, TlsError};
use crate::{Endpoint, RemoteDevice, TcpAddress, Token, TokenError};
use hyper_util::rt::TokioIo;
use meetpoint_diagnose::{Change, Command, Remedy, Setting};
use meetpoint_format::wire::NETWORK_GREETING;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tonic::service::Interceptor;
use tonic::transport::{Channel, Endpoint as Transport};
use tonic::{Request, Status};

/// The error of a connection that failed before any answer.
pub const HUNG_UP: &str =
    "it ended the connection: it accepts no more hosts, or does not speak the device link protocol";

/// Flow-control window of a network connection, in bytes.
const WINDOW_BYTES: u32 = 4 << 20;

/// Interval and timeout of keep-alive pings over a network: a device that does not answer within it
/// is lost.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connection that failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The path is not a socket.
    #[error("it is {what}, not a socket")]
    NotASocket {
        /// What it is.
        what: &'static str,
    },
    /// The path does not exist.
    #[error("there is no such socket")]
    Missing,
    /// No process listens.
    #[error("no device is listening there")]
    Refused,
    /// Anything else.
    #[error("{0}")]
    Failed(std::io::Error),
    /// The listening process disconnects.
    #[error("{HUNG_UP}")]
    HungUp,
    /// The listening process on a Unix socket sends something that no device sends.
    #[error("it does not speak the device link protocol")]
    OtherProtocol,
    /// The name of the host has no address.
    #[error("the name {host} has no address: {source}")]
    Name {
        /// Name.
        host: String,
        /// Cause.
        source: std::io::Error,
    },
    /// An unencrypted connection to another machine.
    #[error("{address} is not on this machine, and the connection would not be encrypted")]
    Cleartext {
        /// Address of the name.
        address: SocketAddr,
    },
    /// The listening process does not send the greeting of a device.
    #[error("it does not greet as a device: it speaks something else, or only TLS")]
    NoGreeting,
    /// The ends do not trust each other.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token cannot be read.
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl ConnectError {
    /// The remedy for the errors of connections over a network.
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NotASocket { .. }
            | Self::Missing
            | Self::Refused
            | Self::Failed(_)
            | Self::HungUp
            | Self::OtherProtocol => return None,
            Self::Name { .. } => "correct the name of the host".into(),
            Self::Cleartext { .. } => {
                Remedy::run(Command::MakeKeys).or("connect to 127.0.0.1 or ::1")
            }
            Self::NoGreeting => Remedy::advice("correct the address").or_by(
                "give the certificates of its authority",
                Setting::DeviceKeys,
                Change::Other,
            ),
            Self::Tls(error) => error.remedy(),
            Self::Token(_) => TokenError::REMEDY.into(),
        })
    }
}

/// The device that a host connects to, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// On this machine.
    Socket(PathBuf),
    /// Over a network.
    Remote(Box<RemoteDevice<TcpAddress>>),
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Target {
    fn from(socket: &P) -> Self {
        Self::Socket(socket.as_ref().to_path_buf())
    }
}

impl Target {
    /// Where it listens.
    pub fn endpoint(&self) -> Endpoint {
        match self {
            Self::Socket(path) => Endpoint::Socket(path.clone()),
            Self::Remote(device) => Endpoint::Tcp(device.address.clone()),
        }
    }

    /// The token that its calls carry, read from its file.
    pub fn token(&self) -> Result<AddToken, TokenError> {
        let file = match self {
            Self::Socket(_) => None,
            Self::Remote(device) => device.token_file.as_deref(),
        };
        Ok(AddToken(file.map(Token::read).transpose()?))
    }
}

/// Adds the token of a device to every call.
#[derive(Debug, Clone)]
pub struct AddToken(Option<Token>);

impl Interceptor for AddToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            let (key, value) = token.metadata();
            request.metadata_mut().insert(key, value);
        }
        Ok(request)
    }
}

/// A connection to a device.
#[derive(Debug)]
pub struct Connected {
    /// The connection. It never reconnects.
    pub channel: Channel,
    /// What the other end of a Unix socket speaks. Over a network, its greeting was checked.
    pub protocol: PeerProtocol,
}

/// Connects to a device. The caller bounds the time.
pub async fn connect(target: &Target) -> Result<Connected, ConnectError> {
    let protocol = PeerProtocol::default();
    let channel = match target {
        Target::Socket(socket) => {
            let stream = UnixStream::connect(socket).await;
            let stream = stream.map_err(|error| not_connected(socket, error))?;
            let transport = Transport::from_static("http://device.invalid");
            channel(transport, Box::new(FirstBytes::of(stream, protocol.clone()))).await
        }
        Target::Remote(device) => {
            let stream = dial(device).await?;
            let transport = Transport::from_static("http://device.invalid")
                .initial_stream_window_size(WINDOW_BYTES)
                .initial_connection_window_size(WINDOW_BYTES)
                .http2_keep_alive_interval(KEEPALIVE)
                .keep_alive_timeout(KEEPALIVE)
                .keep_alive_while_idle(true);
            channel(transport, stream).await
        }
    };
    match channel {
        Ok(channel) => Ok(Connected { channel, protocol }),
        Err(ConnectError::HungUp) if protocol.is_other() => Err(ConnectError::OtherProtocol),
        Err(error) => Err(error),
    }
}

/// Speaks HTTP/2 over a stream.
async fn channel(transport: Transport, stream: Box<dyn Duplex>) -> Result<Channel, ConnectError> {
    let mut stream = Some(stream);
    // The address is not used: the connector returns the stream, once.
    transport
        .connect_with_connector(tower::service_fn(move |_| {
            let taken = stream.take().map(TokioIo::new);
            async move { taken.ok_or_else(|| std::io::Error::from(ErrorKind::NotConnected)) }
        }))
        .await
        .map_err(|_| ConnectError::HungUp)
}

/// Connects over a network, up to the device's greeting.
async fn dial(device: &RemoteDevice<TcpAddress>) -> Result<Box<dyn Duplex>, ConnectError> {
    // Invalid files are reported before anything is sent.
    let open = |files| Connector::open(files, device.certificate_name());
    let tls = device.tls.clone().map(open).transpose()?;
    let stream = reach(device, tls.is_some()).await?;
    stream.set_nodelay(true).map_err(ConnectError::Failed)?;
    let mut stream: Box<dyn Duplex> = match &tls {
        Some(tls) => tls.connect(stream).await.map_err(|error| match error {
            TlsError::Connection(error) if is_end(&error) => ConnectError::HungUp,
            TlsError::Connection(error) => ConnectError::Failed(error),
            error => error.into(),
        })?,
        None => Box::new(stream),
    };
    let greeted = async {
        stream.write_all(&NETWORK_GREETING).await?;
        stream.flush().await
    };
    greeted.await.map_err(ConnectError::Failed)?;
    let mut greeting = [0; NETWORK_GREETING.len()];
    let mut received = 0;
    let ended = loop {
        match stream.read(&mut greeting[received..]).await {
            Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => received += bytes,
            Err(error) => break Err(error),
        }
        if received == greeting.len() {
            break Ok(());
        }
    };
    match (ended, &tls) {
        (Ok(()), _) if greeting == NETWORK_GREETING => Ok(stream),
        (Ok(()), _) => Err(ConnectError::NoGreeting),
        // A device reports only now that it does not accept this end's certificate.
        (Err(error), Some(tls)) if !is_end(&error) => Err(tls.explain(error).into()),
        (Err(error), None) if !is_end(&error) => Err(ConnectError::Failed(error)),
        // A device that is full says nothing; one that expects TLS answers with an alert.
        (Err(_), None) if received > 0 => Err(ConnectError::NoGreeting),
        (Err(_), _) => Err(ConnectError::HungUp),
    }
}

/// Whether the other end closed the connection.
fn is_end(error: &std::io::Error) -> bool {
    [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset].contains(&error.kind())
}

/// Connects to the first address of the device's name that answers.
async fn reach(
    device: &RemoteDevice<TcpAddress>,
    is_encrypted: bool,
) -> Result<TcpStream, ConnectError> {
    let name = &device.address.host;
    let unknown = |source| ConnectError::Name { host: name.clone(), source };
    let found = lookup_host((&name[..], device.address.port)).await.map_err(unknown)?;
    let mut last = unknown(ErrorKind::NotFound.into());
    for address in found {
        if !is_encrypted && !address.ip().is_loopback() {
            return Err(ConnectError::Cleartext { address });
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                last = ConnectError::Refused;
            }
            Err(error) => last = ConnectError::Failed(error),
        }
    }
    Err(last)
}

fn not_connected(socket: &Path, error: std::io::Error) -> ConnectError {
    // The kernel refuses connections to files and folders with the same error.
    if let Ok(found) = std::fs::metadata(socket)
        && !found.file_type().is_socket()
    {
        return ConnectError::NotASocket {
            what: if found.is_dir() { "a folder" } else { "a file" },
        };
    }
    match error.kind() {
        ErrorKind::NotFound => ConnectError::Missing,
        ErrorKind::ConnectionRefused => ConnectError::Refused,
        _ => ConnectError::Failed(error),
    }
}
