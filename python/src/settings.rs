//! The settings of a loader, as the package hands them over.

use crate::damage::{self, Raised};
use crate::{errors, recipe};
use meetpoint_host::collective::{Collective, CollectiveError, Turn};
use meetpoint_host::{
    DeviceSource, LoaderConfig, SpawnDevice, SpoolConfig, SpoolKind, StrategyName, StrategyOptions,
};
use meetpoint_scheduler::{Agreement, Order, Proposal};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A dictionary with exactly these keys; the package fills in what its user left out.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    dataset: PathBuf,
    /// In TOML.
    recipe: String,
    batch_size: u32,
    drop_last: bool,
    shuffle: bool,
    seed: u64,
    strategy: String,
    /// What the order must be under `auto`.
    order: String,
    /// Batches in a window of `windowed`.
    window: Option<u32>,
    workers: u32,
    prefetch: u32,
    memory_budget: u64,
    /// Sockets of devices that somebody else started.
    sockets: Vec<PathBuf>,
    /// Command lines of devices that are started here, without what the loader adds.
    commands: Vec<Vec<OsString>>,
    spool_quota: u64,
    /// Folder of a spool file; without one the spool is memory.
    spool_folder: Option<PathBuf>,
    rank: u32,
    ranks: u32,
    /// Seconds.
    stall_timeout: f64,
    /// A word or a function.
    on_error: Py<PyAny>,
    max_errors: Option<u64>,
    quarantine: Option<PathBuf>,
}

/// Ranks that come to the same without asking each other.
#[derive(Debug)]
struct Apart;

impl Collective for Apart {
    fn agree(&self, _: &Turn<'_>, proposal: Proposal) -> Result<Agreement, CollectiveError> {
        Ok(proposal.agreement())
    }

    fn leave(&self, _: u32, _: u32, _: &str) {}
}

impl Settings {
    /// The configuration; `raised` is where a function given as `on_error` leaves its exception.
    pub(crate) fn config(self, py: Python<'_>, raised: &Raised) -> PyResult<LoaderConfig> {
        let strategy = self.strategy(py)?;
        let on_error = damage::policy(py, self.on_error, raised)?;
        let recipe = Arc::new(recipe::read(py, &self.recipe)?);
        let sockets = self.sockets.into_iter().map(|socket| DeviceSource::Connect { socket });
        let spawned = self.commands.into_iter().filter_map(|words| {
            let mut words = words.into_iter();
            let program = PathBuf::from(words.next()?);
            Some(DeviceSource::Spawn(SpawnDevice { program, arguments: words.collect() }))
        });
        let kind = match self.spool_folder {
            Some(directory) => SpoolKind::File { directory },
            None => SpoolKind::Memory,
        };
        let refused = |_| errors::plain(py, "SettingError", "stall_timeout is no time in seconds");
        if self.ranks > 1 && strategy.uses_devices() {
            let message = format!(
                "strategy {} with {} ranks needs ranks that agree on every step, which is only \
                 there for ranks that are threads of `meetpoint run`; use host-only, or one rank",
                self.strategy, self.ranks
            );
            return Err(errors::plain(py, "SettingError", message));
        }
        // Ranks whose batches all come from their hosts have nothing to agree on.
        let collective = (self.ranks > 1).then(|| Arc::new(Apart) as Arc<dyn Collective>);
        Ok(LoaderConfig {
            collective,
            drop_last: self.drop_last,
            shuffle: self.shuffle,
            seed: self.seed,
            strategy,
            workers: self.workers,
            prefetch: self.prefetch,
            memory_budget_bytes: self.memory_budget,
            devices: sockets.chain(spawned).collect(),
            spool: SpoolConfig { kind, quota_bytes: self.spool_quota },
            stall_timeout: Duration::try_from_secs_f64(self.stall_timeout).map_err(refused)?,
            rank: self.rank,
            ranks: self.ranks,
            on_error,
            errors_max: self.max_errors,
            quarantine: self.quarantine,
            ..LoaderConfig::new(self.dataset, recipe, self.batch_size)
        })
    }

    fn strategy(&self, py: Python<'_>) -> PyResult<meetpoint_scheduler::Strategy> {
        let Some(name) = StrategyName::named(&self.strategy) else {
            let known = StrategyName::ALL.map(StrategyName::as_str).join(", ");
            let message = format!("strategy is {:?}; it takes one of {known}", self.strategy);
            return Err(errors::plain(py, "SettingError", message));
        };
        let order = match self.order.as_str() {
            "any" => Order::Any,
            "replayable" => Order::Replayable,
            "baseline" => Order::Baseline,
            other => {
                let message =
                    format!("order is {other:?}; it takes one of any, replayable, baseline");
                return Err(errors::plain(py, "SettingError", message));
            }
        };
        let defaults = StrategyOptions::default();
        let window = self.window.unwrap_or(defaults.window);
        Ok(StrategyOptions { order, window, ..defaults }.strategy(name))
    }
}
