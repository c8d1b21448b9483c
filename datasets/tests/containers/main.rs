//! Sources that are archives, tables and binary files: what is in them, and what damage does.

mod allocations;
mod faults;
mod golden;
