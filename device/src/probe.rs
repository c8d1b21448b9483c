//! Asks a device what it is.

use crate::Error;
use crate::options::{DeviceInfo, EmulationInfo};
use hyper_util::rt::TokioIo;
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::{DescribeReply, DescribeRequest, MESSAGE_BYTES_MAX};
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
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
        let reason = format!("it did not answer within {ANSWER_TIMEOUT:?}");
        Err(Error::NotADevice { socket: socket.to_path_buf(), reason })
    })
}

async fn describe(socket: &Path) -> Result<DeviceInfo, Error> {
    let stream = UnixStream::connect(socket).await.map_err(|error| Error::NoDevice {
        socket: socket.to_path_buf(),
        reason: error.to_string(),
    })?;
    let failed = |reason| Error::NotADevice { socket: socket.to_path_buf(), reason };
    let channel = channel_over(stream).await.map_err(|error| failed(error.to_string()))?;
    let mut client = DeviceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let reply = client.describe(DescribeRequest {}).await;
    Ok(reply.map_err(|status| failed(status.message().to_owned()))?.into_inner().into())
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
        }
    }
}
