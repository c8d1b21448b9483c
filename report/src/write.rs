//! Writes the files of a report to a folder, each completely or not at all.

use crate::Report;
use crate::render::Renderer;
use meetpoint_diagnose::{Diagnose, Remedy, shown};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A report that cannot be written. The command line adds which option names the folder.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A component of the path is not a folder.
    #[error("{} is not a folder", shown(file))]
    NotAFolder {
        /// The component.
        file: PathBuf,
    },
    /// No files can be created in the existing folder.
    #[error("{} is not writable: {source}", shown(folder))]
    NotWritable {
        /// Folder.
        folder: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The folder cannot be created.
    #[error("failed to create folder {}: {source}", shown(folder))]
    Folder {
        /// Folder.
        folder: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The folder for a file does not exist.
    #[error("failed to write {}: folder {} does not exist", shown(path), shown(folder))]
    NoFolder {
        /// File.
        path: PathBuf,
        /// Folder.
        folder: PathBuf,
    },
    /// A file cannot be written.
    #[error("failed to write {}: {source}", shown(path))]
    File {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

impl Diagnose for WriteError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NotAFolder { .. } => "not_a_folder",
            Self::NotWritable { .. } | Self::Folder { .. } => "folder_not_writable",
            Self::NoFolder { .. } => "no_folder",
            Self::File { .. } => "file_not_written",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NotAFolder { .. } | Self::NotWritable { .. } | Self::Folder { .. } => {
                "name a folder that can be written".into()
            }
            Self::NoFolder { folder, .. } => format!("create {}", shown(folder)).into(),
            Self::File { .. } => Remedy::advice("free space").or("name another folder"),
        })
    }
}

/// Writes the files of these renderers and returns their paths in the same order.
pub fn write(
    report: &Report,
    renderers: &[&dyn Renderer],
    folder: &Path,
) -> Result<Vec<PathBuf>, WriteError> {
    let made = CreatedFolders::folder(folder)
        .map_err(|source| WriteError::Folder { folder: folder.to_path_buf(), source })?;
    let file = |renderer: &&dyn Renderer| {
        place(folder, renderer.file_name(), renderer.render(report).as_bytes())
    };
    let paths = renderers.iter().map(file).collect::<Result<_, _>>()?;
    made.keep();
    Ok(paths)
}

/// Folders that were made for files; dropped before these are there, it removes those that are
/// empty.
struct CreatedFolders(Vec<PathBuf>);

impl CreatedFolders {
    /// Makes a folder, and those above it that are missing.
    fn folder(folder: &Path) -> std::io::Result<Self> {
        let absolute = std::path::absolute(folder)?;
        let missing = absolute.ancestors().take_while(|above| above.symlink_metadata().is_err());
        let made = Self(missing.map(Path::to_path_buf).collect());
        std::fs::create_dir_all(folder)?;
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        // The deepest first; one that holds something stays, and those above it.
        for folder in &self.0 {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Fails if a report cannot be written, before the work starts: creates the folder and a file in
/// it, and removes both again.
pub fn check_folder(folder: &Path) -> Result<(), WriteError> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let there = absolute.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok());
    let above = there.unwrap_or(Path::new("/"));
    if !above.is_dir() {
        return Err(WriteError::NotAFolder { file: above.to_path_buf() });
    }
    let not_writable = |source| WriteError::NotWritable { folder: above.to_path_buf(), source };
    // Some file systems grant access but do not support creating files, such as proc.
    let _made = CreatedFolders::folder(folder).map_err(not_writable)?;
    tempfile::Builder::new().tempfile_in(folder).map(drop).map_err(not_writable)
}

/// Writes under a temporary name and renames, so that a reader never sees half a file.
pub fn place(folder: &Path, name: &str, content: &[u8]) -> Result<PathBuf, WriteError> {
    let path = folder.join(name);
    if !folder.is_dir() {
        return Err(WriteError::NoFolder { path, folder: folder.to_path_buf() });
    }
    match try_place(folder, &path, content) {
        Ok(()) => Ok(path),
        Err(source) => Err(WriteError::File { path, source }),
    }
}

fn try_place(folder: &Path, path: &Path, content: &[u8]) -> std::io::Result<()> {
    // A rename would replace a link, a device or a pipe by a file: the first is followed, the
    // others are written to as they are.
    if let Ok(target) = path.canonicalize() {
        if !target.metadata()?.is_file() {
            return File::options().write(true).open(path)?.write_all(content);
        }
        return replace(target.parent().unwrap_or(folder), &target, content);
    }
    replace(folder, path, content)
}

fn replace(folder: &Path, path: &Path, content: &[u8]) -> std::io::Result<()> {
    // Temporary files are private by default; results get what the user's umask leaves.
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| without_path(&error))?;
    file.write_all(content).map_err(|error| without_path(&error))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The error without the temporary file name, which is meaningless to a user.
pub fn without_path(error: &std::io::Error) -> std::io::Error {
    match meetpoint_storage::os_error(error) {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{WriteError, check_folder, write};
    use crate::render::{RENDERERS, Renderer};
    use crate::{Report, made_up};

    #[test]
    fn the_json_file_reads_back_to_the_same_report() {
        let folder = tempfile::tempdir().unwrap();
        let report = made_up::report(5);
        let all: Vec<&dyn Renderer> = RENDERERS.to_vec();
        let paths = write(&report, &all, &folder.path().join("new")).unwrap();
        let json = paths.iter().find(|path| path.ends_with("report.json")).unwrap();
        let read: Report = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        // The last digit of a decimal may differ; nothing before it.
        assert_eq!(format!("{read:.9?}"), format!("{report:.9?}"));
        let files = std::fs::read_dir(folder.path().join("new")).unwrap().count();
        assert_eq!((paths.len(), files), (RENDERERS.len(), RENDERERS.len()));
    }

    #[test]
    fn a_folder_that_takes_nothing_is_an_error_without_a_temporary_name() {
        let folder = tempfile::tempdir().unwrap();
        // A name for the file that is there already, as a folder with something in it.
        std::fs::create_dir_all(folder.path().join("report.json/x")).unwrap();
        let error = write(&made_up::report(2), &RENDERERS, folder.path()).unwrap_err();
        let WriteError::File { path, .. } = &error else { panic!("{error}") };
        assert_eq!(path, &folder.path().join("report.json"));
        let text = error.to_string().replace(&folder.path().display().to_string(), "out");
        assert!(text.starts_with("failed to write out/report.json: "), "{text}");
        assert!(!text.contains(".tmp"), "{text}");
    }

    #[test]
    fn a_report_that_could_not_be_written_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for wrong in [file.clone(), file.join("below")] {
            assert!(matches!(check_folder(&wrong), Err(WriteError::NotAFolder { .. })));
        }
        let fresh = folder.path().join("fresh/deep");
        check_folder(&fresh).unwrap();
        assert!(!fresh.exists());
    }

    #[test]
    fn a_link_is_followed_and_a_device_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [link, full] = ["link.csv", "full.csv"].map(|name| folder.path().join(name));
        std::fs::write(folder.path().join("real.csv"), "old").unwrap();
        std::os::unix::fs::symlink("real.csv", &link).unwrap();
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        super::place(folder.path(), "link.csv", b"new").unwrap();
        assert_eq!(std::fs::read(folder.path().join("real.csv")).unwrap(), b"new");
        assert!(link.is_symlink());
        assert!(super::place(folder.path(), "full.csv", b"new").is_err());
        assert!(full.is_symlink());
    }
}
