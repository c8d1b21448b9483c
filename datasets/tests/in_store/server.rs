//! A web server with ranges and entity tags, and its faults.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another status, without the content.
    Status(u16),
    /// The connection ends after this many bytes of the content.
    Cut(usize),
    /// The answer says and has fewer bytes than were requested.
    Short,
    /// The answer has the bytes after those that were requested.
    Shifted,
    /// The whole file, whatever was requested.
    Whole,
    /// Nothing comes after the head.
    Stall,
    /// One bit of the content is another one.
    Flip,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    version: u32,
    /// Faults of the next answers, each with the number of answers that have it.
    faults: Vec<(Fault, u32)>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    files: BTreeMap<String, File>,
    /// Paths and ranges of the requests.
    pub(crate) requests: Vec<(String, Option<(u64, u64)>)>,
    /// Bytes of content that were sent.
    pub(crate) sent: u64,
    /// Answers wait until this many requests wait at once.
    pub(crate) gate: usize,
    waiting: usize,
}

/// A server; it ends with the process.
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    /// Serves the files of a folder.
    pub(crate) fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/set", listener.local_addr().unwrap());
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let bytes = std::fs::read(entry.path()).unwrap();
            let name = format!("/set/{}", entry.file_name().to_str().unwrap());
            files.insert(name, File { bytes, ..File::default() });
        }
        let state = Arc::new(Mutex::new(State { files, ..State::default() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // A client that leaves is not a failure.
                std::thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Self { url, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The next `answers` for a file have a fault.
    pub(crate) fn fault(&self, name: &str, fault: Fault, answers: u32) {
        let mut state = self.state();
        state.files.get_mut(&format!("/set/{name}")).unwrap().faults.push((fault, answers));
    }

    /// Removes all faults of a file.
    pub(crate) fn mend(&self, name: &str) {
        self.state().files.get_mut(&format!("/set/{name}")).unwrap().faults.clear();
    }

    /// Replaces a file by another version of the same length.
    pub(crate) fn replace(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let file = state.files.get_mut(&format!("/set/{name}")).unwrap();
        file.version += 1;
        change(&mut file.bytes);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.state().files.remove(&format!("/set/{name}"));
    }

    /// Bytes that were sent since the last call.
    pub(crate) fn take_sent(&self) -> u64 {
        std::mem::take(&mut self.state().sent)
    }
}

fn serve(stream: &TcpStream, shared: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let (mut range, mut if_match) = (None, None);
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "range" => range = parse_range(value),
                "if-match" => if_match = Some(value.to_owned()),
                _ => {}
            }
        }
        line.clear();
        if !answer(stream, (&path, range, if_match.as_deref()), shared)? {
            return stream.shutdown(std::net::Shutdown::Both);
        }
    }
    Ok(())
}

/// First and last byte of a range.
fn parse_range(value: &str) -> Option<(u64, u64)> {
    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Answers; `false` if the connection is to end.
fn answer(
    mut to: &TcpStream,
    (path, range, if_match): (&str, Option<(u64, u64)>, Option<&str>),
    shared: &Mutex<State>,
) -> std::io::Result<bool> {
    let mut state = shared.lock().unwrap();
    state.requests.push((path.to_owned(), range));
    let status = |mut to: &TcpStream, status: u16| {
        write!(to, "HTTP/1.1 {status} Other\r\nContent-Length: 0\r\n\r\n")?;
        Ok(true)
    };
    let Some(file) = state.files.get_mut(path) else { return status(to, 404) };
    let tag = format!("\"{}\"", file.version);
    if if_match.is_some_and(|wanted| wanted != tag) {
        return status(to, 412);
    }
    let mut fault = None;
    if let Some((first, left)) = file.faults.first_mut() {
        fault = Some(*first);
        *left = left.saturating_sub(1);
        if *left == 0 {
            file.faults.remove(0);
        }
    }
    let all = file.bytes.len();
    let (mut first, mut end) = match range.filter(|_| fault != Some(Fault::Whole)) {
        Some((first, last)) => (first as usize, (last as usize + 1).min(all)),
        None => (0, all),
    };
    if first > end {
        return status(to, 416);
    }
    match fault {
        Some(Fault::Status(other)) => return status(to, other),
        Some(Fault::Short) => end -= (end - first) / 2,
        Some(Fault::Shifted) => (first, end) = (first.saturating_sub(1), end - 1),
        _ => {}
    }
    let mut bytes = file.bytes[first..end].to_vec();
    if fault == Some(Fault::Flip) {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    }
    let is_partial = range.is_some() && fault != Some(Fault::Whole);
    let head = match is_partial {
        true => format!("206 Partial Content\r\nContent-Range: bytes {first}-{}/{all}", end - 1),
        false => "200 OK".to_owned(),
    };
    let length = bytes.len();
    match fault {
        Some(Fault::Cut(after)) => bytes.truncate(after),
        Some(Fault::Stall) => bytes.clear(),
        _ => {}
    }
    state.sent += bytes.len() as u64;
    state.waiting += 1;
    while state.waiting < state.gate {
        drop(state);
        std::thread::sleep(std::time::Duration::from_millis(1));
        state = shared.lock().unwrap();
    }
    // All waiting requests may continue.
    state.gate = 0;
    state.waiting -= 1;
    drop(state);
    let modified = "Last-Modified: Sun, 22 Nov 2026 05:00:00 GMT";
    write!(to, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nETag: {tag}\r\n{modified}\r\n\r\n")?;
    to.write_all(&bytes)?;
    to.flush()?;
    if fault == Some(Fault::Stall) {
        // Until the client gives up.
        let mut rest = [0];
        let _ = std::io::Read::read(&mut to, &mut rest);
    }
    Ok(!matches!(fault, Some(Fault::Cut(_) | Fault::Stall)))
}
