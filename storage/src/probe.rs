//! Storage features of this machine, for reports, each with the reason if it is missing.

use crate::nvme::{CommandSets, NvmeDevice};
use crate::open::direct_alignment;
use crate::uring::UringEngine;
use crate::{Engine, EngineNote, Error, RingRefusal};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::path::{Path, PathBuf};

/// What io_uring can do here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UringSupport {
    /// The relevant features that the kernel reports.
    pub features: Vec<&'static str>,
    /// Whether buffers can be registered, or why not.
    pub registered_buffers: Result<(), EngineNote>,
}

/// Sets up a ring and queries its features.
pub fn probe_uring() -> Result<UringSupport, RingRefusal> {
    let mut engine = UringEngine::new(1)?;
    // The first buffer registers the memory that it is part of.
    drop(engine.buffer(1));
    let registered_buffers = engine.notes().first().map_or(Ok(()), |note| Err(note.clone()));
    Ok(UringSupport { features: engine.features(), registered_buffers })
}

/// Whether files at a path can be read and written directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectSupport {
    /// They can. Alignments are in bytes; `None` if the kernel does not report them, and
    /// [`crate::BLOCK_BYTES`] is used.
    Yes {
        /// Alignment of memory and of offsets in the file, from STATX_DIOALIGN.
        alignment: Option<(u32, u32)>,
    },
    /// They cannot, with the reason; such files are read through the page cache.
    No(String),
}

/// Tries O_DIRECT on a file, or in a folder on a file without a name.
pub fn probe_direct(path: &Path) -> Result<DirectSupport, Error> {
    let failed = |source: io::Error| Error::Open { path: PathBuf::from(path), source };
    let is_folder = path.metadata().map_err(failed)?.is_dir();
    let direct = OFlags::DIRECT | OFlags::CLOEXEC;
    let (flags, mode) = if is_folder {
        (OFlags::RDWR | OFlags::TMPFILE, Mode::RUSR | Mode::WUSR)
    } else {
        (OFlags::RDONLY, Mode::empty())
    };
    match rustix::fs::open(path, flags | direct, mode) {
        Ok(file) => Ok(match direct_alignment(file) {
            Some((_, 0)) => DirectSupport::No("the file system says that it cannot".to_owned()),
            alignment => DirectSupport::Yes { alignment },
        }),
        Err(rustix::io::Errno::INVAL) => {
            Ok(DirectSupport::No("the file system refuses O_DIRECT".to_owned()))
        }
        Err(error) => Err(failed(error.into())),
    }
}

/// The command sets that an NVMe drive reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvmeSupport {
    /// Its name, such as `nvme0`.
    pub name: String,
    /// Its command sets; `None` if it does not list them; or why it cannot be queried.
    pub command_sets: Result<Option<CommandSets>, String>,
}

/// Queries NVMe drives, given by name, for their command sets. This needs permission to open
/// /dev/nvmeX and to send it admin commands, which usually only root has.
pub fn probe_nvme(names: Vec<String>) -> Vec<NvmeSupport> {
    let ask = |name: &str| NvmeDevice::open(&Path::new("/dev").join(name), false)?.command_sets();
    let asked = names.into_iter().map(|name| {
        let command_sets = ask(&name).map_err(|error: io::Error| error.to_string());
        NvmeSupport { name, command_sets }
    });
    asked.collect()
}

/// How much memory this process may lock; registered buffers count as locked memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemlockLimit {
    /// Soft limit in bytes; `None` for no limit.
    pub current: Option<u64>,
    /// Hard limit in bytes, to which the soft limit can be raised; `None` for no limit.
    pub maximum: Option<u64>,
}

/// Reads RLIMIT_MEMLOCK.
pub fn probe_memlock() -> MemlockLimit {
    let limit = getrlimit(Resource::Memlock);
    MemlockLimit { current: limit.current, maximum: limit.maximum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_is_an_error_that_names_it() {
        let error = probe_direct(Path::new("/nowhere/at all")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at all"), "{error}");
    }

    #[test]
    fn a_folder_and_a_file_in_it_answer_alike() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("part");
        std::fs::write(&file, [0; 5000]).unwrap();
        let answers = [folder.path(), &file].map(|path| probe_direct(path).unwrap());
        assert_eq!(answers[0], answers[1]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_drive_that_is_not_there_says_so() {
        let found = probe_nvme(vec!["nvme999".to_owned()]);
        assert_eq!(found[0].name, "nvme999");
        assert!(found[0].command_sets.is_err());
    }

    #[test]
    fn io_uring_is_there_with_what_is_needed_or_says_why_not() {
        match probe_uring() {
            Ok(support) => assert!(support.features.contains(&"ext_arg"), "{support:?}"),
            Err(refusal) => assert_ne!(refusal, RingRefusal::NoTimedWait),
        }
    }
}
