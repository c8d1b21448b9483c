//! Both ends of a TLS 1.3 connection in which each presents a certificate.
//!
//! The cryptography comes from `ring`. Files are read again when they change, so certificates can
//! be replaced without a restart.

use super::certificate::{expiry, subject_name};
use super::{CertificateFault, Duplex, PeerIdentity, Side, TlsError, TlsFiles};
use meetpoint_diagnose::shown;
use meetpoint_storage::files::read_regular;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, Error, RootCertStore, ServerConfig,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The ALPN protocol (RFC 7301): a connection for another protocol is refused.
const PROTOCOL: &[u8] = b"meetpoint/1";

/// Longest file that is read, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 20;

/// Bytes of the fingerprint of a certificate in the name of a host.
const FINGERPRINT_BYTES: usize = 8;

/// Length and modification time of each file; the files are read again when it changes.
type Stamp = Vec<Option<(u64, SystemTime)>>;

/// The device's end. Its files may be replaced while it is in use.
#[derive(Debug)]
pub struct Acceptor {
    files: TlsFiles,
    current: Mutex<(Stamp, Arc<ServerConfig>)>,
}

impl Acceptor {
    /// Reads the files.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let current = Mutex::new((stamp(&files), server_config(&files)?));
        Ok(Self { files, current })
    }

    /// Performs the handshake with a host that has connected, and returns who it is. The caller
    /// limits the time.
    pub async fn accept(
        &self,
        stream: TcpStream,
    ) -> Result<(Box<dyn Duplex>, PeerIdentity), TlsError> {
        let acceptor = TlsAcceptor::from(self.config()?);
        let end = End { side: Side::Device, files: &self.files, name: "" };
        let stream = acceptor.accept(stream).await.map_err(|error| end.explain(error))?;
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificate = certificates.first().map_or(&[][..], |first| first);
        let digest = Sha256::digest(certificate);
        let fingerprint = digest.iter().take(FINGERPRINT_BYTES).map(|byte| format!("{byte:02x}"));
        let fingerprint: String = fingerprint.collect();
        let name = subject_name(certificate).unwrap_or_else(|| fingerprint.clone());
        Ok((Box::new(stream), PeerIdentity { fingerprint, name }))
    }

    /// When this end's certificate expires, in seconds of Unix time; `None` while the file cannot
    /// be read.
    pub fn expiry(&self) -> Option<i64> {
        let certificates = read_all::<CertificateDer<'_>>(&self.files.cert, "a certificate");
        expiry(certificates.ok()?.first()?)
    }

    /// The configuration from the current files. While they are invalid, every connection is
    /// refused.
    fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.files);
        if current.0 != now {
            current.1 = server_config(&self.files)?;
            current.0 = now;
        }
        Ok(Arc::clone(&current.1))
    }
}

/// The host's end.
#[derive(Debug)]
pub struct Connector {
    files: TlsFiles,
    name: String,
    config: Arc<ClientConfig>,
}

impl Connector {
    /// Reads the files; `name` is the name that the device's certificate must have.
    pub fn open(files: TlsFiles, name: &str) -> Result<Self, TlsError> {
        let config = client_config(&files)?;
        Ok(Self { files, name: name.to_owned(), config })
    }

    /// Performs the handshake with a device. The device may refuse this end's certificate
    /// afterwards, which the first read reports. The caller limits the time.
    pub async fn connect(&self, stream: TcpStream) -> Result<Box<dyn Duplex>, TlsError> {
        let invalid = |_| TlsError::Theirs {
            fault: CertificateFault::OtherName,
            side: Side::Device,
            name: self.name.clone(),
        };
        let name = ServerName::try_from(self.name.clone()).map_err(invalid)?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Turns an error of reading or writing into its cause.
    pub fn explain(&self, error: std::io::Error) -> TlsError {
        End { side: Side::Host, files: &self.files, name: &self.name }.explain(error)
    }
}

fn stamp(files: &TlsFiles) -> Stamp {
    let of = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    };
    files.all().map(of).collect()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let material = Material::read(files)?;
    let mut verifier = WebPkiClientVerifier::builder_with_provider(material.roots, provider());
    if !material.revoked.is_empty() {
        verifier = verifier.with_crls(material.revoked).only_check_end_entity_revocation();
    }
    let verifier = verifier.build().map_err(|error| unusable(files, &error))?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has cipher suites of TLS 1.3")
        .with_client_cert_verifier(verifier);
    let mut config = builder
        .with_single_cert(material.certificates, material.key)
        .map_err(|error| key_error(files, &error))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Sessions do not resume, so every connection presents its certificate, which may have been
    // revoked.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn client_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, TlsError> {
    let material = Material::read(files)?;
    let mut verifier = WebPkiServerVerifier::builder_with_provider(material.roots, provider());
    if !material.revoked.is_empty() {
        verifier = verifier.with_crls(material.revoked).only_check_end_entity_revocation();
    }
    let verifier = verifier.build().map_err(|error| unusable(files, &error))?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has cipher suites of TLS 1.3")
        .with_webpki_verifier(verifier);
    let mut config = builder
        .with_client_auth_cert(material.certificates, material.key)
        .map_err(|error| key_error(files, &error))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// The contents of the files.
struct Material {
    roots: Arc<RootCertStore>,
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl Material {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        let what = "the certificate of a CA";
        for certificate in read_all::<CertificateDer<'_>>(&files.ca, what)? {
            roots.add(certificate).map_err(|error| TlsError::Content {
                what,
                path: files.ca.clone(),
                problem: error.to_string(),
            })?;
        }
        let certificates = read_all(&files.cert, "a certificate")?;
        let mut keys = read_all(&files.key, "a private key")?;
        let key = keys.pop().expect("there is at least one");
        let revoked = match &files.crl {
            Some(path) => read_all(path, "a list of revoked certificates")?,
            None => Vec::new(),
        };
        Ok(Self { roots: Arc::new(roots), certificates, key, revoked })
    }
}

/// All items of a kind in a file, at least one.
fn read_all<T: PemObject>(path: &Path, what: &'static str) -> Result<Vec<T>, TlsError> {
    let failed = |source| TlsError::Read { what, path: path.to_path_buf(), source };
    let content = |problem| TlsError::Content { what, path: path.to_path_buf(), problem };
    let text = read_regular(path, FILE_BYTES_MAX).map_err(failed)?;
    let items = T::pem_slice_iter(&text).collect::<Result<Vec<T>, _>>();
    let items = items.map_err(|error| content(error.to_string()))?;
    match items.is_empty() {
        true => Err(content("there is none in it".to_owned())),
        false => Ok(items),
    }
}

fn unusable(files: &TlsFiles, error: &dyn std::error::Error) -> TlsError {
    let path = files.crl.as_ref().unwrap_or(&files.ca).clone();
    TlsError::Content { what: "certificates that can be used", path, problem: error.to_string() }
}

fn key_error(files: &TlsFiles, error: &Error) -> TlsError {
    let problem = match error {
        Error::InconsistentKeys(_) => format!("it is not that of {}", shown(&files.cert)),
        error => error.to_string(),
    };
    TlsError::Content { what: "the private key", path: files.key.clone(), problem }
}

/// One end of a connection, for error messages.
struct End<'a> {
    side: Side,
    files: &'a TlsFiles,
    /// The name that the other end must have.
    name: &'a str,
}

impl End<'_> {
    fn explain(&self, error: std::io::Error) -> TlsError {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        let theirs = |fault| TlsError::Theirs {
            fault,
            side: match self.side {
                Side::Host => Side::Device,
                Side::Device => Side::Host,
            },
            name: self.name.to_owned(),
        };
        match inner {
            Some(Error::NoCertificatesPresented) => theirs(CertificateFault::Missing),
            Some(Error::InvalidCertificate(why)) => theirs(of_certificate(why)),
            Some(Error::AlertReceived(alert)) => match of_alert(*alert) {
                Some(fault) => {
                    let cert = self.files.cert.clone();
                    TlsError::Ours { fault, side: self.side, cert }
                }
                None => TlsError::Protocol(format!("alert {alert:?}")),
            },
            Some(other) => TlsError::Protocol(other.to_string()),
            None => TlsError::Connection(error),
        }
    }
}

fn of_certificate(why: &CertificateError) -> CertificateFault {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            CertificateFault::Expired
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            CertificateFault::NotYetValid
        }
        CertificateError::Revoked => CertificateFault::Revoked,
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            CertificateFault::UnknownAuthority
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateFault::OtherName
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            CertificateFault::OtherPurpose
        }
        other => CertificateFault::Invalid(other.to_string()),
    }
}

fn of_alert(alert: AlertDescription) -> Option<CertificateFault> {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            Some(CertificateFault::Missing)
        }
        AlertDescription::UnknownCA => Some(CertificateFault::UnknownAuthority),
        AlertDescription::CertificateExpired => Some(CertificateFault::Expired),
        AlertDescription::CertificateRevoked => Some(CertificateFault::Revoked),
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError => {
            Some(CertificateFault::Invalid("the other end does not say why".to_owned()))
        }
        _ => None,
    }
}
