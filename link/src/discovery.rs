//! The devices that a text names: `tcp://HOST:PORT`, `file:PATH`, `unix:PATH`, `srv:NAME`, or a
//! list of these.
//!
//! `srv:NAME` stands for the targets of a DNS SRV record (RFC 2782), each of which is a device.
//! Files are not read here, but whenever a host connects.

use crate::dns::{self, DnsError};
use crate::remote::FILE;
use crate::{AddressSyntax, RemoteAddress};
use meetpoint_diagnose::Remedy;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Maximum number of devices that a text may name.
pub const DEVICES_MAX: usize = 64;

/// Service and protocol, which are added to a name without them.
const SERVICE: &str = "_meetpoint._tcp.";

/// Longest name of DNS, in characters.
const NAME_CHARS_MAX: usize = 253;

const UNIX: &str = "unix:";
const SRV: &str = "srv:";
const TCP: &str = "tcp://";

/// A device that already runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunningDevice {
    /// A Unix socket of this machine.
    Socket(PathBuf),
    /// A device of a network.
    Remote(RemoteAddress),
}

/// One item of a list of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceAddress {
    /// One device.
    Device(RunningDevice),
    /// The name of an SRV record.
    Service(String),
}

impl FromStr for DeviceAddress {
    type Err = AddressSyntax;

    fn from_str(text: &str) -> Result<Self, AddressSyntax> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return match path {
                "" => Err(AddressSyntax { problem: "unix: is followed by a path" }),
                path => Ok(Self::Device(RunningDevice::Socket(path.into()))),
            };
        }
        let Some(name) = text.strip_prefix(SRV) else {
            return text.parse().map(|address| Self::Device(RunningDevice::Remote(address)));
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let fits = (1..=NAME_CHARS_MAX - SERVICE.len()).contains(&name.len());
        match fits && name.bytes().all(is_name) && !name.contains("..") {
            true if name.starts_with('_') => Ok(Self::Service(name.to_owned())),
            true => Ok(Self::Service(format!("{SERVICE}{name}"))),
            false => Err(AddressSyntax { problem: "srv: must be followed by a DNS name" }),
        }
    }
}

impl fmt::Display for RunningDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{UNIX}{}", path.display()),
            Self::Remote(address) => write!(f, "{address}"),
        }
    }
}

impl fmt::Display for DeviceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(device) => write!(f, "{device}"),
            Self::Service(name) => write!(f, "{SRV}{name}"),
        }
    }
}

impl DeviceAddress {
    /// Syntax of an item, for error messages.
    pub const EXPECTED: &'static str = "tcp://HOST:PORT, file:PATH, srv:NAME, unix:PATH, or \
                                        several of these separated by commas";

    /// Parses a list of items separated by commas. A comma in a path is not a separator unless an
    /// item follows it.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, AddressSyntax> {
        let mut items: Vec<String> = Vec::new();
        for piece in text.split(',') {
            let begins = [TCP, FILE, UNIX, SRV].iter().any(|scheme| piece.starts_with(scheme));
            match items.last_mut() {
                Some(last) if !begins && [FILE, UNIX].iter().any(|it| last.starts_with(it)) => {
                    last.push(',');
                    last.push_str(piece);
                }
                _ => items.push(piece.to_owned()),
            }
        }
        items.iter().map(|item| item.parse()).collect()
    }

    /// The devices that it stands for. Blocks for a name, within the limits of [`dns`].
    fn resolve(self) -> Result<Vec<RunningDevice>, DiscoveryError> {
        let name = match self {
            Self::Device(device) => return Ok(vec![device]),
            Self::Service(name) => name,
        };
        let mut found = dns::services(&name)?;
        // Targets of higher numbers are for when these fail, which the next epoch finds out.
        let first = found.iter().map(|target| target.priority).min();
        found.retain(|target| Some(target.priority) == first);
        // The same order at every rank: devices have numbers.
        found.sort_by(|a, b| {
            b.weight.cmp(&a.weight).then_with(|| (&a.host, a.port).cmp(&(&b.host, b.port)))
        });
        found.dedup();
        let address = |target: dns::Service| {
            let text = format!("{TCP}{}:{}", target.host, target.port);
            let wrong = |_| DiscoveryError::Target { name: name.clone(), target: text.clone() };
            text.parse().map(RunningDevice::Remote).map_err(wrong)
        };
        found.into_iter().map(address).collect()
    }
}

/// Devices that cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The text is not a list of devices.
    #[error(transparent)]
    Syntax(#[from] AddressSyntax),
    /// A name cannot be looked up.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// A record names a target that is not a host.
    #[error("the target {target} of the SRV record {name} is not an address")]
    Target {
        /// Name.
        name: String,
        /// What it names.
        target: String,
    },
    /// There are more devices than a job may have.
    #[error("{count} devices are given; a job can have at most {DEVICES_MAX}")]
    TooMany {
        /// How many.
        count: usize,
    },
}

impl DiscoveryError {
    /// The remedy.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Syntax(_) => format!("write {}", DeviceAddress::EXPECTED).into(),
            Self::Dns(error) => error.remedy(),
            Self::Target { .. } => "correct the record".into(),
            Self::TooMany { .. } => "name fewer devices".into(),
        }
    }
}

/// The devices that a text names, in order; those of a name by weight, host and port. Blocks while
/// names are looked up, for a bounded time.
pub fn resolve_devices(text: &str) -> Result<Vec<RunningDevice>, DiscoveryError> {
    let mut devices = Vec::new();
    for item in DeviceAddress::parse_list(text)? {
        devices.extend(item.resolve()?);
    }
    match devices.len() {
        ..=DEVICES_MAX => Ok(devices),
        count => Err(DiscoveryError::TooMany { count }),
    }
}

#[cfg(test)]
mod tests {
    use super::{DEVICES_MAX, DeviceAddress, DiscoveryError, resolve_devices};

    #[test]
    fn lists_are_split_at_commas_before_an_address() {
        let shown = |text: &str| {
            let items = DeviceAddress::parse_list(text).unwrap();
            items.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown("tcp://a:1"), ["tcp://a:1"]);
        assert_eq!(shown("tcp://a:1,tcp://[::1]:2"), ["tcp://a:1", "tcp://[::1]:2"]);
        assert_eq!(shown("unix:/a,b,tcp://c:3"), ["unix:/a,b", "tcp://c:3"]);
        assert_eq!(shown("file:/a,b,file:c"), ["file:/a,b", "file:c"]);
        assert_eq!(shown("srv:agents.example"), ["srv:_meetpoint._tcp.agents.example"]);
        assert_eq!(shown("srv:_x._tcp.a.,unix:s"), ["srv:_x._tcp.a.", "unix:s"]);
    }

    #[test]
    fn texts_that_are_not_lists_of_devices_are_refused() {
        for text in [
            "",
            ",",
            "tcp://a:1,",
            "tcp://a:1,b",
            "tcp://a",
            "unix:",
            "file:",
            "srv:",
            "srv:a/b",
            "srv:a..b",
            "srv:a b",
            "http://a:1",
        ] {
            let refused = resolve_devices(text);
            assert!(matches!(refused, Err(DiscoveryError::Syntax(_))), "{text}: {refused:?}");
        }
        assert!(resolve_devices(&format!("srv:{}", "a".repeat(254))).is_err());
        let many = vec!["tcp://a:1"; DEVICES_MAX + 1].join(",");
        let count = DEVICES_MAX + 1;
        assert_eq!(resolve_devices(&many), Err(DiscoveryError::TooMany { count }));
    }
}
