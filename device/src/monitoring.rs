//! The address for monitoring: `/metrics` and `/healthz` over HTTP, and gRPC health v1.
//!
//! It is a second address, because hosts greet before HTTP/2 begins and prove who they are, which
//! the probes of Kubernetes and Prometheus do not. Nothing that it serves is secret, and nothing
//! can be changed through it.

use crate::Error;
use crate::metrics::{Metrics, Present};
use crate::owner::Owner;
use crate::turns::Turns;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use meetpoint_link::TcpAddress;
use meetpoint_link::tls::Acceptor;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::Connected;

/// Content type of the OpenMetrics format.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Connections at the same time; further ones wait.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection may be open. Clients that send nothing, or slowly, occupy connections for
/// this time.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(10);

/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait when no connection can be accepted, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What is served.
#[derive(Clone)]
pub(crate) struct Observed {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) tls: Option<Arc<Acceptor>>,
}

impl Observed {
    fn text(&self) -> String {
        self.metrics.text(Present {
            connections: self.owner.connections(),
            running_jobs: self.owner.running(),
            busy_threads: self.turns.busy(),
            is_draining: self.owner.is_draining(),
            certificate_expiry: self.tls.as_ref().and_then(|tls| tls.expiry()),
        })
    }

    fn health(&self) -> Response {
        match self.owner.is_draining() {
            false => "serving\n".into_response(),
            true => (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response(),
        }
    }
}

/// A bound address.
pub(crate) struct MonitoringListener {
    listener: std::net::TcpListener,
    /// With the port that was chosen.
    pub(crate) address: TcpAddress,
}

impl MonitoringListener {
    /// Begins to listen.
    pub(crate) fn bind(address: &TcpAddress) -> Result<Self, Error> {
        let failed = |source| Error::Listen { address: address.clone(), source };
        let found = (&address.host[..], address.port).to_socket_addrs().map_err(failed)?;
        let found: Vec<_> = found.collect();
        let listener = std::net::TcpListener::bind(&found[..]).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let address = TcpAddress { host: address.host.clone(), port };
        Ok(Self { listener, address })
    }

    /// Serves `observed`, and the health service in `grpc`, for as long as it is polled.
    pub(crate) async fn serve(self, observed: Observed, grpc: Routes) -> std::io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let (of_health, of_metrics) = (observed.clone(), observed);
        let text = move || {
            let content_type = [(header::CONTENT_TYPE, OPEN_METRICS)];
            std::future::ready((content_type, of_metrics.text()))
        };
        let http: Router = grpc
            .into_axum_router()
            .route("/metrics", get(text))
            .route("/healthz", get(move || std::future::ready(of_health.health())))
            .fallback(|| std::future::ready(StatusCode::NOT_FOUND));
        let (connections, incoming) = mpsc::channel(1);
        let server = Server::builder()
            .accept_http1(true)
            .timeout(REQUEST_TIMEOUT)
            .max_connection_age(CONNECTION_AGE_MAX)
            .add_routes(Routes::from(http))
            .serve_with_incoming(ReceiverStream::new(incoming));
        tokio::select! {
            ended = server => ended.map_err(std::io::Error::other),
            () = accept(listener, connections) => Ok(()),
        }
    }
}

/// Accepts connections, up to a number at the same time.
async fn accept(listener: TcpListener, connections: mpsc::Sender<std::io::Result<LimitedStream>>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let stream = LimitedStream { stream, _permit: permit };
                // The server takes connections until the end.
                let _ = connections.send(Ok(stream)).await;
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// A connection that counts towards the limit until it is dropped.
struct LimitedStream {
    stream: tokio::net::TcpStream,
    _permit: OwnedSemaphorePermit,
}

impl Connected for LimitedStream {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl tokio::io::AsyncRead for LimitedStream {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        into: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl tokio::io::AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::pin::Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
