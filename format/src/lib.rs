//! Every byte that host and device must agree on: recipes, orders, random parameters, datasets,
//! slots, messages.
//!
//! It opens no file and no socket, reads no clock and starts no thread.
//!
//! In reading order: [`recipe`] (operations as data), [`order`] and [`random`] (the order of
//! samples and their random parameters), [`sampler`] (which samples an epoch has), [`holders`] and
//! [`interleave`] (which device holds which samples and batches), [`batching`] (which samples form
//! a batch), [`replacement`] (replacements of damaged samples), `dataset` (Arrow conventions on
//! disk), [`key_index`] (from key to sample), [`mod@column`] (the columns of a batch), [`slot`] (a
//! prepared batch in the spool), `wire` (messages of the device link), [`checksum`], [`npy`]
//! (arrays as files), [`units`] (quantities with units), [`split_mix`] (seeded numbers for
//! everything that no two processes agree on).

pub mod batching;
pub mod checksum;
pub mod column;
#[cfg(feature = "dataset")]
pub mod dataset;
#[cfg(test)]
mod golden;
pub mod holders;
pub mod interleave;
pub mod key_index;
pub mod npy;
pub mod order;
pub mod random;
pub mod recipe;
pub mod replacement;
pub mod sampler;
pub mod slot;
pub mod split_mix;
pub mod units;
#[cfg(feature = "wire")]
pub mod wire;
