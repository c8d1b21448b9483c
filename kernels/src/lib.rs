//! Turns encoded samples into tensors, the same bytes on every machine.
//!
//! It never sees files or threads. In reading order: [`Stripe`] (the form in which pixels go from
//! stage to stage), [`decode`] (the seam every decoder stands behind), [`resize`], [`crop`],
//! [`tensor`] (type, normalisation, layout), [`SamplePreparer`] (a recipe applied to a sample).

mod contain;
pub mod cpu;
pub mod crop;
pub mod decode;
mod error;
#[cfg(test)]
mod golden;
mod interrupt;
#[cfg(test)]
mod interrupt_tests;
pub mod jpeg;
pub mod resize;
mod sample;
mod stripe;
pub mod tensor;

pub use contain::{contain_panic, is_panic_contained};
pub use cpu::Cpu;
pub use decode::{
    Encoded, ImageFormat, ImageInfo, Picture, Region, decode_bytes, decode_into, probe,
};
pub use error::Error;
pub use interrupt::Interrupt;
pub use sample::{SampleId, SamplePreparer, Tensor};
pub use stripe::{ROW_SLACK, Row, Stripe};
