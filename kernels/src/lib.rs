//! Turns encoded samples into tensors, the same bytes on every machine.
//!
//! It never sees files or threads. In reading order: [`decode`] (the seam every decoder stands
//! behind), [`view`] (a part of a picture), [`resize`], [`crop`], [`tensor`] (type, normalisation,
//! layout), [`SamplePreparer`] (a recipe applied to a sample).

pub mod cpu;
pub mod crop;
pub mod decode;
mod error;
#[cfg(test)]
mod golden;
pub mod jpeg;
pub mod resize;
mod sample;
pub mod tensor;
pub mod view;

pub use cpu::Cpu;
pub use decode::{ImageFormat, ImageInfo, Picture, Region, decode_into, probe};
pub use error::Error;
pub use sample::{SampleId, SamplePreparer, Tensor};
