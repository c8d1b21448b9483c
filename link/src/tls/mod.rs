//! Mutual TLS: certificate files, both ends of the handshake, and errors.
//!
//! In reading order: this file (files and errors), `handshake` (both ends; with the feature `tls`),
//! `certificate` (who a certificate is for), `absent` (stubs without the feature), `keys`
//! (creating certificates).

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod certificate;
#[cfg(feature = "tls")]
mod handshake;
#[cfg(feature = "tls")]
pub mod keys;

#[cfg(not(feature = "tls"))]
pub use absent::{Acceptor, Connector};
#[cfg(feature = "tls")]
pub use handshake::{Acceptor, Connector};

use meetpoint_diagnose::{Change, Command, Remedy, Setting, shown};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncWrite};

/// A stream of bytes in both directions: encrypted or not.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Who presented a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The first bytes of the certificate's SHA-256, in hexadecimal.
    pub fingerprint: String,
    /// Its common name, or else its first URI or DNS name; the fingerprint if it has none.
    pub name: String,
}

/// Certificate files of one end, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authorities that may have signed the other end's certificate.
    pub ca: PathBuf,
    /// This end's certificate and the intermediate certificates.
    pub cert: PathBuf,
    /// This end's private key.
    pub key: PathBuf,
    /// List of revoked certificates, which are not accepted; `None` if there is no list.
    pub crl: Option<PathBuf>,
}

impl TlsFiles {
    /// The files that `meetpoint device keys` writes to a folder: `ca.pem`, `NAME.pem`, `NAME.key`,
    /// and `crl.pem` if it exists.
    pub fn in_folder(folder: &Path, name: &str) -> Self {
        let crl = folder.join("crl.pem");
        Self {
            ca: folder.join("ca.pem"),
            cert: folder.join(format!("{name}.pem")),
            key: folder.join(format!("{name}.key")),
            crl: crl.exists().then_some(crl),
        }
    }

    /// All files.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.ca, &self.cert, &self.key].into_iter().chain(&self.crl).map(PathBuf::as_path)
    }
}

/// Why a certificate is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateFault {
    /// No certificate was presented.
    Missing,
    /// The authority that signed it is not trusted.
    UnknownAuthority,
    /// It has expired.
    Expired,
    /// It is not valid yet, or the clocks differ.
    NotYetValid,
    /// It was revoked.
    Revoked,
    /// It is for other names.
    OtherName,
    /// It was issued for the other end of a connection.
    OtherPurpose,
    /// Anything else.
    Invalid(String),
}

impl CertificateFault {
    /// The fault as a predicate of "the certificate".
    fn predicate(&self) -> String {
        match self {
            Self::Missing => "is missing".to_owned(),
            Self::UnknownAuthority => "is not signed by a CA that is trusted here".to_owned(),
            Self::Expired => "has expired".to_owned(),
            Self::NotYetValid => "is not valid yet".to_owned(),
            Self::Revoked => "has been revoked".to_owned(),
            Self::OtherName => "is for another name".to_owned(),
            Self::OtherPurpose => "is not for this end of a connection".to_owned(),
            Self::Invalid(what) => format!("is invalid ({what})"),
        }
    }

    /// The fault as the other end reported it.
    fn as_answer(&self) -> String {
        match self {
            Self::Missing => "it got none".to_owned(),
            Self::UnknownAuthority => "it does not trust the CA that signed it".to_owned(),
            Self::Expired
            | Self::NotYetValid
            | Self::Revoked
            | Self::OtherName
            | Self::OtherPurpose
            | Self::Invalid(_) => format!("it {}", self.predicate()),
        }
    }
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It connects.
    Host,
    /// It listens.
    Device,
}

impl Side {
    /// The command that issues its certificate again.
    fn issue(self) -> Command {
        match self {
            Self::Host => Command::IssueClient,
            Self::Device => Command::IssueServer { host: None },
        }
    }
}

/// A connection that cannot be encrypted, or whose ends do not trust each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// This program was built without TLS.
    #[error("this program was built without TLS (feature `tls`)")]
    NotBuilt,
    /// A file cannot be read.
    #[error("failed to read {what} in {}: {source}", shown(path))]
    Read {
        /// What it is for.
        what: &'static str,
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The content of a file is invalid.
    #[error("{} does not hold {what}: {problem}", shown(path))]
    Content {
        /// The expected content.
        what: &'static str,
        /// File.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The other end's certificate is not accepted.
    #[error("its certificate {}", fault.predicate())]
    Theirs {
        /// Why not.
        fault: CertificateFault,
        /// The other end.
        side: Side,
        /// The name that it must have; empty for a host's certificate, which may have any name.
        name: String,
    },
    /// This end's certificate is not accepted by the other end.
    #[error("it did not accept the certificate {}: {}", shown(cert), fault.as_answer())]
    Ours {
        /// Why not.
        fault: CertificateFault,
        /// This end.
        side: Side,
        /// File of the certificate.
        cert: PathBuf,
    },
    /// The other end does not speak TLS, or no version or protocol that this end supports.
    #[error("it does not speak TLS 1.3 as a device does ({0})")]
    Protocol(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(std::io::Error),
}

impl TlsError {
    /// The remedy.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::NotBuilt => Remedy::advice("build it with `--features tls`")
                .or("install the wheel, which has TLS")
                .or("connect through a Unix socket"),
            Self::Read { .. } => "name a file that can be read".into(),
            Self::Content { .. } => Remedy::advice("name a file in PEM").or_run(Command::MakeKeys),
            Self::Theirs { fault, side, name } => match fault {
                CertificateFault::Missing => "give the host a certificate and its key".into(),
                CertificateFault::UnknownAuthority => Remedy::advice(
                    "give both ends certificates of the same CA, and its ca.pem to each",
                ),
                CertificateFault::OtherName => {
                    Remedy::advice("connect to a name that it has, or set server_name")
                        .or_run(Command::IssueServer { host: Some(name.clone()) })
                }
                CertificateFault::NotYetValid => {
                    Remedy::advice("set the clocks of both machines").or_run(side.issue())
                }
                CertificateFault::Expired
                | CertificateFault::Revoked
                | CertificateFault::OtherPurpose
                | CertificateFault::Invalid(_) => Remedy::run(side.issue()),
            },
            Self::Ours { fault, side, .. } => match fault {
                CertificateFault::UnknownAuthority => Remedy::advice(
                    "give both ends certificates of the same CA, and its ca.pem to each",
                ),
                CertificateFault::Missing
                | CertificateFault::NotYetValid
                | CertificateFault::OtherName
                | CertificateFault::Expired
                | CertificateFault::Revoked
                | CertificateFault::OtherPurpose
                | CertificateFault::Invalid(_) => Remedy::run(side.issue()),
            },
            Self::Protocol(_) => Remedy::advice("correct the address").or_by(
                "start the device",
                Setting::DeviceCertificates,
                Change::Other,
            ),
            Self::Connection(_) => "try again".into(),
        }
    }
}
