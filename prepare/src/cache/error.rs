//! Why an application cache cannot be used.

use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting, shown};
use meetpoint_format::recipe::CutRefusal;
use meetpoint_format::units::{show_bytes, show_bytes_at_least};
use meetpoint_storage::MemoryLimit;
use std::path::PathBuf;

/// Why an application cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The budget exceeds the memory of this process.
    #[error(
        "a cache of {} {} {}",
        show_bytes(*bytes),
        match others_bytes {
            0 => "exceeds".to_owned(),
            others => format!("and {} for batches exceed", show_bytes(*others)),
        },
        memory(limit)
    )]
    TooLarge {
        /// The budget.
        bytes: u64,
        /// Memory that is reserved for other purposes; 0 if nothing was reserved explicitly.
        others_bytes: u64,
        /// The memory that this process may use.
        limit: MemoryLimit,
    },
    /// The budget does not fit a single sample.
    #[error(
        "a cache of {} holds no sample: its index of {samples} samples and one block take {}",
        show_bytes(*bytes),
        show_bytes_at_least(*least)
    )]
    TooSmall {
        /// The budget.
        bytes: u64,
        /// The smallest sufficient budget.
        least: u64,
        /// Samples of the dataset.
        samples: u64,
    },
    /// More samples or positions than the index can number.
    #[error("too many samples for a cache: {samples}, at {positions} positions of an epoch")]
    TooManySamples {
        /// Samples of the dataset.
        samples: u64,
        /// Positions of an epoch, over all ranks.
        positions: u64,
    },
    /// No operation has the same result in every epoch.
    #[error(
        "no result of the recipe can be cached{}",
        because.as_ref().map(|it| format!(": {it}")).unwrap_or_default()
    )]
    NothingToCache {
        /// Why the recipe cannot be cut after its first operation.
        because: Option<CutRefusal>,
    },
    /// A number of operations outside of the recipe.
    #[error("cannot cache after {asked} operations; this recipe allows {least} to {most}")]
    Operations {
        /// The requested value.
        asked: usize,
        /// The minimum.
        least: usize,
        /// The limit.
        most: usize,
    },
    /// Operations after which samples cannot be cached.
    #[error("samples cannot be cached after {asked} operations: {because}")]
    Refused {
        /// The requested value.
        asked: usize,
        /// The reason.
        because: CutRefusal,
    },
    /// An operation on the shared memory, or on the file that identifies it, failed.
    #[error("failed to {action} {}: {source}", shown(path))]
    Io {
        /// What failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file that identifies the cache is not private to this user.
    #[error("{} belongs to another user or can be read by others", shown(path))]
    NotPrivate {
        /// The file.
        path: PathBuf,
    },
    /// Another process has locked that file for too long.
    #[error("{} is locked by another process", shown(path))]
    Locked {
        /// The file.
        path: PathBuf,
    },
}

/// Describes the memory limit of a process.
fn memory(limit: &MemoryLimit) -> String {
    let bytes = show_bytes(limit.bytes);
    match &limit.file {
        Some(file) => format!("the {bytes} that {} allows", file.display()),
        None => format!("the {bytes} of memory of this machine"),
    }
}

impl Diagnose for CacheError {
    fn cause(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "cache_too_large",
            Self::TooSmall { .. } => "cache_too_small",
            Self::TooManySamples { .. } => "cache_index",
            Self::NothingToCache { .. } => "nothing_to_cache",
            Self::Operations { .. } | Self::Refused { .. } => "cache_operations",
            Self::Io { .. } => "cache_memory",
            Self::NotPrivate { .. } => "cache_not_private",
            Self::Locked { .. } => "cache_locked",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::TooLarge { others_bytes, limit, .. } => {
                let most = show_bytes(limit.bytes.saturating_sub(*others_bytes));
                let lower = Remedy::advice(format!("lower cache to less than {most}"));
                match others_bytes {
                    0 => lower,
                    _ => lower.or_set(Setting::MemoryBudget, Change::Lower),
                }
            }
            Self::TooSmall { least, .. } => {
                let least = show_bytes_at_least(*least);
                format!("raise cache to {least} or more, or leave it out").into()
            }
            Self::TooManySamples { .. } | Self::NothingToCache { .. } => "leave cache out".into(),
            Self::Operations { least, most, .. } => {
                format!("set cache_after to {least} to {most}, or leave it out").into()
            }
            Self::Refused { .. } => "lower cache_after, or leave it out".into(),
            Self::Io { .. } => "leave cache out, or free memory".into(),
            Self::NotPrivate { .. } => "remove the file".into(),
            Self::Locked { .. } => "end the other process, or leave cache out".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheError, Diagnose, MemoryLimit, Remedy};

    #[test]
    fn a_cache_that_is_too_large_alone_says_nothing_about_batches() {
        let error = |others_bytes| {
            let limit = MemoryLimit { bytes: 8 << 30, available_bytes: 8 << 30, file: None };
            CacheError::TooLarge { bytes: 100 << 30, others_bytes, limit }
        };
        let said = error(0).to_string();
        assert_eq!(said, "a cache of 100 GiB exceeds the 8 GiB of memory of this machine");
        assert_eq!(error(0).remedy(), Some(Remedy::advice("lower cache to less than 8 GiB")));
        let said = error(1 << 30).to_string();
        assert!(said.starts_with("a cache of 100 GiB and 1 GiB for batches exceed "), "{said}");
        assert_ne!(error(1 << 30).remedy(), error(0).remedy());
    }
}
