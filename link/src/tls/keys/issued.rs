//! The list of the certificates that an authority has issued, and which of them are revoked.

use super::error::{KeysError, io};
use super::files::{read_text, write};
use meetpoint_format::checksum::hexadecimal;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of its file in the authority's folder.
const FILE: &str = "issued.txt";

/// The list, as read from its file.
pub(super) struct IssuedList {
    path: PathBuf,
    entries: Vec<IssuedCertificate>,
}

/// A line of the list: SHA-256 of the certificate, its serial number, and when it was revoked in
/// seconds since 1970, or `-`.
pub(super) struct IssuedCertificate {
    pub(super) digest: String,
    pub(super) serial: Vec<u8>,
    pub(super) revoked: Option<u64>,
}

impl IssuedList {
    /// Creates an empty list in a folder.
    pub(super) fn create(folder: &Path) -> Result<(), KeysError> {
        write(&folder.join(FILE), "", 0o644, true)
    }

    /// Adds a certificate to the list of a folder.
    pub(super) fn append(folder: &Path, issued: &IssuedCertificate) -> Result<(), KeysError> {
        let path = folder.join(FILE);
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(issued.line().as_bytes()));
        written.map_err(io("write", &path))
    }

    /// Reads the list of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, KeysError> {
        let path = folder.join(FILE);
        let text = read_text(&path).map_err(io("read", &path))?;
        let damaged = |number: usize| KeysError::Damaged {
            path: path.clone(),
            problem: format!("line {number} is damaged"),
        };
        let numbered = (1..).zip(text.lines());
        let entries = numbered
            .map(|(number, line)| IssuedCertificate::parse(line).ok_or_else(|| damaged(number)))
            .collect::<Result<_, _>>()?;
        Ok(Self { path, entries })
    }

    /// Revokes the certificate with a checksum, unless it is revoked already. Whether it is listed.
    pub(super) fn revoke(&mut self, digest: &str, now: u64) -> bool {
        match self.entries.iter_mut().find(|entry| entry.digest == digest) {
            Some(entry) => {
                entry.revoked.get_or_insert(now);
                true
            }
            None => false,
        }
    }

    /// The serial numbers of the revoked certificates, and when they were revoked.
    pub(super) fn revoked(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.entries.iter().filter_map(|entry| Some((&entry.serial[..], entry.revoked?)))
    }

    /// Writes the list to its file.
    pub(super) fn save(&self) -> Result<(), KeysError> {
        let text: String = self.entries.iter().map(IssuedCertificate::line).collect();
        write(&self.path, &text, 0o644, true)
    }
}

impl IssuedCertificate {
    fn line(&self) -> String {
        let revoked = self.revoked.map_or_else(|| "-".to_owned(), |seconds| seconds.to_string());
        format!("{} {} {revoked}\n", self.digest, hexadecimal(&self.serial))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (digest, serial) = (words.next()?.to_owned(), words.next()?);
        let revoked = match words.next()? {
            "-" => None,
            seconds => Some(seconds.parse().ok()?),
        };
        let bytes = (0..serial.len()).step_by(2);
        let byte = |at: usize| u8::from_str_radix(serial.get(at..at + 2)?, 16).ok();
        let serial = bytes.map(byte).collect::<Option<Vec<u8>>>()?;
        (words.next().is_none() && digest.len() == 64).then_some(Self { digest, serial, revoked })
    }
}

#[cfg(test)]
mod tests {
    use super::IssuedCertificate;

    #[test]
    fn lines_of_the_list_are_read_as_they_are_written() {
        for revoked in [None, Some(1_700_000_000)] {
            let (digest, serial) = ("ab".repeat(32), vec![1, 0, 255]);
            let issued =
                IssuedCertificate { digest: digest.clone(), serial: serial.clone(), revoked };
            let read = IssuedCertificate::parse(issued.line().trim_end()).unwrap();
            assert_eq!((read.digest, read.serial, read.revoked), (digest, serial, revoked));
        }
        let digest = "ab".repeat(32);
        for line in ["", "ab 01 -", &format!("{digest} 0 -"), &format!("{digest} 01 - x")] {
            assert!(IssuedCertificate::parse(line).is_none(), "{line}");
        }
    }
}
