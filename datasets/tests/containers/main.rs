//! Sources that are archives, tables and binary files: what is in them, and what damage does.

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod golden;
