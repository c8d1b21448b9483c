//! The interface with the user: output, errors, signals.
//!
//! In reading order: [`output`] (standard output), [`failure`] (errors and exit codes),
//! [`remote`] (options of running devices), [`stop`] (signals), [`limits`] (of the system),
//! [`progress`] (bars on a terminal), [`units`] (quantities with units), [`choice`] (values by
//! name).

pub(crate) mod chart_files;
pub(crate) mod choice;
pub(crate) mod failure;
pub(crate) mod fault;
pub(crate) mod limits;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod remote;
pub(crate) mod report_files;
pub(crate) mod stop;
mod store_arguments;
pub(crate) mod transfer;
pub(crate) mod units;

pub(crate) use output::Output;
pub(crate) use stop::Stop;
pub(crate) use store_arguments::StoreArguments;

/// Number of cores that this process may run on; 1 if the kernel does not report it.
pub(crate) fn cores_allowed() -> usize {
    cores().len().max(1)
}

/// The cores that this process may run on, ascending; empty if the kernel does not report them.
pub(crate) fn cores() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}
