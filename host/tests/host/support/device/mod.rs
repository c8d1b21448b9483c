//! A device in this process, for testing the host's end of the link: it speaks the real protocol
//! over a real socket, prepares real batches, and misbehaves on demand.

mod worker;

use meetpoint_format::batching::{BatchOptions, Batching, Rank};
use meetpoint_format::column::{Collate, ColumnNames};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_format::slot::SlotHeader;
use meetpoint_format::wire::device_server::{Device, DeviceServer};
use meetpoint_format::wire::load_part::Part;
use meetpoint_format::wire::{
    DescribeReply, DescribeRequest, DeviceMessage, FdOffer, HostMessage, LoadPart, LoadReply,
    LoadRequest, Meters, NETWORK_GREETING, PROTOCOL_VERSION, SlotData,
};
use meetpoint_host::{DeviceSource, RemoteDevice, TcpAddress};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::{CpuPreparer, Dataset, Job, OnError};
use meetpoint_storage::{EngineKind, open_engine};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};
use worker::Worker;

/// The fault of the n-th batch since the device started, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// One payload bit is flipped after the checksum.
    Corrupt,
    /// The header is cut in its middle.
    Torn,
    /// The batch is reported as failed.
    Failed,
    /// The device is silent until the work is revoked.
    Silent,
    /// The device is permanently silent, whatever the host sends.
    Hang,
    /// The link is dropped.
    Drop,
    /// A slot that the host still uses is published.
    Steal,
    /// The batch is published with the previous generation.
    OldGeneration,
    /// The batch is published with another epoch.
    OtherEpoch,
    /// Over a network: the pieces of the slot are changed before they are sent.
    Sends(fn(&mut Vec<SlotData>)),
    /// Header and payload are changed before checksums are computed, so that these are correct.
    Lies(fn(&mut SlotHeader, &mut [u8])),
}

/// How a device differs from a correct one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Behaviour {
    pub(crate) faults: Vec<(u32, Fault)>,
    /// Refuses jobs with this status, until [`FakeDevice::accept`].
    pub(crate) refuses: Option<(Code, &'static str)>,
    pub(crate) speaks_version: Option<u32>,
    /// Additional time for each batch.
    pub(crate) pause: Duration,
    /// The time of its clock whenever it is read; by default that of the host.
    pub(crate) clock_ns: Option<u64>,
    /// The device's copy of the dataset, if it listens on a loopback port and sends batches.
    pub(crate) network: Option<PathBuf>,
}

/// A running device. Dropping it closes its socket and every link.
pub(crate) struct FakeDevice {
    /// Batches begun since it started.
    batches: Arc<Mutex<u32>>,
    /// Whether it accepts jobs, even if it refused some before.
    accepts: Arc<AtomicBool>,
    folder: tempfile::TempDir,
    address: Option<TcpAddress>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeDevice {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("device.sock");
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (listening, is_listening) = channel();
        let (batches, accepts) = (Arc::default(), Arc::default());
        let state = (Arc::clone(&batches), Arc::clone(&accepts));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(serve(socket, behaviour, state, listening, stopped));
        });
        let port = is_listening.recv().unwrap();
        let address = port.map(|port| TcpAddress { host: "127.0.0.1".to_owned(), port });
        Self { batches, accepts, folder, address, stop: Some(stop), thread: Some(thread) }
    }

    /// Accepts the jobs that it refused so far.
    pub(crate) fn accept(&self) {
        self.accepts.store(true, Ordering::SeqCst);
    }

    /// Waits until it has begun a given number of batches since it started.
    pub(crate) fn await_batches(&self, count: u32) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while *self.batches.lock().unwrap() < count {
            assert!(Instant::now() < deadline, "the device never began batch {count}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// How a loader reaches it.
    pub(crate) fn source(&self) -> DeviceSource {
        match self.address.clone() {
            Some(address) => DeviceSource::Remote(Box::new(RemoteDevice::new(address))),
            None => DeviceSource::Connect { socket: self.socket() },
        }
    }

    /// The port on which it listens, if it is on a network.
    pub(crate) fn port(&self) -> u16 {
        self.address.as_ref().unwrap().port
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("device.sock")
    }
}

impl Drop for FakeDevice {
    fn drop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn serve(
    socket: PathBuf,
    behaviour: Behaviour,
    (batches, accepts): (Arc<Mutex<u32>>, Arc<AtomicBool>),
    listening: Sender<Option<u16>>,
    stopped: tokio::sync::oneshot::Receiver<()>,
) {
    let spools = Spools::default();
    let is_network = behaviour.network.is_some();
    let (offered, loaded) = (Arc::clone(&spools), Mutex::new(None));
    let agent = Agent { behaviour, spools: offered, loaded, batches, accepts };
    if is_network {
        return serve_network(agent, listening, stopped).await;
    }
    let listener = UnixListener::bind(socket).unwrap();
    listening.send(None).unwrap();
    let (links, incoming) = tokio::sync::mpsc::unbounded_channel();
    let serving = tonic::transport::Server::builder()
        .add_service(DeviceServer::new(agent))
        .serve_with_incoming(UnboundedReceiverStream::new(incoming).map(Ok::<_, std::io::Error>));
    let accepting = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if first_byte(&stream).await == Some(b'm') {
                // The host may close the link at any time.
                let _ = take_spool(stream.into_std().unwrap(), &spools);
            } else {
                links.send(stream).unwrap();
            }
        }
    };
    tokio::select! {
        served = serving => served.unwrap(),
        () = accepting => {}
        _ = stopped => {}
    }
}

/// The same over a network: hosts send a greeting and no descriptors.
async fn serve_network(
    agent: Agent,
    listening: Sender<Option<u16>>,
    stopped: tokio::sync::oneshot::Receiver<()>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listening.send(Some(listener.local_addr().unwrap().port())).unwrap();
    let (links, incoming) = tokio::sync::mpsc::unbounded_channel();
    let service = DeviceServer::new(agent);
    let serving = tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming(UnboundedReceiverStream::new(incoming).map(Ok::<_, std::io::Error>));
    let accepting = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The host may close the link at any time.
            if exchange_greetings(&mut stream).await.is_ok() {
                links.send(stream).unwrap();
            }
        }
    };
    tokio::select! {
        served = serving => served.unwrap(),
        () = accepting => {}
        _ = stopped => {}
    }
}

/// Fails if the host hangs up.
async fn exchange_greetings(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut greeting = [0; NETWORK_GREETING.len()];
    stream.read_exact(&mut greeting).await?;
    assert_eq!(greeting, NETWORK_GREETING);
    stream.write_all(&greeting).await
}

/// Peeks, so that the byte remains for the server of the connection.
async fn first_byte(stream: &UnixStream) -> Option<u8> {
    loop {
        stream.readable().await.unwrap();
        let mut first = [0];
        let peek = || Ok(rustix::net::recv(stream, &mut first[..], RecvFlags::PEEK)?);
        match stream.try_io(Interest::READABLE, peek) {
            Ok((bytes, _)) => return (bytes == 1).then_some(first[0]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

type Spools = Arc<Mutex<Vec<(u64, File)>>>;

/// Fails if the host hangs up.
fn take_spool(mut stream: std::os::unix::net::UnixStream, spools: &Spools) -> std::io::Result<()> {
    stream.set_nonblocking(false).unwrap();
    let mut bytes = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut bytes)];
    recvmsg(&stream, parts, &mut attached, RecvFlags::CMSG_CLOEXEC).unwrap();
    let token = FdOffer::decode(&bytes).unwrap().token;
    for message in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            let files = descriptors.map(|descriptor| (token, File::from(descriptor)));
            spools.lock().unwrap().extend(files);
        }
    }
    stream.write_all(&bytes)
}

struct Agent {
    behaviour: Behaviour,
    spools: Spools,
    loaded: Mutex<Option<(LoadRequest, Job)>>,
    /// Batches begun since the device started.
    batches: Arc<Mutex<u32>>,
    /// As in [`FakeDevice`].
    accepts: Arc<AtomicBool>,
}

type Answers = tokio::sync::mpsc::UnboundedSender<Result<DeviceMessage, Status>>;

#[tonic::async_trait]
impl Device for Agent {
    async fn describe(
        &self,
        _request: Request<DescribeRequest>,
    ) -> Result<Response<DescribeReply>, Status> {
        Ok(Response::new(DescribeReply {
            protocol_version: self.behaviour.speaks_version.unwrap_or(PROTOCOL_VERSION),
            program_version: "fake".to_owned(),
            process_id: std::process::id(),
            storage_engine: "threads".to_owned(),
            ..DescribeReply::default()
        }))
    }

    async fn load(
        &self,
        request: Request<Streaming<LoadPart>>,
    ) -> Result<Response<LoadReply>, Status> {
        let refuses = self.behaviour.refuses.filter(|_| !self.accepts.load(Ordering::SeqCst));
        if let Some((code, reason)) = refuses {
            return Err(Status::new(code, reason));
        }
        let mut parts = request.into_inner();
        let Some(Part::Request(request)) = parts.message().await?.and_then(|it| it.part) else {
            panic!("a load begins with its request")
        };
        let mut lists = Vec::new();
        while let Some(part) = parts.message().await? {
            let Some(Part::SamplerData(piece)) = part.part else { panic!("a second request") };
            lists.extend(piece);
        }
        let paths: Vec<&Path> =
            request.datasets.iter().map(|path| Path::new(OsStr::from_bytes(path))).collect();
        let paths = match &self.behaviour.network {
            Some(own) => {
                assert!(paths.is_empty(), "no path goes over a network");
                vec![own.as_path()]
            }
            None => paths,
        };
        let dataset = Arc::new(Dataset::open_all(&paths).unwrap());
        let named = request.named.iter().map(|named| named.manifest_sha256.clone());
        let own: Vec<_> = dataset.manifests_sha256().map(|sha256| sha256.to_vec()).collect();
        assert!(self.behaviour.network.is_none() || named.eq(own));
        assert_eq!(dataset.manifest_sha256().to_vec(), request.manifest_sha256);
        let recipe = Arc::new(Recipe::from_toml(&request.recipe_toml).unwrap());
        assert_eq!(recipe.hash().0.to_vec(), request.recipe_hash);
        let LoadRequest { batch_size, drop_last, seed, .. } = request;
        let options = BatchOptions { batch_size, drop_last, seed };
        let message = request.sampler.as_ref().unwrap();
        let sampler = message.read(&lists).unwrap();
        let sampling = Arc::new(Sampling::of(&sampler, &*dataset).unwrap());
        assert_eq!(sampling.checksum().to_vec(), message.checksum);
        let rank = Rank { rank: request.rank, ranks: request.ranks };
        let holders = dataset.spread(request.devices, &request.part_holders).unwrap();
        let batching = Batching::new(options, sampling, rank, holders).unwrap();
        let (samples, batches) = (dataset.len(), batching.batches());
        let batches_held = batching.count(u16::try_from(request.device).unwrap());
        let on_error = OnError::default();
        let collate = request.collate.as_ref().map(|it| Collate::try_from(it).unwrap());
        let columns = ColumnNames::from(request.columns.clone());
        let columns = columns.collated(collate.unwrap_or_default());
        let job = Job { dataset, recipe, batching, on_error, columns };
        *self.loaded.lock().unwrap() = Some((request, job));
        Ok(Response::new(LoadReply { samples, batches, batches_held }))
    }

    type RunStream = UnboundedReceiverStream<Result<DeviceMessage, Status>>;

    async fn run(
        &self,
        request: Request<Streaming<HostMessage>>,
    ) -> Result<Response<Self::RunStream>, Status> {
        let (request_loaded, job) = self.loaded.lock().unwrap().take().unwrap();
        let spool = self.behaviour.network.is_none().then(|| {
            let token = request_loaded.spool_token;
            let mut spools = self.spools.lock().unwrap();
            let place = spools.iter().position(|(offered, _)| *offered == token).unwrap();
            let spool = spools.remove(place).1;
            let bytes = u64::from(request_loaded.spool_slots) * request_loaded.spool_slot_bytes;
            assert_eq!(spool.metadata().unwrap().len(), bytes);
            spool
        });
        let (answers, answer_stream) = tokio::sync::mpsc::unbounded_channel();
        let (sender, messages) = channel();
        let mut inbound = request.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(message)) = inbound.message().await {
                if sender.send(message.message.unwrap()).is_err() {
                    return;
                }
            }
        });
        let engine = open_engine(EngineKind::Threads, 4).unwrap().engine;
        let worker = Worker {
            preparer: CpuPreparer::new(job.clone(), engine, Cpu::Portable).unwrap(),
            job,
            spool,
            slot_bytes: request_loaded.spool_slot_bytes,
            is_free: vec![true; request_loaded.spool_slots as usize],
            last_slot: 0,
            queue: VecDeque::new(),
            epoch: 0,
            generation: 0,
            is_silent: false,
            answers,
            messages,
            behaviour: self.behaviour.clone(),
            device: request_loaded.device,
            devices: request_loaded.devices,
            batches: Arc::clone(&self.batches),
            meters: Meters::default(),
        };
        std::thread::spawn(move || worker.run());
        Ok(Response::new(UnboundedReceiverStream::new(answer_stream)))
    }
}
