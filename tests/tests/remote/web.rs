//! A web server on this machine, which lists folders as WebDAV does, and its faults.

use crate::support::{CACHE, ProcessOutput, program, run};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// The faults of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fault {
    /// Answers of this status, this many times.
    pub(crate) status: Option<(u16, u32)>,
    /// Connections that end after this many bytes of the answer, this many times.
    pub(crate) cut: Option<(usize, u32)>,
    /// Nothing is sent after the header of the answer.
    pub(crate) stalls: bool,
    /// Another tag than in the list.
    pub(crate) tag: Option<u32>,
}

/// A file of the server.
#[derive(Debug, Clone, Default)]
struct File {
    bytes: Vec<u8>,
    version: u32,
    fault: Fault,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    files: BTreeMap<String, File>,
    /// Whether range requests are supported.
    gives_no_parts: bool,
    /// Time before each answer.
    pub(crate) slowness: std::time::Duration,
    /// Requests: method, path, range.
    pub(crate) requests: Vec<(String, String, Option<String>)>,
    /// Bytes of the content of files that answers had, those of ranges included.
    pub(crate) sent: u64,
    /// Once this many were sent, answers with a range that does not end a file wait until it is
    /// `None`.
    pub(crate) hold_after: Option<u64>,
}

/// A server; it ends with the process.
pub(crate) struct Web {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

impl Web {
    pub(crate) fn start() -> Self {
        let (listener, port) = listener();
        Self::over(listener, format!("http://127.0.0.1:{port}"), |stream, state| {
            serve(stream, state)
        })
    }

    /// A server with TLS, as `localhost`.
    pub(crate) fn start_tls(config: Arc<rustls::ServerConfig>) -> Self {
        let (listener, port) = listener();
        Self::over(listener, format!("https://localhost:{port}"), move |stream, state| {
            let connection = rustls::ServerConnection::new(Arc::clone(&config));
            let connection = connection.map_err(std::io::Error::other)?;
            serve(rustls::StreamOwned::new(connection, stream), state)
        })
    }

    fn over(
        listener: TcpListener,
        url: String,
        serve: impl Fn(TcpStream, &Mutex<State>) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let (shared, serve) = (Arc::clone(&state), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, serve) = (Arc::clone(&shared), Arc::clone(&serve));
                // A client that disconnects is not a failure.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { url, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds or replaces a file.
    pub(crate) fn put(&self, path: &str, bytes: Vec<u8>) {
        let mut state = self.state();
        let version = state.files.get(path).map_or(0, |file| file.version + 1);
        state.files.insert(path.to_owned(), File { bytes, version, fault: Fault::default() });
    }

    pub(crate) fn remove(&self, path: &str) {
        self.state().files.remove(path);
    }

    /// Puts all files of a folder below a path.
    pub(crate) fn put_all(&self, path: &str, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let name = format!("{path}/{}", entry.file_name().to_str().unwrap());
            match entry.path().is_dir() {
                true => self.put_all(&name, &entry.path()),
                false => self.put(&name, std::fs::read(entry.path()).unwrap()),
            }
        }
    }

    pub(crate) fn fault(&self, path: &str, fault: Fault) {
        self.state().files.get_mut(path).unwrap().fault = fault;
    }

    pub(crate) fn give_no_parts(&self) {
        self.state().gives_no_parts = true;
    }

    pub(crate) fn pack(
        &self,
        folder: &Path,
        path: &str,
        to: &str,
        further: &[&str],
    ) -> ProcessOutput {
        let url = format!("{}{path}", self.url);
        let arguments = [&["pack", &url, to], CACHE.as_slice(), further].concat();
        run(program(folder, &arguments))
    }
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn serve(stream: impl Read + Write, shared: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let mut words = line.split_whitespace().map(str::to_owned);
        let method = words.next().unwrap_or_default();
        let path = decoded(&words.next().unwrap_or_default());
        let (mut range, mut length) = (None, 0);
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "range" => range = Some(value.to_owned()),
                "content-length" => length = value.parse().unwrap_or(0),
                _ => {}
            }
        }
        std::io::copy(&mut std::io::Read::take(&mut reader, length), &mut std::io::sink())?;
        line.clear();
        let request = (method, path, range);
        shared.lock().unwrap().requests.push(request.clone());
        let goes_on = answer(reader.get_mut(), &request, shared)?;
        reader.get_mut().flush()?;
        if !goes_on {
            return Ok(());
        }
    }
    Ok(())
}

/// Answers; `false` if the connection is to end.
fn answer(
    to: &mut impl Write,
    (method, path, range): &(String, String, Option<String>),
    shared: &Mutex<State>,
) -> std::io::Result<bool> {
    if method == "PROPFIND" {
        let text = listing(path, &shared.lock().unwrap());
        if !text.contains("<D:response>") {
            write!(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
            return Ok(true);
        }
        let head = "HTTP/1.1 207 Multi-Status\r\nContent-Type: application/xml";
        write!(to, "{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len())?;
        return Ok(true);
    }
    let mut state = shared.lock().unwrap();
    let (gives_parts, slowness) = (!state.gives_no_parts, state.slowness);
    let Some(file) = state.files.get_mut(path) else {
        write!(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
        return Ok(true);
    };
    let is_head = method == "HEAD";
    if let Some((status, left)) = &mut file.fault.status
        && *left > 0
        && !is_head
    {
        *left -= 1;
        write!(to, "HTTP/1.1 {status} Fault\r\nContent-Length: 3\r\n\r\nno\n")?;
        return Ok(true);
    }
    let tag = file.fault.tag.filter(|_| !is_head).unwrap_or(file.version);
    let all = file.bytes.len();
    let range = range.as_deref().filter(|_| gives_parts).and_then(|range| {
        let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        let end = last.parse::<usize>().map_or(all, |last| all.min(last + 1));
        Some((first.parse::<usize>().ok()?.min(end), end))
    });
    let (first, end) = range.unwrap_or((0, all));
    let bytes = file.bytes[first..end].to_vec();
    let cut = match &mut file.fault.cut {
        Some((after, left)) if *left > 0 && !is_head => {
            *left -= 1;
            Some((*after).min(bytes.len()))
        }
        _ => None,
    };
    let stalls = file.fault.stalls && !is_head;
    let ends_early = range.is_some_and(|(_, end)| end < all);
    let is_held =
        |state: &State| ends_early && state.hold_after.is_some_and(|bytes| state.sent >= bytes);
    while is_held(&state) {
        drop(state);
        std::thread::sleep(std::time::Duration::from_millis(5));
        state = shared.lock().unwrap();
    }
    state.sent += if is_head { 0 } else { bytes.len() as u64 };
    drop(state);
    std::thread::sleep(slowness);
    match range {
        Some(_) => write!(
            to,
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{}/{all}\r\n",
            end - 1
        )?,
        None => write!(to, "HTTP/1.1 200 OK\r\n")?,
    }
    let modified = "Last-Modified: Sun, 22 Nov 2026 05:00:00 GMT";
    write!(to, "Content-Length: {}\r\nETag: \"{tag}\"\r\n{modified}\r\n\r\n", bytes.len())?;
    if stalls {
        to.flush()?;
        std::thread::sleep(std::time::Duration::from_secs(600));
    }
    if !is_head {
        to.write_all(&bytes[..cut.unwrap_or(bytes.len())])?;
    }
    Ok(cut.is_none())
}

/// The entries below a path, in the format of WebDAV (RFC 4918, 9.1).
fn listing(path: &str, state: &State) -> String {
    let below = format!("{}/", path.trim_end_matches('/'));
    let files = state.files.iter().filter(|(name, _)| name.starts_with(&below));
    let responses = files.map(|(name, file)| {
        format!(
            "<D:response><D:href>{}</D:href><D:propstat><D:prop><D:resourcetype/>\
             <D:getlastmodified>Sun, 22 Nov 2026 05:00:00 GMT</D:getlastmodified>\
             <D:getcontentlength>{}</D:getcontentlength><D:getetag>\"{}\"</D:getetag></D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>",
            name.replace(' ', "%20").replace('ß', "%C3%9F"),
            file.bytes.len(),
            file.version
        )
    });
    let responses: String = responses.collect();
    format!("<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">{responses}</D:multistatus>")
}

/// A path without its percent signs.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
        match (first, behind.get(..2).and_then(hex)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
