//! The process: starts, listens, and ends on request.

use crate::agent::{Agent, Counts};
use crate::cgroup::Guard;
use crate::extents::ServedExtents;
use crate::link::ConnectionAcceptor;
use crate::listener::{self, Listener};
use crate::metrics::{JobRefusal, Metrics};
use crate::monitoring::{MonitoringListener, Observed};
use crate::notify::{ServiceState, notify};
use crate::owner::Owner;
use crate::reporting::Reporter;
use crate::resources::DeviceResources;
use crate::roots::Roots;
use crate::socket::remove_private_folder;
use crate::stream::StreamEnvironment;
use crate::turns::Turns;
use crate::{Error, Listen, Ready, ServeNotice, ServeOptions, ServeSummary, Shutdown, cores};
use meetpoint_format::wire::device_server::DeviceServer;
use meetpoint_format::wire::{MESSAGE_BYTES_MAX, PROTOCOL_VERSION};
use meetpoint_link::{DeviceInfo, Targets, Token, refusal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Code, Request, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// How often the process checks whether to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a worker may take to end at the end of the process; storage that hangs takes longer.
const ENDING_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval and timeout of keep-alive pings: a host that hangs for longer loses the device.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Calls that one connection may have open.
const CALLS_MAX: u32 = 16;

fn pid_number(pid: rustix::process::Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Serves until `stop` asks it to end, its hosts have disconnected ([`ServeOptions::once`]), or no
/// host has connected in time.
///
/// Blocks; prints nothing. `ready` is called once, when hosts can connect. The socket is removed at
/// the end. A device with [`ServeOptions::once`] ends at the first request, without draining.
pub fn serve(
    options: ServeOptions,
    ready: impl FnOnce(&Ready),
    stop: Arc<Shutdown>,
) -> Result<ServeSummary, Error> {
    serve_boxed(options, Box::new(ready), stop)
}

/// [`serve()`], compiled once instead of in each crate that calls it.
fn serve_boxed(
    options: ServeOptions,
    ready: Box<dyn FnOnce(&Ready) + '_>,
    stop: Arc<Shutdown>,
) -> Result<ServeSummary, Error> {
    options.emulation.check()?;
    if !(1..=ServeOptions::HOSTS_MAX).contains(&options.hosts) {
        return Err(Error::Hosts { given: options.hosts });
    }
    let threads_max = if options.emulation.is_on() { 1 } else { ServeOptions::THREADS_MAX };
    if !(1..=threads_max).contains(&options.threads) {
        return Err(Error::Threads { given: options.threads, most: threads_max });
    }
    let is_remote = matches!(options.listen, Listen::Tcp { .. });
    let extents = ServedExtents::open(&options.extents, is_remote, options.engine)?;
    let roots = match options.extents.is_empty() || !options.roots.is_empty() {
        true => Roots::find(&options.roots, is_remote)?,
        false => Roots::none(),
    };
    let token = listener::token(&options)?;
    let choice = cores::choose(&options.emulation)?;
    let guard = match options.cgroup {
        true => Some(Guard::enter(&options.emulation, Path::new("/"), std::process::id())?),
        false => None,
    };
    let (mut device, mut notices) = describe(&options, &roots, choice.core)?;
    match is_remote {
        true => device.roots.extend(extents.names().map(Into::into)),
        false => device.roots.extend(extents.paths()),
    }
    notices.extend(extents.notices());
    notices.extend(choice.notice);
    if options.once {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
            .map_err(|error| Error::Process {
                action: "watch the process that started this one",
                source: error.into(),
            })?;
        let is_orphan = |parent| rustix::process::getppid().map(pid_number) != Some(parent);
        if options.parent.is_some_and(is_orphan) {
            options.listen.socket().map(remove_private_folder);
            return Err(Error::Orphan);
        }
    }
    let listener = Listener::bind(&options)?;
    let monitoring = options.metrics.as_ref().map(MonitoringListener::bind).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Process { action: "start the network runtime", source })?;
    let ready_now = Ready {
        endpoint: listener.endpoint(&options),
        metrics: monitoring.as_ref().map(|monitoring| monitoring.address.clone()),
        device,
        notices,
    };
    let process = Process {
        owner: Arc::new(Owner::new(options.hosts as usize)),
        turns: Arc::new(Turns::new(options.threads)),
        metrics: Arc::new(Metrics::new(&options, SystemTime::now())),
        resources: DeviceResources::new(&options, (roots, extents), is_remote),
        token,
        core: choice.core,
        options: Arc::new(options),
        stop,
    };
    let summary = runtime.block_on(process.run((&listener, monitoring), &ready_now, ready));
    // Only calls that wait for storage still run; do not wait for them.
    runtime.shutdown_background();
    let cgroup_throttled_ns = guard.as_ref().and_then(Guard::throttled_ns);
    summary.map(|summary| ServeSummary { cgroup_throttled_ns, ..summary })
}

struct Process {
    owner: Arc<Owner>,
    turns: Arc<Turns>,
    metrics: Arc<Metrics>,
    resources: DeviceResources,
    token: Option<Token>,
    core: Option<usize>,
    options: Arc<ServeOptions>,
    stop: Arc<Shutdown>,
}

impl Process {
    async fn run(
        self,
        (listener, monitoring): (&Listener, Option<MonitoringListener>),
        ready_now: &Ready,
        ready: Box<dyn FnOnce(&Ready) + '_>,
    ) -> Result<ServeSummary, Error> {
        let (hosts, incoming) = mpsc::channel(1);
        let reporter = Reporter::new(self.options.report, Instant::now());
        let hosts_max = self.options.hosts as usize;
        let reports = (reporter, Arc::clone(&self.metrics));
        let acceptor =
            ConnectionAcceptor::new(listener, Arc::clone(&self.owner), hosts, hosts_max, reports);
        let acceptor = acceptor.map_err(|source| Error::Process {
            action: "watch the connections that arrive",
            source,
        })?;
        let refused = acceptor.refused();
        let (counts, batches) = (Arc::new(Counts::default()), Arc::new(AtomicU64::new(0)));
        let environment = StreamEnvironment {
            owner: Arc::clone(&self.owner),
            options: Arc::clone(&self.options),
            core: self.core,
            turns: Arc::clone(&self.turns),
            metrics: Arc::clone(&self.metrics),
            batches: Arc::clone(&batches),
            failures: (!self.options.once)
                .then(|| Arc::new(Reporter::new(self.options.report, Instant::now()))),
        };
        let agent =
            Agent::new(self.resources.clone(), environment, &ready_now.device, Arc::clone(&counts));
        let service = DeviceServer::new(agent)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let (token, metrics) = (self.token.clone(), Arc::clone(&self.metrics));
        let service = InterceptedService::new(service, move |request: Request<()>| {
            let checked = check_token(token.as_ref(), request);
            if checked.is_err() {
                metrics.job_refused(JobRefusal::Token);
            }
            checked
        });
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<DeviceServer<Agent>>().await;
        let observed = Observed {
            metrics: Arc::clone(&self.metrics),
            owner: Arc::clone(&self.owner),
            turns: Arc::clone(&self.turns),
            tls: listener.tls(),
        };
        let monitored = async {
            match monitoring {
                Some(monitoring) => {
                    monitoring.serve(observed, Routes::new(health_service.clone())).await
                }
                None => std::future::pending().await,
            }
        };
        let server = Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE))
            .max_concurrent_streams(CALLS_MAX)
            .add_service(service)
            .add_service(health_service.clone())
            .serve_with_incoming(ReceiverStream::new(incoming));
        ready(ready_now);
        self.tell_service_manager(ServiceState::Ready);
        let mut cut_off = false;
        tokio::select! {
            () = acceptor.run() => {}
            ended = server => if let Err(error) = ended {
                let source = std::io::Error::other(error);
                return Err(Error::Process { action: "serve hosts", source });
            },
            ended = monitored => if let Err(source) = ended {
                return Err(Error::Process { action: "serve metrics", source });
            },
            is_cut_off = self.until_end(&health) => cut_off = is_cut_off,
        }
        self.end_worker().await;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ok(ServeSummary {
            jobs: count(&counts.jobs),
            batches: count(&batches),
            connections_refused: count(&refused),
            loads_refused: count(&counts.loads_refused),
            cut_off,
            clients: self.metrics.summaries(),
            cgroup_throttled_ns: None,
        })
    }

    /// Returns when the process must end, and whether hosts that still work with it are cut off.
    async fn until_end(&self, health: &HealthReporter) -> bool {
        let start = Instant::now();
        loop {
            let over = (self.options.once && self.once_is_over(start))
                || self
                    .options
                    .idle_timeout
                    .is_some_and(|limit| self.owner.idle_for().is_some_and(|idle| idle >= limit));
            if over {
                return false;
            }
            if self.stop.is_asked() {
                return !self.options.once && self.drain(health).await;
            }
            self.owner.forget_old_offers(Instant::now());
            self.owner.change(POLL_INTERVAL).await;
        }
    }

    /// Begins no more batches, and waits until hosts have what was prepared and have left. Returns
    /// whether some have not, because time is up or a second request arrived.
    async fn drain(&self, health: &HealthReporter) -> bool {
        let start = Instant::now();
        self.tell_service_manager(ServiceState::Stopping);
        self.owner.drain();
        health.set_not_serving::<DeviceServer<Agent>>().await;
        health.set_service_status("", ServingStatus::NotServing).await;
        while self.owner.is_running() {
            if self.stop.is_at_once() || start.elapsed() >= self.options.drain_timeout {
                return true;
            }
            self.owner.change(POLL_INTERVAL).await;
        }
        false
    }

    /// A device that a host starts for itself is no service.
    fn tell_service_manager(&self, state: ServiceState) {
        if !self.options.once
            && let Err(error) = notify(state)
        {
            (self.options.report)(&format!("failed to notify systemd: {error}"));
        }
    }

    fn once_is_over(&self, start: Instant) -> bool {
        let first_is_late = start.elapsed() >= ServeOptions::FIRST_HOST_TIMEOUT;
        self.owner.hosts_gone() || (first_is_late && !self.owner.had_host())
    }

    /// Ends a running job and waits for its worker, for a bounded time.
    async fn end_worker(&self) {
        self.owner.close();
        let start = Instant::now();
        while self.owner.is_running() && start.elapsed() < ENDING_TIMEOUT {
            self.owner.change(POLL_INTERVAL).await;
        }
    }
}

/// Refuses a call without the required token.
fn check_token(token: Option<&Token>, request: Request<()>) -> Result<Request<()>, Status> {
    let refuse = |said: &str| {
        let remedy = "give the host the file of the device's token (token_file)".into();
        Err(refusal::status(Code::Unauthenticated, said.to_owned(), Some(&remedy)))
    };
    match token.map(|token| token.is_in(request.metadata())) {
        None | Some(Some(true)) => Ok(request),
        Some(None) => refuse("it asks for a token, and the call has none"),
        Some(Some(false)) => refuse("it asks for another token than that of the call"),
    }
}

/// The description of the device, with its missing features.
fn describe(
    options: &ServeOptions,
    roots: &Roots,
    core: Option<usize>,
) -> Result<(DeviceInfo, Vec<ServeNotice>), Error> {
    let chosen = meetpoint_storage::open_engine(options.engine, 1)?;
    let notes = chosen.engine.notes().iter().chain(&chosen.note);
    let notices = notes.cloned().map(ServeNotice::Storage).collect();
    let core = core.map(|core| u32::try_from(core).expect("a machine has fewer cores than 2^32"));
    let emulation = &options.emulation;
    let emulation = emulation.is_on().then_some(Targets { core, ..emulation.targets });
    let info = DeviceInfo {
        protocol_version: PROTOCOL_VERSION,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        process_id: std::process::id(),
        // Hosts on a network learn nothing about the file system.
        roots: match &options.listen {
            Listen::Socket(_) => roots.paths().map(Into::into).collect(),
            Listen::Tcp { .. } => roots.names().map(Into::into).collect(),
        },
        emulation,
        storage_engine: chosen.engine.name().to_owned(),
        storage_note: chosen.note,
        works_for: None,
        hosts: Vec::new(),
        remote_hosts: Vec::new(),
        hosts_max: options.hosts,
        threads: options.threads,
    };
    Ok((info, notices))
}
