//! Errors of starting an exporter.

use meetpoint_diagnose::{Diagnose, Remedy};

/// Why an exporter cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An environment variable selects a protocol that is not supported.
    #[error("the environment variable {variable} is {value:?}, but metrics are sent only by gRPC")]
    Protocol {
        /// Name of the variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The endpoint, or another setting of the environment, cannot be used.
    #[error("failed to set up the export of metrics: {reason}")]
    Endpoint {
        /// The message of the OTLP library.
        reason: String,
    },
    /// The interval between exports is out of range.
    #[error("the interval is {seconds} s")]
    Interval {
        /// The requested interval.
        seconds: f64,
    },
    /// A thread or an event loop cannot be created.
    #[error("failed to start the thread that sends metrics: {0}")]
    Thread(#[from] std::io::Error),
}

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Protocol { .. } => "metrics_protocol",
            Self::Endpoint { .. } => "metrics_endpoint",
            Self::Interval { .. } => "metrics_interval",
            Self::Thread(_) => "thread",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Protocol { .. } => Some(
                "set it to \"grpc\" and name the collector's gRPC port, which is 4317 by default"
                    .into(),
            ),
            Self::Endpoint { .. } => Some(
                "name an endpoint without TLS such as \"http://127.0.0.1:4317\"; for TLS, send to \
                 a collector on this machine"
                    .into(),
            ),
            Self::Interval { .. } => Some("give a time from 0.01 s to a day".into()),
            Self::Thread(_) => {
                Some("raise the limits of threads and open files (ulimit -u, -n)".into())
            }
        }
    }
}
