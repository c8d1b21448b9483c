//! Looks up SRV records: a query over UDP, or TCP if the answer is long, to the name servers of
//! this machine.
//!
//! Every wait is bounded. Answers are not authenticated: the certificate of a device is what a host
//! trusts, and it must be for the name of the target.

use meetpoint_diagnose::Remedy;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Environment variable with a name server to use instead of those of the machine: an IP address,
/// or one with a port.
pub const DNS_VARIABLE: &str = "MEETPOINT_DNS";

/// Where the name servers of the machine are listed (resolv.conf(5)).
const RESOLV_CONF: &str = "/etc/resolv.conf";

const PORT: u16 = 53;

/// Name servers that are asked, and search domains that are tried (resolv.conf(5)).
const SERVERS_MAX: usize = 3;
const DOMAINS_MAX: usize = 6;

/// How often each name server is asked.
const ATTEMPTS: usize = 2;

/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers to other queries that are ignored.
const STRAY_MAX: usize = 16;

/// Longest answer over UDP that is asked for (RFC 1035, section 4.2.1).
const UDP_BYTES_MAX: usize = 512;

/// A target of an SRV record (RFC 2782).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) priority: u16,
    pub(crate) weight: u16,
    pub(crate) port: u16,
    pub(crate) host: String,
}

/// A name that cannot be looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DnsError {
    /// No name server is known.
    #[error("no name server is known: {RESOLV_CONF} lists none")]
    NoServer,
    /// [`DNS_VARIABLE`] is not an address.
    #[error("{DNS_VARIABLE} is {value:?}, which is not the IP address of a name server")]
    Server {
        /// Its value.
        value: String,
    },
    /// There is no such record.
    #[error("there is no SRV record {name}")]
    Missing {
        /// Name.
        name: String,
    },
    /// The service is not available at this name (RFC 2782: the target is the root).
    #[error("the SRV record {name} says that no device is available")]
    Unavailable {
        /// Name.
        name: String,
    },
    /// No name server answered.
    #[error("no name server answered for {name}: {reason}")]
    NoAnswer {
        /// Name.
        name: String,
        /// Of the last one.
        reason: String,
    },
}

impl DnsError {
    /// The remedy.
    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            Self::NoServer | Self::Server { .. } => {
                format!("set {DNS_VARIABLE} to the IP address of a name server").into()
            }
            Self::Missing { .. } | Self::Unavailable { .. } => {
                Remedy::advice("correct the name").or("list the devices as tcp://HOST:PORT")
            }
            Self::NoAnswer { .. } => {
                Remedy::advice("try again").or("list the devices as tcp://HOST:PORT")
            }
        }
    }
}

/// Why a name server did not help.
enum Unanswered {
    /// The record does not exist.
    Missing,
    Failed(String),
}

impl From<std::io::Error> for Unanswered {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Whom to ask, and domains that are appended to names.
#[derive(Debug, PartialEq, Eq)]
struct Resolver {
    servers: Vec<SocketAddr>,
    domains: Vec<String>,
}

impl Resolver {
    fn of_machine() -> Result<Self, DnsError> {
        if let Some(value) = std::env::var_os(DNS_VARIABLE).filter(|value| !value.is_empty()) {
            let value = value.to_string_lossy().into_owned();
            let address = value.parse().ok();
            let address = address.or_else(|| Some(SocketAddr::new(value.parse().ok()?, PORT)));
            let server = address.ok_or(DnsError::Server { value })?;
            return Ok(Self { servers: vec![server], domains: Vec::new() });
        }
        let resolver = Self::parse(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default());
        if resolver.servers.is_empty() { Err(DnsError::NoServer) } else { Ok(resolver) }
    }

    fn parse(text: &str) -> Self {
        let (mut servers, mut domains) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => servers.extend(words.next().and_then(server)),
                // The last one counts.
                Some("search" | "domain") => domains = words.map(str::to_owned).collect(),
                _ => {}
            }
        }
        servers.truncate(SERVERS_MAX);
        domains.truncate(DOMAINS_MAX);
        Self { servers, domains }
    }

    /// The names to try: as given, and in each domain unless the name ends with a dot.
    fn names(&self, name: &str) -> Vec<String> {
        match name.strip_suffix('.') {
            Some(absolute) => vec![absolute.to_owned()],
            None => {
                let of_domain = self
                    .domains
                    .iter()
                    .map(|domain| format!("{name}.{}", domain.trim_matches('.')));
                std::iter::once(name.to_owned()).chain(of_domain).collect()
            }
        }
    }

    fn services(&self, name: &str) -> Result<Vec<Service>, DnsError> {
        let mut failure = None;
        for full in self.names(name) {
            match self.ask_all(&full) {
                Ok(found) if found.iter().all(|it| it.host.is_empty()) => {
                    return Err(DnsError::Unavailable { name: full });
                }
                Ok(found) => return Ok(found),
                Err(Unanswered::Missing) => {}
                Err(Unanswered::Failed(reason)) => {
                    failure.get_or_insert(DnsError::NoAnswer { name: full, reason });
                }
            }
        }
        Err(failure.unwrap_or_else(|| DnsError::Missing { name: name.to_owned() }))
    }

    /// Asks one name server after the other.
    fn ask_all(&self, name: &str) -> Result<Vec<Service>, Unanswered> {
        let mut last = Unanswered::Failed("there is none".to_owned());
        for _ in 0..ATTEMPTS {
            for server in &self.servers {
                match ask(*server, name) {
                    Err(Unanswered::Failed(why)) => {
                        last = Unanswered::Failed(format!("{server}: {why}"));
                    }
                    answer => return answer,
                }
            }
        }
        Err(last)
    }
}

/// A name server of resolv.conf; the scope of an address is ignored.
fn server(text: &str) -> Option<SocketAddr> {
    let address = text.split('%').next()?;
    let address: IpAddr = address.parse().ok()?;
    Some(SocketAddr::new(address, PORT))
}

/// Sends one query to one name server.
fn ask(server: SocketAddr, name: &str) -> Result<Vec<Service>, Unanswered> {
    let wrong = |error: simple_dns::SimpleDnsError| Unanswered::Failed(error.to_string());
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(|error| Unanswered::Failed(error.to_string()))?;
    let id = u16::from_ne_bytes(id);
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let question = Name::new(name).map_err(wrong)?;
    packet.questions.push(Question::new(question, TYPE::SRV.into(), CLASS::IN.into(), false));
    let query = packet.build_bytes_vec().map_err(wrong)?;
    let answer = over_udp(server, &query, id)?;
    let is_truncated = |bytes: &[u8]| {
        Packet::parse(bytes).is_ok_and(|packet| packet.has_flags(PacketFlag::TRUNCATION))
    };
    let answer = if is_truncated(&answer) { over_tcp(server, &query)? } else { answer };
    read(&answer, id, name)
}

fn over_udp(server: SocketAddr, query: &[u8], id: u16) -> Result<Vec<u8>, Unanswered> {
    let own: IpAddr = match server {
        SocketAddr::V4(_) => [0; 4].into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0))?;
    // The kernel then drops what others send.
    socket.connect(server)?;
    socket.send(query)?;
    let (mut bytes, deadline) = ([0; UDP_BYTES_MAX], Instant::now() + ANSWER_TIMEOUT);
    for _ in 0..STRAY_MAX {
        socket.set_read_timeout(Some(time_left(deadline)?))?;
        let count = socket.recv(&mut bytes)?;
        // Answers to other queries are ignored.
        if bytes[..count].starts_with(&id.to_be_bytes()) {
            return Ok(bytes[..count].to_vec());
        }
    }
    Err(Unanswered::Failed("it answers other queries".to_owned()))
}

/// Over TCP, lengths precede messages (RFC 1035, section 4.2.2).
fn over_tcp(server: SocketAddr, query: &[u8]) -> Result<Vec<u8>, Unanswered> {
    let mut stream = TcpStream::connect_timeout(&server, ANSWER_TIMEOUT)?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let length = u16::try_from(query.len()).expect("a query is short");
    stream.write_all(&[&length.to_be_bytes()[..], query].concat())?;
    let mut length = [0; 2];
    read_until(&mut stream, &mut length, deadline)?;
    let mut answer = vec![0; u16::from_be_bytes(length).into()];
    read_until(&mut stream, &mut answer, deadline)?;
    Ok(answer)
}

/// Fills a buffer; the deadline applies to all of its bytes, however slowly they arrive.
fn read_until(
    stream: &mut TcpStream,
    mut rest: &mut [u8],
    deadline: Instant,
) -> Result<(), Unanswered> {
    while !rest.is_empty() {
        stream.set_read_timeout(Some(time_left(deadline)?))?;
        match stream.read(rest)? {
            0 => return Err(Unanswered::Failed("it ended the connection".to_owned())),
            count => rest = &mut rest[count..],
        }
    }
    Ok(())
}

fn time_left(deadline: Instant) -> Result<Duration, Unanswered> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(Unanswered::Failed(format!("no answer within {ANSWER_TIMEOUT:?}"))),
        false => Ok(left),
    }
}

/// The targets in an answer.
fn read(bytes: &[u8], id: u16, name: &str) -> Result<Vec<Service>, Unanswered> {
    let wrong = |what: &str| Unanswered::Failed(format!("its answer {what}"));
    let packet = Packet::parse(bytes).map_err(|error| wrong(&format!("is damaged ({error})")))?;
    let is_answer = packet.has_flags(PacketFlag::RESPONSE) && packet.id() == id;
    if !is_answer {
        return Err(wrong("is to another question"));
    }
    match packet.rcode() {
        RCODE::NoError => {}
        RCODE::NameError => return Err(Unanswered::Missing),
        other => return Err(wrong(&format!("is an error ({other:?})"))),
    }
    let is_asked = |owner: &Name<'_>| owner.to_string().eq_ignore_ascii_case(name);
    let services = packet.answers.iter().filter(|record| is_asked(&record.name));
    let services: Vec<Service> = services
        .filter_map(|record| match &record.rdata {
            RData::SRV(found) => Some(Service {
                priority: found.priority,
                weight: found.weight,
                port: found.port,
                host: found.target.to_string().trim_end_matches('.').to_ascii_lowercase(),
            }),
            _ => None,
        })
        .collect();
    if services.is_empty() { Err(Unanswered::Missing) } else { Ok(services) }
}

/// The targets of an SRV record.
pub(crate) fn services(name: &str) -> Result<Vec<Service>, DnsError> {
    Resolver::of_machine()?.services(name)
}

#[cfg(test)]
mod tests;
