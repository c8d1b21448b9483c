//! Sources that are archives, tables and binary files: their contents, and the effect of damage.

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod golden;
