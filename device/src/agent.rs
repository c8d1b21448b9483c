//! The gRPC service: describes the device, loads jobs and runs them.

use crate::job_refusal::Refusal;
use crate::metrics::{JobRefusal, Metrics};
use crate::owner::{AdmissionError, Owner, Peer, PeerName};
use crate::pieces::OutgoingMessage;
use crate::resources::DeviceResources;
use crate::session::{announced_bytes, check_version, load};
use crate::stream::{self, StreamEnvironment};
use meetpoint_format::wire::{
    DescribeReply, DescribeRequest, HostMessage, LoadPart, LoadReply, LoadRequest, SpoolKind,
    device_server::Device, load_part::Part,
};
use meetpoint_link::{DeviceInfo, refusal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// How long a job waits for the previous job's worker to end.
const ENDING_TIMEOUT: Duration = Duration::from_secs(5);

/// Polling interval; notifications end a wait earlier.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Counts for the summary.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) jobs: AtomicU64,
    pub(crate) loads_refused: AtomicU64,
}

/// A job that is not loaded, and the reason under which this is counted.
struct Unloaded {
    reason: JobRefusal,
    status: Status,
}

impl From<Status> for Unloaded {
    fn from(status: Status) -> Self {
        Self { reason: JobRefusal::Other, status }
    }
}

impl From<Refusal> for Unloaded {
    fn from(refusal: Refusal) -> Self {
        Self { reason: refusal.counted_as(), status: refusal.status() }
    }
}

impl From<AdmissionError> for Unloaded {
    fn from(denied: AdmissionError) -> Self {
        let reason = match denied {
            AdmissionError::Taken(_) | AdmissionError::Full { .. } => JobRefusal::Full,
            AdmissionError::Draining => JobRefusal::Draining,
            AdmissionError::NothingLoaded | AdmissionError::Running | AdmissionError::Ending => {
                JobRefusal::Other
            }
        };
        Self { reason, status: status_of(&denied) }
    }
}

/// The service of one process.
pub(crate) struct Agent {
    resources: Arc<DeviceResources>,
    environment: StreamEnvironment,
    describe: DescribeReply,
    counts: Arc<Counts>,
}

impl Agent {
    pub(crate) fn new(
        resources: DeviceResources,
        environment: StreamEnvironment,
        info: &DeviceInfo,
        counts: Arc<Counts>,
    ) -> Self {
        let describe = DescribeReply::from(info.clone());
        Self { resources: Arc::new(resources), environment, describe, counts }
    }

    fn owner(&self) -> &Owner {
        &self.environment.owner
    }

    fn metrics(&self) -> &Metrics {
        &self.environment.metrics
    }

    /// Retries until the previous job's worker has ended, for a bounded time.
    async fn once_ended<T>(
        &self,
        attempt: impl Fn(&Owner) -> Result<T, AdmissionError>,
    ) -> Result<T, AdmissionError> {
        let start = Instant::now();
        loop {
            match attempt(self.owner()) {
                Err(AdmissionError::Ending) if start.elapsed() < ENDING_TIMEOUT => {
                    self.owner().change(POLL_INTERVAL).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn load_for(
        &self,
        peer: &Peer,
        mut parts: Streaming<LoadPart>,
    ) -> Result<LoadReply, Unloaded> {
        let request = first_part(&mut parts).await?;
        check_version(&request)?;
        self.once_ended(|owner| owner.claim(peer)).await?;
        // Releases the device if the host cancels this call.
        let claim = Claim { owner: Arc::clone(&self.environment.owner), peer: peer.clone() };
        let data = sampler_data(&request, parts, &self.resources).await?;
        let token = request.spool_token;
        let is_stream = request.spool_kind() == SpoolKind::Stream;
        let spool = self.owner().spool(peer, token);
        let (resources, handed_over) = (Arc::clone(&self.resources), spool.clone());
        let loading = tokio::task::spawn_blocking(move || {
            load(&request, &data, handed_over.as_ref(), &resources)
        });
        let job = loading.await.map_err(|error| {
            Status::internal(format!("loading failed because of a defect: {error}"))
        })??;
        let spool = match spool {
            Some(spool) => Some((token, spool)),
            None if is_stream => None,
            None => return Err(Refusal::NoSpool { token }.into()),
        };
        let reply = LoadReply {
            samples: job.samples,
            batches: job.batches,
            batches_held: job.batches_held,
        };
        self.owner().loaded(peer, job, spool);
        drop(claim);
        Ok(reply)
    }
}

/// The request, which is the first part of a load.
async fn first_part(parts: &mut Streaming<LoadPart>) -> Result<LoadRequest, Status> {
    match parts.message().await?.and_then(|part| part.part) {
        Some(Part::Request(request)) => Ok(request),
        Some(Part::SamplerData(_)) | None => {
            Err(Status::invalid_argument("a load begins with its request"))
        }
    }
}

/// The lists of the sampler, which are all other parts: as many bytes as the request announces.
async fn sampler_data(
    request: &LoadRequest,
    mut parts: Streaming<LoadPart>,
    resources: &DeviceResources,
) -> Result<Vec<u8>, Unloaded> {
    let announced = announced_bytes(request, resources)?;
    let mut data = Vec::new();
    while let Some(part) = parts.message().await? {
        match part.part {
            Some(Part::SamplerData(piece)) if data.len() + piece.len() <= announced => {
                data.extend_from_slice(&piece);
            }
            Some(Part::SamplerData(_)) => {
                let said = "the lists of the sampler are longer than the request announces";
                return Err(Status::invalid_argument(said).into());
            }
            Some(Part::Request(_)) | None => {
                return Err(Status::invalid_argument("a load has one request").into());
            }
        }
    }
    Ok(data)
}

/// Held while a job is loaded; releases the device unless loading succeeds.
struct Claim {
    owner: Arc<Owner>,
    peer: Peer,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.owner.release_unless_loaded(&self.peer);
    }
}

#[tonic::async_trait]
impl Device for Agent {
    type RunStream = ReceiverStream<OutgoingMessage>;

    async fn describe(
        &self,
        _: Request<DescribeRequest>,
    ) -> Result<Response<DescribeReply>, Status> {
        let (mut hosts, mut remote_hosts) = (Vec::new(), Vec::new());
        for name in self.owner().hosts() {
            match name {
                PeerName::Process(id) => hosts.push(id),
                PeerName::Remote(name) => remote_hosts.push(name),
            }
        }
        let works_for = hosts.first().copied();
        let reply = DescribeReply { works_for, hosts, remote_hosts, ..self.describe.clone() };
        Ok(Response::new(reply))
    }

    async fn load(
        &self,
        request: Request<Streaming<LoadPart>>,
    ) -> Result<Response<LoadReply>, Status> {
        let peer = peer_of(&request)?;
        match self.load_for(&peer, request.into_inner()).await {
            Ok(reply) => {
                self.counts.jobs.fetch_add(1, Ordering::Relaxed);
                self.metrics().client(&peer.client).jobs.inc();
                Ok(Response::new(reply))
            }
            Err(Unloaded { reason, status }) => {
                self.counts.loads_refused.fetch_add(1, Ordering::Relaxed);
                self.metrics().job_refused(reason);
                let said = self.resources.shown_paths.rename(status.message());
                Err(Status::with_details(status.code(), said, status.details().to_vec().into()))
            }
        }
    }

    async fn run(
        &self,
        request: Request<Streaming<HostMessage>>,
    ) -> Result<Response<Self::RunStream>, Status> {
        let peer = peer_of(&request)?;
        let job = self.once_ended(|owner| owner.begin_run(&peer)).await;
        let job = job.map_err(|denied| status_of(&denied))?;
        let to_host = stream::start(&self.environment, &peer, job, request.into_inner())?;
        Ok(Response::new(ReceiverStream::new(to_host)))
    }
}

fn peer_of<T>(request: &Request<T>) -> Result<Peer, Status> {
    let peer = request.extensions().get::<Peer>().cloned();
    peer.ok_or_else(|| Status::internal("the connection does not identify its peer"))
}

fn status_of(denied: &AdmissionError) -> Status {
    let code = match denied {
        AdmissionError::Taken(_) | AdmissionError::Full { .. } | AdmissionError::Ending => {
            tonic::Code::ResourceExhausted
        }
        AdmissionError::NothingLoaded | AdmissionError::Running => tonic::Code::FailedPrecondition,
        AdmissionError::Draining => tonic::Code::Unavailable,
    };
    refusal::status(code, denied.to_string(), denied.remedy().as_ref())
}
