//! Binds threads to their cores.

use crate::Error;
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};

/// Binds the calling thread to `cores`.
pub(crate) fn bind(cores: &[usize]) -> Result<(), Error> {
    let failed = |source: std::io::Error| Error::Cores { cores: cores.to_vec(), source };
    let mut set = CpuSet::new();
    for &core in cores {
        if core >= CpuSet::MAX_CPU {
            return Err(failed(std::io::ErrorKind::InvalidInput.into()));
        }
        set.set(core);
    }
    sched_setaffinity(None, &set).map_err(|error| failed(error.into()))
}

/// A binding of one thread that ends when this value is dropped, in any thread.
#[derive(Debug)]
pub(crate) struct Bound {
    thread: Pid,
    before: CpuSet,
}

impl Bound {
    /// Binds the calling thread until the result is dropped.
    pub(crate) fn new(cores: &[usize]) -> Result<Self, Error> {
        let before = sched_getaffinity(None)
            .map_err(|error| Error::Cores { cores: cores.to_vec(), source: error.into() })?;
        bind(cores)?;
        Ok(Self { thread: gettid(), before })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // The thread may have ended since; there is then nothing to restore.
        let _ = sched_setaffinity(Some(self.thread), &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_ends_with_its_guard() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&core| before.is_set(core)).unwrap();
        let bound = Bound::new(&[first]).unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(bound);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn a_core_that_does_not_exist_is_an_error_that_names_it() {
        let error = bind(&[CpuSet::MAX_CPU - 1]).unwrap_err().to_string();
        assert!(error.contains(&(CpuSet::MAX_CPU - 1).to_string()), "{error}");
        assert!(bind(&[usize::MAX]).is_err());
    }
}
