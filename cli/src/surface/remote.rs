//! Options for devices that already run, on this machine or others.

use crate::surface::failure::Fault;
use meetpoint_host::{DeviceKind, RemoteDevice};
use meetpoint_link::{DeviceAddress, RunningDevice, resolve_devices};
use std::path::PathBuf;

/// Running devices, and what both ends need to trust each other.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running devices")]
pub(crate) struct RemoteArguments {
    /// Devices that already run: tcp://HOST:PORT, file:PATH, unix:PATH, srv:NAME, or several of
    /// these separated by commas. May be given several times.
    ///
    /// Over a network, both ends need a copy of the dataset, and batches are sent. file:PATH is a
    /// file with tcp://HOST:PORT, which is read whenever the host connects. srv:NAME stands for the
    /// targets of the DNS SRV record _meetpoint._tcp.NAME.
    #[arg(long = "device", value_name = "ADDRESS", value_parser = checked)]
    devices: Vec<String>,
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

/// A list of devices, whose names are looked up later.
fn checked(text: &str) -> Result<String, String> {
    let expected = DeviceAddress::EXPECTED;
    let parsed = DeviceAddress::parse_list(text);
    parsed.map(|_| text.to_owned()).map_err(|error| format!("{error}; write {expected}"))
}

impl RemoteArguments {
    /// The devices, in the order in which they were given. Blocks while names are looked up.
    pub(crate) fn devices(&self) -> anyhow::Result<Vec<DeviceKind>> {
        let device = |device| match device {
            RunningDevice::Socket(socket) => DeviceKind::Connect { socket },
            RunningDevice::Remote(address) => {
                let mut remote = RemoteDevice::new(address);
                if let Some(folder) = &self.keys {
                    remote = remote.with_keys(folder);
                }
                remote.token_file.clone_from(&self.token_file);
                remote.server_name.clone_from(&self.server_name);
                remote.root.clone_from(&self.root);
                DeviceKind::Remote(Box::new(remote.or_environment()))
            }
        };
        let mut devices = Vec::new();
        for text in &self.devices {
            let found = resolve_devices(text).map_err(|error| {
                let message = format!("--device {text}: {error}");
                Fault::new("device_discovery", message, error.remedy())
            })?;
            devices.extend(found.into_iter().map(device));
        }
        Ok(devices)
    }
}
