//! Sizes that both plans and the dataset use.

/// Samples of the dataset.
pub(crate) const SAMPLES: u64 = 36;

/// Number of seeds of jobs; the fixture has every prepared sample for each.
pub(crate) const JOB_SEEDS: u64 = 3;

/// Maximum number of epochs of a job before the last one, which has no faults.
pub(crate) const EPOCHS_MAX: u32 = 3;
