//! What keeps an exporter from being started.

use meetpoint_diagnose::{Diagnose, Remedy};

/// Why no exporter was started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment asks for a protocol that is not there.
    #[error("the environment variable {variable} is {value:?}, but metrics are sent only by gRPC")]
    Protocol {
        /// Name of the variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// The endpoint, or another setting of the environment, cannot be used.
    #[error("failed to set up the export of metrics: {reason}")]
    Endpoint {
        /// In the words of the exporter.
        reason: String,
    },
    /// The time between two exports is out of its range.
    #[error("the interval is {seconds} s")]
    Interval {
        /// What was asked for.
        seconds: f64,
    },
    /// The system gave no thread or no event loop.
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
            Self::Thread(_) => Some("raise the limit of threads (ulimit -u)".into()),
        }
    }
}
