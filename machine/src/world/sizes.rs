//! Sizes that plans and the dataset share.

/// Samples of the dataset.
pub(crate) const SAMPLES: u64 = 36;

/// Different seeds of the job itself, for each of which the fixture knows every sample.
pub(crate) const JOB_SEEDS: u64 = 3;

/// Most epochs of a job, besides the last one, which has no faults.
pub(crate) const EPOCHS_MAX: u32 = 3;
