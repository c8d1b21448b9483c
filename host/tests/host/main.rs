//! The runtime as its users see it: epochs of the host alone, epochs with one
//! device or several, ranks, job files.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

mod caching;
mod columns;
mod damage;
mod device_link;
mod devices;
mod explain;
mod gpu;
mod host_alone;
mod job_file;
mod mixtures;
mod network;
mod preparers;
mod ranks;
mod reopening;
mod resident;
mod run_ahead;
mod samplers;
mod small_samples;
mod support;
mod trace;
mod tuning;
