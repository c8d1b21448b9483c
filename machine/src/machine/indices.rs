//! Numbers of threads and processes.

/// Number of a thread, from 0 in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadIndex(pub(crate) usize);

/// Number of a process, from 0 in the order of creation. Process 0 injects the faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessIndex(pub(crate) usize);
