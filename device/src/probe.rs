//! Queries a device for its description.

use crate::Error;
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::{DescribeRequest, MESSAGE_BYTES_MAX};
use meetpoint_link::{ConnectError, DeviceInfo, HUNG_UP, connect};
use std::error::Error as _;
use std::path::Path;
use std::time::Duration;
use tonic::Code;

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
    let failed = |reason: &str| {
        let (socket, reason) = (socket.to_path_buf(), reason.to_owned());
        Error::NotADevice { socket, reason }
    };
    let channel = connect(socket).await.map_err(|error| match error {
        ConnectError::NotASocket { what } => {
            Error::ProbedNoSocket { path: socket.to_path_buf(), what }
        }
        ConnectError::HungUp => failed(HUNG_UP),
        ConnectError::Missing | ConnectError::Refused | ConnectError::Failed(_) => {
            Error::NoDevice { socket: socket.to_path_buf(), reason: error.to_string() }
        }
    })?;
    let mut client = DeviceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let reply = client.describe(DescribeRequest {}).await;
    let reply = reply.map_err(|status| match status.code() {
        Code::Unimplemented => failed("it does not support the request"),
        // A status with a source was created on this side: the connection failed.
        _ if status.source().is_some() => failed(HUNG_UP),
        _ => failed(status.message()),
    })?;
    Ok(reply.into_inner().into())
}
