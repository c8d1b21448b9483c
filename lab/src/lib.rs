//! The experiments: what `meetpoint simulate`, `validate` and `reproduce` compute.
//!
//! It measures nothing by itself: what is measured comes from a [`bench::Bench`], which its caller
//! implements. It prints nothing either: results are documents, and texts, tables and pages made
//! from them. In reading order: [`simulate`] (scenarios, given constants, studies, replays),
//! [`bench`](mod@bench) (where experiments are measured), [`validate`] (the simulator against
//! closed forms and measurements), [`reproduce`] (published figures beside ours).
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

/// Called with the number of things that are done and their total.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64);
