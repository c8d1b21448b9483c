//! What keeps an exporter from being started.

/// Why no exporter was started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment asks for a protocol that is not there.
    #[error(
        "the environment variable {variable} is {value:?}, and metrics are sent by gRPC alone; set \
         it to \"grpc\", and name the collector's port for gRPC, which is 4317 by default"
    )]
    Protocol {
        /// Name of the variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// The endpoint, or another setting of the environment, cannot be used.
    #[error(
        "failed to prepare the sending of metrics: {reason}; an endpoint is a URL such as \
         \"http://127.0.0.1:4317\", without TLS: for that, send to a collector on this machine"
    )]
    Endpoint {
        /// In the words of the exporter.
        reason: String,
    },
    /// The time between two exports is out of its range.
    #[error("the interval is {seconds} s; it takes a time from 0.01 s to a day")]
    Interval {
        /// What was asked for.
        seconds: f64,
    },
    /// The system gave no thread or no event loop.
    #[error("failed to start the thread that sends metrics: {0}")]
    Thread(#[from] std::io::Error),
}
