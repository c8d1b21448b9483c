//! Finds the operations of a recipe that are worth executing once, offline, with the results
//! stored.
//!
//! A recipe can be cut after each of its leading deterministic operations. The results of the
//! operations before the cut are stored once, and each epoch executes only the rest.
//! [`enumerate()`] lists every such [`Strategy`], [`profile()`] measures them on a sample of a
//! dataset, and [`decide()`] and [`score()`] choose among the measurements.
//!
//! ```
//! use meetpoint_format::recipe::Recipe;
//! use meetpoint_planner::{Cache, Codec, Settings, enumerate, materialization_points};
//!
//! let recipe = Recipe::from_toml(
//!     r#"
//!     [[operation]]
//!     name = "decode"
//!     [[operation]]
//!     name = "resize"
//!     size = 256
//!     [[operation]]
//!     name = "random_resized_crop"
//!     size = 224
//!     "#,
//! )?;
//! let points = materialization_points(&recipe, true);
//! let names: Vec<String> = points.legal.iter().map(|point| point.to_string()).collect();
//! assert_eq!(names[4..], ["1-decode", "1-decode-jpeg", "2-resize", "2-resize-jpeg"]);
//! assert_eq!(points.refused[0].operation, "random_resized_crop");
//!
//! let settings = Settings { codecs: vec![Codec::None, Codec::Lz4], threads: vec![1, 8] };
//! // The files, and seven other points with two codecs each.
//! let strategies = enumerate(&points.legal, &settings, None);
//! assert_eq!(strategies.len(), (1 + 7 * 2) * 2 * Cache::ALL.len());
//! # Ok::<(), meetpoint_format::recipe::RecipeError>(())
//! ```
//!
//! In reading order: [`vocabulary`] (codecs, caches, forms, GPUs), [`mod@enumerate`] (points and
//! strategies), [`mod@results`] (a measured strategy, and its CSV), [`mod@statistics`] (errors of
//! means and totals), [`mod@score`] (PRESTO's weighted score), [`mod@decide`] (the fastest strategy
//! within limits), [`mod@profile`] (the measurement), [`mod@materialize`] (a dataset of the results
//! of the first operations), [`mod@plan`] (which end executes what), [`Error`].

mod cut_error;
pub mod decide;
pub mod enumerate;
mod error;
mod jpeg;
pub mod materialize;
pub mod plan;
pub mod profile;
pub mod results;
pub mod score;
pub mod statistics;
pub mod vocabulary;

pub use decide::{Decision, Goal, decide};
pub use enumerate::{Points, Settings, Strategy, enumerate, materialization_points};
pub use error::Error;
pub use materialize::{
    CutError, PrepareOptions, PrepareProgress, PrepareSummary, find_cut, materialize,
};
pub use profile::{Options, Profile, profile};
pub use results::{Measured, read_csv, read_json, write_csv};
pub use score::{StorageMeaning, Weights, score};
pub use vocabulary::{Cache, Codec, Form, GpuIndex, Point};
