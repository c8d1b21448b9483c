//! The network between the host and one device: a process that forwards what both send, with
//! delays and faults.
//!
//! Bytes of one direction of a connection arrive in the order in which they were sent. Connections
//! are independent of each other.
#![expect(unsafe_code, reason = "descriptors are passed with sendmsg and recvmsg")]

use super::agent::Location;
use crate::calls::descriptors_in;
use crate::machine::{self, Random, Shared, with};
use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

/// Bytes read at a time.
const READ_BYTES: usize = 16 << 10;

/// Maximum bytes in flight in one direction; then nothing is read.
const WINDOW_BYTES: usize = 256 << 10;

/// The state of a link that the operator requests.
#[derive(Debug, Clone)]
pub(super) struct LinkState {
    pub(super) latency_ns: u64,
    pub(super) jitter_ns: u64,
    pub(super) splits: bool,
    /// Until when nothing arrives.
    pub(super) partitioned_until_ns: u64,
    /// Until when messages take longer, and by how much.
    pub(super) congested_until_ns: u64,
    pub(super) congestion_ns: u64,
    /// Until when new connections are refused.
    pub(super) refused_until_ns: u64,
    /// Applied once to all present connections.
    pub(super) once: Option<Once>,
}

/// A fault of all present connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Once {
    Reset,
    Tear,
    HalfOpen {
        is_to_device: bool,
    },
    /// Resets those that are half open.
    Heal,
}

/// The operator's end of a link.
#[derive(Debug)]
pub(super) struct Link {
    state: Arc<Shared<LinkState>>,
    wake: UnixStream,
}

impl Link {
    /// Starts the process of a link.
    pub(super) fn start(number: usize, seed: u64, location: &Location, state: LinkState) -> Self {
        let state = Arc::new(Shared::new(state));
        let (wake, woken) = UnixStream::pair().unwrap_or_else(|error| stop("pair", &error));
        woken.set_nonblocking(true).unwrap_or_else(|error| stop("set up", &error));
        let listener = Listener::bind(location);
        let forwarder = Forwarder {
            state: Arc::clone(&state),
            random: Random::new(seed, 100 + number as u64),
            location: location.clone(),
            listener,
            woken,
            connections: Vec::new(),
            buffer: vec![0; READ_BYTES],
        };
        super::agent::spawn(format!("link-{number}"), move || forwarder.run());
        Self { state, wake }
    }

    /// Changes its state.
    pub(super) fn change(&self, change: impl FnOnce(&mut LinkState)) {
        self.state.with(change);
        let mut wake = &self.wake;
        // If the buffer is full, the link wakes up anyway.
        let _ = wake.write(&[0]);
    }
}

fn stop(action: &str, error: &std::io::Error) -> ! {
    machine::fail(&format!("the simulated network failed to {action}: {error}"))
}

enum Listener {
    Socket(UnixListener),
    Port(TcpListener),
}

impl Listener {
    fn bind(location: &Location) -> Self {
        let listener = match location {
            Location::Sockets { offered, .. } => UnixListener::bind(offered).map(Self::Socket),
            Location::Ports { offered, .. } => {
                TcpListener::bind(("127.0.0.1", *offered)).map(Self::Port)
            }
        };
        let listener = listener.unwrap_or_else(|error| stop("listen", &error));
        let done = match &listener {
            Self::Socket(listener) => listener.set_nonblocking(true),
            Self::Port(listener) => listener.set_nonblocking(true),
        };
        done.unwrap_or_else(|error| stop("listen", &error));
        listener
    }

    fn accept(&self) -> std::io::Result<OwnedFd> {
        match self {
            Self::Socket(listener) => listener.accept().map(|(stream, _)| stream.into()),
            Self::Port(listener) => listener.accept().map(|(stream, _)| stream.into()),
        }
    }

    fn descriptor(&self) -> RawFd {
        match self {
            Self::Socket(listener) => listener.as_raw_fd(),
            Self::Port(listener) => listener.as_raw_fd(),
        }
    }
}

/// Bytes in flight, with descriptors. If there are neither, this is the end of the connection.
#[derive(Debug)]
struct Parcel {
    due_ns: u64,
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    last_due_ns: u64,
    /// Whether the sender has ended it.
    has_ended: bool,
    /// Whether the end has arrived.
    is_closed: bool,
    /// Whether nothing arrives any more.
    is_lost: bool,
    /// Whether the receiver accepts no more bytes now.
    is_full: bool,
}

/// A connection: from the host (0) and from the device (1).
struct Connection {
    ends: [OwnedFd; 2],
    directions: [Direction; 2],
    is_over: bool,
}

struct Forwarder {
    state: Arc<Shared<LinkState>>,
    random: Random,
    location: Location,
    listener: Listener,
    woken: UnixStream,
    connections: Vec<Connection>,
    /// What is received at a time.
    buffer: Vec<u8>,
}

fn now_ns() -> u64 {
    with(|machine| machine.now_ns())
}

impl Forwarder {
    fn run(mut self) {
        loop {
            self.wait();
            let mut ignored = [0; 64];
            while matches!(std::io::Read::read(&mut &self.woken, &mut ignored), Ok(1..)) {}
            let state = self.state.with(|state| {
                let now = state.clone();
                state.once = None;
                now
            });
            if let Some(once) = state.once {
                self.apply(once);
            }
            self.accept(&state);
            for connection in &mut self.connections {
                for from in 0..2 {
                    connection.receive(from, &state, (&mut self.random, &mut self.buffer));
                    connection.deliver(from, &state);
                }
            }
            self.connections.retain(|connection| !connection.is_finished());
        }
    }

    /// Waits until there is something to receive, deliver or accept.
    fn wait(&self) {
        let poll = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let mut all = vec![
            poll(self.woken.as_raw_fd(), libc::POLLIN),
            poll(self.listener.descriptor(), libc::POLLIN),
        ];
        let mut due_ns = u64::MAX;
        for connection in &self.connections {
            for (from, direction) in connection.directions.iter().enumerate() {
                if !direction.has_ended && direction.bytes < WINDOW_BYTES {
                    all.push(poll(connection.ends[from].as_raw_fd(), libc::POLLIN));
                }
                if direction.is_full {
                    all.push(poll(connection.ends[1 - from].as_raw_fd(), libc::POLLOUT));
                } else if let Some(parcel) = direction.parcels.front() {
                    due_ns = due_ns.min(parcel.due_ns);
                }
            }
        }
        let partitioned_until_ns = self.state.with(|state| state.partitioned_until_ns);
        let wait_ns = due_ns.max(partitioned_until_ns).saturating_sub(now_ns());
        let wait_ms = match due_ns {
            u64::MAX => -1,
            _ => i32::try_from(wait_ns.div_ceil(1_000_000)).unwrap_or(i32::MAX),
        };
        // SAFETY: the vector has that many entries.
        unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, wait_ms) };
    }

    fn apply(&mut self, once: Once) {
        for connection in &mut self.connections {
            match once {
                Once::Reset => connection.is_over = true,
                Once::Tear => connection.tear(&mut self.random),
                Once::HalfOpen { is_to_device } => {
                    connection.directions[usize::from(!is_to_device)].is_lost = true;
                }
                Once::Heal => {
                    connection.is_over |= connection.directions.iter().any(|it| it.is_lost);
                }
            }
        }
    }

    fn accept(&mut self, state: &LinkState) {
        loop {
            let host = match self.listener.accept() {
                Ok(host) => host,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => stop("accept", &error),
            };
            if state.refused_until_ns > now_ns() {
                continue;
            }
            let device = match &self.location {
                Location::Sockets { own, .. } => UnixStream::connect(own).map(OwnedFd::from),
                Location::Ports { own, .. } => {
                    TcpStream::connect(("127.0.0.1", *own)).map(OwnedFd::from)
                }
            };
            // If no device listens, the host's connection ends.
            let Ok(device) = device else { continue };
            for end in [&host, &device] {
                set_nonblocking(end);
            }
            self.connections.push(Connection {
                ends: [host, device],
                directions: [Direction::default(), Direction::default()],
                is_over: false,
            });
        }
    }
}

fn set_nonblocking(end: &OwnedFd) {
    let descriptor = end.as_raw_fd();
    // SAFETY: the commands have a number as argument, or none.
    unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL, 0);
        libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

impl Connection {
    fn is_finished(&self) -> bool {
        self.is_over || self.directions.iter().all(|direction| direction.is_closed)
    }

    /// Delivers half of the next bytes, and then the end.
    fn tear(&mut self, random: &mut Random) {
        for (from, direction) in self.directions.iter_mut().enumerate() {
            if let Some(parcel) = direction.parcels.front()
                && parcel.bytes.len() > 1
            {
                let length = random.below(parcel.bytes.len() as u64);
                let length = usize::try_from(length).expect("it is below a length");
                send(&self.ends[1 - from], &parcel.bytes[..length], &[]);
            }
        }
        self.is_over = true;
    }

    /// Receives what one end sent.
    fn receive(
        &mut self,
        from: usize,
        state: &LinkState,
        (random, buffer): (&mut Random, &mut [u8]),
    ) {
        let direction = &mut self.directions[from];
        while !direction.has_ended && direction.bytes < WINDOW_BYTES && !self.is_over {
            let (received, descriptors) = receive(&self.ends[from], buffer);
            let bytes = match usize::try_from(received) {
                Ok(bytes) => bytes,
                Err(_) if would_block() => return,
                Err(_) => {
                    // One end has reset the connection. The other end is notified unless the
                    // connection is half open.
                    let is_hidden = direction.is_lost;
                    direction.has_ended = true;
                    self.is_over = !is_hidden;
                    return;
                }
            };
            direction.has_ended = bytes == 0;
            if direction.is_lost {
                continue;
            }
            direction.bytes += bytes;
            let mut due_ns = now_ns() + state.latency_ns + random.below(state.jitter_ns + 1);
            if state.congested_until_ns > now_ns() {
                due_ns += state.congestion_ns;
            }
            due_ns = due_ns.max(direction.last_due_ns);
            let mut descriptors = Some(descriptors);
            let mut left = &buffer[..bytes];
            loop {
                let most =
                    if state.splits && bytes > 1 { random.within(1, 4096) } else { u64::MAX };
                let length = usize::try_from(most).unwrap_or(usize::MAX).min(left.len());
                let (piece, rest) = left.split_at(length);
                let descriptors = descriptors.take().unwrap_or_default();
                direction.parcels.push_back(Parcel { due_ns, bytes: piece.to_vec(), descriptors });
                direction.last_due_ns = due_ns;
                left = rest;
                if left.is_empty() {
                    break;
                }
                due_ns += random.below(state.jitter_ns + 1);
            }
        }
    }

    /// Delivers what is due to the other end.
    fn deliver(&mut self, from: usize, state: &LinkState) {
        let direction = &mut self.directions[from];
        direction.is_full = false;
        if direction.is_lost {
            direction.parcels.clear();
            direction.bytes = 0;
            return;
        }
        while let Some(parcel) = direction.parcels.front_mut() {
            let now_ns = now_ns();
            if self.is_over || parcel.due_ns > now_ns || state.partitioned_until_ns > now_ns {
                return;
            }
            if parcel.bytes.is_empty() {
                // SAFETY: the descriptor is open.
                unsafe { libc::shutdown(self.ends[1 - from].as_raw_fd(), libc::SHUT_WR) };
                direction.is_closed = true;
                direction.parcels.clear();
                return;
            }
            let sent = send(&self.ends[1 - from], &parcel.bytes, &parcel.descriptors);
            let Ok(sent) = usize::try_from(sent) else {
                if would_block() {
                    direction.is_full = true;
                } else {
                    self.is_over = true;
                }
                return;
            };
            direction.bytes -= sent;
            parcel.descriptors.clear();
            parcel.bytes.drain(..sent);
            if parcel.bytes.is_empty() {
                direction.parcels.pop_front();
            }
        }
    }
}

fn would_block() -> bool {
    std::io::Error::last_os_error().kind() == ErrorKind::WouldBlock
}

/// Room for the descriptors of a message.
type Control = [MaybeUninit<u64>; 8];

fn message(piece: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all bytes of the structure may be 0.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    message
}

fn receive(end: &OwnedFd, buffer: &mut [u8]) -> (isize, Vec<OwnedFd>) {
    let mut control: Control = [MaybeUninit::new(0); 8];
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = message(&mut piece, &mut control);
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the message has room as it says.
    let received = unsafe { libc::recvmsg(end.as_raw_fd(), &raw mut message, flags) };
    if received < 0 {
        return (received, Vec::new());
    }
    // SAFETY: the call has filled the message.
    let descriptors = unsafe { descriptors_in(&raw const message) };
    // SAFETY: the kernel has just created these descriptors for this message.
    let owned = descriptors.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    (received, owned.collect())
}

fn send(end: &OwnedFd, bytes: &[u8], descriptors: &[OwnedFd]) -> isize {
    let mut control: Control = [MaybeUninit::new(0); 8];
    let (start, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
    let mut piece = libc::iovec { iov_base: start, iov_len: length };
    let mut message = message(&mut piece, &mut control);
    match descriptors.first() {
        None => {
            message.msg_control = std::ptr::null_mut();
            message.msg_controllen = 0;
        }
        Some(descriptor) => {
            let bytes = size_of::<RawFd>() as u32;
            // SAFETY: the control data has room for one descriptor.
            unsafe {
                message.msg_controllen = libc::CMSG_SPACE(bytes) as _;
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(bytes) as _;
                libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
            }
        }
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the message describes the bytes and the descriptor, which outlive the call.
    unsafe { libc::sendmsg(end.as_raw_fd(), &raw const message, flags) }
}
