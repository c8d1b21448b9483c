//! Asks a device what it is.

use crate::Error;
use crate::options::{DeviceInfo, EmulationInfo};
use hyper_util::rt::TokioIo;
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::{DescribeReply, DescribeRequest, MESSAGE_BYTES_MAX};
use std::error::Error as _;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// How long a device may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Connects to a device and asks what it is. Blocks for a few seconds at most.
pub fn probe(socket: &Path) -> Result<DeviceInfo, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Process { action: "start the network runtime", source })?;
    let answer =
        runtime.block_on(async { tokio::time::timeout(ANSWER_TIMEOUT, describe(socket)).await });
    answer.unwrap_or_else(|_| {
        let reason = format!("it said nothing for {ANSWER_TIMEOUT:?}");
        Err(Error::NotADevice { socket: socket.to_path_buf(), reason })
    })
}

async fn describe(socket: &Path) -> Result<DeviceInfo, Error> {
    let stream =
        UnixStream::connect(socket).await.map_err(|error| not_connected(socket, &error))?;
    let failed = |reason: &str| {
        let (socket, reason) = (socket.to_path_buf(), reason.to_owned());
        Error::NotADevice { socket, reason }
    };
    let channel = channel_over(stream).await.map_err(|_| failed(HUNG_UP))?;
    let mut client = DeviceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let reply = client.describe(DescribeRequest {}).await;
    let reply = reply.map_err(|status| match status.code() {
        Code::Unimplemented => failed("it does not know what it is asked"),
        // What has a cause was not said by the other side: the connection failed.
        _ if status.source().is_some() => failed(HUNG_UP),
        _ => failed(status.message()),
    })?;
    Ok(reply.into_inner().into())
}

/// What failed before anything was understood.
const HUNG_UP: &str = "it ended the connection, or speaks something else than the device link";

fn not_connected(socket: &Path, error: &std::io::Error) -> Error {
    // The kernel refuses connections to files and folders in the same words.
    if let Ok(found) = std::fs::metadata(socket)
        && !found.file_type().is_socket()
    {
        let what = if found.is_dir() { "a folder" } else { "a file" };
        return Error::ProbedNoSocket { path: socket.to_path_buf(), what };
    }
    let reason = match error.kind() {
        ErrorKind::NotFound => "there is no such socket".to_owned(),
        ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        _ => error.to_string(),
    };
    Error::NoDevice { socket: socket.to_path_buf(), reason }
}

/// A channel over one connection; it does not connect again.
pub(crate) async fn channel_over(stream: UnixStream) -> Result<Channel, tonic::transport::Error> {
    let mut stream = Some(stream);
    // The address is never looked at: the connector always returns the stream.
    Endpoint::from_static("http://device.invalid")
        .connect_timeout(ANSWER_TIMEOUT)
        .connect_with_connector(tower::service_fn(move |_| {
            let taken = stream.take().map(TokioIo::new);
            async move {
                taken.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotConnected))
            }
        }))
        .await
}

impl From<DescribeReply> for DeviceInfo {
    fn from(reply: DescribeReply) -> Self {
        let set = |number: u64| (number != 0).then_some(number);
        Self {
            protocol_version: reply.protocol_version,
            program_version: reply.program_version,
            process_id: reply.process_id,
            roots: reply.roots.into_iter().map(Into::into).collect(),
            emulation: reply.emulation.map(|knobs| EmulationInfo {
                cpu_ratio: (knobs.cpu_ratio != 0.0).then_some(knobs.cpu_ratio),
                read_bytes_per_second: set(knobs.read_bytes_per_second),
                write_bytes_per_second: set(knobs.write_bytes_per_second),
                latency_ns: set(knobs.latency_ns),
                core: knobs.core,
            }),
            storage_engine: reply.storage_engine,
            storage_note: reply.storage_note,
            works_for: reply.works_for,
            hosts: reply.hosts,
            hosts_max: reply.hosts_max,
        }
    }
}
