//! Options for a dataset in a store.

use super::{Stop, units};
use meetpoint_datasets::store::{RemoteOptions, TransferMonitor};
use meetpoint_host::StoreSettings;
use std::path::PathBuf;

/// How a dataset at a URL is read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Datasets at a URL")]
pub(crate) struct StoreArguments {
    /// Folder in which parts of the dataset are cached, for this run and later ones. Processes of
    /// this machine share it. By default meetpoint in $XDG_CACHE_HOME or ~/.cache.
    #[arg(long, value_name = "FOLDER")]
    cache_dir: Option<PathBuf>,
    /// Maximum size of the cache of a dataset; by default 16GiB.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    cache_size: Option<u64>,
    /// Send requests without credentials.
    #[arg(long)]
    anonymous: bool,
}

impl StoreArguments {
    /// The options of the library; those that are not given are those of a job.
    pub(crate) fn options(&self, of_job: &StoreSettings, stop: &Stop) -> RemoteOptions {
        let defaults = RemoteOptions::default();
        let cache_bytes = self.cache_size.or(of_job.cache_bytes);
        RemoteOptions {
            cache: self.cache_dir.clone().or_else(|| of_job.cache_dir.clone()),
            cache_bytes: cache_bytes.unwrap_or(defaults.cache_bytes),
            anonymous: self.anonymous || of_job.anonymous,
            watch: TransferMonitor { stop: stop.flag(), ..TransferMonitor::default() },
        }
    }
}
