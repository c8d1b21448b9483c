//! Which connections and requests a device accepts, and which paths it reports.

use super::{BATCH, Keys, load, named, network, open, remote, stream_request, with_tls};
use crate::support::{Spool, StreamEvent, jpeg, talk, write_dataset};
use meetpoint_device::probe;
use meetpoint_diagnose::{Change, Setting, Step};
use meetpoint_format::wire::{LoadRequest, NETWORK_GREETING, SpoolKind};
use meetpoint_link::{Endpoint, Target};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use tonic::Code;

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
        let target = Target::Remote(Box::new(host));
        // A probe waits 3 s, which a loaded machine may exceed. Waiting for one connection after
        // the other would take 50 s: 5 s for each greeting.
        let is_served = (0..4).any(|_| probe(target.clone()).is_ok());
        assert!(is_served, "encrypted: {is_encrypted}");
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
