//! An S3 server (s3s-fs) whose buckets are folders, for benches of clients; it counts requests and
//! the bytes that it sends.
//!
//! ```text
//! s3-server FOLDER [MILLISECONDS BEFORE EACH ANSWER]
//! ```
//!
//! Prints its endpoint. Then prints a line `{"requests": …, "bytes": …}` with the counts since the
//! start for each line of its input, and exits at the end of the input. The credentials are `bench`
//! and `bench`.

use anyhow::Context;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::S3Result;
use s3s::auth::{S3Auth, SecretKey};
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use std::io::{BufRead, IoSlice, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Access key and secret key.
const CREDENTIAL: &str = "bench";

/// Counts since the start.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// Checks access keys. It is called once for each request, so it also counts and delays requests.
struct Door {
    counts: Arc<Counts>,
    latency: Duration,
}

impl S3Auth for Door {
    fn get_secret_key<'door, 'key, 'answer>(
        &'door self,
        _access_key: &'key str,
    ) -> Pin<Box<dyn Future<Output = S3Result<SecretKey>> + Send + 'answer>>
    where
        'door: 'answer,
        'key: 'answer,
        Self: 'answer,
    {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if !self.latency.is_zero() {
                tokio::time::sleep(self.latency).await;
            }
            Ok(SecretKey::from(CREDENTIAL))
        })
    }
}

/// A connection whose sent bytes are counted, those of headers included.
struct Counted {
    stream: TcpStream,
    counts: Arc<Counts>,
}

impl Counted {
    fn count(&self, written: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.counts.bytes.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        written
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().context("usage: s3-server FOLDER [MILLISECONDS]")?;
    let latency = arguments.next().map_or(Ok(0), |it| it.parse()).context("milliseconds")?;
    let counts = Arc::<Counts>::default();
    let files = FileSystem::new(folder).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut service = S3ServiceBuilder::new(files);
    let latency = Duration::from_millis(latency);
    service.set_auth(Door { counts: Arc::clone(&counts), latency });
    let service = service.build();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    println!("http://{}", listener.local_addr()?);
    let shared = Arc::clone(&counts);
    runtime.spawn(async move {
        let server = Builder::new(TokioExecutor::new());
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let stream = Counted { stream, counts: Arc::clone(&shared) };
            let connection = server.serve_connection(TokioIo::new(stream), service.clone());
            let connection = connection.into_owned();
            // A client that disconnects is not a failure.
            tokio::spawn(async move { drop(connection.await) });
        }
    });
    for line in std::io::stdin().lock().lines() {
        line?;
        let [requests, bytes] =
            [&counts.requests, &counts.bytes].map(|it| it.load(Ordering::Relaxed));
        println!("{{\"requests\": {requests}, \"bytes\": {bytes}}}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
