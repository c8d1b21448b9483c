//! What a host needs to know about a device on another machine.

use crate::TcpAddress;
use crate::tls::TlsFiles;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Environment variable with the default folder for [`RemoteDevice::with_keys`].
pub const KEYS_VARIABLE: &str = "MEETPOINT_DEVICE_KEYS";

/// Environment variable with the default token file.
pub const TOKEN_VARIABLE: &str = "MEETPOINT_DEVICE_TOKEN_FILE";

/// A device that is reached over a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDevice {
    /// Where it listens.
    pub address: TcpAddress,
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

impl RemoteDevice {
    /// A device with this address and no other settings.
    pub fn new(address: TcpAddress) -> Self {
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

    /// The name that its certificate must have.
    pub fn certificate_name(&self) -> &str {
        self.server_name.as_deref().unwrap_or(&self.address.host)
    }
}
