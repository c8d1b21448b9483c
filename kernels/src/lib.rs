//! Converts encoded samples to tensors, with the same bytes on every machine.
//!
//! It uses neither files nor threads. In reading order: [`Stripe`] (the form in which pixels pass
//! from stage to stage), [`decode`] (the common interface of all decoders), [`resize`], [`crop`],
//! [`tensor`] (type, normalisation, layout), `stage` (one pass of rows) with `canvas` (its target),
//! `pixels` (a whole picture between two stages), `wide` (pictures with alpha, of 16 bits, of
//! floats), `elements` (their numbers), `frame` (pixels around a picture), `warp` (arbitrary maps
//! of positions), `points` (points that move with pixels), `targets` (masks, boxes and keypoints),
//! `colour` (changes of colours), `random` (random parameters and noise), `finished` (a whole
//! tensor), `vector` (one source for all instruction sets), `series` (values over time) with
//! `audio` and `signal`, `text` (characters, tokens and their vectors) with `packing`, `operations`
//! (the execution of each operation), [`SamplePreparer`] (a recipe applied to a sample),
//! [`PictureProgram`] (the same, exported as data) with `recording`, `mixing` with `blend` (samples
//! of a batch mixed with one another), [`BatchMixer`] (a recipe applied to a batch).

mod audio;
mod batch;
#[cfg(test)]
mod batch_tests;
mod blend;
mod canvas;
mod colour;
mod contain;
pub mod crop;
pub mod decode;
mod diagnose;
mod elements;
mod error;
mod finished;
mod frame;
/// The tests of both crates use golden files of one format.
#[cfg(test)]
#[path = "../../jpeg/src/golden.rs"]
mod golden;
#[cfg(test)]
mod interrupt_tests;
mod mixing;
mod operations;
mod packing;
mod picture_program;
mod pixels;
mod planes;
mod points;
mod random;
mod recording;
pub mod resize;
mod sample;
mod series;
mod signal;
mod stage;
mod target_problem;
mod targets;
pub mod tensor;
mod text;
mod vector;
mod warp;
mod wide;

pub use batch::{BatchId, BatchMixer, BatchTensors};
pub use contain::{ContainedPanic, contain_panic, note_contained};
pub use decode::{
    Encoded, ImageFormat, ImageInfo, Picture, Region, decode_bytes, decode_into, probe,
};
pub use error::{DoesNotFit, Error, Misfit};
pub use meetpoint_jpeg as jpeg;
pub use meetpoint_jpeg::{Cpu, Helper, Interrupt};
pub use operations::numbers_of;
pub use picture_program::{
    AxisProgram, BatchProgram, ErasedValues, Erasure, NoiseRange, NotExported, OUTSIDE,
    PictureChange, PictureProgram, PositionMap, SampleMix, SpaceConversion, StageProgram,
    TensorProgram, Turn, WEIGHT_BITS, WarpForm,
};
pub use planes::{ROW_SLACK, Row, Stripe};
pub use sample::{SampleId, SamplePreparer, Tensor, element_table};
pub use target_problem::TargetProblem;
pub use targets::{TargetSpec, element_bytes};
pub use text::{FileMisfit, check_files};
