//! Where a device listens: a Unix socket, or a network address.

use meetpoint_diagnose::shown;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Prefix of a network address.
const SCHEME: &str = "tcp://";

/// Maximum length of a host name, as in DNS.
const HOST_BYTES_MAX: usize = 253;

/// Host and port of a device, written `tcp://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TcpAddress {
    /// A name or an IP address; an IPv6 address has no brackets.
    pub host: String,
    /// Port; with 0, a listening device chooses one.
    pub port: u16,
}

impl TcpAddress {
    /// `HOST:PORT`, as in URLs.
    pub fn authority(&self) -> String {
        self.to_string().split_off(SCHEME.len())
    }
}

impl fmt::Display for TcpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host.contains(':') {
            true => write!(f, "{SCHEME}[{host}]:{port}"),
            false => write!(f, "{SCHEME}{host}:{port}"),
        }
    }
}

/// The text is not a network address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct AddressSyntax {
    /// What is wrong.
    pub problem: &'static str,
}

impl FromStr for TcpAddress {
    type Err = AddressSyntax;

    fn from_str(text: &str) -> Result<Self, AddressSyntax> {
        let wrong = |problem| Err(AddressSyntax { problem });
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return wrong("it does not begin with tcp://");
        };
        let Some((host, port)) = rest.rsplit_once(':') else {
            return wrong("it has no port");
        };
        let Ok(port) = port.parse() else {
            return wrong("its port is not a number from 0 to 65535");
        };
        if let Some(inside) = host.strip_prefix('[') {
            let inside = inside.strip_suffix(']').unwrap_or_default();
            return match inside.parse::<std::net::Ipv6Addr>() {
                Ok(_) => Ok(Self { host: inside.to_owned(), port }),
                Err(_) => wrong("its brackets do not hold an IPv6 address"),
            };
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        match host.len() {
            0 => wrong("it has no host"),
            1..=HOST_BYTES_MAX if host.bytes().all(is_name) => {
                Ok(Self { host: host.to_owned(), port })
            }
            _ => wrong("its host is not a name or an IP address; one of version 6 has brackets"),
        }
    }
}

/// Where a device listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Path of a Unix socket.
    Socket(PathBuf),
    /// Over a network.
    Tcp(TcpAddress),
}

impl Endpoint {
    /// The path of a Unix socket.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket(path) => Some(path),
            Self::Tcp(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", shown(path)),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressSyntax, TcpAddress};

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for text in ["tcp://10.0.0.7:7000", "tcp://csd-1.example:0", "tcp://[fe80::1]:65535"] {
            assert_eq!(text.parse::<TcpAddress>().unwrap().to_string(), text);
        }
        let v6: TcpAddress = "tcp://[::1]:7".parse().unwrap();
        assert_eq!((&v6.host[..], v6.port), ("::1", 7));
    }

    #[test]
    fn texts_that_are_not_addresses_are_refused() {
        for text in [
            "10.0.0.7:7000",
            "tcp://10.0.0.7",
            "tcp://:7000",
            "tcp://a:65536",
            "tcp://a:-1",
            "tcp://::1:7000",
            "tcp://[::1:7000",
            "tcp://[a]:7000",
            "tcp://a b:7000",
            "tcp://user@a:7000",
            "tcp://a/b:7000",
        ] {
            assert!(matches!(text.parse::<TcpAddress>(), Err(AddressSyntax { .. })), "{text}");
        }
        let long = format!("tcp://{}:1", "a".repeat(254));
        assert!(long.parse::<TcpAddress>().is_err());
    }
}
