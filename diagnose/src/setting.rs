//! Settings that remedies name, with their names on each surface.

use crate::Surface;
use serde::{Deserialize, Serialize};

/// A key of a job file, an option of a command or an argument of Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// Samples in a batch.
    BatchSize,
    /// Maximum bytes of the batches that the host holds.
    MemoryBudget,
    /// Maximum bytes of the small samples that are retained in memory.
    SmallSamples,
    /// Maximum bytes of the memory of a GPU.
    GpuMemory,
    /// The GPU that prepares a share of each batch.
    GpuDecode,
    /// The power model of modelled energy.
    Power,
    /// Maximum bytes of the batches that devices have ready.
    SpoolQuota,
    /// The strategy.
    Strategy,
    /// Maximum number of damaged samples of an epoch.
    MaxErrors,
    /// Time that ranks wait for each other.
    RankTimeout,
    /// Whether every device has every part of the dataset.
    Shared,
    /// Whether batches are reused in the next epoch.
    Reuse,
    /// Whether devices begin the next epoch early.
    RunAhead,
    /// Whether every epoch has a different order.
    Shuffle,
    /// How pictures of different sizes are combined into a batch.
    Collate,
    /// Whether an emulated device may share the only core.
    AllowShared,
    /// Folders that a device serves.
    DeviceRoot,
    /// Number of hosts that a device serves at once.
    DeviceHosts,
    /// Maximum memory of a device's worker.
    DeviceMemory,
    /// Emulated share of a core.
    DeviceCpuRatio,
    /// A control group around a device.
    DeviceCgroup,
    /// Files of extents that a device serves.
    DeviceExtents,
    /// Certificate files of a device: of its authority, its own, and its private key.
    DeviceCertificates,
    /// The token that a device asks for.
    DeviceToken,
    /// The folder with the certificates of a host.
    DeviceKeys,
    /// The record of an epoch that is replayed.
    Replay,
    /// `on_error` of the operation that decodes.
    DecodeOnError,
    /// Samples that a profile measures.
    Samples,
    /// Runs of each strategy of a profile.
    Runs,
    /// Codecs of a profile.
    Codecs,
    /// Where a recipe is cut.
    Cut,
    /// The recipe.
    Recipe,
    /// Compression of prepared samples.
    Codec,
    /// Quality of pictures that are re-encoded as JPEG.
    LossyJpeg,
    /// Folder for temporary files.
    Temporary,
    /// Maximum bytes that a profile may store.
    StorageLimit,
    /// Maximum memory for caches of a profile.
    MemoryLimit,
    /// Confidence of a profile.
    Confidence,
    /// Epochs to finish or to run.
    Epochs,
    /// Threads that read, check or write.
    Threads,
    /// Send requests without credentials.
    Anonymous,
    /// The folder in which objects are cached.
    Cache,
    /// The folder in which parts of datasets in stores are cached.
    CacheDir,
    /// Maximum size of such a cache.
    CacheSize,
    /// How thoroughly a sample is checked.
    Check,
    /// The further columns to include.
    Columns,
    /// The column with the content.
    Content,
    /// Spacing of entry points.
    EntryPoints,
    /// Whether links that lead out of a source are followed.
    FollowLinks,
    /// Replaces what the destination contains.
    Force,
    /// The kind of source.
    From,
    /// The form in which JPEGs are stored.
    Form,
    /// The column with the key.
    Key,
    /// The kind of the content.
    Kind,
    /// The column with the label.
    Label,
    /// How samples that cannot be read are handled.
    OnError,
    /// Whether Huffman tables are optimised.
    OptimizeHuffman,
    /// Samples of the source after which the next part begins.
    PartSamples,
    /// Bytes after which the next part begins.
    PartSize,
    /// Bytes of the source after which the next part begins.
    PartSourceBytes,
    /// Sample each class.
    PerClass,
    /// Prefixes of keys, one for each dataset.
    Prefix,
    /// How progressive JPEGs are stored.
    Progressive,
    /// Spacing of restart markers.
    RestartInterval,
    /// Resume an interrupted command.
    Resume,
    /// The folder that names in a table are relative to.
    Root,
    /// Longest content of a sample.
    SampleBytesMax,
    /// Samples after which the next shard begins.
    ShardSamples,
    /// Bytes after which the next shard begins.
    ShardSize,
    /// Memory for decompressed data and lists of values.
    SourceMemory,
    /// One of several sets of a source.
    Split,
    /// How a source without picture files stores its pixels.
    Store,
    /// Split each class in the same shares.
    Stratify,
    /// The table that describes the samples.
    Table,
    /// The kind of sink.
    To,
    /// Further columns to leave out.
    Without,
    /// `pad_if_needed` of `random_crop`.
    PadIfNeeded,
}

impl Setting {
    /// Its name: `memory_budget`, `--root`.
    pub fn name(self, surface: Surface) -> &'static str {
        let (command_line, python) = match self {
            Self::BatchSize => ("batch_size", "batch_size"),
            Self::MemoryBudget => ("memory_budget", "memory_budget"),
            Self::SmallSamples => ("small_samples", "small_samples"),
            Self::GpuMemory => ("gpu_memory", "gpu_memory"),
            Self::GpuDecode => ("--gpu-decode", "gpu_decode"),
            Self::Power => ("--power", "power"),
            Self::SpoolQuota => ("spool.quota", "spool_quota"),
            Self::Strategy => ("strategy", "strategy"),
            Self::MaxErrors => ("max_errors", "max_errors"),
            Self::RankTimeout => ("rank_timeout", "rank_timeout"),
            Self::Shared => ("shared", "shared"),
            Self::Reuse => ("reuse", "reuse"),
            Self::RunAhead => ("run_ahead", "run_ahead"),
            Self::Shuffle => ("shuffle", "shuffle"),
            Self::Collate => ("collate", "collate"),
            Self::AllowShared => ("--allow-shared", "allow_shared"),
            Self::DeviceRoot => ("--root", "--root"),
            Self::DeviceHosts => ("--hosts", "--hosts"),
            Self::DeviceMemory => ("--memory-max", "--memory-max"),
            Self::DeviceCpuRatio => ("--cpu-ratio", "--cpu-ratio"),
            Self::DeviceCgroup => ("--cgroup", "--cgroup"),
            Self::DeviceExtents => ("--extents", "--extents"),
            Self::DeviceCertificates => ("--ca, --cert and --key", "--ca, --cert and --key"),
            Self::DeviceToken => ("--token-file", "--token-file"),
            Self::DeviceKeys => ("--device-keys", "keys"),
            Self::Replay => ("--replay", "--replay"),
            Self::DecodeOnError => ("on_error of the recipe's decode", "Decode(on_error=…)"),
            Self::Samples => ("--samples", "--samples"),
            Self::Runs => ("--runs", "--runs"),
            Self::Codecs => ("--codecs", "--codecs"),
            Self::Cut => ("--cut", "cut"),
            Self::Recipe => ("the recipe", "recipe"),
            Self::Codec => ("--codec", "codec"),
            Self::LossyJpeg => ("--lossy-jpeg", "lossy_jpeg"),
            Self::Temporary => ("--temporary", "--temporary"),
            Self::StorageLimit => ("--storage-limit", "--storage-limit"),
            Self::MemoryLimit => ("--memory-limit", "--memory-limit"),
            Self::Confidence => ("--confidence", "--confidence"),
            Self::Epochs => ("--epochs", "--epochs"),
            Self::Threads => ("--threads", "threads"),
            Self::Anonymous => ("--anonymous", "anonymous"),
            Self::Cache => ("--cache", "cache"),
            Self::CacheDir => ("--cache-dir", "cache_dir"),
            Self::CacheSize => ("--cache-size", "cache_size"),
            Self::Check => ("--check", "check"),
            Self::Columns => ("--columns", "columns"),
            Self::Content => ("--content", "content"),
            Self::EntryPoints => ("--entry-points", "entry_points"),
            Self::FollowLinks => ("--follow-links", "follow_links"),
            Self::Force => ("--force", "force"),
            // `from` is a keyword.
            Self::From => ("--from", "from_"),
            Self::Form => ("--form", "form"),
            Self::Key => ("--key", "key"),
            Self::Kind => ("--kind", "kind"),
            Self::Label => ("--label", "label"),
            Self::OnError => ("--on-error", "on_error"),
            Self::OptimizeHuffman => ("--optimize-huffman", "optimize_huffman"),
            Self::PartSamples => ("--part-samples", "part_samples"),
            Self::PartSize => ("--part-size", "part_size"),
            Self::PartSourceBytes => ("--part-source-bytes", "part_source_bytes"),
            Self::PerClass => ("--per-class", "per_class"),
            Self::Prefix => ("--prefix", "prefix"),
            Self::Progressive => ("--progressive", "progressive"),
            Self::RestartInterval => ("--restart-interval", "restart_interval"),
            Self::Resume => ("--resume", "resume"),
            Self::Root => ("--root", "root"),
            Self::SampleBytesMax => ("--sample-bytes-max", "sample_bytes_max"),
            Self::ShardSamples => ("--shard-samples", "shard_samples"),
            Self::ShardSize => ("--shard-size", "shard_size"),
            Self::SourceMemory => ("--source-memory", "source_memory"),
            Self::Split => ("--split", "split"),
            Self::Store => ("--store", "store"),
            Self::Stratify => ("--stratify", "stratify"),
            Self::Table => ("--table", "table"),
            Self::To => ("--to", "to"),
            Self::Without => ("--without", "without"),
            Self::PadIfNeeded => ("pad_if_needed", "pad_if_needed"),
        };
        match surface {
            Surface::CommandLine => command_line,
            Surface::Python => python,
        }
    }

    /// Whether it is boolean.
    pub(crate) fn is_flag(self) -> bool {
        match self {
            Self::Shared
            | Self::Reuse
            | Self::RunAhead
            | Self::Shuffle
            | Self::AllowShared
            | Self::DeviceCgroup
            | Self::Anonymous
            | Self::FollowLinks
            | Self::Force
            | Self::OptimizeHuffman
            | Self::PerClass
            | Self::Resume
            | Self::Stratify
            | Self::PadIfNeeded => true,
            Self::BatchSize
            | Self::Collate
            | Self::MemoryBudget
            | Self::SmallSamples
            | Self::GpuMemory
            | Self::GpuDecode
            | Self::Power
            | Self::SpoolQuota
            | Self::Strategy
            | Self::MaxErrors
            | Self::RankTimeout
            | Self::DeviceRoot
            | Self::DeviceHosts
            | Self::DeviceMemory
            | Self::DeviceCpuRatio
            | Self::DeviceExtents
            | Self::DeviceCertificates
            | Self::DeviceToken
            | Self::DeviceKeys
            | Self::Replay
            | Self::DecodeOnError
            | Self::Samples
            | Self::Runs
            | Self::Codecs
            | Self::Cut
            | Self::Recipe
            | Self::Codec
            | Self::LossyJpeg
            | Self::Temporary
            | Self::StorageLimit
            | Self::MemoryLimit
            | Self::Confidence
            | Self::Epochs
            | Self::Threads
            | Self::Cache
            | Self::CacheDir
            | Self::CacheSize
            | Self::Check
            | Self::Columns
            | Self::Content
            | Self::EntryPoints
            | Self::From
            | Self::Form
            | Self::Key
            | Self::Kind
            | Self::Label
            | Self::OnError
            | Self::PartSamples
            | Self::PartSize
            | Self::PartSourceBytes
            | Self::Prefix
            | Self::Progressive
            | Self::RestartInterval
            | Self::Root
            | Self::SampleBytesMax
            | Self::ShardSamples
            | Self::ShardSize
            | Self::SourceMemory
            | Self::Split
            | Self::Store
            | Self::Table
            | Self::To
            | Self::Without => false,
        }
    }

    /// Whether it is an option of a command there; Python has no argument for some settings.
    pub(crate) fn is_option(self, surface: Surface) -> bool {
        self.name(surface).starts_with("--")
    }

    /// How a setting that is not boolean is switched off: `--no-gpu-decode`, `gpu_decode=False`.
    pub(crate) fn switched_off(self, surface: Surface) -> Option<&'static str> {
        (self == Self::GpuDecode).then_some(match surface {
            Surface::CommandLine => "--no-gpu-decode",
            Surface::Python => "gpu_decode=False",
        })
    }

    /// How it is set: `--force` or `--label`, `force=True` or `label=`.
    pub fn spelled(self, surface: Surface) -> String {
        let name = self.name(surface);
        match (surface, self.is_flag()) {
            _ if self.is_option(surface) => name.to_owned(),
            (Surface::CommandLine, _) => name.to_owned(),
            (Surface::Python, true) => format!("{name}=True"),
            (Surface::Python, false) => format!("{name}="),
        }
    }

    /// How it is set to a value: `--from folder`, `from_="folder"`.
    pub fn set_to(self, value: &str, surface: Surface) -> String {
        let name = self.name(surface);
        match surface {
            _ if self.is_option(surface) => format!("{name} {value}"),
            Surface::CommandLine => format!("{name} {value}"),
            Surface::Python => format!("{name}={value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Setting;
    use crate::Surface;

    #[test]
    fn flags_and_values_are_spelled_as_they_are_written() {
        let both = |setting: Setting| {
            [Surface::CommandLine, Surface::Python].map(|surface| setting.spelled(surface))
        };
        assert_eq!(both(Setting::Label), ["--label", "label="]);
        assert_eq!(both(Setting::Resume), ["--resume", "resume=True"]);
        assert_eq!(both(Setting::From), ["--from", "from_="]);
        assert_eq!(Setting::From.set_to("folder", Surface::CommandLine), "--from folder");
        assert_eq!(Setting::From.set_to("folder", Surface::Python), "from_=\"folder\"");
        assert_eq!(Setting::ShardSize.name(Surface::Python), "shard_size");
        // Python has no argument for the options of a device.
        assert_eq!(both(Setting::DeviceToken), ["--token-file"; 2]);
        assert_eq!(both(Setting::DeviceCgroup), ["--cgroup"; 2]);
        assert_eq!(Setting::Replay.set_to("HHDD", Surface::Python), "--replay HHDD");
    }
}
