//! Determines and starts the threads that process samples.

use crate::Error;
use std::thread::{Builder, Scope};

/// Maximum number of threads for a source or a dataset; equal to the maximum workers of a job.
pub(crate) const THREADS_MAX: usize = 1024;

/// The requested number of threads; 0 means one per processor.
pub(crate) fn threads(asked: usize) -> Result<usize, Error> {
    match asked {
        0 => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        threads if threads > THREADS_MAX => {
            Err(Error::TooManyThreads { threads, most: THREADS_MAX })
        }
        threads => Ok(threads),
    }
}

/// Starts thread `number` of `threads`, from 1. If the system cannot start it, the caller stops the
/// running ones.
pub(crate) fn start_thread<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    (number, threads): (usize, usize),
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), Error> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.map(drop).map_err(|source| Error::Thread { number, threads, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_threads_is_bounded() {
        assert!(matches!(threads(0), Ok(1..)));
        assert_eq!(threads(THREADS_MAX).unwrap(), THREADS_MAX);
        assert!(matches!(threads(THREADS_MAX + 1), Err(Error::TooManyThreads { .. })));
    }
}
