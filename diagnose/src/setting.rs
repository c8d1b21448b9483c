//! Settings that remedies name, as each surface calls them.

use crate::Surface;
use serde::{Deserialize, Serialize};

/// A key of a job file, an option of a command or an argument of Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// Samples in a batch.
    BatchSize,
    /// Most bytes of the batches that the host holds.
    MemoryBudget,
    /// Most bytes of the batches that devices have ready.
    SpoolQuota,
    /// Who prepares what.
    Strategy,
    /// Most damaged samples of an epoch.
    MaxErrors,
    /// Time that ranks wait for each other.
    RankTimeout,
    /// Whether every device has every part of the dataset.
    Shared,
    /// Whether batches are kept for the next epoch.
    Reuse,
    /// Whether devices begin the next epoch early.
    RunAhead,
    /// Whether every epoch has an order of its own.
    Shuffle,
    /// Whether an emulated device may share the only core.
    AllowShared,
    /// Folders that a device serves.
    DeviceRoot,
    /// Hosts that a device works for at a time.
    DeviceHosts,
    /// Most memory of a device's worker.
    DeviceMemory,
    /// `on_error` of the operation that decodes.
    DecodeOnError,
}

impl Setting {
    /// Its name: `memory_budget`, `--root`.
    pub fn name(self, surface: Surface) -> &'static str {
        let (command_line, python) = match self {
            Self::BatchSize => ("batch_size", "batch_size"),
            Self::MemoryBudget => ("memory_budget", "memory_budget"),
            Self::SpoolQuota => ("spool.quota", "spool_quota"),
            Self::Strategy => ("strategy", "strategy"),
            Self::MaxErrors => ("max_errors", "max_errors"),
            Self::RankTimeout => ("rank_timeout", "rank_timeout"),
            Self::Shared => ("shared", "shared"),
            Self::Reuse => ("reuse", "reuse"),
            Self::RunAhead => ("run_ahead", "run_ahead"),
            Self::Shuffle => ("shuffle", "shuffle"),
            Self::AllowShared => ("--allow-shared", "allow_shared"),
            Self::DeviceRoot => ("--root", "--root"),
            Self::DeviceHosts => ("--hosts", "--hosts"),
            Self::DeviceMemory => ("--memory-max", "--memory-max"),
            Self::DecodeOnError => ("on_error of the recipe's decode", "Decode(on_error=…)"),
        };
        match surface {
            Surface::CommandLine => command_line,
            Surface::Python => python,
        }
    }
}
