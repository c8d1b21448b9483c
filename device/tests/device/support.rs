//! A small dataset, a device that serves it, and a host whose messages the tests write.

use hyper_util::rt::TokioIo;
use meetpoint_device::{Error, Ready, ServeOptions, ServeSummary, Shutdown, serve};
use meetpoint_format::column::BatchColumns;
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::{Sampling, Sequential, Shuffled};
use meetpoint_format::slot::{SlotExpectation, SlotHeader, slot_bytes};
use meetpoint_format::wire;
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::{
    DeviceMessage, Failed, FdOffer, HostMessage, LoadPart, LoadReply, LoadRequest, Meters,
    PROTOCOL_VERSION, Progress, Published, SlotData, SpoolKind, StartEpoch, Work, device_message,
    host_message,
};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

/// Limit of all waits in a test, which only a defect exceeds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Decode, a random crop to 48 by 48, a random flip.
pub(crate) const RECIPE: &str = r#"
[[operation]]
name = "decode"

[[operation]]
name = "random_resized_crop"
size = 48

[[operation]]
name = "random_horizontal_flip"
p = 0.5
"#;

/// Bytes of a sample: the image that [`RECIPE`] makes, a multiple of 64, and a label.
pub(crate) const SAMPLE_BYTES: u64 = 48 * 48 * 3 + 8;

/// A picture with structure and noise.
pub(crate) fn jpeg(index: u32, side: u16) -> Vec<u8> {
    let mut state = index.wrapping_mul(2_654_435_761) | 1;
    let pixels: Vec<u8> = (0..u32::from(side) * u32::from(side) * 3)
        .map(|at| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            ((at / 7 + index) as u8) / 2 + (state >> 26) as u8
        })
        .collect();
    let mut bytes = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut bytes, 90);
    encoder.encode(&pixels, side, side, jpeg_encoder::ColorType::Rgb).unwrap();
    bytes
}

/// Writes a dataset of one part.
pub(crate) fn write_dataset(folder: &Path, images: Vec<Vec<u8>>) {
    write_parts(folder, vec![images]);
}

/// Writes a dataset of several parts.
pub(crate) fn write_parts(folder: &Path, parts: Vec<Vec<Vec<u8>>>) {
    std::fs::create_dir_all(folder).unwrap();
    let image_bytes: Vec<u64> = parts.iter().flatten().map(|image| image.len() as u64).collect();
    let parts: Vec<PartEntry> = parts
        .into_iter()
        .enumerate()
        .map(|(part, images)| write_part(folder, part, images))
        .collect();
    let manifest = Manifest {
        samples: parts.iter().map(|part| part.samples).sum(),
        image_bytes: image_bytes.iter().sum(),
        image_bytes_max: image_bytes.iter().max().copied().unwrap_or(0),
        labels: Vec::new(),
        parts,
        stored: Some(Stored::default()),
        ..Manifest::new(
            &Columns::images(),
            Provenance {
                tool: "test".to_owned(),
                source: "made up".to_owned(),
                skipped: 0,
                options: BTreeMap::new(),
                ..Provenance::default()
            },
        )
    };
    std::fs::write(folder.join(MANIFEST_NAME), manifest.to_json()).unwrap();
}

fn write_part(folder: &Path, part: usize, images: Vec<Vec<u8>>) -> PartEntry {
    let mut encoder = PartEncoder::new(Vec::new(), Arc::new(Columns::images())).unwrap();
    for (index, image) in images.into_iter().enumerate() {
        let key = if part == 0 { format!("{index}.jpg") } else { format!("{part}-{index}.jpg") };
        encoder.push(Row { key, image, label: None, entry_points: None, extra: None }).unwrap();
    }
    let made = encoder.finish().unwrap();
    let sha256 = Sha256::digest(&made.sink).iter().map(|byte| format!("{byte:02x}")).collect();
    let file = part_name(part);
    std::fs::write(folder.join(&file), &made.sink).unwrap();
    let (samples, bytes, tail_crc32c) = (made.samples, made.bytes, made.tail_crc32c);
    PartEntry { file, samples, bytes, tail_crc32c, sha256 }
}

/// A device on a thread of this process, and the folder that its socket and dataset are in.
pub(crate) struct Device {
    pub(crate) ready: Ready,
    pub(crate) folder: TempDir,
    stop: Arc<Shutdown>,
    thread: Option<JoinHandle<Result<ServeSummary, Error>>>,
}

impl Device {
    /// Twenty samples, served by a device with these options.
    pub(crate) fn start(change: impl FnOnce(&mut ServeOptions)) -> Self {
        Self::start_with((0..20).map(|index| jpeg(index, 64)).collect(), change)
    }

    pub(crate) fn start_with(images: Vec<Vec<u8>>, change: impl FnOnce(&mut ServeOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_dataset(&folder.path().join("root/set"), images);
        let roots = vec![folder.path().join("root")];
        let mut options = ServeOptions::new(folder.path().join("socket"), roots);
        // The tests also run on machines with one core.
        options.emulation.allow_shared = true;
        change(&mut options);
        let stop = Arc::new(Shutdown::default());
        let (sender, receiver) = std::sync::mpsc::channel();
        let stop_it = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            serve(options, |ready| sender.send(ready.clone()).unwrap(), stop_it)
        });
        match receiver.recv_timeout(PATIENCE) {
            Ok(ready) => Self { ready, folder, stop, thread: Some(thread) },
            Err(_) => panic!("the device did not start: {:?}", thread.join()),
        }
    }

    pub(crate) fn dataset(&self) -> PathBuf {
        self.folder.path().join("root/set")
    }

    pub(crate) fn socket(&self) -> &Path {
        self.ready.endpoint.socket().expect("it listens on a Unix socket")
    }

    /// Asks it to end at once, and waits until it has ended.
    pub(crate) fn stop(mut self) -> ServeSummary {
        self.stop.end();
        self.join()
    }

    /// Asks it to end, as SIGTERM does.
    pub(crate) fn ask_to_end(&self) {
        self.stop.ask();
    }

    /// Waits until the device ends by itself.
    pub(crate) fn end(mut self) -> ServeSummary {
        self.join()
    }

    fn join(&mut self) -> ServeSummary {
        let thread = self.thread.take().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(thread.join()));
        receiver.recv_timeout(PATIENCE).expect("the device ends").unwrap().unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop.end();
    }
}

/// A spool of a host.
pub(crate) struct Spool {
    pub(crate) file: File,
    pub(crate) kind: SpoolKind,
    pub(crate) slots: u32,
    pub(crate) slot_bytes: u64,
    pub(crate) token: u64,
}

impl Spool {
    pub(crate) fn new(kind: SpoolKind, slots: u32, payload: u64) -> Self {
        static TOKENS: AtomicU64 = AtomicU64::new(1);
        let slot_bytes = slot_bytes(payload);
        let bytes = u64::from(slots) * slot_bytes;
        let token = TOKENS.fetch_add(1, Ordering::Relaxed);
        let file = if kind == SpoolKind::Memory {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            File::from(memfd_create(format!("spool-of-test-{token}"), flags).unwrap())
        } else {
            tempfile::tempfile().unwrap()
        };
        ftruncate(&file, bytes).unwrap();
        if kind == SpoolKind::Memory {
            fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        }
        Self { file, kind, slots, slot_bytes, token }
    }

    /// Passes it to the device as a host does; panics unless the device confirms it.
    pub(crate) fn offer(&self, socket: &Path) {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let offer = FdOffer { token: self.token }.encode();
        send_with_fds(&stream, &offer, &[self.file.as_fd()]);
        let mut answer = [0; 16];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, offer);
    }

    /// Header and payload of a slot.
    pub(crate) fn read(&self, slot: u32) -> (Vec<u8>, Vec<u8>) {
        let mut bytes = vec![0; usize::try_from(self.slot_bytes).unwrap()];
        self.file.read_exact_at(&mut bytes, u64::from(slot) * self.slot_bytes).unwrap();
        let payload = bytes.split_off(4096);
        (bytes, payload)
    }
}

pub(crate) fn send_with_fds(
    stream: &UnixStream,
    bytes: &[u8],
    fds: &[std::os::fd::BorrowedFd<'_>],
) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    }
    let sent = sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    assert_eq!(sent, bytes.len());
}

/// Runs a test's exchange of messages with a device, for at most [`PATIENCE`].
pub(crate) fn talk<T>(conversation: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, conversation).await.expect("the conversation ends")
    })
}

/// A host's connection.
pub(crate) struct Host<I = NoToken> {
    pub(crate) client: DeviceClient<InterceptedService<Channel, I>>,
}

/// Adds nothing to a call.
pub(crate) type NoToken = fn(Request<()>) -> Result<Request<()>, Status>;

impl Host {
    pub(crate) async fn connect(socket: &Path) -> Self {
        let mut stream = Some(tokio::net::UnixStream::connect(socket).await.unwrap());
        let connector = tower::service_fn(move |_| {
            let stream = stream.take().map(TokioIo::new);
            async move { stream.ok_or_else(|| std::io::Error::other("connected once already")) }
        });
        let endpoint = Endpoint::from_static("http://device.invalid");
        let channel = endpoint.connect_with_connector(connector).await.unwrap();
        Self { client: DeviceClient::with_interceptor(channel, Ok as NoToken) }
    }
}

impl<I: Interceptor> Host<I> {
    /// Offers a spool and loads a job for it.
    pub(crate) async fn load(
        &mut self,
        device: &Device,
        spool: &Spool,
        change: impl FnOnce(&mut LoadRequest),
    ) -> Result<LoadReply, Status> {
        spool.offer(device.socket());
        let mut request = load_request(device, spool);
        change(&mut request);
        self.client
            .load(tokio_stream::once(LoadPart::from(request)))
            .await
            .map(tonic::Response::into_inner)
    }

    pub(crate) async fn run(&mut self) -> Result<Link, Status> {
        let (say, messages) = mpsc::channel(64);
        let receiver = self.client.run(ReceiverStream::new(messages)).await?.into_inner();
        Ok(Link { say, receiver, progress: Vec::new(), meters: None, data: Vec::new() })
    }
}

/// The samples of the device's dataset, in order; there are 20 by default.
pub(crate) fn sequential() -> Option<wire::Sampler> {
    Some(wire::Sampler::of(&Sequential.into(), Sampling::sequential(20).checksum()))
}

/// A valid request for batches of five.
pub(crate) fn load_request(device: &Device, spool: &Spool) -> LoadRequest {
    let manifest = std::fs::read(device.dataset().join(MANIFEST_NAME)).unwrap();
    let samples = Manifest::from_json(&manifest).unwrap().samples;
    let checksum = Sampling::shuffled(samples).checksum();
    LoadRequest {
        collate: None,
        protocol_version: PROTOCOL_VERSION,
        rank: 0,
        ranks: 1,
        device: 0,
        devices: 1,
        part_holders: Vec::new(),
        datasets: vec![device.dataset().into_os_string().into_encoded_bytes()],
        manifest_sha256: Sha256::digest(&manifest).to_vec(),
        recipe_toml: RECIPE.to_owned(),
        recipe_hash: Recipe::from_toml(RECIPE).unwrap().hash().0.to_vec(),
        seed: 7,
        batch_size: 5,
        drop_last: false,
        spool_token: spool.token,
        spool_slots: spool.slots,
        spool_slot_bytes: spool.slot_bytes,
        spool_kind: spool.kind.into(),
        columns: ["image", "label"].map(str::to_owned).to_vec(),
        sampler: Some(wire::Sampler::of(&Shuffled.into(), checksum)),
        named: Vec::new(),
        decode_bytes: 0,
    }
}

/// An event that a test waits for.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    Published(Published),
    Failed(Failed),
    Draining,
    Ended(Option<Status>),
}

/// A Run stream.
pub(crate) struct Link {
    pub(crate) say: mpsc::Sender<HostMessage>,
    pub(crate) receiver: Streaming<DeviceMessage>,
    /// Everything it has reported so far.
    pub(crate) progress: Vec<Progress>,
    /// The last.
    pub(crate) meters: Option<Meters>,
    /// The received pieces of slots, in order of arrival.
    pub(crate) data: Vec<SlotData>,
}

impl Link {
    pub(crate) async fn say(&self, message: host_message::Message) {
        self.say.send(HostMessage { message: Some(message) }).await.unwrap();
    }

    /// Starts an epoch and gives it work.
    pub(crate) async fn grant(&self, epoch: u32, generation: u32, first: u32, count: u32) {
        let start = StartEpoch { epoch, generation };
        self.say(host_message::Message::StartEpoch(start)).await;
        let work = Work { epoch, generation, first, count, descending: true };
        self.say(host_message::Message::Work(work)).await;
    }

    /// The next message except progress and meters, which are recorded.
    pub(crate) async fn next(&mut self) -> StreamEvent {
        use device_message::Message;
        loop {
            match self.receiver.message().await {
                Ok(Some(message)) => match message.message.unwrap() {
                    Message::Published(published) => return StreamEvent::Published(published),
                    Message::Failed(failed) => return StreamEvent::Failed(failed),
                    Message::Progress(progress) => self.progress.push(progress),
                    Message::Meters(meters) => self.meters = Some(meters),
                    Message::SlotData(data) => self.data.push(data),
                    Message::Draining(_) => return StreamEvent::Draining,
                },
                Ok(None) => return StreamEvent::Ended(None),
                Err(status) => return StreamEvent::Ended(Some(status)),
            }
        }
    }

    pub(crate) async fn published(&mut self) -> Published {
        match self.next().await {
            StreamEvent::Published(published) => published,
            other => panic!("{other:?} instead of a published batch"),
        }
    }

    /// Waits for meters that count a given number of batches.
    pub(crate) async fn meters_at(&mut self, batches: u64) -> Meters {
        while self.meters.is_none_or(|meters| meters.batches < batches) {
            match self.receiver.message().await.unwrap().unwrap().message.unwrap() {
                device_message::Message::Meters(meters) => self.meters = Some(meters),
                device_message::Message::Progress(progress) => self.progress.push(progress),
                other => panic!("{other:?} instead of meters"),
            }
        }
        self.meters.unwrap()
    }
}

/// The columns of the request that [`load_request`] makes.
pub(crate) fn columns() -> BatchColumns {
    BatchColumns::image_and_label(&Recipe::from_toml(RECIPE).unwrap().output().unwrap())
}

/// What a host expects of a batch with some columns.
pub(crate) fn expectation<'c>(
    spool: &Spool,
    published: &Published,
    samples: u32,
    columns: &'c BatchColumns,
) -> SlotExpectation<'c> {
    SlotExpectation {
        epoch: published.epoch,
        batch: published.batch,
        generation: published.generation,
        samples,
        seed: 7,
        recipe: Recipe::from_toml(RECIPE).unwrap().hash(),
        columns,
        payload_bytes_max: spool.slot_bytes - 4096,
    }
}

/// Reads a published slot, checks it as a host does, and returns its payload.
pub(crate) fn take(spool: &Spool, published: &Published, samples: u32) -> Vec<u8> {
    take_columns(spool, published, samples, &columns())
}

/// The same of a batch with other columns.
pub(crate) fn take_columns(
    spool: &Spool,
    published: &Published,
    samples: u32,
    columns: &BatchColumns,
) -> Vec<u8> {
    let (header, mut payload) = spool.read(published.slot);
    let header = SlotHeader::decode(&header).unwrap();
    let layout = header.check(&expectation(spool, published, samples, columns)).unwrap();
    header.check_payload(columns, &layout, &payload).unwrap();
    payload.truncate(usize::try_from(header.payload_bytes).unwrap());
    payload
}

/// A host with a spool and a Run stream. It ends with the first of them.
pub(crate) struct Session {
    pub(crate) spool: Spool,
    pub(crate) link: Link,
    pub(crate) host: Host,
}

/// A session with a spool of this many slots, each for a batch of 5 samples.
pub(crate) async fn session(
    device: &Device,
    slots: u32,
    change: impl FnOnce(&mut LoadRequest),
) -> Session {
    let spool = Spool::new(SpoolKind::Memory, slots, 5 * SAMPLE_BYTES);
    let mut host = Host::connect(device.socket()).await;
    host.load(device, &spool, change).await.unwrap();
    let link = host.run().await.unwrap();
    Session { spool, link, host }
}
