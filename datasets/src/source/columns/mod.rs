//! Builds typed columns from the loosely typed values of JSON and CSV.
//!
//! Types are inferred from all values ([`Shape::absorb`]). Values are never converted to another
//! type, except integers to floats without loss. In reading order: [`Shape`], [`Cell`], `array`
//! (cells to Arrow arrays), [`Gather`].

mod array;
mod cell;
mod gather;
mod shape;

#[cfg(test)]
mod tests;

pub(super) use cell::Cell;
pub(super) use gather::Gather;
pub(super) use shape::Shape;
