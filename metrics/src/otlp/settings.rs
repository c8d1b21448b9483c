//! Endpoint, interval and resource of the exported metrics; the environment has the values that are
//! not given.
//!
//! The variables are those of OpenTelemetry's specification ("OpenTelemetry Environment Variable
//! Specification", "OTLP Exporter Configuration"). `opentelemetry-otlp` reads headers, compression
//! and temporality; this file reads the rest.

use crate::Error;
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{
    EnvResourceDetector, ResourceDetector, TelemetryResourceDetector,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Default endpoint, from the specification.
const ENDPOINT: &str = "http://localhost:4317";

/// Default interval between exports: a sixth of the specification's, because an epoch may take less
/// than a minute.
const INTERVAL: Duration = Duration::from_secs(10);

/// Default timeout of an export, from the specification.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Range of the interval between exports.
const INTERVALS_S: std::ops::RangeInclusive<f64> = 0.01..=86_400.0;

/// Settings of an exporter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// URL of the collector, such as `http://127.0.0.1:4317`; `None`: that of
    /// `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`, or a collector on
    /// this machine.
    pub endpoint: Option<String>,
    /// Seconds between two exports; `None`: those of `OTEL_METRIC_EXPORT_INTERVAL`, or 10.
    pub interval_seconds: Option<f64>,
    /// Attributes of the resource, which override those of the environment.
    pub attributes: Vec<(String, String)>,
    /// Rank of this process, below `ranks`.
    pub rank: u32,
    /// Number of training processes.
    pub ranks: u32,
}

/// An environment variable that is set and not empty.
pub(super) fn of_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Settings {
    /// Whether the environment disables OpenTelemetry (`OTEL_SDK_DISABLED`).
    pub(super) fn is_disabled(environment: impl Fn(&str) -> Option<String>) -> bool {
        environment("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Refuses protocols that are not supported.
    pub(super) fn check(environment: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        let variables = ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
        let said = variables.into_iter().find_map(|name| Some((name, environment(name)?)));
        match said {
            Some((variable, value)) if !value.trim().eq_ignore_ascii_case("grpc") => {
                Err(Error::Protocol { variable, value })
            }
            _ => Ok(()),
        }
    }

    /// URL of the collector; an invalid one is an error before anything is sent.
    pub(super) fn endpoint(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<String, Error> {
        let variables = ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
        let given = self.endpoint.clone().filter(|endpoint| !endpoint.is_empty());
        let text = given
            .or_else(|| variables.into_iter().find_map(environment))
            .unwrap_or_else(|| ENDPOINT.to_owned());
        match fault_of(&text) {
            None => Ok(text),
            Some(reason) => Err(Error::Endpoint { reason: reason.to_owned() }),
        }
    }

    /// Interval between exports.
    pub(super) fn interval(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Duration, Error> {
        let variable = || milliseconds(&environment, &["OTEL_METRIC_EXPORT_INTERVAL"]);
        let seconds = match self.interval_seconds {
            Some(seconds) => seconds,
            None => variable().unwrap_or(INTERVAL).as_secs_f64(),
        };
        match INTERVALS_S.contains(&seconds) {
            true => Ok(Duration::from_secs_f64(seconds)),
            false => Err(Error::Interval { seconds }),
        }
    }

    /// Timeout of an export.
    pub(super) fn timeout(environment: impl Fn(&str) -> Option<String>) -> Duration {
        let names = ["OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
        milliseconds(&environment, &names).unwrap_or(TIMEOUT)
    }

    /// The resource: our attributes, overridden by those of the environment, overridden by the
    /// given ones.
    pub(super) fn resource(&self, environment: impl Fn(&str) -> Option<String>) -> Resource {
        let process = i64::from(std::process::id());
        let system = rustix::system::uname();
        let host = system.nodename().to_string_lossy().into_owned();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Each loader of a process has its own counters, so they must not share an instance id.
        let instance = format!("{host}-{process}-{:x}", since.as_nanos());
        let ours = [
            KeyValue::new("service.name", "meetpoint"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance),
            KeyValue::new("host.name", host),
            KeyValue::new("process.pid", process),
            KeyValue::new("meetpoint.rank", i64::from(self.rank)),
            KeyValue::new("meetpoint.world_size", i64::from(self.ranks)),
        ];
        let detectors: [Box<dyn ResourceDetector>; 2] =
            [Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())];
        let name = environment("OTEL_SERVICE_NAME");
        let given = self.attributes.iter();
        Resource::builder_empty()
            .with_attributes(ours)
            .with_detectors(&detectors)
            .with_attributes(name.map(|name| KeyValue::new("service.name", name)))
            .with_attributes(given.map(|(key, value)| KeyValue::new(key.clone(), value.clone())))
            .build()
    }
}

/// Why a text is not a valid endpoint. The message does not quote it, because it may contain a
/// password.
fn fault_of(text: &str) -> Option<&'static str> {
    let Ok(uri) = text.parse::<http::Uri>() else { return Some("the endpoint is not a URL") };
    let scheme = uri.scheme_str();
    let Some(authority) = uri.authority().filter(|_| scheme == Some("http")) else {
        return Some(match scheme {
            Some("https") => "the endpoint requires TLS, which is not supported",
            _ => "the endpoint does not begin with http:// and a name",
        });
    };
    if authority.as_str().contains('@') {
        return Some(
            "the endpoint contains a user or a password, which gRPC does not send; set credentials \
             in OTEL_EXPORTER_OTLP_HEADERS",
        );
    }
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let is_port = |port: &str| port.parse::<std::num::NonZero<u16>>().is_ok();
    let is_sound = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    (authority.host().is_empty() || !is_sound).then_some("the endpoint's name or port is invalid")
}

/// The first of these variables that is a number of milliseconds.
fn milliseconds(environment: &impl Fn(&str) -> Option<String>, names: &[&str]) -> Option<Duration> {
    let numbers = names.iter().filter_map(|name| environment(name)?.trim().parse().ok());
    numbers.map(Duration::from_millis).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::Key;

    fn environment(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |asked| pairs.iter().find(|it| it.0 == asked).map(|it| it.1.to_owned())
    }

    #[test]
    fn endpoints_are_checked_and_no_password_is_shown() {
        let nothing = environment(&[]);
        let of = |text: &str| {
            Settings { endpoint: Some(text.to_owned()), ..Settings::default() }.endpoint(&nothing)
        };
        for sound in ["http://127.0.0.1:4317", "http://[::1]:4317/", "http://collector"] {
            assert_eq!(of(sound).unwrap(), sound);
        }
        let refused = [
            ("127.0.0.1:4317", "http://"),
            ("words", "http://"),
            ("ftp://x:1", "http://"),
            ("https://127.0.0.1:4317", "TLS"),
            ("http://exa mple", "not a URL"),
            ("http://127.0.0.1:99999", "port"),
            ("http://127.0.0.1:0", "port"),
            ("http://user:secret@127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS"),
        ];
        for (text, why) in refused {
            let said = of(text).unwrap_err().to_string();
            assert!(said.contains(why) && !said.contains("secret"), "{text}: {said}");
        }
        assert_eq!(of("").unwrap(), ENDPOINT);
        let variables = environment(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://there:1")]);
        assert_eq!(Settings::default().endpoint(variables).unwrap(), "http://there:1");
    }

    #[test]
    fn what_is_given_comes_before_the_environment() {
        let variables = environment(&[
            ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_SERVICE_NAME", "training"),
            ("OTEL_SDK_DISABLED", "True"),
        ]);
        let given = Settings { interval_seconds: Some(0.5), ..Settings::default() };
        let interval = |settings: &Settings| settings.interval(&variables).unwrap();
        assert_eq!(interval(&given), Duration::from_millis(500));
        assert_eq!(interval(&Settings::default()), Duration::from_millis(1500));
        assert_eq!(Settings::timeout(&variables), Duration::from_millis(2500));
        assert!(Settings::is_disabled(&variables) && !Settings::is_disabled(|_| None));
        let name = |settings: &Settings| {
            settings.resource(&variables).get(&Key::new("service.name")).unwrap().to_string()
        };
        assert_eq!(name(&given), "training");
        let attributes = vec![("service.name".to_owned(), "mine".to_owned())];
        assert_eq!(name(&Settings { attributes, ..given }), "mine");
    }

    #[test]
    fn two_exporters_of_a_process_are_distinguished() {
        let instance = || {
            let resource = Settings { rank: 3, ranks: 4, ..Settings::default() }.resource(|_| None);
            let rank = resource.get(&Key::new("meetpoint.rank"));
            assert_eq!(rank, Some(opentelemetry::Value::I64(3)));
            resource.get(&Key::new("service.instance.id")).unwrap().to_string()
        };
        assert_ne!(instance(), instance());
    }

    #[test]
    fn an_unknown_protocol_is_refused() {
        let refused = Settings::check(environment(&[
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ]));
        let said = refused.unwrap_err().to_string();
        assert!(
            said.contains("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL is \"http/protobuf\""),
            "{said}"
        );
        assert!(Settings::check(environment(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")])).is_ok());
        assert!(Settings::check(|_| None).is_ok());
    }

    #[test]
    fn invalid_times_are_refused() {
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            let settings = Settings { interval_seconds: Some(seconds), ..Settings::default() };
            assert!(matches!(settings.interval(|_| None), Err(Error::Interval { .. })));
        }
    }
}
