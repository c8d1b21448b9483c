//! The runtime: workers, a ring of batches, the link to a device, and the scheduler they drive.
//!
//! It does not decide who prepares which batch ([`meetpoint_scheduler`] does) nor what a batch
//! contains ([`meetpoint_prepare`] does); it waits, moves bytes and reports events to the
//! scheduler. Every wait is bounded.
//!
//! In reading order: [`LoaderConfig`] (the configuration), [`GpuDecode`] (a GPU that helps),
//! [`Loader`] and [`Epoch`] (the API), [`Batch`] (the result), [`Ring`] (the memory of batches),
//! `causes` and `events` (what goes wrong, as values), `spool` and `device_link` (the other end),
//! `driver` (the scheduler behind a lock), `worker` (background preparation), `fetch` (batches of
//! devices into host memory), [`delivery`] (copying batches to a GPU), [`accelerator`] (the
//! consumer), [`collective`] (how ranks decide together), [`group`] (ranks as threads), [`stats`]
//! and [`energy`] (measurements), [`explain`] (the bottleneck), [`trace`] (a timeline), [`verify`]
//! (verification of the guarantees), [`job`] (job files).

pub mod accelerator;
mod batch;
mod causes;
pub mod clock;
pub mod collective;
mod config;
mod conflicts;
mod cores;
mod damage;
pub mod delivery;
mod device_link;
mod diagnose;
mod driver;
pub mod energy;
mod error;
mod event_log;
mod events;
pub mod explain;
mod fetch;
mod gpu_decode;
pub mod group;
pub mod job;
mod job_error;
mod limits;
mod loader;
mod notice;
mod notify;
mod page_locks;
mod ring;
mod split_refusal;
mod spool;
pub mod stats;
mod stop;
pub mod trace;
pub mod verify;
mod worker;

pub use accelerator::{Accelerator, Emulated, Null};
pub use batch::Batch;
pub use config::{DeviceSource, LoaderConfig, SpawnDevice, SpoolConfig, SpoolKind, Tune};
pub use conflicts::{ChoiceConflict, ResumeConflict, ReuseConflict};
pub use device_link::SharedDevice;
pub use error::{DeviceName, Error};
pub use gpu_decode::GpuDecode;
pub use job::{AcceleratorJob, DeviceJob, DeviceKind, JobFile, Replacements, StoreSettings};
pub use loader::{Epoch, Loader};
pub use meetpoint_link::{
    DeviceInfo, Emulation, Endpoint, RemoteAddress, RemoteDevice, ServeCommand, Targets, TcpAddress,
};
pub use meetpoint_prepare::gpu::{GpuIndex, GpuMemory, NotAGpu, ShareChoice};
pub use meetpoint_prepare::{Action, Damage, DamagePolicy, MemoryKind, OnError, Replacement};
pub use meetpoint_scheduler::{StrategyName, StrategyOptions};
pub use notice::Notice;
pub use notify::Notify;
pub use ring::{Ring, RingSlot};
pub use stats::EpochStats;
pub use stop::StopHandle;
