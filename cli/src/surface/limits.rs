//! Limits that the system sets low for old programs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of open files to what is allowed: each worker holds every part of a dataset
/// open. Where that fails the limit stays, and opening a part says so.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
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
