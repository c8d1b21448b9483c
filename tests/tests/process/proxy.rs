//! A proxy between a host and a device over a network, which damages the transferred bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A fault in the transfer from a device, after a given number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferFault {
    /// Both connections end.
    Cut,
    /// The connection to the host is reset.
    Reset,
    /// No bytes are forwarded in either direction, and neither end is notified: a half-open
    /// connection.
    Silence,
    /// One bit in a thousand bytes is flipped.
    Garble,
    /// Every piece is sent twice.
    Repeat,
    /// Pieces of 100 bytes with a pause between them.
    Trickle,
}

/// A running proxy. Connections that it accepted end with it.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// Connections so far.
    pub(crate) connections: Arc<AtomicU64>,
    /// Bytes that hosts have received after the fault, over other connections.
    pub(crate) passed_again: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Proxy {
    /// Forwards connections to a port. The fault begins in the first connection that carries a job,
    /// after a number of bytes from the device, and ends with that connection.
    pub(crate) fn start(to: u16, trouble: TransferFault, after: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it listens").port();
        let (connections, is_over) =
            (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, over) = (Arc::clone(&connections), Arc::clone(&is_over));
        let passed = Arc::new(AtomicU64::new(0));
        let passed_again = Arc::new(AtomicU64::new(0));
        let again = Arc::clone(&passed_again);
        std::thread::spawn(move || {
            for host in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(host) = host else { continue };
                let Ok(device) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                count.fetch_add(1, Ordering::SeqCst);
                let (passed, passed_again) = (Arc::clone(&passed), Arc::clone(&again));
                let link = Link { host, device, passed, passed_again, trouble, after };
                link.carry(&over);
            }
        });
        Self { port, connections, passed_again, is_over }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

struct Link {
    host: TcpStream,
    device: TcpStream,
    /// Bytes that devices have sent.
    passed: Arc<AtomicU64>,
    /// As in [`Proxy`].
    passed_again: Arc<AtomicU64>,
    trouble: TransferFault,
    after: u64,
}

impl Link {
    fn carry(self, over: &Arc<AtomicBool>) {
        let is_silent = Arc::new(AtomicBool::new(false));
        let (mut from, mut to) = (clone(&self.host), clone(&self.device));
        let (silent, over) = (Arc::clone(&is_silent), Arc::clone(over));
        std::thread::spawn(move || {
            let mut buffer = [0; 1 << 14];
            while let Ok(bytes @ 1..) = from.read(&mut buffer) {
                if silent.load(Ordering::SeqCst) {
                    continue;
                }
                if to.write_all(&buffer[..bytes]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
        std::thread::spawn(move || self.deliver(&is_silent, &over));
    }

    /// From the device to the host.
    fn deliver(mut self, is_silent: &AtomicBool, over: &AtomicBool) {
        let mut buffer = vec![0; 1 << 14];
        let mut is_troubled = false;
        while let Ok(bytes @ 1..) = self.device.read(&mut buffer) {
            let before = self.passed.fetch_add(bytes as u64, Ordering::SeqCst);
            let begins = before <= self.after && before + bytes as u64 > self.after;
            is_troubled |= begins;
            let piece = &mut buffer[..bytes];
            let sent = match self.trouble {
                TransferFault::Cut if is_troubled => break,
                TransferFault::Reset if is_troubled => {
                    // Nothing more is sent; closing the socket resets the connection.
                    let now = Some(Duration::ZERO);
                    rustix::net::sockopt::set_socket_linger(&self.host, now).expect("it is set");
                    break;
                }
                TransferFault::Silence if is_troubled => {
                    is_silent.store(true, Ordering::SeqCst);
                    // Until the host gives up.
                    let mut ended = [0; 1];
                    self.host.set_read_timeout(Some(Duration::from_millis(50))).expect("it is set");
                    while !over.load(Ordering::SeqCst) {
                        if matches!(self.host.peek(&mut ended), Ok(0)) {
                            break;
                        }
                    }
                    break;
                }
                TransferFault::Garble if is_troubled => {
                    piece.iter_mut().step_by(1000).for_each(|byte| *byte ^= 4);
                    self.host.write_all(piece)
                }
                TransferFault::Repeat if is_troubled => {
                    self.host.write_all(piece).and_then(|()| self.host.write_all(piece))
                }
                TransferFault::Trickle if is_troubled => piece.chunks(100).try_for_each(|part| {
                    std::thread::sleep(Duration::from_micros(200));
                    self.host.write_all(part)
                }),
                TransferFault::Cut
                | TransferFault::Reset
                | TransferFault::Silence
                | TransferFault::Garble
                | TransferFault::Repeat
                | TransferFault::Trickle => self.host.write_all(piece),
            };
            if sent.is_err() {
                break;
            }
            if !is_troubled && before > self.after {
                self.passed_again.fetch_add(bytes as u64, Ordering::SeqCst);
            }
        }
        let _ = self.host.shutdown(Shutdown::Both);
        let _ = self.device.shutdown(Shutdown::Both);
    }
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a stream can be cloned")
}
