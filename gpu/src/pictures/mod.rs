//! Executes recipes on pictures that a device has decoded.
//!
//! In reading order: [`Program`] (the operations on one picture, as plain data), `round` (jobs that
//! run together), `memory` (pictures between steps), `upload` (words and tables of programs),
//! `steps` (programs as rounds of jobs), `jobs` (jobs as kernels read them), [`PictureBatch`] (the
//! pictures of a batch: one upload, and as many launches in each round as it has forms of jobs).

mod batch;
mod jobs;
mod memory;
mod program;
mod round;
mod steps;
mod upload;

pub use batch::{PictureBatch, TensorFormat};
pub use program::{
    Axis, Change, ColourSpace, ErasedValues, Erasure, NoiseRange, OUTSIDE, PositionMap, Program,
    Region, Stage, TensorLocation, Turn, WarpForm,
};
