//! Sources that are tables, on files that other programs wrote (`golden/sources/make_b.py`), and
//! on the same files damaged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "the allocator counts what is taken")]

mod bombs;
mod damage;
mod golden;
mod meetpoint;
mod memory;
mod support;
