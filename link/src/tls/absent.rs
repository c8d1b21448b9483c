//! Stubs of TLS in a program built without it: every use is an error that reports this.

use super::{Duplex, PeerIdentity, TlsError, TlsFiles};
use std::convert::Infallible;
use tokio::net::TcpStream;

/// The device's end, which cannot be created.
#[derive(Debug)]
pub struct Acceptor(Infallible);

impl Acceptor {
    /// Always an error.
    pub fn open(_: TlsFiles) -> Result<Self, TlsError> {
        Err(TlsError::NotBuilt)
    }

    /// Never called.
    pub async fn accept(&self, _: TcpStream) -> Result<(Box<dyn Duplex>, PeerIdentity), TlsError> {
        match self.0 {}
    }

    /// Never called.
    pub fn expiry(&self) -> Option<i64> {
        match self.0 {}
    }
}

/// The host's end, which cannot be created.
#[derive(Debug)]
pub struct Connector(Infallible);

impl Connector {
    /// Always an error.
    pub fn open(_: TlsFiles, _: &str) -> Result<Self, TlsError> {
        Err(TlsError::NotBuilt)
    }

    /// Never called.
    pub async fn connect(&self, _: TcpStream) -> Result<Box<dyn Duplex>, TlsError> {
        match self.0 {}
    }

    /// Never called.
    pub fn explain(&self, _: std::io::Error) -> TlsError {
        match self.0 {}
    }
}
