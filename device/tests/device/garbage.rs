//! Connections that are not from a host are closed soon.

use crate::support::{Device, PATIENCE, SAMPLE_BYTES, Spool, send_with_fds};
use meetpoint_device::probe;
use meetpoint_format::wire::{FD_CHANNEL_MAGIC, SpoolKind};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// Waits until the device disconnects, and returns the bytes that it sent before.
fn rest(mut stream: UnixStream) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => said,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => said,
        Err(error) => panic!("the device did not hang up: {error}"),
    }
}

fn connect(device: &Device) -> UnixStream {
    UnixStream::connect(device.socket()).unwrap()
}

#[test]
fn unidentified_connections_are_closed_whatever_they_send() {
    let device = Device::start(|_| ());
    let mut noise = vec![0_u8; 4096];
    let mut state = 1_u32;
    noise.fill_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let half_offer = [&FD_CHANNEL_MAGIC[..], b"123"].concat();
    let openings: [&[u8]; 8] = [
        b"",
        &noise,
        b"GET / HTTP/1.1\r\n\r\n",
        b"P",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        &half_offer,
        b"mpspool2________",
        b"m",
    ];
    let mut streams = Vec::new();
    for opening in openings {
        let mut stream = connect(&device);
        stream.write_all(opening).unwrap();
        streams.push(stream);
    }
    for stream in streams {
        assert_eq!(rest(stream), b"");
    }
    assert!(probe(device.socket()).is_ok());
    assert_eq!(device.stop().connections_refused, 8);
}

/// How a connection continues after its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Continuation {
    Closes,
    ClosesItsEnd,
    StaysSilent,
}

#[test]
fn a_partial_preface_does_not_block_other_clients_or_shutdown() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for then in [Continuation::Closes, Continuation::ClosesItsEnd, Continuation::StaysSilent] {
        // The device accepts this many hosts at a time.
        let device = Device::start(|options| options.hosts = 4);
        let mut held = Vec::new();
        for length in 1..preface.len() {
            let mut stream = connect(&device);
            stream.write_all(&preface[..length]).unwrap();
            match then {
                Continuation::Closes => drop(stream),
                Continuation::ClosesItsEnd => {
                    stream.shutdown(std::net::Shutdown::Write).unwrap();
                    assert_eq!(rest(stream), b"", "{length} bytes");
                }
                Continuation::StaysSilent => held.push(stream),
            }
        }
        assert!(probe(device.socket()).is_ok(), "{then:?}");
        device.stop();
    }
}

#[test]
fn an_offer_without_a_descriptor_or_with_two_is_not_confirmed() {
    let device = Device::start(|_| ());
    let spool = Spool::new(SpoolKind::Memory, 1, SAMPLE_BYTES);
    let bytes = meetpoint_format::wire::FdOffer { token: 1 }.encode();
    let fd = spool.file.as_fd();
    for fds in [&[][..], &[fd, fd], &[fd, fd, fd]] {
        let stream = connect(&device);
        send_with_fds(&stream, &bytes, fds);
        assert_eq!(rest(stream), b"", "{} descriptors", fds.len());
    }
    // An offer may arrive in two pieces.
    let stream = connect(&device);
    send_with_fds(&stream, &bytes[..5], &[fd]);
    send_with_fds(&stream, &bytes[5..], &[]);
    assert_eq!(rest(stream), bytes);
}

#[test]
fn a_token_that_waits_cannot_be_taken_by_another_offer() {
    let device = Device::start(|_| ());
    let spool = Spool::new(SpoolKind::Memory, 1, SAMPLE_BYTES);
    let offer = |token| {
        let stream = connect(&device);
        let bytes = meetpoint_format::wire::FdOffer { token }.encode();
        send_with_fds(&stream, &bytes, &[spool.file.as_fd()]);
        !rest(stream).is_empty()
    };
    assert!(offer(1));
    assert!(!offer(1));
    assert!((2..20).all(offer), "a process takes nothing from others, so it is not refused");
}

#[test]
fn noise_after_a_right_preface_ends_the_connection() {
    let device = Device::start(|_| ());
    let mut stream = connect(&device);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&[0xff; 64]).unwrap();
    // The device may send the reason for disconnecting over HTTP/2.
    rest(stream);
    assert!(probe(device.socket()).is_ok());
}
