//! Errors of creating and revoking certificates.

use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting, shown};
use std::path::{Path, PathBuf};

/// Errors of creating or revoking certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A file would be replaced.
    #[error("{} exists", shown(path))]
    Exists {
        /// File.
        path: PathBuf,
    },
    /// The folder has the certificate of an authority, but not its private key.
    #[error("{} exists, but its private key {} does not", shown(certificate), shown(key))]
    NoAuthorityKey {
        /// The certificate.
        certificate: PathBuf,
        /// Where its key would be.
        key: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("failed to {action} {}: {source}", shown(path))]
    Io {
        /// What was attempted.
        action: &'static str,
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A certificate or a file cannot have this name.
    #[error("{name:?} cannot be the name of a {of}")]
    Name {
        /// The given name.
        name: String,
        /// `device` or `host`.
        of: &'static str,
    },
    /// The authority of this folder did not issue the certificate to revoke.
    #[error("{} was not issued by the CA in {}", shown(certificate), shown(folder))]
    NotIssued {
        /// File.
        certificate: PathBuf,
        /// Folder.
        folder: PathBuf,
    },
    /// A file in the folder is damaged, or was not written by this program.
    #[error("{} cannot be used: {problem}", shown(path))]
    Damaged {
        /// File.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl Diagnose for KeysError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Exists { .. } => "destination_exists",
            Self::NoAuthorityKey { .. } => "authority_key_missing",
            Self::Io { .. } => "input_output",
            Self::Name { .. } => "certificate_name",
            Self::NotIssued { .. } => "certificate_not_issued",
            Self::Damaged { .. } => "certificate_damaged",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Exists { .. } => Remedy::by("replace it", Setting::Force, Change::On),
            Self::NoAuthorityKey { .. } => {
                Remedy::advice("restore the key").or("make new certificates in another folder")
            }
            Self::Io { .. } => "name a folder that can be written".into(),
            Self::Name { .. } => "use letters, digits, `-`, `_` and `.`, or an IP address".into(),
            Self::NotIssued { .. } => "name a certificate that was issued there".into(),
            Self::Damaged { .. } => "make new certificates in another folder".into(),
        })
    }
}

/// A file that cannot be read or written.
pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> KeysError {
    let path = path.to_path_buf();
    move |source| KeysError::Io { action, path, source }
}

/// A file that is damaged.
pub(super) fn damaged(path: &Path) -> impl FnOnce(rcgen::Error) -> KeysError {
    let path = path.to_path_buf();
    move |error| KeysError::Damaged { path, problem: error.to_string() }
}
