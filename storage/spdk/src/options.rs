//! How SPDK starts. Read from environment variables, because a process starts SPDK once.

use crate::Error;
use std::ffi::OsString;
use std::path::PathBuf;

/// Memory of SPDK and DPDK in MiB if `MEETPOINT_SPDK_MEMORY_MIB` is not set.
const MEMORY_MIB: u32 = 256;

/// Bounds of the memory, in MiB. With less, SPDK's pools do not fit.
const MEMORY_MIB_RANGE: std::ops::RangeInclusive<u32> = 192..=1 << 20;

/// How SPDK starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Memory of SPDK and DPDK in MiB; used for its pools and for buffers that a drive accesses
    /// itself.
    pub memory_mib: u32,
    /// Whether the memory is on huge pages, which drives on this machine's PCIe bus need. Without,
    /// the bus is not scanned.
    pub huge_pages: bool,
    /// A JSON configuration of SPDK, whose devices can then be opened by name.
    pub config: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { memory_mib: MEMORY_MIB, huge_pages: false, config: None }
    }
}

impl Options {
    /// Reads `MEETPOINT_SPDK_MEMORY_MIB`, `MEETPOINT_SPDK_HUGE_PAGES` (`0` or `1`) and
    /// `MEETPOINT_SPDK_CONFIG`. Variables that are not set or empty have their defaults.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut options = Self::default();
        let wrong = |name, value: &OsString, expected| Error::Option {
            name,
            value: value.to_string_lossy().into_owned(),
            expected,
        };
        let name = "MEETPOINT_SPDK_MEMORY_MIB";
        if let Some(value) = variable(name) {
            let mib = value.to_str().and_then(|text| text.parse().ok());
            options.memory_mib = mib
                .filter(|mib| MEMORY_MIB_RANGE.contains(mib))
                .ok_or_else(|| wrong(name, &value, "a whole number of MiB, at least 192"))?;
        }
        let name = "MEETPOINT_SPDK_HUGE_PAGES";
        if let Some(value) = variable(name) {
            options.huge_pages = match value.to_str() {
                Some("0") => false,
                Some("1") => true,
                _ => return Err(wrong(name, &value, "0 or 1")),
            };
        }
        options.config = variable("MEETPOINT_SPDK_CONFIG").map(PathBuf::from);
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Options, Error> {
        Options::from_variables(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn variables_that_are_not_set_have_their_defaults() {
        assert_eq!(read(&[]), Ok(Options::default()));
        assert_eq!(read(&[("MEETPOINT_SPDK_MEMORY_MIB", "")]), Ok(Options::default()));
        let all = [
            ("MEETPOINT_SPDK_MEMORY_MIB", "1024"),
            ("MEETPOINT_SPDK_HUGE_PAGES", "1"),
            ("MEETPOINT_SPDK_CONFIG", "drives.json"),
        ];
        let config = Some(PathBuf::from("drives.json"));
        assert_eq!(read(&all), Ok(Options { memory_mib: 1024, huge_pages: true, config }));
    }

    #[test]
    fn values_out_of_range_are_refused_and_named() {
        for (name, value) in [
            ("MEETPOINT_SPDK_MEMORY_MIB", "191"),
            ("MEETPOINT_SPDK_MEMORY_MIB", "-1"),
            ("MEETPOINT_SPDK_MEMORY_MIB", "1G"),
            ("MEETPOINT_SPDK_HUGE_PAGES", "yes"),
        ] {
            let Err(Error::Option { name: named, value: shown, .. }) = read(&[(name, value)])
            else {
                panic!("{name}={value} is refused");
            };
            assert_eq!((named, &*shown), (name, value));
        }
    }
}
