//! Options for a device that already runs, on this machine or another.

use meetpoint_host::{DeviceKind, RemoteDevice, TcpAddress};
use std::path::PathBuf;
use std::str::FromStr;

/// Where a device listens.
#[derive(Debug, Clone)]
enum Address {
    Socket(PathBuf),
    Tcp(TcpAddress),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("unix: is followed by a path".to_owned()),
            Some(path) => Ok(Self::Socket(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|error: meetpoint_link::AddressSyntax| {
                format!("{error}; write {} or unix:PATH", meetpoint_link::AddressSyntax::EXPECTED)
            }),
        }
    }
}

/// Running devices, and what both ends need to trust each other.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running devices")]
pub(crate) struct RemoteArguments {
    /// Device that already runs: tcp://HOST:PORT or unix:PATH.
    ///
    /// Over a network, both ends have a copy of the dataset, and batches are sent.
    #[arg(long = "device", value_name = "ADDRESS")]
    devices: Vec<Address>,
    /// Folder with ca.pem, client.pem and client.key, as `meetpoint device keys` writes it; by
    /// default that of the environment variable MEETPOINT_DEVICE_KEYS.
    #[arg(long = "device-keys", value_name = "FOLDER", requires = "devices")]
    keys: Option<PathBuf>,
    /// File with the device's token; by default that of the environment variable
    /// MEETPOINT_DEVICE_TOKEN_FILE.
    #[arg(long = "device-token-file", value_name = "FILE", requires = "devices")]
    token_file: Option<PathBuf>,
    /// Name that the device's certificate has, if it differs from the host in the address.
    #[arg(long = "device-server-name", value_name = "NAME", requires = "devices")]
    server_name: Option<String>,
    /// Name of the device's root that the dataset is in; any by default.
    #[arg(long = "device-root", value_name = "NAME", requires = "devices")]
    root: Option<String>,
}

impl RemoteArguments {
    /// The devices, in the order in which they were given.
    pub(crate) fn devices(&self) -> Vec<DeviceKind> {
        let device = |address: &Address| match address {
            Address::Socket(socket) => DeviceKind::Connect { socket: socket.clone() },
            Address::Tcp(address) => {
                let mut remote = RemoteDevice::new(address.clone());
                if let Some(folder) = &self.keys {
                    remote = remote.with_keys(folder);
                }
                remote.token_file.clone_from(&self.token_file);
                remote.server_name.clone_from(&self.server_name);
                remote.root.clone_from(&self.root);
                DeviceKind::Remote(Box::new(remote.or_environment()))
            }
        };
        self.devices.iter().map(device).collect()
    }
}
