//! The use of a GPU by the preparers of a loader, and why it leaves work to the CPU, as the types
//! of reports; `Display` puts them into words.

use meetpoint_diagnose::Diagnose;
use meetpoint_gpu::Error as GpuError;
use meetpoint_kernels::NotExported;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The use of a GPU by the preparers of a loader. Counts are of samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuUse {
    /// Name of the GPU.
    pub gpu: String,
    /// Threads that prepare with it.
    pub threads: u32,
    /// Of these, threads that no longer use it because of a failure.
    pub threads_failed: u32,
    /// Mean of `shares`.
    pub share: f64,
    /// The share of a batch that each thread gives it, as it is at the end.
    pub shares: Vec<f64>,
    /// Samples prepared on it.
    pub prepared: u64,
    /// Of these, samples whose tensors stayed on it until their batch was delivered there.
    pub resident: u64,
    /// Left to the CPU because the share was full.
    pub beyond_share: u64,
    /// Left to the CPU because it cannot prepare them.
    pub not_taken: u64,
    /// The samples of `not_taken` by reason.
    pub not_taken_because: BTreeMap<NotTaken, u64>,
    /// Taken and given back to the CPU, because their data are damaged.
    pub given_back: u64,
    /// Left to the CPU after a failure.
    pub after_failure: u64,
    /// Left to the CPU because the GPU ran out of memory, including those before the next attempt
    /// to use it.
    pub out_of_memory: u64,
    /// Batches for which the GPU ran out of memory.
    pub out_of_memory_batches: u64,
    /// Time from the start of the GPU's work on a batch until its end, summed over batches and
    /// threads, in nanoseconds. Batches of several threads overlap.
    pub busy_ns: u64,
    /// Limit of device memory, summed over the threads, in bytes.
    pub device_bytes_limit: u64,
    /// Limit of page-locked memory, summed over the threads, in bytes.
    pub pinned_bytes_limit: u64,
    /// Peak device memory so far in bytes: the sum of the peaks of the threads.
    pub device_bytes_max: u64,
    /// Peak page-locked memory so far in bytes: the sum of the peaks of the threads.
    pub pinned_bytes_max: u64,
    /// Number of allocations of device and page-locked memory; constant after the first few
    /// batches.
    pub allocations: u64,
    /// Why the tensors of samples that are not `resident` were copied to the host, although batches
    /// are delivered to this GPU; `None` if batches are not, or if no tensor was copied.
    pub downloaded_because: Option<Downloaded>,
    /// Why the job is prepared on the CPU alone; `None` if it is not.
    pub unused_because: Option<NotOffloaded>,
    /// The first failure, after which the CPU prepared the thread's samples.
    pub failure: Option<GpuFailure>,
}

impl GpuUse {
    /// The most frequent reason why samples were not taken.
    pub fn most_frequent_reason(&self) -> Option<NotTaken> {
        self.not_taken_because
            .iter()
            .max_by_key(|(_, samples)| **samples)
            .map(|(reason, _)| *reason)
    }

    /// The samples of its threads, on the GPU and on the CPU, except for threads whose GPU failed
    /// before their first batch.
    pub fn samples(&self) -> u64 {
        let on_cpu = self.beyond_share + self.not_taken + self.given_back;
        self.prepared + on_cpu + self.after_failure + self.out_of_memory
    }

    /// The difference to an earlier state of the same preparers.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        since.prepared -= before.prepared;
        since.resident -= before.resident;
        since.beyond_share -= before.beyond_share;
        since.not_taken -= before.not_taken;
        since.given_back -= before.given_back;
        since.after_failure -= before.after_failure;
        since.out_of_memory -= before.out_of_memory;
        since.out_of_memory_batches -= before.out_of_memory_batches;
        since.busy_ns -= before.busy_ns;
        since.allocations -= before.allocations;
        for (reason, samples) in &mut since.not_taken_because {
            *samples -= before.not_taken_because.get(reason).copied().unwrap_or(0);
        }
        since.not_taken_because.retain(|_, samples| *samples > 0);
        if since.resident == since.prepared {
            since.downloaded_because = None;
        }
        since
    }

    /// Adds the counts of another loader's preparers on the same GPU.
    pub fn add(&mut self, more: &Self) {
        self.threads += more.threads;
        self.threads_failed += more.threads_failed;
        self.shares.extend(&more.shares);
        self.share = mean(&self.shares);
        self.prepared += more.prepared;
        self.resident += more.resident;
        if self.downloaded_because.is_none() {
            self.downloaded_because.clone_from(&more.downloaded_because);
        }
        self.beyond_share += more.beyond_share;
        self.not_taken += more.not_taken;
        self.given_back += more.given_back;
        self.after_failure += more.after_failure;
        self.out_of_memory += more.out_of_memory;
        self.out_of_memory_batches += more.out_of_memory_batches;
        self.busy_ns += more.busy_ns;
        self.device_bytes_limit += more.device_bytes_limit;
        self.pinned_bytes_limit += more.pinned_bytes_limit;
        self.device_bytes_max += more.device_bytes_max;
        self.pinned_bytes_max += more.pinned_bytes_max;
        self.allocations += more.allocations;
        for (reason, samples) in &more.not_taken_because {
            *self.not_taken_because.entry(*reason).or_default() += samples;
        }
        if self.failure.is_none() {
            self.failure.clone_from(&more.failure);
        }
    }
}

impl fmt::Display for GpuUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gpu, prepared, .. } = self;
        if let Some(reason) = &self.unused_because {
            return write!(f, "{gpu} was not used: {reason}.");
        }
        let all = self.samples();
        let percent = if all == 0 { 0.0 } else { 100.0 * *prepared as f64 / all as f64 };
        write!(
            f,
            "{gpu} prepared {prepared} of {all} samples ({percent:.1} %); its share at the "
        )?;
        write!(f, "end was {:.2} of a batch", self.share)?;
        if self.resident > 0 {
            write!(f, "; the tensors of {} stayed there until they were delivered", self.resident)?;
        }
        if let Some(reason) = &self.downloaded_because {
            write!(f, "; tensors of {} were copied to the host: ", self.prepared - self.resident)?;
            write!(f, "{reason}")?;
        }
        if let Some(reason) = self.most_frequent_reason() {
            write!(f, "; {} were left to the CPU (most: {reason})", self.not_taken)?;
        }
        if self.given_back > 0 {
            write!(f, "; {} were given back as damaged", self.given_back)?;
        }
        if self.out_of_memory > 0 {
            let (samples, batches) = (self.out_of_memory, self.out_of_memory_batches);
            write!(f, "; {samples} were left to the CPU because GPU memory was used up (")?;
            write!(f, "{batches} batches)")?;
        }
        if let Some(failure) = &self.failure {
            let (failed, threads) = (self.threads_failed, self.threads);
            write!(f, "; it failed for {failed} of {threads} threads: {}", failure.detail)?;
        }
        f.write_str(".")
    }
}

/// The mean of shares; 0 without any.
pub(crate) fn mean(shares: &[f64]) -> f64 {
    if shares.is_empty() { 0.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
}

/// Why a GPU did not take a sample of its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotTaken {
    /// Its coefficients come in several passes.
    Progressive,
    /// It has a scan for each component.
    SeveralScans,
    /// CMYK or YCCK.
    FourComponents,
    /// It does not have 8 bits a sample; the CPU refuses it with an error.
    Precision,
    /// It is damaged, or in another format.
    NotAJpeg,
    /// It is decoded at a lower resolution.
    Scaled,
    /// No GPU executes its operations.
    Operations,
    /// Its entry points contradict its restart markers.
    EntryPoints,
    /// It has a long part that only one thread can decode.
    LongSegment,
    /// It has more data or blocks than a GPU should decode at a time.
    Huge,
    /// It does not fit into the remaining memory of the batch.
    Memory,
}

impl NotTaken {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Progressive,
        Self::SeveralScans,
        Self::FourComponents,
        Self::Precision,
        Self::NotAJpeg,
        Self::Scaled,
        Self::Operations,
        Self::EntryPoints,
        Self::LongSegment,
        Self::Huge,
        Self::Memory,
    ];
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Progressive => "progressive JPEGs",
            Self::SeveralScans => "JPEGs with several scans",
            Self::FourComponents => "JPEGs with four components",
            Self::Precision => "JPEGs with other than 8 bits a sample",
            Self::NotAJpeg => "damaged, or not a JPEG",
            Self::Scaled => "decoded at a lower resolution",
            Self::Operations => "operations that no GPU executes",
            Self::EntryPoints => "entry points that contradict restart markers",
            Self::LongSegment => "long JPEGs without entry points",
            Self::Huge => "larger than a GPU should decode at a time",
            Self::Memory => "beyond the memory for decoding on the GPU",
        })
    }
}

/// Why no sample of a job is prepared on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NotOffloaded {
    /// Batches have no pictures.
    NoPictures,
    /// Pictures may have different sizes.
    VariableSize,
    /// Targets move with the pictures.
    Targets,
    /// Samples are stored after the first operations of the recipe.
    PreparedOffline,
    /// Samples come from a cache of prepared samples.
    Cached,
    /// Pictures are not decoded as RGB or as grey.
    Mode {
        /// The mode in which they are decoded.
        mode: String,
    },
    /// No GPU executes an operation of the recipe.
    Operation {
        /// Its name.
        operation: String,
    },
}

impl fmt::Display for NotOffloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPictures => f.write_str("batches have no pictures"),
            Self::VariableSize => f.write_str("pictures may have different sizes"),
            Self::Targets => f.write_str("targets move with the pictures"),
            Self::PreparedOffline => {
                f.write_str("samples are stored after the first operations of the recipe")
            }
            Self::Cached => f.write_str("samples come from the cache of prepared samples"),
            Self::Mode { mode } => write!(f, "pictures are decoded as {mode}"),
            Self::Operation { operation } => {
                write!(f, "the operation {operation} is not executed on a GPU")
            }
        }
    }
}

impl From<NotExported> for NotOffloaded {
    fn from(reason: NotExported) -> Self {
        match reason {
            NotExported::NotPictures => Self::NoPictures,
            NotExported::Mode(mode) => Self::Mode { mode: mode.to_owned() },
            NotExported::Targets => Self::Targets,
            // A property of a sample, not of a recipe.
            NotExported::Scaled => Self::Operation { operation: "decode".to_owned() },
            NotExported::Operation(name) => Self::Operation { operation: name.to_owned() },
        }
    }
}

/// Why tensors are copied from a GPU to the host although batches are delivered to the same GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Downloaded {
    /// The checksums of samples are computed on the host.
    Verified,
    /// Operations on batches are executed on the host.
    Mixed,
    /// Tensors of other batches use up the memory for tensors that stay.
    Memory {
        /// Its limit in bytes.
        limit_bytes: u64,
    },
}

impl fmt::Display for Downloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verified => f.write_str("the checksums of samples are computed on the host"),
            Self::Mixed => f.write_str("operations on batches are executed on the host"),
            Self::Memory { limit_bytes } => {
                let limit = meetpoint_format::units::show_bytes(*limit_bytes);
                write!(f, "the memory for tensors that stay on the GPU (up to {limit}) was used up")
            }
        }
    }
}

/// Why a GPU stopped preparing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFailure {
    /// Stable name of the error.
    pub cause: String,
    /// Its message.
    pub detail: String,
}

impl From<&GpuError> for GpuFailure {
    fn from(error: &GpuError) -> Self {
        Self { cause: error.cause().to_owned(), detail: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::{GpuUse, NotTaken};
    use std::collections::BTreeMap;

    #[test]
    fn a_difference_leaves_out_what_was_counted_before() {
        let before = GpuUse {
            prepared: 4,
            not_taken: 2,
            not_taken_because: BTreeMap::from([(NotTaken::Progressive, 2)]),
            ..GpuUse::default()
        };
        let now = GpuUse {
            prepared: 9,
            not_taken: 3,
            not_taken_because: BTreeMap::from([(NotTaken::Progressive, 2), (NotTaken::Scaled, 1)]),
            ..before.clone()
        };
        let since = now.since(&before);
        assert_eq!((since.prepared, since.not_taken), (5, 1));
        assert_eq!(since.most_frequent_reason(), Some(NotTaken::Scaled));
        assert_eq!(now.most_frequent_reason(), Some(NotTaken::Progressive));
    }
}
