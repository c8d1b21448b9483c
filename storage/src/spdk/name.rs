//! What a path means to the engine: a file, a device of SPDK, or a range of one.

use meetpoint_storage_spdk::{FileModule, Target};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// First byte and length.
type Range = (u64, u64);

/// A device, parsed from the path under which it is opened.
///
/// | path | device |
/// |---|---|
/// | `/dev/nvme1n1`, `aio:PATH` | a block device or file, through `bdev_aio` |
/// | `uring:PATH` | the same through `bdev_uring` |
/// | `spdk:Nvme0n1` | a device of SPDK's configuration |
/// | `spdk:trtype:TCP traddr:10.0.0.7 trsvcid:4420 subnqn:NQN ns:1` | a namespace of a target |
///
/// Devices can end in `@OFFSET+BYTES`, a range that begins at a block; paths without a prefix only
/// below `/dev`, because elsewhere such a name may be that of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// A file or block device of this machine, and a range of it.
    File(PathBuf, FileModule, Option<Range>),
    /// A device of the configuration, and a range of it.
    Bdev(String, Option<Range>),
    /// A namespace, and a range of it.
    Target(Target, Option<Range>),
}

impl Name {
    /// Parses a path.
    pub fn parse(path: &Path) -> io::Result<Self> {
        let invalid = |problem: &str| io::Error::new(io::ErrorKind::InvalidInput, problem);
        let bytes = path.as_os_str().as_bytes();
        for module in FileModule::ALL {
            let rest = bytes.strip_prefix(module.as_str().as_bytes());
            if let Some(file) = rest.and_then(|rest| rest.strip_prefix(b":")) {
                let (file, range) = split(file)?;
                return Ok(Self::File(OsStr::from_bytes(file).into(), module, range));
            }
        }
        let Some(device) = bytes.strip_prefix(b"spdk:") else {
            let (file, range) =
                if bytes.starts_with(b"/dev/") { split(bytes)? } else { (bytes, None) };
            return Ok(Self::File(OsStr::from_bytes(file).into(), FileModule::Aio, range));
        };
        let (device, range) = split(device)?;
        let device =
            std::str::from_utf8(device).map_err(|_| invalid("a name of SPDK is not UTF-8"))?;
        if device.is_empty() {
            return Err(invalid("the name of a device of SPDK is empty"));
        }
        if device.split_whitespace().any(|pair| pair.starts_with("trtype:")) {
            let target = Target::parse(device).map_err(|error| invalid(&error.to_string()))?;
            return Ok(Self::Target(target, range));
        }
        Ok(Self::Bdev(device.to_owned(), range))
    }
}

/// Splits a name at its range.
fn split(name: &[u8]) -> io::Result<(&[u8], Option<Range>)> {
    let Some(at) = name.iter().rposition(|&byte| byte == b'@') else { return Ok((name, None)) };
    let range = std::str::from_utf8(&name[at + 1..]).ok().and_then(parse_range);
    let range = range.ok_or_else(|| {
        let problem = "a range of a device is written NAME@OFFSET+BYTES";
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    })?;
    Ok((&name[..at], Some(range)))
}

fn parse_range(text: &str) -> Option<Range> {
    let (offset, bytes) = text.split_once('+')?;
    let (offset, bytes): (u64, u64) = (offset.parse().ok()?, bytes.parse().ok()?);
    offset.checked_add(bytes).map(|_| (offset, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> io::Result<Name> {
        Name::parse(Path::new(text))
    }

    #[test]
    fn every_form_of_a_name_is_parsed() {
        let file = |path: &str, module, range| Name::File(path.into(), module, range);
        let range = Some((4096, 1000));
        let (aio, uring) = (FileModule::Aio, FileModule::Uring);
        assert_eq!(parse("/data/a@1+2").unwrap(), file("/data/a@1+2", aio, None));
        assert_eq!(parse("/dev/sda@4096+1000").unwrap(), file("/dev/sda", aio, range));
        assert_eq!(parse("aio:/data/a").unwrap(), file("/data/a", aio, None));
        assert_eq!(parse("uring:/data/a@4096+1000").unwrap(), file("/data/a", uring, range));
        assert_eq!(parse("spdk:Nvme0n1").unwrap(), Name::Bdev("Nvme0n1".into(), None));
        assert_eq!(parse("spdk:Raid0@4096+1000").unwrap(), Name::Bdev("Raid0".into(), range));
        let text = "spdk:trtype:TCP traddr:::1 subnqn:nqn.2016-06.io.spdk:a ns:2@4096+1000";
        let Name::Target(target, extent) = parse(text).unwrap() else {
            panic!("it has a transport")
        };
        assert_eq!((target.namespace, extent), (2, range));
        assert!(target.parameters.contains(&("adrfam", "IPv6".to_owned())));
    }

    #[test]
    fn wrong_names_are_refused() {
        let passes = format!("spdk:a@{}+1", u64::MAX);
        for text in ["spdk:", "spdk:@0+1", "spdk:a@", "spdk:a@1", "spdk:a@-1+2", &passes] {
            assert_eq!(parse(text).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{text}");
        }
        let error = parse("spdk:trtype:TCP traddr:10.0.0.7").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
