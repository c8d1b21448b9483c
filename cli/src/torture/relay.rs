//! A proxy between a host and a device on the loopback interface, which ends or silences their
//! connections on request.

use anyhow::Context;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a silent connection checks whether it still is.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Bytes forwarded at once.
const PIECE_BYTES: usize = 16 << 10;

/// What the threads of a relay share.
#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    is_silent: AtomicBool,
    /// Both ends of every connection.
    streams: Mutex<Vec<TcpStream>>,
}

impl Shared {
    fn cut(&self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in streams.drain(..) {
            // The other end may have ended it.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Forwards bytes until either end closes.
    fn forward(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(bytes @ 1..) = from.read(&mut piece) {
            while self.is_silent.load(Ordering::SeqCst) && !self.is_over.load(Ordering::SeqCst) {
                std::thread::sleep(LOOK_EVERY);
            }
            if to.write_all(&piece[..bytes]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

/// A running proxy. Dropping it ends its connections.
#[derive(Debug)]
pub(super) struct Relay {
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Forwards connections to a port of the loopback interface.
    pub(super) fn start(to: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port is free for a proxy")?;
        let port = listener.local_addr().context("a proxy has no address")?.port();
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let accept = move || {
            for host in listener.incoming() {
                if own.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(host) = host else { continue };
                // A host whose device is not there sees its connection end.
                let Ok(device) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let copies = (host.try_clone(), device.try_clone());
                let (Ok(host_again), Ok(device_again)) = copies else { continue };
                let kept = (host.try_clone(), device.try_clone());
                let mut streams = own.streams.lock().unwrap_or_else(PoisonError::into_inner);
                streams.extend([kept.0, kept.1].into_iter().flatten());
                drop(streams);
                let (one, other) = (Arc::clone(&own), Arc::clone(&own));
                std::thread::spawn(move || one.forward(host, device));
                std::thread::spawn(move || other.forward(device_again, host_again));
            }
        };
        let thread = std::thread::Builder::new().name("relay".to_owned()).spawn(accept);
        let thread = Some(thread.context("failed to start the thread of a proxy")?);
        Ok(Self { port, shared, thread })
    }

    /// The port on which it listens.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Ends all connections. Later ones are forwarded again.
    pub(super) fn cut(&self) {
        self.shared.cut();
    }

    /// From now on forwards nothing, or everything again, without ending a connection.
    pub(super) fn set_silent(&self, is_silent: bool) {
        self.shared.is_silent.store(is_silent, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.cut();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Relay;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_relay_forwards_cuts_and_forwards_later_connections() {
        let device = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::start(device.local_addr().unwrap().port()).unwrap();
        for _ in 0..2 {
            let mut host = TcpStream::connect(("127.0.0.1", relay.port())).unwrap();
            let (mut accepted, _) = device.accept().unwrap();
            let mut four = [0; 4];
            host.write_all(b"ping").unwrap();
            accepted.read_exact(&mut four).unwrap();
            assert_eq!(&four, b"ping");
            accepted.write_all(b"pong").unwrap();
            host.read_exact(&mut four).unwrap();
            assert_eq!(&four, b"pong");
            relay.cut();
            assert!(matches!(host.read(&mut four), Ok(0) | Err(_)));
            assert!(matches!(accepted.read(&mut four), Ok(0) | Err(_)));
        }
    }
}
