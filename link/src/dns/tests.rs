//! A name server on the loopback interface, whose answers are bytes written by hand.

use super::{ANSWER_TIMEOUT, DnsError, Resolver, Service, read_until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

/// Header of an answer: id, flags, and counts of questions and answers (RFC 1035, section 4.1.1).
fn header(query: &[u8], flags: u16, answers: u16) -> Vec<u8> {
    let counts = [1, answers, 0, 0].map(u16::to_be_bytes).concat();
    [&query[..2], &flags.to_be_bytes(), &counts].concat()
}

/// The question of a query, as it was sent.
fn question(query: &[u8]) -> &[u8] {
    &query[12..]
}

/// An SRV record for the name of the question, to which 0xc00c points (RFC 1035, section 4.1.4).
fn record(priority: u16, weight: u16, port: u16, target: &str) -> Vec<u8> {
    let mut name = Vec::new();
    for label in target.split('.').filter(|label| !label.is_empty()) {
        name.push(label.len() as u8);
        name.extend_from_slice(label.as_bytes());
    }
    name.push(0);
    let data = [&[priority, weight, port].map(u16::to_be_bytes).concat()[..], &name].concat();
    let mut bytes = vec![0xc0, 0x0c, 0, 33, 0, 1, 0, 0, 0, 60];
    bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&data);
    bytes
}

const ANSWER: u16 = 0x8180;
const TRUNCATED: u16 = 0x8380;
const NO_SUCH_NAME: u16 = 0x8183;
const SERVER_FAILURE: u16 = 0x8182;

/// The dotted name in a query.
fn asked(query: &[u8]) -> String {
    let (mut labels, mut rest) = (Vec::new(), &query[12..]);
    while rest[0] != 0 {
        let (label, after) = rest[1..].split_at(rest[0].into());
        labels.push(String::from_utf8(label.to_vec()).unwrap());
        rest = after;
    }
    labels.join(".")
}

/// Answers queries with `answer` until the test ends; TCP listens on the same port.
fn serve(
    udp: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
    tcp: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
) -> SocketAddr {
    let (socket, listener) = loop {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Ok(listener) = TcpListener::bind(socket.local_addr().unwrap()) {
            break (socket, listener);
        }
    };
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&udp(&bytes[..count]), from);
        }
    });
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut query = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut query).unwrap();
            let answer = tcp(&query);
            let length = (answer.len() as u16).to_be_bytes();
            stream.write_all(&[&length[..], &answer].concat()).unwrap();
        }
    });
    address
}

fn resolver(servers: &[SocketAddr], domains: &[&str]) -> Resolver {
    let domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
    Resolver { servers: servers.to_vec(), domains }
}

fn answer(query: &[u8], flags: u16, records: &[Vec<u8>]) -> Vec<u8> {
    [header(query, flags, records.len() as u16), question(query).to_vec(), records.concat()]
        .concat()
}

fn service(priority: u16, weight: u16, port: u16, host: &str) -> Service {
    Service { priority, weight, port, host: host.to_owned() }
}

#[test]
fn targets_are_read_with_priority_weight_and_port() {
    let records = [record(10, 5, 7000, "A.Example"), record(20, 0, 7001, "b.example")];
    let server = serve(move |query| answer(query, ANSWER, &records), |_| Vec::new());
    let found = resolver(&[server], &[]).services("_meetpoint._tcp.agents").unwrap();
    assert_eq!(found, [service(10, 5, 7000, "a.example"), service(20, 0, 7001, "b.example")]);
}

#[test]
fn a_truncated_answer_is_asked_for_again_over_tcp() {
    let server = serve(
        |query| answer(query, TRUNCATED, &[]),
        |query| {
            let records: Vec<_> = (0..60).map(|at| record(0, 0, at, "a.example")).collect();
            answer(query, ANSWER, &records)
        },
    );
    assert_eq!(resolver(&[server], &[]).services("x.y").unwrap().len(), 60);
}

#[test]
fn names_are_tried_in_the_search_domains() {
    let server = serve(
        |query| match &asked(query)[..] {
            "_a._tcp.agents.train.svc" => answer(query, ANSWER, &[record(0, 0, 1, "t")]),
            _ => answer(query, NO_SUCH_NAME, &[]),
        },
        |_| Vec::new(),
    );
    let resolver = resolver(&[server], &["other", "train.svc."]);
    assert_eq!(resolver.services("_a._tcp.agents").unwrap(), [service(0, 0, 1, "t")]);
    let name = "_a._tcp.agents.".to_owned();
    assert_eq!(resolver.services(&name), Err(DnsError::Missing { name }));
}

#[test]
fn another_name_server_is_asked_if_one_fails() {
    let failing = serve(|query| answer(query, SERVER_FAILURE, &[]), |_| Vec::new());
    let damaged = serve(|query| query[..2].to_vec(), |_| Vec::new());
    let working = serve(|query| answer(query, ANSWER, &[record(0, 0, 1, "t")]), |_| Vec::new());
    let found = resolver(&[failing, damaged, working], &[]).services("a.b").unwrap();
    assert_eq!(found, [service(0, 0, 1, "t")]);
    let failed = resolver(&[failing], &[]).services("a.b");
    assert!(matches!(failed, Err(DnsError::NoAnswer { .. })), "{failed:?}");
}

#[test]
fn a_root_target_means_that_no_device_is_available() {
    let server = serve(|query| answer(query, ANSWER, &[record(0, 0, 0, ".")]), |_| Vec::new());
    let found = resolver(&[server], &[]).services("a.b");
    assert!(matches!(found, Err(DnsError::Unavailable { .. })), "{found:?}");
}

#[test]
fn resolv_conf_is_read_as_its_manual_says() {
    let text = "# comment\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\nsearch a.b c\n\
                options ndots:5\nnameserver x\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n";
    let expected = Resolver {
        servers: ["10.0.0.1:53", "[fe80::1]:53", "10.0.0.3:53"]
            .map(|server| server.parse().unwrap())
            .to_vec(),
        domains: vec!["a.b".to_owned(), "c".to_owned()],
    };
    assert_eq!(Resolver::parse(text), expected);
}

#[test]
fn the_deadline_of_an_answer_over_tcp_covers_all_of_its_bytes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(&[7; 3]).unwrap();
    let late = Instant::now() + ANSWER_TIMEOUT;
    let mut bytes = [0; 2];
    assert!(read_until(&mut stream, &mut bytes, late).is_ok());
    // A byte is there, and the time is over.
    assert!(read_until(&mut stream, &mut bytes[..1], Instant::now()).is_err());
    drop(server);
    assert!(read_until(&mut stream, &mut bytes, late).is_err(), "one byte instead of two");
}
