//! A port of this machine whose connections are refused, held without an answer, or forwarded.

use meetpoint_host::{DeviceSource, RemoteDevice, TcpAddress};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What happens to connections, including those that are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relaying {
    /// They are closed.
    Refuse,
    /// Their bytes are read and nothing is answered.
    Hold,
    /// They are forwarded to this port.
    To(u16),
    /// The relay ends.
    Over,
}

#[derive(Debug)]
struct State {
    relaying: Relaying,
    /// Number of connections that are held, and its maximum so far.
    held: u32,
    held_most: u32,
}

/// A running relay. Dropping it closes its connections.
pub(crate) struct Relay {
    port: u16,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub(crate) fn start(relaying: Relaying) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { relaying, held: 0, held_most: 0 }));
        let own = Arc::clone(&state);
        let thread = std::thread::spawn(move || accept(&listener, &own));
        Self { port, state, thread: Some(thread) }
    }

    pub(crate) fn set(&self, relaying: Relaying) {
        self.state.lock().unwrap().relaying = relaying;
    }

    /// Waits until a connection is held.
    pub(crate) fn await_held(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.state.lock().unwrap().held == 0 {
            assert!(Instant::now() < deadline, "nothing connects");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The maximum number of connections that were held at the same time.
    pub(crate) fn held_most(&self) -> u32 {
        self.state.lock().unwrap().held_most
    }

    /// How a loader connects to it.
    pub(crate) fn source(&self) -> DeviceSource {
        let address = TcpAddress { host: "127.0.0.1".to_owned(), port: self.port };
        DeviceSource::Remote(Box::new(RemoteDevice::new(address)))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.set(Relaying::Over);
        // Wakes the thread.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.take().unwrap().join().unwrap();
    }
}

fn accept(listener: &TcpListener, state: &Arc<Mutex<State>>) {
    let mut threads = Vec::new();
    loop {
        let (stream, _) = listener.accept().unwrap();
        if state.lock().unwrap().relaying == Relaying::Over {
            break;
        }
        let state = Arc::clone(state);
        threads.push(std::thread::spawn(move || relay(stream, &state)));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Holds a connection until it is to be forwarded or closed, or its other end closes it.
fn relay(mut stream: TcpStream, state: &Mutex<State>) {
    let mut before = Vec::new();
    stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let mut is_held = false;
    let port = loop {
        let mut now = state.lock().unwrap();
        if now.relaying == Relaying::Hold && !is_held {
            is_held = true;
            now.held += 1;
            now.held_most = now.held_most.max(now.held);
        }
        match now.relaying {
            Relaying::Refuse | Relaying::Over => break None,
            Relaying::To(port) => break Some(port),
            Relaying::Hold => {}
        }
        drop(now);
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes) {
            Ok(0) => break None,
            Ok(count) => before.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break None,
        }
    };
    state.lock().unwrap().held -= u32::from(is_held);
    let Some(port) = port else { return };
    stream.set_read_timeout(None).unwrap();
    let mut target = TcpStream::connect(("127.0.0.1", port)).unwrap();
    // Either end may close the connection at any time.
    if target.write_all(&before).is_err() {
        return;
    }
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        })
    };
    let there = copy(stream.try_clone().unwrap(), target.try_clone().unwrap());
    let back = copy(target, stream);
    there.join().unwrap();
    back.join().unwrap();
}
