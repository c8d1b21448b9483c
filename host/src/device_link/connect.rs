//! The calls that open a link: connect, describe, load, run; each has a time limit.

use crate::{Error, StopHandle};
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::{
    DescribeRequest, DeviceMessage, HostMessage, LoadPart, LoadRequest, MESSAGE_BYTES_MAX,
    PROTOCOL_VERSION, load_part::Part,
};
use meetpoint_link::{ConnectError, DeviceInfo, HUNG_UP, connect};
use std::error::Error as _;
use std::future::Future;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// How long a device may take to answer a call.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(5);

/// How long loading a job may take: the device opens the dataset.
const LOAD_LIMIT: Duration = Duration::from_secs(20);

/// How often the stop switch is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// An open connection to a device, before it has a job.
pub(crate) struct Connection<'a> {
    client: DeviceClient<Channel>,
    socket: &'a Path,
    stop: &'a StopHandle,
}

impl<'a> Connection<'a> {
    /// Connects to the socket.
    pub(crate) async fn open(socket: &'a Path, stop: &'a StopHandle) -> Result<Self, Error> {
        let limits = Limits { socket, stop, step: "connect", limit: CALL_LIMIT };
        let channel = limits.apply(connect(socket)).await?;
        let channel = channel.map_err(|error| match error {
            ConnectError::NotASocket { what } => {
                Error::NotASocket { socket: socket.to_path_buf(), what }
            }
            ConnectError::HungUp => limits.not_a_device(HUNG_UP.to_owned()),
            ConnectError::Missing | ConnectError::Refused | ConnectError::Failed(_) => {
                let problem = error.to_string();
                Error::DeviceUnreachable { socket: socket.to_path_buf(), problem }
            }
        })?;
        let client = DeviceClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        Ok(Self { client, socket, stop })
    }

    /// Asks what it is, and checks that it speaks our version.
    pub(crate) async fn describe(&mut self) -> Result<DeviceInfo, Error> {
        let limits = self.limits("describe", CALL_LIMIT);
        let reply = limits.apply(self.client.describe(DescribeRequest {})).await?;
        let info = DeviceInfo::from(reply.map_err(|status| limits.failed(&status))?.into_inner());
        if info.protocol_version != PROTOCOL_VERSION {
            return Err(Error::DeviceVersion {
                socket: self.socket.to_path_buf(),
                got: info.protocol_version,
                expected: PROTOCOL_VERSION,
                program_version: info.program_version,
            });
        }
        Ok(info)
    }

    /// Gives it a job, and the lists of its sampler; `batches` and `held` are what the host
    /// computes from the same numbers.
    pub(crate) async fn load(
        &mut self,
        request: LoadRequest,
        lists: Vec<Vec<u8>>,
        batches: u32,
        held: u32,
    ) -> Result<(), Error> {
        let limits = self.limits("load", LOAD_LIMIT);
        let parts = std::iter::once(Part::Request(request))
            .chain(lists.into_iter().map(Part::SamplerData))
            .map(|part| LoadPart { part: Some(part) });
        let parts = tokio_stream::iter(parts.collect::<Vec<_>>());
        let reply = limits.apply(self.client.load(parts)).await?;
        let reply = reply.map_err(|status| limits.failed(&status))?.into_inner();
        let found = [reply.batches, reply.batches_held];
        if found != [batches, held].map(u64::from) {
            return Err(Error::DeviceRefused {
                socket: self.socket.to_path_buf(),
                step: "load",
                reason: format!(
                    "it counts {} batches in the dataset and holds {} of them; the host counts \
                     {batches} and {held}",
                    reply.batches, reply.batches_held
                ),
                remedy: Some("run the same version of Meetpoint at both ends".into()),
            });
        }
        Ok(())
    }

    /// Opens the stream of work and results.
    pub(crate) async fn run(
        &mut self,
        outbound: mpsc::Receiver<HostMessage>,
    ) -> Result<Streaming<DeviceMessage>, Error> {
        let limits = self.limits("run", CALL_LIMIT);
        let reply = limits.apply(self.client.run(ReceiverStream::new(outbound))).await?;
        Ok(reply.map_err(|status| limits.failed(&status))?.into_inner())
    }

    fn limits(&self, step: &'static str, limit: Duration) -> Limits<'a> {
        Limits { socket: self.socket, stop: self.stop, step, limit }
    }
}

/// Bounds of one call.
#[derive(Clone, Copy)]
struct Limits<'a> {
    socket: &'a Path,
    stop: &'a StopHandle,
    step: &'static str,
    limit: Duration,
}

impl Limits<'_> {
    /// Waits for `call`, but no longer than the limit or until everything is stopped.
    async fn apply<T>(&self, call: impl Future<Output = T>) -> Result<T, Error> {
        let stopped = async {
            while !self.stop.is_stopped() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let (socket, step, limit) = (self.socket.to_path_buf(), self.step, self.limit);
        tokio::select! {
            done = call => Ok(done),
            () = stopped => Err(Error::Interrupted),
            () = tokio::time::sleep(limit) => Err(match step {
                "connect" | "describe" => {
                    self.not_a_device(format!("it did not respond within {limit:?}"))
                }
                _ => Error::DeviceTimeout { socket, step, limit },
            }),
        }
    }

    fn not_a_device(&self, problem: String) -> Error {
        Error::NotADevice { socket: self.socket.to_path_buf(), problem }
    }

    /// What a failed call means: the device's own refusal, or that nobody serves there.
    fn failed(&self, status: &Status) -> Error {
        let (socket, step) = (self.socket.to_path_buf(), self.step);
        let reason = status.message().to_owned();
        match status.code() {
            Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::AlreadyExists
            | Code::OutOfRange => {
                let remedy = meetpoint_link::refusal::remedy(status);
                Error::DeviceRefused { socket, step, reason, remedy }
            }
            Code::Unimplemented => self.not_a_device("it does not support the request".into()),
            // What has a cause was not said by the other side: the connection failed.
            _ if status.source().is_some() && step == "describe" => {
                self.not_a_device(HUNG_UP.to_owned())
            }
            _ if status.source().is_some() => {
                let problem = format!("the connection ended during `{step}`");
                Error::DeviceUnreachable { socket, problem }
            }
            _ => {
                let problem = format!("`{step}` failed ({reason})");
                Error::DeviceUnreachable { socket, problem }
            }
        }
    }
}
