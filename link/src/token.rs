//! A shared secret that every call carries if the device requires one.

use meetpoint_diagnose::shown;
use meetpoint_storage::files::read_regular;
use std::fmt;
use std::path::{Path, PathBuf};
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

/// Minimum length of a token, in characters.
pub const TOKEN_CHARS_MIN: usize = 16;

/// Longest file of a token that is read, in bytes.
const TOKEN_BYTES_MAX: u64 = 4096;

/// The metadata key of a call that carries it (RFC 6750, section 2.1).
const METADATA_KEY: &str = "authorization";
const PREFIX: &str = "Bearer ";

/// A secret of printable characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A token that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("failed to read the token in {}: {source}", shown(path))]
    Read {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file does not contain a valid token.
    #[error("{} does not hold a token: {problem}", shown(path))]
    Invalid {
        /// File.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
}

impl TokenError {
    /// The remedy.
    pub const REMEDY: &'static str = "write a token, at least 16 printable characters without \
                                      spaces in one line: `openssl rand -hex 32 > token`";
}

impl Token {
    /// Reads the first line of a file.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Read { path: path.to_path_buf(), source };
        let invalid = |problem| TokenError::Invalid { path: path.to_path_buf(), problem };
        let bytes = read_regular(path, TOKEN_BYTES_MAX).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8"))?;
        Self::new(text.trim_end()).map_err(invalid)
    }

    /// A token from its text.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it has more than one line, or characters that are not printable ASCII");
        }
        match text.len() {
            ..TOKEN_CHARS_MIN => Err("it has fewer than 16 characters"),
            _ => Ok(Self(text.to_owned())),
        }
    }

    /// Its characters.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Key and value for the metadata of a call.
    pub fn metadata(&self) -> (&'static str, MetadataValue<Ascii>) {
        let value = MetadataValue::try_from(format!("{PREFIX}{}", self.0));
        let mut value = value.expect("printable ASCII is a valid value");
        value.set_sensitive(true);
        (METADATA_KEY, value)
    }

    /// Whether a call carries this token, compared in constant time; `None` if it carries none.
    pub fn is_in(&self, metadata: &MetadataMap) -> Option<bool> {
        let given = metadata.get(METADATA_KEY)?.as_bytes().strip_prefix(PREFIX.as_bytes())?;
        let own = self.0.as_bytes();
        let differing = own.iter().zip(given).fold(0, |bits, (a, b)| bits | (a ^ b));
        Some(own.len() == given.len() && differing == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Token;
    use tonic::metadata::MetadataMap;

    #[test]
    fn a_call_carries_the_token_it_was_given() {
        let (token, other) = (Token::new(&"a".repeat(32)), Token::new(&"a".repeat(31)));
        let (token, other) = (token.unwrap(), other.unwrap());
        let mut metadata = MetadataMap::new();
        assert_eq!(token.is_in(&metadata), None);
        let (key, value) = token.metadata();
        metadata.insert(key, value);
        assert_eq!((token.is_in(&metadata), other.is_in(&metadata)), (Some(true), Some(false)));
        assert!(!format!("{token:?}").contains("aa"), "it is not shown");
    }

    #[test]
    fn files_without_a_token_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(Token::read(&path).is_err());
        for text in ["", "short\n", "two lines of\ntext that is long", "sixteen and a space"] {
            std::fs::write(&path, text).unwrap();
            assert!(Token::read(&path).is_err(), "{text:?}");
        }
        assert!(Token::read("/dev/zero".as_ref()).is_err(), "a file without an end");
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        assert!(Token::read(&path).is_err());
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        assert_eq!(Token::read(&path).unwrap(), Token::new("0123456789abcdef").unwrap());
    }
}
