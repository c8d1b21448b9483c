//! Queries a device for its description.

use crate::Error;
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::{DescribeRequest, MESSAGE_BYTES_MAX};
use meetpoint_link::{ConnectError, Connected, DeviceInfo, HUNG_UP, Target, connect, refusal};
use std::error::Error as _;
use std::time::Duration;
use tonic::Code;

/// How long a device may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Connects to a device and returns its description. Blocks for a few seconds at most.
pub fn probe(target: impl Into<Target>) -> Result<DeviceInfo, Error> {
    let target = &target.into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Process { action: "start the network runtime", source })?;
    let answer =
        runtime.block_on(async { tokio::time::timeout(ANSWER_TIMEOUT, describe(target)).await });
    answer.unwrap_or_else(|_| {
        let reason = format!("it did not answer within {ANSWER_TIMEOUT:?}");
        Err(Error::NotADevice { endpoint: target.endpoint(), reason })
    })
}

async fn describe(target: &Target) -> Result<DeviceInfo, Error> {
    let failed =
        |reason: &str| Error::NotADevice { endpoint: target.endpoint(), reason: reason.to_owned() };
    let token = target.token()?;
    let connected = connect(target).await.map_err(|error| match (error, target) {
        (ConnectError::NotASocket { what }, Target::Socket(path)) => {
            Error::ProbedNoSocket { path: path.clone(), what }
        }
        (error @ (ConnectError::HungUp | ConnectError::OtherProtocol), _) => {
            failed(&error.to_string())
        }
        (
            error @ (ConnectError::Tls(_)
            | ConnectError::Cleartext { .. }
            | ConnectError::NoGreeting),
            _,
        ) => {
            let (endpoint, reason) = (target.endpoint(), error.to_string());
            Error::Refused { endpoint, reason, remedy: error.remedy() }
        }
        (error, _) => Error::NoDevice { endpoint: target.endpoint(), reason: error.to_string() },
    })?;
    let Connected { channel, protocol } = connected;
    let mut client =
        DeviceClient::with_interceptor(channel, token).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let reply = client.describe(DescribeRequest {}).await;
    let reply = reply.map_err(|status| match status.code() {
        Code::Unimplemented => failed("it does not support the request"),
        Code::Unauthenticated => {
            let (endpoint, reason) = (target.endpoint(), status.message().to_owned());
            Error::Refused { endpoint, reason, remedy: refusal::remedy(&status) }
        }
        _ if protocol.is_other() => failed(&ConnectError::OtherProtocol.to_string()),
        // A status with a source was created on this side: the connection failed.
        _ if status.source().is_some() => failed(HUNG_UP),
        _ => failed(status.message()),
    })?;
    Ok(reply.into_inner().into())
}
