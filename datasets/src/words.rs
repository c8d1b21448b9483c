//! How messages spell options: as on the command line, or as in Python.

/// Where a message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Options are `--force`.
    CommandLine,
    /// Options are `force=True`.
    Python,
}

/// An option that a message names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Send requests without credentials.
    Anonymous,
    /// The folder in which objects are cached.
    Cache,
    /// Maximum size of that cache.
    CacheSize,
    /// How far a sample is checked.
    Check,
    /// The further columns to include.
    Columns,
    /// The column with the content.
    Content,
    /// Spacing of entry points.
    EntryPoints,
    /// Whether links that lead out of a source are followed.
    FollowLinks,
    /// Replace what the destination holds.
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
    /// What happens to samples that do not read.
    OnError,
    /// Whether Huffman tables are optimised.
    OptimizeHuffman,
    /// Bytes after which the next part begins.
    PartSize,
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
    /// Split each class in the same shares.
    Stratify,
    /// The table that describes the samples.
    Table,
    /// The kind of sink.
    To,
    /// Further columns to leave out.
    Without,
}

impl Setting {
    /// Every setting.
    pub const ALL: [Self; 32] = [
        Self::Anonymous,
        Self::Cache,
        Self::CacheSize,
        Self::Check,
        Self::Columns,
        Self::Content,
        Self::EntryPoints,
        Self::FollowLinks,
        Self::Force,
        Self::From,
        Self::Form,
        Self::Key,
        Self::Kind,
        Self::Label,
        Self::OnError,
        Self::OptimizeHuffman,
        Self::PartSize,
        Self::PerClass,
        Self::Prefix,
        Self::Progressive,
        Self::RestartInterval,
        Self::Resume,
        Self::Root,
        Self::SampleBytesMax,
        Self::ShardSamples,
        Self::ShardSize,
        Self::SourceMemory,
        Self::Split,
        Self::Stratify,
        Self::Table,
        Self::To,
        Self::Without,
    ];

    /// Its name on the command line, without the dashes.
    fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Cache => "cache",
            Self::CacheSize => "cache-size",
            Self::Check => "check",
            Self::Columns => "columns",
            Self::Content => "content",
            Self::EntryPoints => "entry-points",
            Self::FollowLinks => "follow-links",
            Self::Force => "force",
            Self::From => "from",
            Self::Form => "form",
            Self::Key => "key",
            Self::Kind => "kind",
            Self::Label => "label",
            Self::OnError => "on-error",
            Self::OptimizeHuffman => "optimize-huffman",
            Self::PartSize => "part-size",
            Self::PerClass => "per-class",
            Self::Prefix => "prefix",
            Self::Progressive => "progressive",
            Self::RestartInterval => "restart-interval",
            Self::Resume => "resume",
            Self::Root => "root",
            Self::SampleBytesMax => "sample-bytes-max",
            Self::ShardSamples => "shard-samples",
            Self::ShardSize => "shard-size",
            Self::SourceMemory => "source-memory",
            Self::Split => "split",
            Self::Stratify => "stratify",
            Self::Table => "table",
            Self::To => "to",
            Self::Without => "without",
        }
    }

    /// Whether it takes no value.
    fn is_flag(self) -> bool {
        match self {
            Self::Anonymous
            | Self::FollowLinks
            | Self::Force
            | Self::OptimizeHuffman
            | Self::PerClass
            | Self::Resume
            | Self::Stratify => true,
            Self::Cache
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
            | Self::PartSize
            | Self::Prefix
            | Self::Progressive
            | Self::RestartInterval
            | Self::Root
            | Self::SampleBytesMax
            | Self::ShardSamples
            | Self::ShardSize
            | Self::SourceMemory
            | Self::Split
            | Self::Table
            | Self::To
            | Self::Without => false,
        }
    }

    /// Its bare name: `--shard-size`, `shard_size`.
    pub fn named(self, words: Words) -> String {
        let name = self.name();
        match words {
            Words::CommandLine => format!("--{name}"),
            Words::Python => match self {
                // `from` is a keyword.
                Self::From => "from_".to_owned(),
                _ => name.replace('-', "_"),
            },
        }
    }

    /// How it is set: `--force` or `--label`, `force=True` or `label=`.
    pub fn spelled(self, words: Words) -> String {
        let name = self.named(words);
        match (words, self.is_flag()) {
            (Words::CommandLine, _) => name,
            (Words::Python, true) => format!("{name}=True"),
            (Words::Python, false) => format!("{name}="),
        }
    }

    /// How it is set to a value: `--from folder`, `from_="folder"`.
    pub fn set_to(self, value: &str, words: Words) -> String {
        let name = self.named(words);
        match words {
            Words::CommandLine => format!("{name} {value}"),
            Words::Python => format!("{name}={value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Setting, Words};
    use std::collections::HashSet;

    #[test]
    fn every_setting_has_a_name_of_its_own_in_both_spellings() {
        for words in [Words::CommandLine, Words::Python] {
            let names: HashSet<String> =
                Setting::ALL.iter().map(|setting| setting.named(words)).collect();
            assert_eq!(names.len(), Setting::ALL.len());
        }
        for setting in Setting::ALL {
            let [shell, python] =
                [Words::CommandLine, Words::Python].map(|words| setting.spelled(words));
            assert!(shell.starts_with("--") && !shell.contains('_'), "{shell}");
            assert!(python.contains('=') && !python.contains('-'), "{python}");
        }
    }

    #[test]
    fn flags_and_values_are_spelled_as_they_are_written() {
        let both =
            |setting: Setting| [Words::CommandLine, Words::Python].map(|w| setting.spelled(w));
        assert_eq!(both(Setting::Label), ["--label", "label="]);
        assert_eq!(both(Setting::Resume), ["--resume", "resume=True"]);
        assert_eq!(both(Setting::From), ["--from", "from_="]);
        assert_eq!(Setting::From.set_to("folder", Words::CommandLine), "--from folder");
        assert_eq!(Setting::From.set_to("folder", Words::Python), "from_=\"folder\"");
        assert_eq!(Setting::ShardSize.named(Words::Python), "shard_size");
    }
}
