//! What a host needs to know about a device on another machine.

use crate::tls::TlsFiles;
use crate::{AddressSyntax, TcpAddress};
use meetpoint_diagnose::{Diagnose, Remedy, shown};
use meetpoint_storage::files::read_regular;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Prefix of the path of a file with an address.
pub(crate) const FILE: &str = "file:";

/// Longest file of an address that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// Environment variable with the default folder for [`RemoteDevice::with_keys`].
pub const KEYS_VARIABLE: &str = "MEETPOINT_DEVICE_KEYS";

/// Environment variable with the default token file.
pub const TOKEN_VARIABLE: &str = "MEETPOINT_DEVICE_TOKEN_FILE";

/// Where a host finds the address of a device, written `tcp://HOST:PORT` or `file:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RemoteAddress {
    /// The address itself.
    Tcp(TcpAddress),
    /// A file with the address, which is read whenever a host connects.
    File(PathBuf),
}

impl From<TcpAddress> for RemoteAddress {
    fn from(address: TcpAddress) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for RemoteAddress {
    type Err = AddressSyntax;

    fn from_str(text: &str) -> Result<Self, AddressSyntax> {
        match text.strip_prefix(FILE) {
            Some("") => Err(AddressSyntax { problem: "file: must be followed by a path" }),
            Some(path) => Ok(Self::File(path.into())),
            None => text.parse().map(Self::Tcp),
        }
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::File(path) => write!(f, "{FILE}{}", path.display()),
        }
    }
}

impl RemoteAddress {
    /// Syntax of an address, for error messages.
    pub const EXPECTED: &'static str = "tcp://HOST:PORT, such as tcp://10.0.0.7:7000, or file:PATH";

    /// The same address; a relative path of a file starts at `folder`.
    pub fn within(self, folder: &Path) -> Self {
        match self {
            Self::Tcp(_) => self,
            Self::File(path) => Self::File(folder.join(path)),
        }
    }

    /// The address as it is now: reads the file.
    pub fn current(&self) -> Result<TcpAddress, AddressFileError> {
        let path = match self {
            Self::Tcp(address) => return Ok(address.clone()),
            Self::File(path) => path,
        };
        let failed = |source| AddressFileError::Read { path: path.clone(), source };
        let invalid = |problem| AddressFileError::Invalid { path: path.clone(), problem };
        let text = String::from_utf8(read_regular(path, FILE_BYTES_MAX).map_err(failed)?);
        let text = text.map_err(|_| invalid("it is not UTF-8"))?;
        match text.trim_end() {
            "" => Err(invalid("it is empty")),
            line => line.parse().map_err(|AddressSyntax { problem }| invalid(problem)),
        }
    }
}

/// A file without the address of a device.
#[derive(Debug, thiserror::Error)]
pub enum AddressFileError {
    /// The file cannot be read.
    #[error("failed to read the address of a device in {}: {source}", shown(path))]
    Read {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file does not contain an address.
    #[error("{} does not hold the address of a device: {problem}", shown(path))]
    Invalid {
        /// File.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
}

impl Diagnose for AddressFileError {
    fn cause(&self) -> &'static str {
        "address_file"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some("write tcp://HOST:PORT, one line, to another file, and rename it to this one".into())
    }
}

/// A device that is reached over a network; `A` is its address, or where to find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDevice<A = RemoteAddress> {
    /// Where it listens.
    pub address: A,
    /// Certificates for both ends; `None`: the connection is not encrypted, which is permitted on
    /// the loopback interface alone.
    pub tls: Option<TlsFiles>,
    /// The name that its certificate must have, if it differs from the host in the address.
    pub server_name: Option<String>,
    /// File with the token that it requires.
    pub token_file: Option<PathBuf>,
    /// Name of the device's root that the dataset is in; `None`: any.
    pub root: Option<String>,
}

impl<A> RemoteDevice<A> {
    /// A device with this address and no other settings.
    pub fn new(address: impl Into<A>) -> Self {
        let address = address.into();
        Self { address, tls: None, server_name: None, token_file: None, root: None }
    }

    /// Uses the host's certificates in a folder that `meetpoint device keys` created.
    pub fn with_keys(mut self, folder: &Path) -> Self {
        self.tls = Some(TlsFiles::in_folder(folder, "client"));
        self
    }

    /// Sets certificates and token from the environment if they are not set: [`KEYS_VARIABLE`] and
    /// [`TOKEN_VARIABLE`].
    pub fn or_environment(mut self) -> Self {
        let variable = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
        if self.tls.is_none()
            && let Some(folder) = variable(KEYS_VARIABLE)
        {
            self = self.with_keys(Path::new(&folder));
        }
        if self.token_file.is_none() {
            self.token_file = variable(TOKEN_VARIABLE).map(PathBuf::from);
        }
        self
    }

    /// The same settings for a device with another address.
    pub fn at<B>(&self, address: B) -> RemoteDevice<B> {
        RemoteDevice {
            address,
            tls: self.tls.clone(),
            server_name: self.server_name.clone(),
            token_file: self.token_file.clone(),
            root: self.root.clone(),
        }
    }
}

impl RemoteDevice {
    /// The device at its current address.
    pub fn located(&self) -> Result<RemoteDevice<TcpAddress>, AddressFileError> {
        self.address.current().map(|address| self.at(address))
    }
}

impl RemoteDevice<TcpAddress> {
    /// The name that its certificate must have.
    pub fn certificate_name(&self) -> &str {
        self.server_name.as_deref().unwrap_or(&self.address.host)
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressFileError, RemoteAddress, RemoteDevice};
    use std::io::ErrorKind;
    use std::path::Path;

    #[test]
    fn a_file_is_read_whenever_the_address_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("address");
        let text = format!("file:{}", path.display());
        let address: RemoteAddress = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
        let named = RemoteDevice { server_name: Some("agent".to_owned()), ..device(&address) };
        for host in ["10.0.0.7", "storage"] {
            std::fs::write(&path, format!("tcp://{host}:7000\n")).unwrap();
            assert_eq!(device(&address).located().unwrap().certificate_name(), host);
            assert_eq!(named.located().unwrap().certificate_name(), "agent");
        }
        let relative: RemoteAddress = "file:a".parse().unwrap();
        assert_eq!(relative.within(Path::new("/jobs")), "file:/jobs/a".parse().unwrap());
    }

    fn device(address: &RemoteAddress) -> RemoteDevice {
        RemoteDevice::new(address.clone())
    }

    #[test]
    fn files_without_one_address_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("address");
        let address = RemoteAddress::File(path.clone());
        let read = |address: &RemoteAddress| match address.current().unwrap_err() {
            AddressFileError::Read { path, source } => (path, source.kind()),
            error => panic!("{error}"),
        };
        assert_eq!(read(&address), (path.clone(), ErrorKind::NotFound));
        let long = format!("tcp://a:1{}", " ".repeat(4096));
        let lists = ["tcp://a:1\ntcp://b:1\n", "tcp://a:1,tcp://b:1", "srv:a", "file:b"];
        for text in [&b""[..], b"\n", b"tcp://a", b"tcp://\xff:1"]
            .into_iter()
            .chain(lists.map(str::as_bytes))
        {
            std::fs::write(&path, text).unwrap();
            let refused = address.current();
            assert!(matches!(refused, Err(AddressFileError::Invalid { .. })), "{refused:?}");
        }
        std::fs::write(&path, long).unwrap();
        assert_eq!(read(&address), (path, ErrorKind::FileTooLarge));
        let endless = RemoteAddress::File("/dev/zero".into());
        assert_eq!(read(&endless).0, Path::new("/dev/zero"));
    }
}
