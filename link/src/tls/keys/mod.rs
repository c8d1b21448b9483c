//! Creates a certificate authority, and certificates for devices and hosts that it signs.
//!
//! A folder holds `ca.pem` and `ca.key`, a `NAME.pem` and `NAME.key` for each certificate, the list
//! `issued.txt` with the serial numbers, and `crl.pem` with the revoked ones. Private keys
//! are files with mode 0600. Keys are ECDSA P-256. In reading order: this file ([`Authority`]),
//! `issued` (the list), `files` (how files are read and replaced), `error`.

mod error;
mod files;
mod issued;

pub use error::KeysError;

use super::handshake::FILE_BYTES_MAX;
use error::{damaged, io};
use files::{read_text, write};
use issued::{IssuedCertificate, IssuedList};
use meetpoint_format::checksum::hexadecimal;
use meetpoint_storage::files::read_regular;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevocationReason, RevokedCertParams, SerialNumber,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum validity of a certificate, in days, which is also the validity of an authority.
pub const DAYS_MAX: u32 = 3650;

/// Certificates are valid from this long before their creation, because clocks differ.
const EARLIER: Duration = Duration::from_secs(3600);

const DAY: Duration = Duration::from_secs(86_400);

/// The subject of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A device with these host names and IP addresses. Its files are `server.*`.
    Device {
        /// At least one.
        hosts: Vec<String>,
    },
    /// A host. Its files are `NAME.*`.
    Host {
        /// Letters, digits, `-`, `_` and `.`.
        name: String,
    },
}

impl Subject {
    /// The stem of its file names.
    fn file(&self) -> &str {
        match self {
            Self::Device { .. } => "server",
            Self::Host { name } => name,
        }
    }
}

/// The period in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// First moment.
    pub begin: SystemTime,
    /// Last moment.
    pub end: SystemTime,
}

impl Validity {
    /// Begins now and lasts this number of days.
    pub fn days(days: u32) -> Self {
        let now = SystemTime::now();
        Self { begin: now - EARLIER, end: now + DAY * days }
    }
}

/// The authority of a folder.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Opens the authority of a folder; creates folder and authority if they do not exist.
    pub fn open_or_make(folder: &Path) -> Result<Self, KeysError> {
        std::fs::create_dir_all(folder).map_err(io("create", folder))?;
        let (key_path, cert_path) = (folder.join("ca.key"), folder.join("ca.pem"));
        let is_new = !key_path.exists();
        let key = match read_text(&key_path) {
            Ok(text) => KeyPair::from_pem(&text).map_err(damaged(&key_path))?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if cert_path.exists() {
                    let (certificate, key) = (cert_path, key_path);
                    return Err(KeysError::NoAuthorityKey { certificate, key });
                }
                let key = KeyPair::generate().map_err(damaged(&key_path))?;
                let certificate = authority(&key).self_signed(&key).map_err(damaged(&cert_path))?;
                write(&key_path, &key.serialize_pem(), 0o600, false)?;
                write(&cert_path, &certificate.pem(), 0o644, false)?;
                key
            }
            Err(source) => return Err(io("read", &key_path)(source)),
        };
        let issuer = Issuer::new(authority(&key), key);
        let authority = Self { folder: folder.to_path_buf(), issuer };
        if is_new {
            // If the list exists from the start, a running device rereads it and needs no restart
            // to refuse a host.
            IssuedList::create(folder)?;
            authority.revoke(&[])?;
        }
        Ok(authority)
    }

    /// Issues a certificate with a new key and returns both files. Existing ones are replaced only
    /// with `replace`.
    pub fn issue(
        &self,
        subject: &Subject,
        validity: Validity,
        replace: bool,
    ) -> Result<[PathBuf; 2], KeysError> {
        let name = subject.file();
        check_name(subject)?;
        let (cert_path, key_path) =
            (self.folder.join(format!("{name}.pem")), self.folder.join(format!("{name}.key")));
        for path in [&cert_path, &key_path] {
            if !replace && path.exists() {
                return Err(KeysError::Exists { path: path.clone() });
            }
        }
        let key = KeyPair::generate().map_err(damaged(&key_path))?;
        let params = self.params(subject, validity, &key)?;
        let serial = params.serial_number.clone().expect("it was set");
        let certificate = params.signed_by(&key, &self.issuer).map_err(damaged(&cert_path))?;
        // Listed before the certificate exists, so that every existing certificate can be revoked.
        let digest = hexadecimal(&Sha256::digest(certificate.der()));
        let listed = IssuedCertificate { digest, serial: serial.to_bytes(), revoked: None };
        IssuedList::append(&self.folder, &listed)?;
        write(&key_path, &key.serialize_pem(), 0o600, replace)?;
        write(&cert_path, &certificate.pem(), 0o644, replace)?;
        Ok([cert_path, key_path])
    }

    fn params(
        &self,
        subject: &Subject,
        validity: Validity,
        key: &KeyPair,
    ) -> Result<CertificateParams, KeysError> {
        let (hosts, of, usage) = match subject {
            Subject::Device { hosts } => {
                (hosts.clone(), "device", ExtendedKeyUsagePurpose::ServerAuth)
            }
            Subject::Host { .. } => (Vec::new(), "host", ExtendedKeyUsagePurpose::ClientAuth),
        };
        let wrong = |_| KeysError::Name { name: hosts.join(", "), of };
        let mut params = CertificateParams::new(hosts.clone()).map_err(wrong)?;
        let name = hosts.first().map_or_else(|| subject.file(), String::as_str);
        params.distinguished_name = named(name);
        params.extended_key_usages = vec![usage];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.not_before = time(validity.begin);
        params.not_after = time(validity.end);
        // A new key has a new serial number.
        let mut serial = Sha256::digest(key.public_key_raw())[..16].to_vec();
        serial[0] &= 0x7f;
        params.serial_number = Some(SerialNumber::from(serial));
        Ok(params)
    }

    /// Revokes certificates that this authority issued, and writes the list of all revoked ones.
    /// Returns the list's file.
    pub fn revoke(&self, certificates: &[PathBuf]) -> Result<PathBuf, KeysError> {
        let mut issued = IssuedList::read(&self.folder)?;
        let now = seconds(SystemTime::now());
        for certificate in certificates {
            let bytes =
                read_regular(certificate, FILE_BYTES_MAX).map_err(io("read", certificate))?;
            let der = CertificateDer::from_pem_slice(&bytes).map_err(|error| {
                KeysError::Damaged { path: certificate.clone(), problem: error.to_string() }
            })?;
            if !issued.revoke(&hexadecimal(&Sha256::digest(&der)), now) {
                let (certificate, folder) = (certificate.clone(), self.folder.clone());
                return Err(KeysError::NotIssued { certificate, folder });
            }
        }
        let revoked = issued.revoked().map(|(serial, revoked)| RevokedCertParams {
            serial_number: SerialNumber::from(serial.to_vec()),
            revocation_time: time(UNIX_EPOCH + Duration::from_secs(revoked)),
            reason_code: Some(RevocationReason::Unspecified),
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: time(SystemTime::now() - EARLIER),
            next_update: time(SystemTime::now() + DAY * DAYS_MAX),
            crl_number: SerialNumber::from(now.to_be_bytes().to_vec()),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let crl = self.folder.join("crl.pem");
        let pem = list.signed_by(&self.issuer).and_then(|list| list.pem());
        let pem = pem.map_err(damaged(&crl))?;
        issued.save()?;
        write(&crl, &pem, 0o644, true)?;
        Ok(crl)
    }
}

/// The content of an authority's certificate. It depends only on the key, so its file need not be
/// read.
fn authority(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let digest = hexadecimal(&Sha256::digest(key.public_key_raw()));
    params.distinguished_name = named(&format!("Meetpoint device CA {}", &digest[..8]));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = SystemTime::now();
    params.not_before = time(now - EARLIER);
    params.not_after = time(now + DAY * DAYS_MAX);
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

fn check_name(subject: &Subject) -> Result<(), KeysError> {
    let is_plain = |name: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !name.is_empty() && !name.starts_with('.') && name.bytes().all(known)
    };
    let wrong = |name: &str, of| Err(KeysError::Name { name: name.to_owned(), of });
    match subject {
        Subject::Device { hosts } => {
            let is_host =
                |name: &String| is_plain(name) || name.parse::<std::net::IpAddr>().is_ok();
            match hosts.iter().find(|name| !is_host(name)) {
                Some(name) => wrong(name, "device"),
                None if hosts.is_empty() => wrong("", "device"),
                None => Ok(()),
            }
        }
        Subject::Host { name } if ["ca", "server", "crl"].contains(&&name[..]) => {
            wrong(name, "host")
        }
        Subject::Host { name } if !is_plain(name) => wrong(name, "host"),
        Subject::Host { .. } => Ok(()),
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A time of a certificate, in whole seconds.
fn time(moment: SystemTime) -> time::OffsetDateTime {
    rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds(moment))
}

#[cfg(test)]
mod tests {
    use super::{Authority, KeysError, Subject, Validity};

    fn host(name: &str) -> Subject {
        Subject::Host { name: name.to_owned() }
    }

    #[test]
    fn a_folder_keeps_its_authority_and_replaces_nothing_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let first = Authority::open_or_make(folder.path()).unwrap();
        let validity = Validity::days(1);
        let [cert, _] = first.issue(&host("a"), validity, false).unwrap();
        let again = Authority::open_or_make(folder.path()).unwrap();
        let exists = again.issue(&host("a"), validity, false);
        assert!(matches!(exists, Err(KeysError::Exists { .. })));
        let list = || std::fs::read_to_string(folder.path().join("issued.txt")).unwrap();
        again.revoke(std::slice::from_ref(&cert)).unwrap();
        let revoked = list();
        assert!(!revoked.contains(" -\n"), "{revoked}");
        // A revoked certificate stays revoked, with its first time.
        again.revoke(std::slice::from_ref(&cert)).unwrap();
        assert_eq!(list(), revoked);
        again.issue(&host("a"), validity, true).unwrap();
        assert_eq!(list().lines().count(), 2);
        let elsewhere = tempfile::tempdir().unwrap();
        let other = Authority::open_or_make(elsewhere.path()).unwrap();
        assert!(matches!(other.revoke(&[cert]), Err(KeysError::NotIssued { .. })));
    }

    #[test]
    fn an_authority_without_its_private_key_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        Authority::open_or_make(folder.path()).unwrap();
        let certificate = folder.path().join("ca.pem");
        let before = std::fs::read(&certificate).unwrap();
        std::fs::remove_file(folder.path().join("ca.key")).unwrap();
        let refused = Authority::open_or_make(folder.path());
        assert!(matches!(refused, Err(KeysError::NoAuthorityKey { .. })));
        assert_eq!(std::fs::read(&certificate).unwrap(), before);
        assert!(!folder.path().join("ca.key").exists());
    }

    #[test]
    fn a_pipe_in_place_of_a_file_is_an_error_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::open_or_make(folder.path()).unwrap();
        let owner = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        for name in ["issued.txt", "ca.key"] {
            let path = folder.path().join(name);
            std::fs::remove_file(&path).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, owner).unwrap();
            let outcome = match name {
                "issued.txt" => authority.revoke(&[]).map(drop),
                _ => Authority::open_or_make(folder.path()).map(drop),
            };
            assert!(matches!(outcome, Err(KeysError::Io { .. })), "{name}");
        }
    }

    #[test]
    fn what_is_damaged_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::open_or_make(folder.path()).unwrap();
        std::fs::write(folder.path().join("issued.txt"), "damaged\n").unwrap();
        let damaged = authority.revoke(&[]).unwrap_err();
        assert!(damaged.to_string().contains("issued.txt"), "{damaged}");
        std::fs::write(folder.path().join("ca.key"), "damaged").unwrap();
        let damaged = Authority::open_or_make(folder.path()).map(drop).unwrap_err();
        assert!(damaged.to_string().contains("ca.key"), "{damaged}");
        for name in ["", "..", ".hidden", "a/b", "ca", "server", "ü"] {
            let wrong = authority.issue(&host(name), Validity::days(1), true);
            assert!(matches!(wrong, Err(KeysError::Name { .. })), "{name}");
        }
    }
}
