//! Connects to a store: credentials and options from the environment, and the meaning of its
//! errors.

use super::RemoteOptions;
use super::address::Address;
use crate::error::RemoteError;
use crate::message::Message;
use meetpoint_diagnose::{Change, Remedy, Setting};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ObjectStore, ObjectStoreScheme as Scheme, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// Maximum length of a problem quoted from a server.
const PROBLEM_LETTERS_MAX: usize = 400;

/// The client for requests.
pub(super) type Client = Arc<dyn ObjectStore>;

/// Creates the client of a store; no request is sent yet.
pub(super) fn connect(address: &Address, options: &RemoteOptions) -> Result<Client, RemoteError> {
    connect_with(address, options, &retries())
}

/// As [`connect`], for a caller that repeats requests itself.
pub(super) fn connect_once(
    address: &Address,
    options: &RemoteOptions,
) -> Result<Client, RemoteError> {
    connect_with(address, options, &RetryConfig { max_retries: 0, ..retries() })
}

fn connect_with(
    address: &Address,
    options: &RemoteOptions,
    retries: &RetryConfig,
) -> Result<Client, RemoteError> {
    // A provider that the program installed before is fine too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = settings(&address.scheme, options.anonymous, |name| std::env::var(name).ok());
    let wrong = |error: object_store::Error| RemoteError::Address {
        url: address.text.clone(),
        problem: Message::from(error.to_string()).remedy(credentials(&address.scheme)),
    };
    macro_rules! build {
        ($builder:expr) => {{
            let builder = settings.iter().fold($builder, |builder, (name, value)| {
                // Variables of other programs share the prefix.
                match name.parse() {
                    Ok(key) => builder.with_config(key, value),
                    Err(_) => builder,
                }
            });
            Arc::new(builder.with_retry(retries.clone()).build().map_err(wrong)?) as Client
        }};
    }
    let url = address.url.as_str();
    Ok(match address.scheme {
        Scheme::AmazonS3 => build!(AmazonS3Builder::new().with_url(url)),
        Scheme::GoogleCloudStorage => build!(GoogleCloudStorageBuilder::new().with_url(url)),
        Scheme::MicrosoftAzure => build!(MicrosoftAzureBuilder::new().with_url(url)),
        _ => build!(HttpBuilder::new().with_url(&address.url[..url::Position::BeforePath])),
    })
}

/// Prefixes of the environment variables for a kind of store.
fn prefixes(scheme: &Scheme) -> &'static [&'static str] {
    match scheme {
        Scheme::AmazonS3 => &["AWS_"],
        Scheme::GoogleCloudStorage => &["GOOGLE_", "SERVICE_ACCOUNT"],
        Scheme::MicrosoftAzure => &["AZURE_"],
        _ => &[],
    }
}

/// Names and values of the settings of a store.
fn settings(
    scheme: &Scheme,
    anonymous: bool,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| prefixes(scheme).iter().any(|prefix| name.starts_with(prefix)))
        .filter_map(|name| variable(&name).map(|value| (name.to_ascii_lowercase(), value)))
        .collect();
    // The last one takes precedence; the order of the environment would be arbitrary.
    all.sort();
    let mut set = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
    // A transfer may take long while it makes progress.
    set("timeout", "24 hours");
    set("read_timeout", "60 seconds");
    if anonymous && !prefixes(scheme).is_empty() {
        set("skip_signature", "true");
    }
    let endpoints = [
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT",
        "GOOGLE_BASE_URL",
        "AZURE_STORAGE_ENDPOINT",
        "AZURE_ENDPOINT",
    ];
    let is_plain = |name: &&str| variable(name).is_some_and(|url| url.starts_with("http://"));
    // An endpoint without TLS was chosen explicitly.
    if matches!(scheme, Scheme::Http)
        || endpoints
            .iter()
            .filter(|name| prefixes(scheme).iter().any(|prefix| name.starts_with(prefix)))
            .any(is_plain)
    {
        set("allow_http", "true");
    }
    all
}

/// Retries of a request, enough to bridge an outage of some seconds.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: 5,
        retry_timeout: Duration::from_secs(120),
    }
}

/// The remedy that names the source of a store's credentials.
pub(super) fn credentials(scheme: &Scheme) -> Remedy {
    let from = match scheme {
        Scheme::AmazonS3 => {
            "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY \
             (AWS_SESSION_TOKEN), the region from AWS_REGION, the address of a server that is not \
             Amazon's from AWS_ENDPOINT_URL"
        }
        Scheme::GoogleCloudStorage => {
            "credentials come from GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, which \
             name a file, the address of a server that is not Google's from GOOGLE_BASE_URL"
        }
        Scheme::MicrosoftAzure => {
            "the account comes from AZURE_STORAGE_ACCOUNT_NAME, credentials from \
             AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, the address of a server that is \
             not Microsoft's from AZURE_STORAGE_ENDPOINT"
        }
        // Other schemes are refused when an address is parsed.
        _ => {
            return "fetch it with another program, since web servers receive no credentials"
                .into();
        }
    };
    Remedy::advice(format!("correct the credentials: {from}")).or_by(
        "send none",
        Setting::Anonymous,
        Change::On,
    )
}

/// Converts an error of a store.
pub(super) fn refused(url: String, scheme: &Scheme, error: &object_store::Error) -> RemoteError {
    let text = innermost(error);
    let status = status_of(error, &text);
    let remedy = match status {
        Some(401 | 403) => credentials(scheme),
        Some(404) => match scheme {
            Scheme::Http => "check the spelling of its name".into(),
            _ => "check the spelling of its name, and that of the bucket or container".into(),
        },
        Some(301 | 307 | 308) => {
            Remedy::advice("name the region that it is in").or_all(credentials(scheme))
        }
        Some(429 | 500..) => Remedy::by("try again later, and resume", Setting::Resume, Change::On),
        Some(_) => credentials(scheme),
        None => {
            let variables = match scheme {
                Scheme::AmazonS3 => ", AWS_ENDPOINT_URL and AWS_REGION",
                Scheme::GoogleCloudStorage => " and GOOGLE_BASE_URL",
                Scheme::MicrosoftAzure => " and AZURE_STORAGE_ENDPOINT",
                _ => "",
            };
            format!("check host and network{variables}").into()
        }
    };
    RemoteError::Refused { url, status, problem: text, remedy }
}

/// The messages of the causes on one line, without repetitions.
fn innermost(error: &object_store::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    let mut text = String::new();
    loop {
        let said = last.to_string();
        // The shortest one that still names a cause, since outer messages repeat inner ones.
        if text.is_empty() || text.contains(&said) {
            text = said;
        } else {
            text = format!("{text}: {said}");
        }
        match last.source() {
            Some(source) => last = source,
            None => break,
        }
    }
    let one_line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(PROBLEM_LETTERS_MAX) {
        Some((at, _)) => format!("{}…", &one_line[..at]),
        None => one_line,
    }
}

/// The status of the response.
fn status_of(error: &object_store::Error, text: &str) -> Option<u16> {
    match error {
        object_store::Error::NotFound { .. } => Some(404),
        object_store::Error::PermissionDenied { .. } => Some(403),
        object_store::Error::Unauthenticated { .. } => Some(401),
        object_store::Error::Precondition { .. } => Some(412),
        _ => {
            let behind = text.split_once("status code: ").map(|(_, behind)| behind)?;
            behind.get(..3)?.parse().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scheme, settings};

    #[test]
    fn a_server_without_tls_is_allowed_where_it_is_named_so() {
        let with = |url: &'static str| {
            settings(&Scheme::AmazonS3, false, |name| {
                (name == "AWS_ENDPOINT_URL").then(|| url.to_owned())
            })
        };
        let allows = |all: &[(String, String)]| all.iter().any(|(name, _)| name == "allow_http");
        assert!(allows(&with("http://127.0.0.1:9000")));
        assert!(!allows(&with("https://store.example")));
        let anonymous = settings(&Scheme::GoogleCloudStorage, true, |_| None);
        assert!(anonymous.contains(&("skip_signature".to_owned(), "true".to_owned())));
    }
}
