//! The storage-side process: an agent that prepares batches near the data, and the emulation that
//! makes it as slow as a real one.
//!
//! In reading order: [`ServeOptions`] (what it is told), [`serve()`] (the process), `socket` and
//! `link` (who may connect), `agent` (the service), `session` (what a job is checked for), `queue`
//! (work, slots and the fence), `worker` (a job's preparing thread), `turns` (one of them at a
//! time), `spool` (where batches go), `governor` and `waits` (how a core is made slow), `fault`
//! (which faults strike when), [`probe()`].

mod agent;
mod clock;
mod cores;
mod error;
mod fault;
mod governor;
mod link;
mod mapping;
mod memory;
mod meters;
mod options;
mod owner;
mod probe;
mod queue;
mod serve;
mod session;
mod socket;
mod spool;
mod stream;
mod turns;
mod waits;
mod worker;

pub use error::Error;
pub use options::{Ready, ServeOptions, ServeSummary};
pub use probe::probe;
pub use serve::serve;
