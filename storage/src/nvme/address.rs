//! Names of ranges of a drive, used in place of files: a namespace, or an extent of it.

use std::io;
use std::path::{Path, PathBuf};

/// The character device of a namespace, with an optional range of its bytes.
///
/// Written `/dev/ng0n1` for all of it, or `/dev/ng0n1@OFFSET+BYTES` for an extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The character device.
    pub device: PathBuf,
    /// First byte and length; `None` for the whole namespace.
    pub extent: Option<(u64, u64)>,
}

impl Address {
    /// Parses an address.
    pub fn parse(path: &Path) -> io::Result<Self> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((device, extent)) = name.split_once('@') else {
            return Ok(Self { device: path.to_path_buf(), extent: None });
        };
        let numbers = extent.split_once('+').and_then(|(offset, bytes)| {
            let (offset, bytes): (u64, u64) = (offset.parse().ok()?, bytes.parse().ok()?);
            offset.checked_add(bytes).map(|_| (offset, bytes))
        });
        let extent = numbers.ok_or_else(|| {
            let problem = "an extent of a namespace is written /dev/ngXnY@OFFSET+BYTES";
            io::Error::new(io::ErrorKind::InvalidInput, problem)
        })?;
        Ok(Self { device: path.with_file_name(device), extent: Some(extent) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_named_whole_or_by_an_extent() {
        let parse = |text: &str| Address::parse(Path::new(text));
        let whole = parse("/dev/ng0n1").unwrap();
        assert_eq!((whole.device.as_path(), whole.extent), (Path::new("/dev/ng0n1"), None));
        let extent = parse("/dev/ng0n1@4096+1000").unwrap();
        assert_eq!(extent.device, Path::new("/dev/ng0n1"));
        assert_eq!(extent.extent, Some((4096, 1000)));
        for wrong in ["/dev/ng0n1@", "/dev/ng0n1@1", "/dev/ng0n1@1+", "/dev/ng0n1@-1+2"] {
            assert_eq!(parse(wrong).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{wrong}");
        }
        let passes = format!("/dev/ng0n1@{}+1", u64::MAX);
        assert!(parse(&passes).is_err(), "its end is no offset");
    }
}
