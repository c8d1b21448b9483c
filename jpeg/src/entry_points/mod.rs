//! Entry points of a file: positions in its entropy-coded data where decoding can begin.
//!
//! [`entry_points()`](crate::entry_points()) finds them once, as bytes to store beside the file; a
//! decoder that receives them in [`Encoded::entry_points`](crate::Encoded) begins at the last one
//! before its region. [`decode`] and [`encode`] read and write these bytes.

mod layout;
mod lookup;

pub use layout::{ENTRIES_MAX, Entry, EntryPointsError, EntryPointsHead, decode, encode};
pub(crate) use lookup::{EntryAt, EntryPoints};
