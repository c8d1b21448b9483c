//! Options that describe a source.

use crate::surface::choice::choice;
use crate::surface::{Stop, units};
use meetpoint_datasets::source::{ContentKind, KINDS, SourceOptions};
use meetpoint_datasets::store::{RemoteOptions, TransferMonitor};
use std::path::PathBuf;

/// Options about the source.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options about the source")]
pub(super) struct SourceArguments {
    /// Kind of source; by default it is detected.
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    pub(super) from: Option<String>,
    /// Column, member or feature with the content (image, jpg, image/encoded).
    #[arg(long, value_name = "NAME")]
    content: Option<String>,
    /// Kind of the content; for a folder, also which files are samples.
    #[arg(long, value_name = "KIND", value_parser = choice::<ContentKind>())]
    kind: Option<ContentKind>,
    /// Column, member or feature with the label.
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// Column, member or feature with the key; keys must be unique.
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Further columns to include, in this order. By default all are included; "" includes none.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Set to read, if the source has several (train, test).
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Table of the samples: CSV, TSV or JSON Lines.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Folder that file names in a table are relative to; by default the folder of the table.
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
    /// Maximum size of a sample; longer ones are unreadable. A dataset stores at most 256 MiB each.
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = units::parse_bytes)]
    sample_bytes_max: u64,
    /// Memory for decompressed data and lists of values; a source that needs more is an error. By
    /// default 1GiB, or an eighth of the memory that the process may use.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    source_memory: Option<u64>,
    /// For a URL: folder in which objects are cached while they are read; they are removed at the
    /// end. By default meetpoint in $XDG_CACHE_HOME or ~/.cache.
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// For a URL: maximum size of the cache; the longest object must fit.
    #[arg(long, default_value = "16GiB", value_name = "SIZE", value_parser = units::parse_bytes)]
    cache_size: u64,
    /// For a URL: send requests without credentials.
    #[arg(long)]
    anonymous: bool,
}

impl SourceArguments {
    /// The options of the library.
    pub(super) fn options(&self, stop: &Stop) -> SourceOptions {
        let columns = self.columns.clone().map(|mut names| {
            names.retain(|name| !name.is_empty());
            names
        });
        SourceOptions {
            content: self.content.clone(),
            kind: self.kind,
            label: self.label.clone(),
            key: self.key.clone(),
            columns,
            split: self.split.clone(),
            // `pack` sets it; `index` and `convert` store no pixels.
            store: None,
            table: self.table.clone(),
            root: self.root.clone(),
            // `pack` and `convert` set it; `index` always refuses such links.
            follow_links: false,
            sample_bytes_max: Some(self.sample_bytes_max),
            memory_bytes_max: self.source_memory,
            remote: RemoteOptions {
                cache: self.cache.clone(),
                cache_bytes: self.cache_size,
                anonymous: self.anonymous,
                watch: TransferMonitor { stop: stop.flag(), ..TransferMonitor::default() },
            },
        }
    }
}

/// The names of all kinds of sources, with descriptions.
fn kinds() -> clap::builder::PossibleValuesParser {
    let values =
        KINDS.iter().map(|kind| clap::builder::PossibleValue::new(kind.name).help(kind.words));
    clap::builder::PossibleValuesParser::new(values)
}
