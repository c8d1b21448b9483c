//! A device that listens on a network: which hosts it admits, which requests it accepts, and what
//! it sends.

use crate::support::{
    Device, Host, Link, SAMPLE_BYTES, Spool, StreamEvent, jpeg, load_request, take, talk,
    write_dataset,
};
use meetpoint_device::{Error, Listen, Root, ServeOptions, probe};
use meetpoint_diagnose::{Change, Diagnose, Setting, Step};
use meetpoint_format::wire::device_client::DeviceClient;
use meetpoint_format::wire::host_message::Message;
use meetpoint_format::wire::{
    LoadPart, LoadReply, LoadRequest, NETWORK_GREETING, NamedDataset, Release, SLOT_DATA_BYTES_MAX,
    SpoolKind,
};
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::tls::keys::{Authority, Subject, Validity};
use meetpoint_link::{Endpoint, RemoteDevice, Target, TcpAddress, connect};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tonic::{Code, Status};

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

fn past() -> Validity {
    let day = Duration::from_secs(86_400);
    Validity { begin: SystemTime::now() - 3 * day, end: SystemTime::now() - 2 * day }
}

fn future() -> Validity {
    let day = Duration::from_secs(86_400);
    Validity { begin: SystemTime::now() + 2 * day, end: SystemTime::now() + 3 * day }
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

/// The message and remedy of a failed connection, and of a failed probe.
fn refused(device: RemoteDevice<TcpAddress>) -> String {
    let target = Target::Remote(Box::new(device));
    let error = talk(async { connect(&target).await.unwrap_err() });
    let remedy = error
        .remedy()
        .expect("there is something to do")
        .spelled(meetpoint_diagnose::Surface::CommandLine);
    let said = format!("{error}; {remedy}");
    assert!(!said.contains('\n'), "one line: {said}");
    let probed = probe(target).unwrap_err();
    assert!(matches!(probed, Error::Refused { .. } | Error::NoDevice { .. }), "{probed}");
    said
}

#[test]
fn ends_of_one_authority_trust_each_other_and_no_others() {
    let keys = Keys::make();
    let device = keys.serve("server");
    let connects = |files| {
        let target = Target::Remote(Box::new(with_tls(&device, files)));
        talk(async { connect(&target).await.map(|_| ()) })
    };
    connects(keys.files("client")).unwrap();
    assert_eq!(
        probe(Target::Remote(Box::new(with_tls(&device, keys.files("client"))))).unwrap().roots,
        [Path::new("photos")]
    );
    let strangers = Keys::make();
    // The host does not trust the device, and the device not the host.
    let said = refused(with_tls(&device, strangers.files("client")));
    assert!(said.contains("its certificate is not signed by a CA that is trusted here"), "{said}");
    let mixed = TlsFiles { ca: keys.files("client").ca, ..strangers.files("client") };
    let said = refused(with_tls(&device, TlsFiles { crl: None, ..mixed }));
    assert!(said.contains("it did not accept the certificate"), "{said}");
    // A certificate for the other end of a connection.
    let said = refused(with_tls(&device, keys.files("server")));
    assert!(said.contains("it did not accept the certificate"), "{said}");
    // Without certificates, the remedy names them.
    let said = refused(remote(&device));
    assert!(said.contains("--device-keys"), "{said}");
    let probed = probe(Target::Remote(Box::new(remote(&device)))).unwrap_err();
    assert!(matches!(probed, Error::Refused { remedy: Some(_), .. }), "{probed:?}");
    let wrong = keys.serve("client");
    let said = refused(with_tls(&wrong, keys.files("client")));
    assert!(said.contains("its certificate"), "{said}");
    assert!(connects(keys.files("client")).is_ok(), "it still serves");
}

#[test]
fn certificates_out_of_their_time_are_refused_by_name() {
    let keys = Keys::make();
    let device = keys.serve("server");
    for (name, validity, what) in
        [("late", past(), "has expired"), ("early", future(), "it did not accept")]
    {
        keys.issue(&host(name), validity);
        let said = refused(with_tls(&device, keys.files(name)));
        assert!(said.contains(what) && said.contains("meetpoint device keys"), "{said}");
    }
    drop(device);
    for (validity, what) in [(past(), "has expired"), (future(), "is not valid yet")] {
        keys.issue(&keys.device(), validity);
        let device = keys.serve("server");
        let said = refused(with_tls(&device, keys.files("client")));
        assert!(said.contains(what) && said.contains("meetpoint device keys"), "{said}");
    }
}

#[test]
fn a_device_is_known_by_every_name_of_its_certificate() {
    let keys = Keys::make();
    let device = keys.serve("server");
    let named = |name: &str| RemoteDevice {
        server_name: Some(name.to_owned()),
        ..with_tls(&device, keys.files("client"))
    };
    let target = Target::Remote(Box::new(named("csd.example")));
    talk(async { connect(&target).await.map(|_| ()) }).unwrap();
    for name in ["csd2.example", "127.0.0.2", "not a name"] {
        let said = refused(named(name));
        assert!(said.contains("is for another name"), "{said}");
    }
}

#[test]
fn ends_that_do_not_both_encrypt_are_refused() {
    let keys = Keys::make();
    // The host has no certificate, and does not encrypt.
    let device = keys.serve("server");
    let said = refused(remote(&device));
    assert!(said.contains("only TLS"), "{said}");
    // The device does not encrypt.
    let plain = network(|_| ());
    let said = refused(with_tls(&plain, keys.files("client")));
    assert!(said.contains("does not speak TLS"), "{said}");
}

#[test]
fn new_certificates_are_used_without_a_restart_and_revoked_ones_refused() {
    let keys = Keys::make();
    let device = keys.serve("server");
    let client = || with_tls(&device, keys.files("client"));
    let connects = || {
        let target = Target::Remote(Box::new(client()));
        talk(async { connect(&target).await.map(|_| ()) })
    };
    connects().unwrap();
    let [old, _] = keys.issue(&host("old"), Validity::days(1));
    keys.authority.revoke(&[old]).unwrap();
    connects().unwrap();
    let said = refused(with_tls(&device, keys.files("old")));
    assert!(said.contains("revoked"), "{said}");
    // The device's certificate is replaced: by one for another name, then by a valid one.
    keys.issue(&Subject::Device { hosts: vec!["elsewhere".to_owned()] }, Validity::days(1));
    assert!(refused(client()).contains("another name"));
    keys.issue(&keys.device(), Validity::days(1));
    connects().unwrap();
    // With a damaged file, the device refuses every host until the file is repaired.
    let path = keys.files("server").cert;
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, "damaged").unwrap();
    assert!(connects().is_err());
    std::fs::write(&path, whole).unwrap();
    connects().unwrap();
    // A host refuses a device that was revoked.
    keys.authority.revoke(&[path]).unwrap();
    assert!(refused(client()).contains("has been revoked"));
}

#[test]
fn files_that_cannot_be_used_are_errors_that_name_them() {
    let keys = Keys::make();
    let device = keys.serve("server");
    let good = keys.files("client");
    let empty = keys.folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let other = keys.files("server").key;
    for (files, named) in [
        (TlsFiles { ca: empty.clone(), ..good.clone() }, "empty.pem"),
        (TlsFiles { cert: "/no/such/file".into(), ..good.clone() }, "/no/such/file"),
        (TlsFiles { key: good.cert.clone(), ..good.clone() }, "client.pem"),
        (TlsFiles { key: other, ..good.clone() }, "server.key"),
        (TlsFiles { crl: Some(empty), ..good }, "empty.pem"),
    ] {
        let said = refused(with_tls(&device, files.clone()));
        assert!(said.contains(named), "{said}");
        let options = |options: &mut ServeOptions| {
            options.listen = Listen::Tcp { address: loopback(), tls: Some(files) };
            options.roots[0].name = Some("a".to_owned());
        };
        let folder = tempfile::tempdir().unwrap();
        write_dataset(&folder.path().join("set"), vec![jpeg(0, 16)]);
        let mut given = ServeOptions::new("", vec![folder.path().to_path_buf()]);
        options(&mut given);
        let served = meetpoint_device::serve(given, |_| (), std::sync::Arc::default());
        assert!(matches!(served, Err(Error::Tls(_))), "{served:?}");
    }
}

#[test]
fn an_address_is_served_only_with_encryption_or_a_token_on_the_loopback_interface() {
    let folder = tempfile::tempdir().unwrap();
    write_dataset(&folder.path().join("set"), vec![jpeg(0, 16)]);
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let serve = |address: &str, token_file: Option<&Path>, name: Option<&str>| {
        let mut options = ServeOptions::new("", Vec::new());
        let name = name.map(str::to_owned);
        options.roots = vec![Root { name, folder: folder.path().to_path_buf() }];
        options.listen = Listen::Tcp { address: address.parse().unwrap(), tls: None };
        options.token_file = token_file.map(Path::to_path_buf);
        let error = meetpoint_device::serve(options, |_| (), std::sync::Arc::default());
        let error = error.unwrap_err();
        assert!(error.remedy().is_some(), "{error}");
        error
    };
    for address in ["tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://192.0.2.1:0"] {
        let error = serve(address, Some(&token), Some("a"));
        assert!(matches!(error, Error::Cleartext { .. }), "{error}");
    }
    let error = serve("tcp://127.0.0.1:0", None, Some("a"));
    assert!(matches!(error, Error::NoToken { .. }), "{error}");
    let error = serve("tcp://127.0.0.1:0", Some(&token), None);
    assert!(matches!(error, Error::UnnamedRoot { .. }), "{error}");
    let error = serve("tcp://127.0.0.1:0", Some(&folder.path().join("none")), Some("a"));
    assert!(matches!(error, Error::Token(_)), "{error}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", taken.local_addr().unwrap());
    let error = serve(&address, Some(&token), Some("a"));
    assert!(matches!(error, Error::Listen { .. }), "{error}");
}

#[test]
fn calls_without_the_token_are_refused() {
    let device = network(|_| ());
    let other = device.folder.path().join("other");
    std::fs::write(&other, "another token of sixteen".replace(' ', "-")).unwrap();
    let with = |token_file| {
        probe(Target::Remote(Box::new(RemoteDevice { token_file, ..remote(&device) })))
    };
    assert!(with(Some(device.folder.path().join("token"))).is_ok());
    for (token_file, what) in [(None, "the call has none"), (Some(other), "another token")] {
        let error = with(token_file).unwrap_err();
        let Error::Refused { reason, remedy, .. } = &error else { panic!("{error}") };
        assert!(reason.contains(what) && remedy.is_some(), "{error}");
    }
    assert_eq!(device.stop().jobs, 0);
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

/// Writes the sent pieces of a slot to their positions in a shared slot.
fn receive(link: &mut Link, spool: &Spool) {
    for piece in link.data.drain(..) {
        assert!(piece.data.len() <= SLOT_DATA_BYTES_MAX);
        let offset = u64::from(piece.slot) * spool.slot_bytes + piece.offset;
        assert!(piece.offset + piece.data.len() as u64 <= spool.slot_bytes);
        spool.file.write_all_at(&piece.data, offset).unwrap();
    }
}

#[test]
fn batches_are_sent_with_the_bytes_that_a_shared_spool_holds() {
    let shared = Device::start(|_| ());
    let of_shared: Vec<Vec<u8>> = talk(async {
        let mut host = Host::connect(shared.socket()).await;
        let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
        host.load(&shared, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(3, 1, 3, 4).await;
        let mut payloads = Vec::new();
        for _ in 0..4 {
            let published = link.published().await;
            payloads.push(take(&spool, &published, 5));
        }
        payloads
    });
    let device = network(|_| ());
    talk(async {
        let mut host = open(&device).await;
        // Two slots are enough for any number of batches.
        let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
        let reply = load(&mut host, stream_request(&device, &spool)).await.unwrap();
        assert_eq!((reply.samples, reply.batches), (20, 4));
        let mut link = host.run().await.unwrap();
        link.grant(3, 1, 3, 4).await;
        for expected in &of_shared {
            let published = link.published().await;
            receive(&mut link, &spool);
            assert!(take(&spool, &published, 5) == *expected, "batch {}", published.batch);
            link.say(Message::Release(Release { slot: published.slot })).await;
        }
    });
    assert_eq!(device.stop().batches, 4);
}

#[test]
fn nothing_of_the_file_system_can_be_asked_for() {
    let device = network(|_| ());
    let outside = device.folder.path().join("secret/set");
    write_dataset(&outside, vec![jpeg(9, 16)]);
    let secret = std::fs::read(outside.join("dataset.json")).unwrap();
    let secret = <sha2::Sha256 as sha2::Digest>::digest(&secret).to_vec();
    type Change = Box<dyn Fn(&mut LoadRequest)>;
    let path = device.dataset().into_os_string().into_encoded_bytes();
    let cases: Vec<(Change, Code, &str)> = vec![
        (Box::new(move |it| it.datasets = vec![path.clone()]), Code::InvalidArgument, "by root"),
        (Box::new(|it| it.named.clear()), Code::InvalidArgument, "by root"),
        (Box::new(|it| it.named = named("..", it)), Code::FailedPrecondition, "no dataset"),
        (Box::new(|it| it.named = named("photos/../..", it)), Code::FailedPrecondition, "no data"),
        (Box::new(|it| it.named = named("/", it)), Code::FailedPrecondition, "no dataset"),
        (
            Box::new(move |it| it.named[0].manifest_sha256 = secret.clone()),
            Code::FailedPrecondition,
            "no dataset",
        ),
        (Box::new(|it| it.named[0].manifest_sha256.clear()), Code::FailedPrecondition, "no data"),
        (Box::new(|it| it.named = named(&"x".repeat(1 << 18), it)), Code::FailedPrecondition, "xx"),
        (
            Box::new(|it| it.named = vec![it.named[0].clone(); 5000]),
            Code::FailedPrecondition,
            "5000",
        ),
        (Box::new(|it| it.manifest_sha256[0] ^= 1), Code::FailedPrecondition, "another version"),
        (Box::new(|it| it.spool_kind = SpoolKind::Memory.into()), Code::InvalidArgument, "stream"),
        (Box::new(|it| it.spool_kind = SpoolKind::File.into()), Code::InvalidArgument, "stream"),
        (Box::new(|it| it.spool_kind = 77), Code::InvalidArgument, "stream"),
        (Box::new(|it| it.batch_size = u32::MAX), Code::OutOfRange, "bytes of memory"),
    ];
    talk(async {
        for (change, code, what) in cases {
            let mut host = open(&device).await;
            let mut request = stream_request(&device, &Spool::new(SpoolKind::Memory, 2, BATCH));
            change(&mut request);
            let status = load(&mut host, request).await.unwrap_err();
            let said = status.message();
            assert!(status.code() == code && said.contains(what), "{what}: {status}");
            let own = device.folder.path().display().to_string();
            assert!(!said.contains(&own), "no path of the device is named: {said}");
            assert!(said.len() < 2000, "{}", said.len());
        }
        let mut host = open(&device).await;
        let request = stream_request(&device, &Spool::new(SpoolKind::Memory, 2, BATCH));
        load(&mut host, LoadRequest { named: named("", &request), ..request }).await.unwrap();
    });
}

#[test]
fn a_host_that_reads_nothing_delays_no_other_and_loses_only_its_own_work() {
    let device = network(|options| options.hosts = 2);
    talk(async {
        let mut slow = open(&device).await;
        // More than all buffers between device and host hold.
        let spool = Spool::new(SpoolKind::Memory, 64, 64 << 20);
        load(&mut slow, stream_request(&device, &spool)).await.unwrap();
        let stuck = slow.run().await.unwrap();
        for first in 0..4 {
            stuck.grant(first, first + 1, 3, 4).await;
        }
        let mut other = open(&device).await;
        let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
        load(&mut other, stream_request(&device, &spool)).await.unwrap();
        let mut link = other.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        for _ in 0..4 {
            link.published().await;
        }
        drop(stuck);
    });
    device.stop();
}

#[test]
fn a_batch_that_is_revoked_while_it_is_sent_is_not_published() {
    let device = network(|_| ());
    talk(async {
        let mut host = open(&device).await;
        let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
        load(&mut host, stream_request(&device, &spool)).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        let first = link.published().await;
        receive(&mut link, &spool);
        take(&spool, &first, 5);
        // The next batch waits for the only slot.
        let revoke = meetpoint_format::wire::Revoke { epoch: 0, generation: 2 };
        link.say(Message::Revoke(revoke)).await;
        link.say(Message::Release(Release { slot: first.slot })).await;
        let work = meetpoint_format::wire::Work {
            epoch: 0,
            generation: 2,
            first: 0,
            count: 1,
            descending: true,
        };
        link.say(Message::Work(work)).await;
        let second = link.published().await;
        assert_eq!((second.batch, second.generation), (0, 2));
        receive(&mut link, &spool);
        take(&spool, &second, 5);
    });
}

#[test]
fn a_job_that_is_wrong_in_the_middle_ends_alone() {
    let device = network(|options| options.hosts = 2);
    talk(async {
        let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
        let mut host = open(&device).await;
        load(&mut host, stream_request(&device, &spool)).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.say(Message::Release(Release { slot: 77 })).await;
        assert!(matches!(link.next().await, StreamEvent::Ended(Some(_))));
        let mut again = open(&device).await;
        load(&mut again, stream_request(&device, &spool)).await.unwrap();
        let mut link = again.run().await.unwrap();
        link.grant(0, 1, 3, 2).await;
        link.published().await;
    });
}

/// Bytes that differ at each call.
fn noise(seed: u32, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

#[test]
fn unidentified_connections_are_closed_and_hosts_are_served() {
    let keys = Keys::make();
    for is_encrypted in [false, true] {
        let device = if is_encrypted { keys.serve("server") } else { network(|_| ()) };
        let Endpoint::Tcp(address) = device.ready.endpoint.clone() else { panic!("it is remote") };
        let connect = || {
            let stream = TcpStream::connect((&address.host[..], address.port)).unwrap();
            stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
            stream
        };
        let preface = b"mplink_1PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let mut openings: Vec<Vec<u8>> = (1..30).map(|seed| noise(seed, 5000)).collect();
        openings.extend([
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            b"mpspool1________".to_vec(),
            // A TLS record of the greatest length, and one that is too long.
            [&[22, 3, 1, 0x40, 0][..], &noise(1, 0x4000)].concat(),
            [&[22, 3, 1, 0xff, 0xff][..], &noise(1, 0xffff)].concat(),
            NETWORK_GREETING.to_vec(),
            [&NETWORK_GREETING[..], b"GET / HTTP/1.1\r\n\r\n"].concat(),
            // Frames of HTTP/2: noise, of 16 MiB, headers that never end, pings, resets.
            [&preface[..], &noise(7, 4096)].concat(),
            [&preface[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(),
            [
                &preface[..],
                &[0, 0, 0, 4, 0, 0, 0, 0, 0],
                &[0, 0, 1, 9, 0, 0, 0, 0, 1, 0].repeat(3000),
            ]
            .concat(),
            [
                &preface[..],
                &[0, 0, 0, 4, 0, 0, 0, 0, 0],
                &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8].repeat(3000),
            ]
            .concat(),
            preface[..12].to_vec(),
        ]);
        let mut held = Vec::new();
        for opening in openings {
            let mut stream = connect();
            // The device may also disconnect earlier.
            let _ = stream.write_all(&opening).and_then(|()| stream.shutdown(Shutdown::Write));
            held.push(stream);
        }
        for mut stream in held {
            let mut said = Vec::new();
            // The connection ends or is reset; it never stays open.
            match stream.read_to_end(&mut said) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
            }
            let is_greeted = said.starts_with(&NETWORK_GREETING);
            assert!(!is_greeted || !is_encrypted, "nothing is said before the handshake");
        }
        // The device does not wait for half-open connections that send nothing.
        let silent: Vec<TcpStream> = (0..10).map(|_| connect()).collect();
        let tls = keys.files("client");
        let host = match is_encrypted {
            true => with_tls(&device, tls),
            false => remote(&device),
        };
        assert!(probe(Target::Remote(Box::new(host))).is_ok());
        drop(silent);
        device.stop();
    }
}

#[test]
fn a_full_device_says_how_many_hosts_it_serves_and_not_which() {
    for hosts in [1, 2] {
        let device = network(move |options| options.hosts = hosts);
        talk(async {
            let mut served = Vec::new();
            for _ in 0..hosts {
                let mut host = open(&device).await;
                let request = stream_request(&device, &Spool::new(SpoolKind::Memory, 2, BATCH));
                load(&mut host, request).await.unwrap();
                served.push(host);
            }
            let mut late = open(&device).await;
            let request = stream_request(&device, &Spool::new(SpoolKind::Memory, 2, BATCH));
            let status = load(&mut late, request).await.unwrap_err();
            assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
            let expected = if hosts == 1 { "serves another host" } else { "serves 2 hosts and" };
            assert!(status.message().contains(expected), "{status}");
            assert!(!status.message().contains("127.0.0.1"), "{status}");
            // Neither a socket nor a process of the device's machine helps a host on a network.
            let remedy = meetpoint_link::refusal::remedy(&status).unwrap();
            let is_advice = |step: &Step| matches!(step, Step::Advice { .. });
            let raises = |step: &Step| {
                matches!(
                    step,
                    Step::Set { setting: Setting::DeviceHosts, change: Change::Raise, .. }
                )
            };
            let [wait, more, elsewhere] = remedy.steps() else { panic!("{remedy:?}") };
            assert!(is_advice(wait) && raises(more) && is_advice(elsewhere), "{remedy:?}");
        });
    }
}

/// What the device of the next test logged.
static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn a_damaged_part_is_logged_with_its_path_and_reported_with_its_name() {
    let device = network(|options| {
        options.report = |sentence| LOGGED.lock().unwrap().push(sentence.to_owned());
    });
    let part = device.dataset().join("part-00000.arrow");
    let mut bytes = std::fs::read(&part).unwrap();
    // In the middle of the pictures of the first batches.
    let middle = bytes.len() / 4;
    bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(&part, bytes).unwrap();
    let own = device.folder.path().display().to_string();
    talk(async {
        let mut host = open(&device).await;
        let request = stream_request(&device, &Spool::new(SpoolKind::Memory, 4, BATCH));
        load(&mut host, request).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(3, 1, 3, 4).await;
        let failed = loop {
            match link.next().await {
                StreamEvent::Failed(failed) => break failed,
                StreamEvent::Published(_) => {}
                other => panic!("{other:?}"),
            }
        };
        let reason = &failed.reason;
        assert!(failed.is_damage && reason.contains("photos/"), "{reason}");
        assert!(reason.contains("part-00000.arrow") && !reason.contains(&own), "{reason}");
        let logged = LOGGED.lock().unwrap().clone();
        let of_batch = format!("batch {} of epoch 3 failed for client 127.0.0.1: ", failed.batch);
        let line = logged.iter().find(|line| line.starts_with(&of_batch)).unwrap();
        assert!(line.contains(&own) && line.contains("part-00000.arrow"), "{line}");
        // A part that is gone is an error of the next job.
        std::fs::remove_file(&part).unwrap();
        drop((link, host));
        let mut next = open(&device).await;
        let request = stream_request(&device, &Spool::new(SpoolKind::Memory, 4, BATCH));
        let status = loop {
            // Until the device notices that the first host has gone.
            let status = load(&mut next, request.clone()).await.unwrap_err();
            if status.code() != Code::ResourceExhausted {
                break status;
            }
        };
        assert!(!status.message().contains(&own), "{status}");
        assert!(status.message().contains("photos"), "{status}");
    });
}
