//! The storage-side process: an agent that prepares batches near the data, and the emulation that
//! slows it down to a real one.
//!
//! In reading order: [`ServeOptions`] (its configuration), [`serve()`] (the process),
//! [`ServeNotice`] (what it reports when it begins), `socket`, `listener` and `link` (who may
//! connect), `reporting` (what is logged), `roots` and `extents` (what may be served),
//! `shown_paths` (their names for hosts), `agent` (the service), `resources` (what jobs share),
//! `session` (the checks of a job) and `job_refusal` (their failures), `queue` (work, slots and the
//! fence), `worker` (a job's preparing thread), `turns` (as many of them at a time as there are
//! threads), `shares` (whose is next), `spool` (where batches go), `pieces` (slots as messages),
//! `metrics` (counters by client), `monitoring` (where they are served), `notify` (the state for
//! systemd), `governor` and `waits` (the emulation of a slow core), `wake_ups` and `disturbance`
//! (what disturbs it), [`SlowCore`] (the same outside of a device), [`DeviceProfile`] (declared
//! speeds of real devices), `cgroup` (an outer limit), `fault` (which faults occur when),
//! [`probe()`].

mod agent;
mod cgroup;
mod clock;
mod cores;
mod disturbance;
mod error;
mod extents;
mod fault;
mod governor;
mod job_refusal;
mod link;
mod listener;
mod memory;
mod meters;
mod metrics;
mod monitoring;
mod notice;
mod notify;
mod options;
mod owner;
mod pieces;
mod probe;
mod profile;
mod queue;
mod reporting;
mod resources;
mod root;
mod roots;
mod serve;
mod session;
mod shares;
mod shown_paths;
mod slow_core;
mod socket;
mod spool;
mod stream;
mod turns;
mod waits;
mod wake_ups;
mod worker;

pub use cgroup::CgroupError;
pub use error::Error;
pub use notice::ServeNotice;
pub use options::{ClientSummary, Listen, Ready, ServeOptions, ServeSummary, Shutdown};
pub use probe::probe;
pub use profile::{Basis, DeviceProfile, Figure, PROFILE_BYTES_MAX, PROFILES, ProfileError};
pub use root::{ExtentRoot, Root};
pub use serve::serve;
pub use slow_core::SlowCore;
