//! Delivers batches to a GPU: copies them from or through page-locked memory, converts them there,
//! and shares them with the streams of their consumers.
//!
//! In reading order: `limits`, `streams` ([`Streams`], the interface to events and to streams of
//! others), `conversion` ([`Conversion`], bytes to elements on the GPU), `mixing` ([`Mixing`],
//! samples of a batch mixed with one another), `staging` (page-locked memory, in chunks), `pool`
//! (memory of batches, reused when their consumers are done), `idle` (how long consumers wait),
//! [`DeviceBatch`], [`Delivery`] (combines the parts), and `shim` (the CPU instead of a GPU, for
//! tests).
//!
//! Memory is bounded: two limits, one for page-locked memory and one for memory of the GPU, are
//! never exceeded, and nothing is allocated after the largest batch.

mod batch;
mod conversion;
mod deliver;
mod idle;
mod limits;
mod mixing;
mod pool;
#[cfg(feature = "shim")]
mod shim;
mod staging;
mod streams;
#[cfg(all(test, feature = "shim"))]
mod tests;

pub use batch::DeviceBatch;
pub use conversion::{Arithmetic, Conversion, ElementBytes, Float, Order, bfloat16_bits};
pub use deliver::{Delivered, Delivery, Piece, Target};
pub use limits::{DeliveryError, DeliveryLimits};
pub use mixing::{BatchMix, MixedFormat, Mixing, Partner, SampleMix};
pub use streams::{ConsumerStream, Consumers, Event, Export, Streams};
