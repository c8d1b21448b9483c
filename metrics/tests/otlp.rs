//! An exporter and collectors on the loopback interface: the service that OpenTelemetry generates
//! from its protocol definition, one that does not exist, and ones that fail or do not answer.

use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_metrics::{CompletedEpoch, ConsumedBatch, Exporter, Prometheus, Settings};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status};

/// A limit that no test reaches.
const LIMIT: Duration = Duration::from_secs(300);

/// The answer of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CollectorReply {
    Success,
    /// An error for the first request, then success.
    Unavailable,
    Never,
}

struct Service {
    reply: CollectorReply,
    requests: std::sync::atomic::AtomicU32,
    received: Sender<ExportMetricsServiceRequest>,
}

#[tonic::async_trait]
impl MetricsService for Service {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let before = self.requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // The test may have ended.
        let _ = self.received.send(request.into_inner());
        match self.reply {
            CollectorReply::Unavailable if before == 0 => {
                Err(Status::new(Code::Internal, "not yet"))
            }
            CollectorReply::Never => std::future::pending().await,
            _ => Ok(Response::new(ExportMetricsServiceResponse::default())),
        }
    }
}

/// Starts a collector; returns its address and the requests that it receives. It ends with its
/// thread.
fn collector(reply: CollectorReply) -> (SocketAddr, Receiver<ExportMetricsServiceRequest>) {
    let (received, requests) = channel();
    let (bound, address) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("there is an event loop").block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("it binds");
            bound.send(listener.local_addr().expect("it is bound")).expect("it is waited for");
            let service = Service { reply, requests: 0.into(), received };
            let server = tonic::transport::Server::builder()
                .add_service(MetricsServiceServer::new(service))
                .serve_with_incoming(TcpListenerStream::new(listener));
            server.await.expect("it serves");
        });
    });
    (address.recv().expect("it listens"), requests)
}

/// An exporter that sends on request and when it is closed.
fn exporter(address: SocketAddr) -> Exporter {
    let settings = Settings {
        endpoint: Some(format!("http://{address}")),
        interval_seconds: Some(3600.0),
        attributes: vec![("deployment.environment.name".to_owned(), "test".to_owned())],
        rank: 1,
        ranks: 2,
    };
    Exporter::start(&settings).expect("it starts")
}

fn batch(source: &'static str) -> ConsumedBatch {
    let waited = Duration::from_millis(2);
    ConsumedBatch { source, samples: 8, bytes: 6144, replaced: 0, skipped: 0, waited }
}

const ENDED: CompletedEpoch =
    CompletedEpoch { revoked: 3, stalls: 1, host_cpu_seconds: 0.5, device_busy_seconds: 0.25 };

fn metrics(request: &ExportMetricsServiceRequest) -> impl Iterator<Item = &Metric> {
    request.resource_metrics.iter().flat_map(|of| &of.scope_metrics).flat_map(|of| &of.metrics)
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let value = attributes.iter().find(|it| it.key == key)?.value.as_ref()?.value.as_ref()?;
    match value {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

/// Sum of a counter, of all or of those points that have this attribute.
fn sum(request: &ExportMetricsServiceRequest, name: &str, with: Option<(&str, &str)>) -> f64 {
    let metric = metrics(request).find(|metric| metric.name == name);
    let Some(metric::Data::Sum(sum)) = metric.and_then(|metric| metric.data.as_ref()) else {
        return 0.0;
    };
    assert!(sum.is_monotonic && sum.aggregation_temporality == 2, "{name} is a cumulative sum");
    let points = sum.data_points.iter().filter(|point| {
        with.is_none_or(|(key, value)| text(&point.attributes, key) == Some(value))
    });
    points
        .map(|point| match point.value {
            Some(Value::AsInt(value)) => value as f64,
            Some(Value::AsDouble(value)) => value,
            None => 0.0,
        })
        .sum()
}

fn flush(exporter: &Exporter) -> Result<(), String> {
    exporter.flush().wait(LIMIT).expect("an export ends")
}

#[test]
fn a_collector_receives_the_counters() {
    let (address, requests) = collector(CollectorReply::Success);
    let exporter = exporter(address);
    exporter.batch(&batch("host"));
    exporter.batch(&ConsumedBatch { replaced: 2, skipped: 1, ..batch("device") });
    exporter.batch(&batch("device"));
    exporter.epoch(&ENDED);
    flush(&exporter).unwrap();
    let request = requests.recv().unwrap();
    for (name, with, wanted) in [
        ("meetpoint.batches", None, 3.0),
        ("meetpoint.batches", Some(("source", "host")), 1.0),
        ("meetpoint.batches", Some(("source", "device")), 2.0),
        ("meetpoint.samples", None, 24.0),
        ("meetpoint.handed_out", None, 3.0 * 6144.0),
        ("meetpoint.damaged_samples", Some(("action", "replace")), 2.0),
        ("meetpoint.damaged_samples", Some(("action", "skip")), 1.0),
        ("meetpoint.epochs", None, 1.0),
        ("meetpoint.revoked_batches", None, 3.0),
        ("meetpoint.device_stalls", None, 1.0),
        ("meetpoint.host_cpu", None, 0.5),
        ("meetpoint.device_busy", None, 0.25),
    ] {
        assert_eq!(sum(&request, name, with), wanted, "{name} {with:?}");
    }
    let wait = metrics(&request).find(|metric| metric.name == "meetpoint.wait").unwrap();
    assert_eq!(wait.unit, "s");
    let Some(metric::Data::Histogram(wait)) = &wait.data else { panic!("it is a histogram") };
    let point = &wait.data_points[0];
    assert_eq!((point.count, point.bucket_counts.len()), (3, 12));
    assert!((point.sum.unwrap() - 0.006).abs() < 1e-12);
    // 2 ms lie over 1.6 ms and not over 6.4 ms.
    assert_eq!(point.bucket_counts[3], 3);
    assert!((point.explicit_bounds[10] - 104.8576).abs() < 1e-9);
    let resource = &request.resource_metrics[0].resource.as_ref().unwrap().attributes;
    assert_eq!(text(resource, "deployment.environment.name"), Some("test"));
    assert!(text(resource, "service.name").is_some());
    let rank = resource.iter().find(|it| it.key == "meetpoint.rank").unwrap();
    let rank = rank.value.as_ref().unwrap().value.as_ref();
    assert_eq!(rank, Some(&any_value::Value::IntValue(1)));

    exporter.batch(&batch("host"));
    flush(&exporter).unwrap();
    assert_eq!(sum(&requests.recv().unwrap(), "meetpoint.batches", None), 4.0);
    assert_eq!((exporter.status().exports, exporter.status().failures), (2, 0));
    exporter.close();
    assert!(exporter.is_closed() && exporter.take_failure().is_none());
}

#[test]
fn the_instruments_are_those_of_prometheus() {
    let (address, requests) = collector(CollectorReply::Success);
    let (exporter, prometheus) = (exporter(address), Prometheus::new());
    let consumed = ConsumedBatch { replaced: 1, ..batch("host") };
    exporter.batch(&consumed);
    prometheus.batch(&consumed);
    exporter.epoch(&ENDED);
    prometheus.epoch(&ENDED);
    flush(&exporter).unwrap();
    let request = requests.recv().unwrap();
    // The rule of OpenTelemetry's specification ("Prometheus and OpenMetrics Compatibility").
    let name_of = |metric: &Metric| {
        let unit = match metric.unit.as_str() {
            "By" => "_bytes",
            "s" => "_seconds",
            _ => "",
        };
        format!("{}{unit}", metric.name.replace('.', "_"))
    };
    let mut sent: Vec<_> = metrics(&request).map(name_of).collect();
    let text = prometheus.text();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut scraped: Vec<_> =
        types.filter_map(|it| it.split(' ').next()).map(str::to_owned).collect();
    sent.sort();
    scraped.sort();
    assert_eq!(sent, scraped);
}

#[test]
fn closing_sends_what_is_left() {
    let (address, requests) = collector(CollectorReply::Success);
    let exporter = exporter(address);
    exporter.batch(&batch("device"));
    exporter.close();
    assert_eq!(sum(&requests.recv().unwrap(), "meetpoint.batches", None), 1.0);
    assert!(exporter.flush().wait(LIMIT).unwrap().is_err());
    exporter.close();
}

#[test]
fn counters_are_exported_at_intervals() {
    let (address, requests) = collector(CollectorReply::Success);
    let endpoint = Some(format!("http://{address}"));
    let settings = Settings { endpoint, interval_seconds: Some(0.01), ..Settings::default() };
    let exporter = Exporter::start(&settings).unwrap();
    exporter.batch(&batch("host"));
    for _ in 0..3 {
        assert_eq!(sum(&requests.recv().unwrap(), "meetpoint.batches", None), 1.0);
    }
}

#[test]
fn an_unreachable_collector_is_reported_once() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let exporter = exporter(address);
    exporter.batch(&batch("host"));
    let failure = flush(&exporter).unwrap_err();
    assert!(failure.contains(&format!("failed to send metrics to http://{address}")), "{failure}");
    flush(&exporter).unwrap_err();
    assert_eq!(exporter.take_failure(), Some(failure));
    flush(&exporter).unwrap_err();
    exporter.close();
    assert_eq!(exporter.take_failure(), None);
    assert!(exporter.status().failures >= 3);
}

#[test]
fn a_silent_collector_delays_nobody() {
    // One answers no request; the other not even the connection's first bytes.
    let (of_service, requests) = collector(CollectorReply::Never);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [of_service, listener.local_addr().unwrap()] {
        let exporter = exporter(address);
        // Without counts, nothing is sent.
        assert_eq!((flush(&exporter), exporter.status().exports), (Ok(()), 0));
        exporter.batch(&batch("host"));
        let flushed = exporter.flush();
        assert!(flushed.wait(Duration::from_millis(50)).is_none());
        exporter.batch(&batch("host"));
        exporter.close();
        assert!(flushed.wait(LIMIT).unwrap().unwrap_err().contains("no answer"));
        assert_eq!(exporter.status().exports, 0);
        assert!(exporter.take_failure().is_some());
    }
    assert_eq!(sum(&requests.recv().unwrap(), "meetpoint.batches", None), 1.0);
}

#[test]
fn a_failed_export_costs_no_count() {
    let (address, requests) = collector(CollectorReply::Unavailable);
    let exporter = exporter(address);
    exporter.batch(&batch("host"));
    let failure = flush(&exporter).unwrap_err();
    assert!(failure.contains("Internal"), "{failure}");
    exporter.batch(&batch("host"));
    flush(&exporter).unwrap();
    let last = requests.iter().nth(1).unwrap();
    assert_eq!(sum(&last, "meetpoint.batches", None), 2.0);
}

#[test]
fn invalid_endpoints_are_refused() {
    for endpoint in ["https://127.0.0.1:4317", "http://", "http://exa mple"] {
        let settings = Settings { endpoint: Some(endpoint.to_owned()), ..Settings::default() };
        let refused = Exporter::start(&settings).map(|_| ()).unwrap_err();
        assert_eq!(refused.cause(), "metrics_endpoint", "{endpoint}: {refused}");
        let refused = refused.in_full(Surface::CommandLine);
        assert!(refused.contains("http://127.0.0.1:4317"), "{endpoint}: {refused}");
    }
}
