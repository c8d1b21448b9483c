//! The experiments: what `meetpoint simulate`, `validate` and `reproduce` compute.
//!
//! The caller implements [`bench::Bench`], which takes all measurements. The crate prints nothing:
//! results are documents, and texts, tables and pages of them. In reading order: [`simulate`]
//! (scenarios, given constants, studies, replays), [`bench`](mod@bench) (the interface to
//! measurements), [`validate`] (compares the simulator with closed forms and measurements),
//! [`reproduce`] (compares our figures with published ones).
//!
//! ```
//! use meetpoint_lab::simulate::{constants::Constants, quick};
//!
//! // t_c, t_g and t_s in seconds: what each strategy gains over the host alone.
//! let document = quick::run(&Constants::serial(1.0, 0.375, 2.0, 1_000))?;
//! let wrr = document.rows.iter().find(|row| row.strategy == "wrr").unwrap();
//! assert!((wrr.saving - 0.238).abs() < 0.002);
//! # Ok::<(), meetpoint_lab::Error>(())
//! ```

pub mod bench;
mod error;
pub mod reproduce;
pub mod simulate;
pub mod validate;

pub use error::{Error, NotDrawn, ScenarioFault};

/// Called with the number of completed steps and their total.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64);
