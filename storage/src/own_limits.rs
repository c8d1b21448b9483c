//! Failures that are caused by limits of this process or machine, not by a file.

use meetpoint_diagnose::Remedy;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::error::Error;
use std::io;

/// A limit of open files that was reached; `Display` writes the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenFilesLimit {
    /// The limit of this process.
    Process {
        /// Maximum number of open files; `None` for no limit.
        files: Option<u64>,
    },
    /// The limit of all processes together.
    Machine,
}

impl std::fmt::Display for OpenFilesLimit {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process { files: Some(files) } => {
                write!(to, "raise the limit of open files, which is {files} (ulimit -n)")
            }
            Self::Process { files: None } => {
                write!(to, "raise the limit of open files (ulimit -n)")
            }
            Self::Machine => {
                write!(to, "raise the machine's limit of open files (sysctl fs.file-max)")
            }
        }
    }
}

impl From<OpenFilesLimit> for Remedy {
    fn from(limit: OpenFilesLimit) -> Self {
        limit.to_string().into()
    }
}

/// The limit of open files that caused an error, if one did.
pub fn open_files_limit(error: &io::Error) -> Option<OpenFilesLimit> {
    match errno_of(error)? {
        Errno::MFILE => {
            Some(OpenFilesLimit::Process { files: getrlimit(Resource::Nofile).current })
        }
        Errno::NFILE => Some(OpenFilesLimit::Machine),
        _ => None,
    }
}

/// The limit of open files that caused an error, directly or through its sources.
pub fn open_files_limit_behind(error: &(dyn Error + 'static)) -> Option<OpenFilesLimit> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let limit = error.downcast_ref::<io::Error>().and_then(open_files_limit);
        if limit.is_some() {
            return limit;
        }
        cause = error.source();
    }
    None
}

/// Whether another process would get the same error, because the file causes it, not a limit of
/// this process or an interruption.
pub fn is_of_the_file(error: &io::Error) -> bool {
    let own = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR, Errno::AGAIN];
    !errno_of(error).is_some_and(|errno| own.contains(&errno))
}

/// The error number of the system, even if other errors wrap it.
pub fn os_error(error: &io::Error) -> Option<i32> {
    errno_of(error).map(Errno::raw_os_error)
}

fn errno_of(error: &io::Error) -> Option<Errno> {
    if let Some(errno) = Errno::from_io_error(error) {
        return Some(errno);
    }
    let mut inner = error.get_ref().map(|inner| inner as &(dyn Error + 'static));
    while let Some(wrapped) = inner {
        let found = wrapped.downcast_ref::<io::Error>().and_then(errno_of);
        if found.is_some() {
            return found;
        }
        inner = wrapped.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] io::Error);

    #[test]
    fn a_limit_of_open_files_is_known_however_deep_it_is_wrapped() {
        let plain = || io::Error::from(Errno::MFILE);
        let wrapped = io::Error::other(Wrapped(io::Error::other(Wrapped(plain()))));
        for error in [plain(), wrapped] {
            let limit = open_files_limit(&error).unwrap();
            assert!(matches!(limit, OpenFilesLimit::Process { .. }));
            assert!(limit.to_string().contains("ulimit -n"), "{limit}");
            assert!(!is_of_the_file(&error));
            assert_eq!(open_files_limit_behind(&Wrapped(error)), Some(limit));
        }
        assert_eq!(open_files_limit_behind(&Wrapped(Errno::NOENT.into())), None);
        assert_eq!(open_files_limit(&Errno::NFILE.into()), Some(OpenFilesLimit::Machine));
        assert_eq!(open_files_limit(&Errno::NOENT.into()), None);
        assert!(is_of_the_file(&Errno::IO.into()) && !is_of_the_file(&Errno::NOMEM.into()));
    }
}
