//! A device that listens on a network: which hosts it admits, which requests it accepts, and what
//! it sends.

mod requests;
mod sending;
mod trust;

use crate::support::{Device, Host, SAMPLE_BYTES, Spool, load_request};
use meetpoint_device::{Listen, ServeOptions};
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::{LoadPart, LoadReply, LoadRequest, NamedDataset, SpoolKind};
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::tls::keys::{Authority, Subject, Validity};
use meetpoint_link::{Endpoint, RemoteDevice, Target, TcpAddress, connect};
use std::path::PathBuf;
use tempfile::TempDir;
use tonic::Status;

const BATCH: u64 = 5 * SAMPLE_BYTES;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A port of the loopback interface that the system chooses.
fn loopback() -> TcpAddress {
    "tcp://127.0.0.1:0".parse().unwrap()
}

/// A folder of keys for a device at 127.0.0.1 and a host.
struct Keys {
    folder: TempDir,
    authority: Authority,
}

impl Keys {
    fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::open_or_make(folder.path()).unwrap();
        let keys = Self { folder, authority };
        keys.issue(&keys.device(), Validity::days(1));
        keys.issue(&host("client"), Validity::days(1));
        keys
    }

    fn device(&self) -> Subject {
        Subject::Device { hosts: vec!["127.0.0.1".to_owned(), "csd.example".to_owned()] }
    }

    fn issue(&self, subject: &Subject, validity: Validity) -> [PathBuf; 2] {
        self.authority.issue(subject, validity, true).unwrap()
    }

    fn files(&self, name: &str) -> TlsFiles {
        TlsFiles::in_folder(self.folder.path(), name)
    }

    /// A device with the certificate of a name.
    fn serve(&self, name: &str) -> Device {
        let tls = Some(self.files(name));
        network(move |options| options.listen = Listen::Tcp { address: loopback(), tls })
    }
}

fn host(name: &str) -> Subject {
    Subject::Host { name: name.to_owned() }
}

/// A device with a token on the loopback interface, with options modified by `change`.
fn network(change: impl FnOnce(&mut ServeOptions)) -> Device {
    Device::start(|options| {
        let folder = options.roots[0].folder.parent().unwrap().to_path_buf();
        std::fs::write(folder.join("token"), TOKEN).unwrap();
        options.token_file = Some(folder.join("token"));
        options.listen = Listen::Tcp { address: loopback(), tls: None };
        options.roots[0].name = Some("photos".to_owned());
        change(options);
    })
}

fn remote(device: &Device) -> RemoteDevice<TcpAddress> {
    let Endpoint::Tcp(address) = device.ready.endpoint.clone() else { panic!("it is remote") };
    let token_file = Some(device.folder.path().join("token"));
    RemoteDevice { token_file, ..RemoteDevice::new(address) }
}

fn with_tls(device: &Device, files: TlsFiles) -> RemoteDevice<TcpAddress> {
    RemoteDevice { tls: Some(files), ..remote(device) }
}

/// A host's connection over the network.
async fn open(device: &Device) -> Host<meetpoint_link::AddToken> {
    let target = Target::Remote(Box::new(remote(device)));
    let token = target.token().unwrap();
    let channel = connect(&target).await.unwrap().channel;
    Host { client: DeviceClient::with_interceptor(channel, token) }
}

fn named(root: &str, request: &LoadRequest) -> Vec<NamedDataset> {
    let manifest_sha256 = request.manifest_sha256.clone();
    vec![NamedDataset { root: root.to_owned(), manifest_sha256 }]
}

/// A request for batches that are sent.
fn stream_request(device: &Device, spool: &Spool) -> LoadRequest {
    let mut request = load_request(device, spool);
    request.named = named("photos", &request);
    request.datasets.clear();
    request.spool_kind = SpoolKind::Stream.into();
    request.spool_token = 0;
    request
}

async fn load(
    host: &mut Host<meetpoint_link::AddToken>,
    request: LoadRequest,
) -> Result<LoadReply, Status> {
    let parts = tokio_stream::once(LoadPart::from(request));
    host.client.load(parts).await.map(tonic::Response::into_inner)
}
