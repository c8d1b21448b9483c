//! What is served, as given by options: folders of datasets, and datasets by their extents.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A folder whose datasets may be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The name by which hosts on other machines refer to it.
    pub name: Option<String>,
    /// Folder.
    pub folder: PathBuf,
}

impl From<PathBuf> for Root {
    fn from(folder: PathBuf) -> Self {
        Self { name: None, folder }
    }
}

impl Root {
    /// Parses `NAME=FOLDER`, or `FOLDER` if the text before the first `=` is not a name (letters,
    /// digits, `-`, `_` and `.`) or there is none.
    pub fn parse(text: &OsStr) -> Self {
        let bytes = text.as_bytes();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let split = bytes.iter().position(|byte| *byte == b'=');
        match split.map(|at| (&bytes[..at], &bytes[at + 1..])) {
            Some((name, folder)) if !name.is_empty() && name.iter().all(is_plain) => Self {
                name: Some(String::from_utf8(name.to_vec()).expect("it is ASCII")),
                folder: OsStr::from_bytes(folder).into(),
            },
            _ => Self { name: None, folder: text.into() },
        }
    }
}

/// A dataset to serve by its extents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtentRoot {
    /// The name by which hosts on other machines may refer to it.
    pub name: Option<String>,
    /// File of extents.
    pub file: PathBuf,
    /// The block device, an image of it, or the NVMe namespace.
    pub block: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::Root;

    #[test]
    fn a_name_is_what_stands_before_the_first_equals_sign() {
        let parse = |text: &str| Root::parse(text.as_ref());
        assert_eq!(
            parse("photos-1=/data/a=b"),
            Root { name: Some("photos-1".to_owned()), folder: "/data/a=b".into() }
        );
        for path in ["/data/a=b", "./a=b", "=b", "data"] {
            assert_eq!(parse(path), Root { name: None, folder: path.into() });
        }
    }
}
