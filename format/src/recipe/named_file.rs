//! A file that an operation needs besides the samples, such as a vocabulary.
//!
//! It is named by a path and identified by the SHA-256 of its content. The caller reads the file
//! and attaches its content; nothing here opens files.

use super::value::Value;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Digits of a SHA-256.
const DIGITS: usize = 64;

/// The file of an operation.
///
/// Two are equal if the checksums of their contents are equal or, if a checksum is not known, if
/// their paths are equal.
#[derive(Debug, Clone)]
pub struct NamedFile {
    /// Its path; a relative path is resolved against the folder of the recipe file.
    pub path: String,
    /// SHA-256 of its content in hexadecimal digits, if the recipe states it or the file has been
    /// read.
    pub sha256: Option<String>,
    /// Its content, if it has been read.
    pub content: Option<FileContent>,
}

impl NamedFile {
    /// A file that has not been read.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), sha256: None, content: None }
    }

    /// Whether these are the digits of a SHA-256.
    pub(super) fn is_digest(digits: &str) -> bool {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        digits.len() == DIGITS && digits.bytes().all(is_digit)
    }

    /// The values of its two keys.
    pub(super) fn values(&self) -> [Value; 2] {
        let digest = self.sha256.clone().map_or(Value::Absent, |it| Value::Digest(it.into()));
        [Value::File(self.path.clone().into()), digest]
    }
}

impl PartialEq for NamedFile {
    fn eq(&self, other: &Self) -> bool {
        match (&self.sha256, &other.sha256) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.path == other.path,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// The content of a file, and the result of parsing it.
#[derive(Clone)]
pub struct FileContent {
    bytes: Arc<[u8]>,
    parsed: Arc<OnceLock<Parsed>>,
}

type Parsed = Result<Arc<dyn Any + Send + Sync>, String>;

impl FileContent {
    /// The content of a file that has been read.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { bytes: bytes.into(), parsed: Arc::default() }
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The result of applying `parse` to the file, computed once and shared by all clones. The
    /// error says what is wrong with the file.
    ///
    /// # Panics
    ///
    /// If the content was parsed to a different type before.
    pub fn parsed<T: Send + Sync + 'static>(
        &self,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        let made = self.parsed.get_or_init(|| {
            let parsed = parse(&self.bytes)?;
            Ok(Arc::new(parsed) as Arc<dyn Any + Send + Sync>)
        });
        let made = Arc::clone(made.as_ref().map_err(Clone::clone)?);
        Ok(made.downcast().unwrap_or_else(|_| panic!("a file is read as one type")))
    }
}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileContent({} bytes)", self.bytes.len())
    }
}
