//! Limits of the system: the number of open files, and the size of a file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Raises the soft limit of open files to the hard limit, because each worker keeps every part of a
/// dataset open. If that fails, opening a part reports the limit.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Makes a file that grows beyond the limit of file sizes (`ulimit -f`) an error of the write
/// (`EFBIG`), so that it is reported and cleaned up after like any other; otherwise the signal
/// would end the program. If the handler cannot be set, it still does.
pub(crate) fn survive_file_size() {
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn the_limit_is_the_highest_that_is_allowed() {
        super::raise_open_files();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
