//! The listening end: a Unix socket, or an address of this machine with or without TLS.

use crate::socket::Socket;
use crate::{Error, Listen, ServeOptions};
use meetpoint_link::tls::Acceptor;
use meetpoint_link::{Endpoint, TcpAddress, Token};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// A bound listener.
pub(crate) enum Listener {
    Socket(Socket),
    Tcp { listener: std::net::TcpListener, tls: Option<Arc<Acceptor>>, address: TcpAddress },
}

impl Listener {
    /// Begins to listen. A network without TLS is refused beyond the loopback interface, and
    /// without a token everywhere.
    pub(crate) fn bind(options: &ServeOptions) -> Result<Self, Error> {
        let (address, tls) = match &options.listen {
            Listen::Socket(path) => return Socket::bind(path, options.once).map(Self::Socket),
            Listen::Tcp { address, tls } => (address, tls),
        };
        let tls = tls.clone().map(Acceptor::open).transpose()?.map(Arc::new);
        let failed = |source| Error::Listen { address: address.clone(), source };
        let found = (&address.host[..], address.port).to_socket_addrs().map_err(failed)?;
        let found: Vec<SocketAddr> = found.collect();
        if tls.is_none() {
            if found.iter().any(|found| !found.ip().is_loopback()) {
                return Err(Error::Cleartext { address: address.clone() });
            }
            if options.token_file.is_none() {
                return Err(Error::NoToken { address: address.clone() });
            }
        }
        let listener = std::net::TcpListener::bind(&found[..]).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let address = TcpAddress { host: address.host.clone(), port };
        Ok(Self::Tcp { listener, tls, address })
    }

    /// The device's end of TLS, if connections are encrypted.
    pub(crate) fn tls(&self) -> Option<Arc<Acceptor>> {
        match self {
            Self::Socket(_) => None,
            Self::Tcp { tls, .. } => tls.clone(),
        }
    }

    /// Where hosts find it.
    pub(crate) fn endpoint(&self, options: &ServeOptions) -> Endpoint {
        match (self, &options.listen) {
            (Self::Tcp { address, .. }, _) | (Self::Socket(_), Listen::Tcp { address, .. }) => {
                Endpoint::Tcp(address.clone())
            }
            (Self::Socket(_), Listen::Socket(path)) => Endpoint::Socket(path.clone()),
        }
    }
}

/// The token of a device, if it has one.
pub(crate) fn token(options: &ServeOptions) -> Result<Option<Token>, Error> {
    Ok(options.token_file.as_deref().map(Token::read).transpose()?)
}
