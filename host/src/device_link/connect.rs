//! The calls that open a link: connect, describe, load, run; each has a time limit.

use crate::{Error, StopHandle};
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::{
    DescribeRequest, DeviceMessage, HostMessage, LoadPart, LoadRequest, MESSAGE_BYTES_MAX,
    PROTOCOL_VERSION, load_part::Part,
};
use meetpoint_link::{
    AddToken, ConnectError, Connected, DeviceInfo, Endpoint, HUNG_UP, PeerProtocol, Target,
    TokenError, connect,
};
use meetpoint_storage::{OpenFilesLimit, open_files_limit};
use std::error::Error as _;
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// How long a device may take to answer a call.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(5);

/// How long loading a job may take: the device opens the dataset.
const LOAD_LIMIT: Duration = Duration::from_secs(20);

/// How often the stop switch is polled while waiting.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The process at the other end.
struct Peer {
    endpoint: Endpoint,
    protocol: PeerProtocol,
}

/// An open connection to a device, before it has a job.
pub(crate) struct Connection<'a> {
    client: DeviceClient<InterceptedService<Channel, AddToken>>,
    peer: Peer,
    stop: &'a StopHandle,
}

impl<'a> Connection<'a> {
    /// Connects to a device.
    pub(crate) async fn open(target: &Target, stop: &'a StopHandle) -> Result<Self, Error> {
        let endpoint = target.endpoint();
        let peer = Peer { endpoint: endpoint.clone(), protocol: PeerProtocol::default() };
        let limits = Limits { peer: &peer, stop, step: "connect", limit: CALL_LIMIT };
        let untrusted = |error: &ConnectError| Error::DeviceUntrusted {
            endpoint: endpoint.clone(),
            problem: error.to_string(),
            remedy: error.remedy(),
        };
        let unreachable = |problem: String, limit: Option<OpenFilesLimit>| {
            Error::DeviceUnreachable { endpoint: endpoint.clone(), problem, limit }
        };
        let token = target.token().map_err(|error: TokenError| untrusted(&error.into()))?;
        let connected = limits.apply(connect(target)).await?;
        let Connected { channel, protocol } =
            connected.map_err(|error| match (&error, &endpoint) {
                (ConnectError::NotASocket { what }, Endpoint::Socket(socket)) => {
                    Error::NotASocket { socket: socket.clone(), what }
                }
                (ConnectError::HungUp, _) => limits.silent(error.to_string()),
                (ConnectError::NoGreeting | ConnectError::OtherProtocol, _) => {
                    limits.not_a_device(error.to_string())
                }
                (
                    ConnectError::Tls(_) | ConnectError::Token(_) | ConnectError::Cleartext { .. },
                    _,
                ) => untrusted(&error),
                (ConnectError::Failed(source), _) => {
                    unreachable(error.to_string(), open_files_limit(source))
                }
                // A name may have no address until its machine or container has started.
                (
                    ConnectError::NotASocket { .. }
                    | ConnectError::Missing
                    | ConnectError::Refused
                    | ConnectError::Name { .. },
                    _,
                ) => unreachable(error.to_string(), None),
            })?;
        let client = DeviceClient::with_interceptor(channel, token)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        Ok(Self { client, peer: Peer { endpoint, protocol }, stop })
    }

    /// Requests its description, and checks that its protocol version equals ours.
    pub(crate) async fn describe(&mut self) -> Result<DeviceInfo, Error> {
        let limits = Limits::of(&self.peer, self.stop, "describe", CALL_LIMIT);
        let reply = limits.apply(self.client.describe(DescribeRequest {})).await?;
        let info = DeviceInfo::from(reply.map_err(|status| limits.failed(&status))?.into_inner());
        if info.protocol_version != PROTOCOL_VERSION {
            return Err(Error::DeviceVersion {
                endpoint: self.peer.endpoint.clone(),
                got: info.protocol_version,
                expected: PROTOCOL_VERSION,
                program_version: info.program_version,
            });
        }
        Ok(info)
    }

    /// Sends it a job, and the lists of its sampler; `batches` and `held` are the host's results,
    /// which the device compares with its own.
    pub(crate) async fn load(
        &mut self,
        request: LoadRequest,
        lists: Vec<Vec<u8>>,
        batches: u32,
        held: u32,
    ) -> Result<(), Error> {
        let limits = Limits::of(&self.peer, self.stop, "load", LOAD_LIMIT);
        let parts = std::iter::once(Part::Request(request))
            .chain(lists.into_iter().map(Part::SamplerData))
            .map(|part| LoadPart { part: Some(part) });
        let parts = tokio_stream::iter(parts.collect::<Vec<_>>());
        let reply = limits.apply(self.client.load(parts)).await?;
        let reply = reply.map_err(|status| limits.failed(&status))?.into_inner();
        let found = [reply.batches, reply.batches_held];
        if found != [batches, held].map(u64::from) {
            return Err(Error::DeviceRefused {
                endpoint: self.peer.endpoint.clone(),
                step: "load",
                reason: format!(
                    "it counts {} batches in the dataset and holds {} of them; the host counts \
                     {batches} and {held}",
                    reply.batches, reply.batches_held
                ),
                is_temporary: false,
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
        let limits = Limits::of(&self.peer, self.stop, "run", CALL_LIMIT);
        let reply = limits.apply(self.client.run(ReceiverStream::new(outbound))).await?;
        Ok(reply.map_err(|status| limits.failed(&status))?.into_inner())
    }
}

/// Limits of one call.
#[derive(Clone, Copy)]
struct Limits<'a> {
    peer: &'a Peer,
    stop: &'a StopHandle,
    step: &'static str,
    limit: Duration,
}

impl<'a> Limits<'a> {
    fn of(peer: &'a Peer, stop: &'a StopHandle, step: &'static str, limit: Duration) -> Self {
        Self { peer, stop, step, limit }
    }

    /// Waits for `call`, until the time limit or until the loader is stopped.
    async fn apply<T>(&self, call: impl Future<Output = T>) -> Result<T, Error> {
        let stopped = async {
            while !self.stop.is_stopped() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let (endpoint, step, limit) = (self.peer.endpoint.clone(), self.step, self.limit);
        tokio::select! {
            done = call => Ok(done),
            () = stopped => Err(Error::Interrupted),
            () = tokio::time::sleep(limit) => Err(match step {
                "connect" | "describe" => {
                    self.silent(format!("it did not respond within {limit:?}"))
                }
                _ => Error::DeviceTimeout { endpoint, step, limit },
            }),
        }
    }

    /// A process that does not respond or closes the connection. This may be temporary, unless the
    /// process has sent something that no device sends.
    fn silent(&self, problem: String) -> Error {
        match self.peer.protocol.is_other() {
            true => self.not_a_device(ConnectError::OtherProtocol.to_string()),
            false => Error::DeviceUnresponsive { endpoint: self.peer.endpoint.clone(), problem },
        }
    }

    fn not_a_device(&self, problem: String) -> Error {
        Error::NotADevice { endpoint: self.peer.endpoint.clone(), problem }
    }

    /// What a failed call means: the device refused it, or no process serves at the address.
    fn failed(&self, status: &Status) -> Error {
        let (endpoint, step) = (self.peer.endpoint.clone(), self.step);
        let reason = status.message().to_owned();
        match status.code() {
            Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::AlreadyExists
            | Code::OutOfRange => {
                let remedy = meetpoint_link::refusal::remedy(status);
                Error::DeviceRefused { endpoint, step, reason, is_temporary: false, remedy }
            }
            Code::Unimplemented => self.not_a_device("it does not support the request".into()),
            // A status with a source was not sent by the device: the connection failed.
            Code::ResourceExhausted | Code::Unavailable if status.source().is_none() => {
                let remedy = meetpoint_link::refusal::remedy(status);
                Error::DeviceRefused { endpoint, step, reason, is_temporary: true, remedy }
            }
            _ if status.source().is_some() && step == "describe" => self.silent(HUNG_UP.to_owned()),
            _ if status.source().is_some() => {
                let problem = format!("the connection ended during `{step}`");
                Error::DeviceUnreachable { endpoint, problem, limit: None }
            }
            _ => {
                let problem = format!("`{step}` failed ({reason})");
                Error::DeviceUnreachable { endpoint, problem, limit: None }
            }
        }
    }
}
