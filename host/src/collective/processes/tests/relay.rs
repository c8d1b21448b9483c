//! A relay between a rank and rank 0 that disturbs what it forwards.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A running relay. Connections end with it.
pub(super) struct Relay {
    pub(super) port: u16,
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    /// Nothing is forwarded, and neither end is notified.
    is_silent: AtomicBool,
    is_over: AtomicBool,
    /// Bytes of each write; 0 for all at once.
    piece: AtomicUsize,
    /// From rank 0, from now on: one bit of the next bytes is flipped.
    garbles: AtomicBool,
    /// What went to rank 0, and what came from it.
    passed: [Mutex<Vec<u8>>; 2],
    streams: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Forwards connections to a port of this machine.
    pub(super) fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let accepting = std::thread::spawn(move || {
            let mut forwarding = Vec::new();
            for rank in listener.incoming() {
                if shared.is_over.load(Ordering::SeqCst) {
                    break;
                }
                let rank = rank.unwrap();
                let Ok(rank_0) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                for (at, from, to) in [(0, &rank, &rank_0), (1, &rank_0, &rank)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    shared.streams.lock().unwrap().push(from.try_clone().unwrap());
                    let state = Arc::clone(&shared);
                    forwarding.push(std::thread::spawn(move || forward(at, from, to, &state)));
                }
            }
            forwarding.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Self { port, state, accepting: Some(accepting) }
    }

    /// From now on nothing arrives at either end, as if the network were cut.
    pub(super) fn go_silent(&self) {
        self.state.is_silent.store(true, Ordering::SeqCst);
    }

    /// From now on every write has this many bytes.
    pub(super) fn cut_in_pieces_of(&self, bytes: usize) {
        self.state.piece.store(bytes, Ordering::SeqCst);
    }

    /// Flips a bit of whatever rank 0 sends next.
    pub(super) fn garble(&self) {
        self.state.garbles.store(true, Ordering::SeqCst);
    }

    /// What went to rank 0, and what came from it.
    pub(super) fn passed(&self) -> [Vec<u8>; 2] {
        [0, 1].map(|at| self.state.passed[at].lock().unwrap().clone())
    }
}

fn forward(at: usize, mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut buffer = [0; 4096];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        if state.is_silent.load(Ordering::SeqCst) {
            continue;
        }
        let bytes = &mut buffer[..bytes];
        if at == 1 && state.garbles.swap(false, Ordering::SeqCst) {
            *bytes.last_mut().unwrap() ^= 1;
        }
        state.passed[at].lock().unwrap().extend_from_slice(bytes);
        let piece = match state.piece.load(Ordering::SeqCst) {
            0 => bytes.len(),
            piece => piece,
        };
        if bytes.chunks(piece).any(|piece| to.write_all(piece).is_err()) {
            break;
        }
    }
    if !state.is_silent.load(Ordering::SeqCst) {
        let _ = to.shutdown(Shutdown::Both);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for stream in self.state.streams.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.accepting.take() {
            thread.join().unwrap();
        }
    }
}
