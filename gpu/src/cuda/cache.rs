//! Compiled kernels on disk, so that a GPU's kernels are compiled once per machine.
//!
//! Errors of the cache are ignored: modules that cannot be read are compiled, and modules that
//! cannot be written are not stored.

use super::driver::Version;
use super::nvrtc::Target;
use super::regular;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file is this line, the SHA-256 of the rest, and the rest.
const MAGIC: &[u8] = b"meetpoint cubin 1\n";

/// A file of the cache.
pub(super) struct CacheFile(PathBuf);

impl CacheFile {
    /// Its name is derived from all inputs of the compiler.
    pub(super) fn of(folder: &Path, text: &str, target: Target, compiler: Version) -> Self {
        let mut hash = Sha256::new();
        for part in [text, &target.options().join(" "), &compiler.to_string()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let name: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(folder.join(format!("{name}.cubin")))
    }

    /// The stored kernels; `None` if there are none, or the file is damaged.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let mut file = Vec::new();
        regular::open(&self.0).ok()?.read_to_end(&mut file).ok()?;
        let (sum, content) = file.strip_prefix(MAGIC)?.split_first_chunk::<32>()?;
        (Sha256::digest(content).as_slice() == sum).then(|| content.to_vec())
    }

    /// Stores kernels: other processes see the complete file or none.
    pub(super) fn write(&self, content: &[u8]) -> std::io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        std::fs::create_dir_all(self.0.parent().expect("it is in a folder"))?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unfinished =
            self.0.with_extension(format!("{}-{number}.unfinished", std::process::id()));
        let write = || {
            let mut file = create(&unfinished)?;
            file.write_all(MAGIC)?;
            file.write_all(&Sha256::digest(content))?;
            file.write_all(content)?;
            std::fs::rename(&unfinished, &self.0)
        };
        write().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))
    }
}

/// Creates a new file that no other process has open. Removes a file that an earlier process with
/// the same process ID left behind.
fn create(path: &Path) -> std::io::Result<File> {
    match File::create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            File::create_new(path)
        }
        created => created,
    }
}

#[cfg(test)]
mod tests {
    use super::CacheFile;
    use crate::cuda::Version;
    use crate::cuda::nvrtc::Target;
    use std::collections::HashSet;
    use std::process::Command;

    const V12_9: Version = Version { major: 12, minor: 9 };

    #[test]
    fn a_file_is_named_after_text_architecture_form_and_compiler() {
        let other = Version { major: 13, minor: 0 };
        let files = [
            ("a", Target::Cubin(90), V12_9),
            ("b", Target::Cubin(90), V12_9),
            ("a", Target::Cubin(80), V12_9),
            ("a", Target::Ptx(90), V12_9),
            ("a", Target::Cubin(90), other),
        ];
        let names: HashSet<_> = files
            .iter()
            .map(|(text, target, version)| CacheFile::of("/c".as_ref(), text, *target, *version).0)
            .collect();
        assert_eq!(names.len(), files.len());
        for name in names {
            assert_eq!(name.file_name().unwrap().len(), 64 + ".cubin".len());
        }
    }

    #[test]
    fn damage_of_every_byte_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = CacheFile::of(&folder.path().join("new"), "text", Target::Cubin(90), V12_9);
        assert_eq!(file.read(), None);
        file.write(b"kernels").unwrap();
        assert_eq!(file.read().as_deref(), Some(&b"kernels"[..]));
        assert_eq!(std::fs::read_dir(file.0.parent().unwrap()).unwrap().count(), 1);
        let content = std::fs::read(&file.0).unwrap();
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            std::fs::write(&file.0, damaged).unwrap();
            assert_eq!(file.read(), None, "byte {at}");
            std::fs::write(&file.0, &content[..at]).unwrap();
            assert_eq!(file.read(), None, "{at} bytes");
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_replaced_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = CacheFile::of(folder.path(), "text", Target::Cubin(90), V12_9);
        assert!(Command::new("mkfifo").arg(&file.0).status().unwrap().success());
        assert_eq!(file.read(), None);
        file.write(b"kernels").unwrap();
        assert_eq!(file.read().as_deref(), Some(&b"kernels"[..]));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_of_the_write_alone() {
        let file = CacheFile::of("/dev/null/cubin".as_ref(), "text", Target::Cubin(90), V12_9);
        assert_eq!(file.read(), None);
        assert!(file.write(b"kernels").is_err());
    }
}
