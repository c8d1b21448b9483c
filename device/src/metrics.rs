//! Counters of a device, by client: for the summary at the end, and as text for Prometheus.

use crate::memory::own_memory_bytes;
use crate::{ClientSummary, Listen, ServeOptions};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Clients that are counted one by one; more are counted together, as [`OTHERS`], so that hosts
/// with many certificates do not fill the memory.
const CLIENTS_MAX: usize = 256;

/// Name of the clients beyond that.
const OTHERS: &str = "other";

/// Why a connection was closed before it reached the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionRefusal {
    /// The ends do not trust each other.
    Tls,
    /// It does not speak the protocol of a host.
    Greeting,
    /// It did not identify itself in time.
    Timeout,
    /// There are as many connections as are accepted.
    Full,
    /// The other process belongs to another user, or the connection failed.
    Other,
}

impl ConnectionRefusal {
    fn as_str(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Greeting => "greeting",
            Self::Timeout => "timeout",
            Self::Full => "full",
            Self::Other => "other",
        }
    }
}

/// Why a job was not loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobRefusal {
    /// The call has no token, or another one.
    Token,
    /// There are as many hosts as are served.
    Full,
    /// The device is about to end.
    Draining,
    /// The dataset is not served, or cannot be read.
    Dataset,
    /// It needs more memory than there is.
    Memory,
    /// Another version of the link.
    Version,
    /// Anything else.
    Other,
}

impl JobRefusal {
    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Full => "full",
            Self::Draining => "draining",
            Self::Dataset => "dataset",
            Self::Memory => "memory",
            Self::Version => "version",
            Self::Other => "other",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClientLabel {
    client: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

type Seconds = Counter<f64, AtomicU64>;

/// What one client has used.
#[derive(Debug)]
pub(crate) struct ClientUse {
    pub(crate) jobs: Counter,
    pub(crate) batches: Counter,
    pub(crate) samples: Counter,
    pub(crate) failed: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) read_bytes: Counter,
    cpu: Seconds,
    turn_wait: Seconds,
    slot_wait: Seconds,
}

impl ClientUse {
    /// Adds CPU time of a preparing thread.
    pub(crate) fn add_cpu(&self, time: Duration) {
        self.cpu.inc_by(time.as_secs_f64());
    }

    /// Adds time in which a batch waited for a thread.
    pub(crate) fn add_turn_wait(&self, time: Duration) {
        self.turn_wait.inc_by(time.as_secs_f64());
    }

    /// Adds time in which a prepared batch waited for a free slot.
    pub(crate) fn add_slot_wait(&self, time: Duration) {
        self.slot_wait.inc_by(time.as_secs_f64());
    }

    fn summary(&self, client: &str) -> ClientSummary {
        let ns = |seconds: &Seconds| (seconds.get() * 1e9) as u64;
        ClientSummary {
            client: client.to_owned(),
            jobs: self.jobs.get(),
            batches: self.batches.get(),
            samples: self.samples.get(),
            failed_batches: self.failed.get(),
            sent_bytes: self.sent_bytes.get(),
            read_bytes: self.read_bytes.get(),
            cpu_ns: ns(&self.cpu),
            turn_wait_ns: ns(&self.turn_wait),
            slot_wait_ns: ns(&self.slot_wait),
        }
    }
}

/// Counters by client.
#[derive(Debug, Default)]
struct ByClient {
    jobs: Family<ClientLabel, Counter>,
    batches: Family<ClientLabel, Counter>,
    samples: Family<ClientLabel, Counter>,
    failed: Family<ClientLabel, Counter>,
    sent_bytes: Family<ClientLabel, Counter>,
    read_bytes: Family<ClientLabel, Counter>,
    cpu: Family<ClientLabel, Seconds>,
    turn_wait: Family<ClientLabel, Seconds>,
    slot_wait: Family<ClientLabel, Seconds>,
}

/// Values that are read at each scrape.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Present {
    pub(crate) connections: usize,
    pub(crate) running_jobs: usize,
    pub(crate) busy_threads: usize,
    pub(crate) is_draining: bool,
    /// Unix time at which the certificate expires.
    pub(crate) certificate_expiry: Option<i64>,
}

#[derive(Debug, Default)]
struct Gauges {
    connections: Gauge,
    running_jobs: Gauge,
    busy_threads: Gauge,
    draining: Gauge,
    memory: Gauge,
    certificate_expiry: Gauge,
}

/// The counters of one process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    by_client: ByClient,
    refused_connections: Family<ReasonLabel, Counter>,
    refused_jobs: Family<ReasonLabel, Counter>,
    gauges: Gauges,
    clients: Mutex<BTreeMap<String, Arc<ClientUse>>>,
}

impl Metrics {
    /// All counters at 0.
    pub(crate) fn new(options: &ServeOptions, now: SystemTime) -> Self {
        let mut registry = Registry::with_prefix("meetpoint_agent");
        let (by_client, gauges) = (ByClient::default(), Gauges::default());
        let (refused_connections, refused_jobs) = (Family::default(), Family::default());
        register_clients(&mut registry, &by_client);
        let connections = "Connections that were closed before they reached the service";
        registry.register("refused_connections", connections, Family::clone(&refused_connections));
        registry.register("refused_jobs", "Jobs not loaded", Family::clone(&refused_jobs));
        register_gauges(&mut registry, &gauges);
        if matches!(options.listen, Listen::Tcp { tls: Some(_), .. }) {
            let expiry = "Unix time at which the certificate expires";
            let (name, gauge) = ("certificate_expiry_timestamp", gauges.certificate_expiry.clone());
            registry.register_with_unit(name, expiry, Unit::Seconds, gauge);
        }
        for (name, help, value) in [
            ("hosts_max", "Maximum number of loaders served at the same time", options.hosts),
            ("threads", "Maximum number of batches prepared at the same time", options.threads),
        ] {
            let gauge: Gauge = Gauge::default();
            gauge.set(value.into());
            registry.register(name, help, gauge);
        }
        let start: Gauge<f64, AtomicU64> = Gauge::default();
        start.set(now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64());
        let help = "Unix time of the start";
        registry.register_with_unit("start_time", help, Unit::Seconds, start);
        let clients = Mutex::default();
        Self { registry, by_client, refused_connections, refused_jobs, gauges, clients }
    }

    /// The counters of a client.
    pub(crate) fn client(&self, name: &str) -> Arc<ClientUse> {
        let mut clients = self.clients();
        let is_known = clients.contains_key(name);
        let name = if is_known || clients.len() < CLIENTS_MAX { name } else { OTHERS };
        if let Some(client) = clients.get(name) {
            return Arc::clone(client);
        }
        let label = ClientLabel { client: name.to_owned() };
        let ByClient { jobs, batches, samples, failed, sent_bytes, read_bytes, .. } =
            &self.by_client;
        let count = |family: &Family<ClientLabel, Counter>| family.get_or_create(&label).clone();
        let time = |family: &Family<ClientLabel, Seconds>| family.get_or_create(&label).clone();
        let client = Arc::new(ClientUse {
            jobs: count(jobs),
            batches: count(batches),
            samples: count(samples),
            failed: count(failed),
            sent_bytes: count(sent_bytes),
            read_bytes: count(read_bytes),
            cpu: time(&self.by_client.cpu),
            turn_wait: time(&self.by_client.turn_wait),
            slot_wait: time(&self.by_client.slot_wait),
        });
        clients.insert(name.to_owned(), Arc::clone(&client));
        client
    }

    /// Counts a refused connection.
    pub(crate) fn connection_refused(&self, why: ConnectionRefusal) {
        self.refused_connections.get_or_create(&ReasonLabel { reason: why.as_str() }).inc();
    }

    /// Counts a refused job.
    pub(crate) fn job_refused(&self, why: JobRefusal) {
        self.refused_jobs.get_or_create(&ReasonLabel { reason: why.as_str() }).inc();
    }

    /// What every client has used, by name.
    pub(crate) fn summaries(&self) -> Vec<ClientSummary> {
        self.clients().iter().map(|(name, client)| client.summary(name)).collect()
    }

    /// The counters in the OpenMetrics format.
    pub(crate) fn text(&self, present: Present) -> String {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.gauges.connections.set(gauge(present.connections));
        self.gauges.running_jobs.set(gauge(present.running_jobs));
        self.gauges.busy_threads.set(gauge(present.busy_threads));
        self.gauges.draining.set(present.is_draining.into());
        self.gauges.memory.set(i64::try_from(own_memory_bytes()).unwrap_or(i64::MAX));
        if let Some(expiry) = present.certificate_expiry {
            self.gauges.certificate_expiry.set(expiry);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ClientUse>>> {
        // A panic cannot leave the map inconsistent.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn register_clients(registry: &mut Registry, by: &ByClient) {
    registry.register("jobs", "Jobs that were loaded", by.jobs.clone());
    registry.register("batches", "Batches that were published", by.batches.clone());
    registry.register("samples", "Samples in published batches", by.samples.clone());
    registry.register("failed_batches", "Batches left to the host", by.failed.clone());
    let sent = "Bytes of slots that were written or sent";
    registry.register_with_unit("sent", sent, Unit::Bytes, by.sent_bytes.clone());
    registry.register_with_unit("read", "Bytes of datasets", Unit::Bytes, by.read_bytes.clone());
    let cpu = "CPU time of preparing threads";
    registry.register_with_unit("cpu", cpu, Unit::Seconds, by.cpu.clone());
    let turn = "Time in which batches waited for a thread";
    registry.register_with_unit("turn_wait", turn, Unit::Seconds, by.turn_wait.clone());
    let slot = "Time that prepared batches waited for a free slot at the host";
    registry.register_with_unit("slot_wait", slot, Unit::Seconds, by.slot_wait.clone());
}

fn register_gauges(registry: &mut Registry, gauges: &Gauges) {
    let connections = "Open connections of hosts";
    registry.register("connections", connections, gauges.connections.clone());
    registry.register(
        "running_jobs",
        "Jobs that currently receive batches",
        gauges.running_jobs.clone(),
    );
    let busy = "Threads that prepare a batch now";
    registry.register("busy_threads", busy, gauges.busy_threads.clone());
    registry.register("draining", "1 while the agent drains", gauges.draining.clone());
    let memory = "Anonymous memory of the process";
    registry.register_with_unit("memory", memory, Unit::Bytes, gauges.memory.clone());
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS_MAX, ConnectionRefusal, JobRefusal, Metrics, Present};
    use crate::{Listen, ServeOptions};
    use meetpoint_link::tls::TlsFiles;
    use std::time::{Duration, UNIX_EPOCH};

    fn metrics() -> Metrics {
        let tls = Some(TlsFiles::in_folder("keys".as_ref(), "server"));
        let address = "tcp://127.0.0.1:0".parse().unwrap();
        let listen = Listen::Tcp { address, tls };
        let options = ServeOptions::new("", Vec::new());
        let options = ServeOptions { listen, hosts: 16, threads: 4, ..options };
        Metrics::new(&options, UNIX_EPOCH + Duration::from_secs(5))
    }

    #[test]
    fn every_metric_of_the_documentation_is_in_the_text_and_the_other_way_round() {
        let metrics = metrics();
        let client = metrics.client("trainer \"7\"\n");
        client.jobs.inc();
        client.add_cpu(Duration::from_millis(1500));
        metrics.connection_refused(ConnectionRefusal::Tls);
        metrics.job_refused(JobRefusal::Memory);
        let expiry = Some(2_400_586_190);
        let text = metrics.text(Present { certificate_expiry: expiry, ..Present::default() });
        let name = |line: &str| {
            let end = line.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
            line[..end.unwrap_or(line.len())].to_owned()
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut written: Vec<String> = lines.map(name).collect();
        written.sort_unstable();
        written.dedup();
        let page = include_str!("../../docs/agents.md").lines();
        let rows = page.filter_map(|line| line.strip_prefix("| `meetpoint_agent_"));
        let mut documented: Vec<String> =
            rows.map(|row| name(&format!("meetpoint_agent_{row}"))).collect();
        documented.sort_unstable();
        assert_eq!(written, documented, "{text}");
        for line in [
            r#"meetpoint_agent_jobs_total{client="trainer \"7\"\n"} 1"#,
            r#"meetpoint_agent_cpu_seconds_total{client="trainer \"7\"\n"} 1.5"#,
            r#"meetpoint_agent_refused_jobs_total{reason="memory"} 1"#,
            "meetpoint_agent_hosts_max 16",
            "meetpoint_agent_certificate_expiry_timestamp_seconds 2400586190",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn clients_beyond_the_limit_are_counted_together() {
        let metrics = metrics();
        for number in 0..2 * CLIENTS_MAX {
            metrics.client(&number.to_string()).batches.inc();
        }
        let summaries = metrics.summaries();
        assert_eq!(summaries.len(), CLIENTS_MAX + 1);
        let others = summaries.iter().find(|it| it.client == "other").unwrap();
        assert_eq!(others.batches, CLIENTS_MAX as u64);
    }
}
