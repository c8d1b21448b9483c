//! Puts `report.json` and `report.html` into a folder, each whole or not at all.

use super::{Report, html};
use anyhow::{Context, bail};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Writes both files and returns their paths (json, html).
pub(crate) fn write(report: &Report, folder: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    write_both(report, folder).with_context(|| {
        format!(
            "the report could not be written to {}; free space, or choose another folder with \
             --report",
            folder.display()
        )
    })
}

fn write_both(report: &Report, folder: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let made = Made::folder(folder)
        .with_context(|| format!("failed to create folder {}", folder.display()))?;
    let mut json = serde_json::to_string_pretty(report)?;
    json.push('\n');
    let json_path = place(folder, "report.json", json.as_bytes())?;
    let html_path = place(folder, "report.html", html::page(report).as_bytes())?;
    made.keep();
    Ok((json_path, html_path))
}

/// Folders that were made for files; dropped before these are there, it removes those that are
/// empty.
struct Made(Vec<PathBuf>);

impl Made {
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

impl Drop for Made {
    fn drop(&mut self) {
        // The deepest first; one that holds something stays, and those above it.
        for folder in &self.0 {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Fails where the report could not be written, before the work that it tells of; makes nothing.
pub(crate) fn check_folder(folder: &Path) -> anyhow::Result<()> {
    let above = crate::doctor::folder_of(folder);
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let there = absolute.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok());
    if let Some(file) = there.filter(|there| !there.is_dir()) {
        bail!(
            "the report cannot be written to {}: {} is not a folder; name another with --report",
            folder.display(),
            file.display()
        );
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(&above, access).with_context(|| {
        format!(
            "the report cannot be written to {}: {} is not writable; name another folder with \
             --report",
            folder.display(),
            above.display()
        )
    })
}

/// Writes under a temporary name and renames, so that a reader never sees half a file.
pub(crate) fn place(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    if !folder.is_dir() {
        bail!(
            "failed to write {}: there is no folder {}; make it first",
            path.display(),
            folder.display()
        );
    }
    let failed = || format!("failed to write {}", path.display());
    // Temporary files are private by default; results get what the user's umask leaves.
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| without_path(&error))
        .with_context(failed)?;
    file.write_all(content).map_err(|error| without_path(&error)).with_context(failed)?;
    file.persist(&path).map_err(|error| error.error).with_context(failed)?;
    Ok(path)
}

/// What went wrong, without the temporary name, which says nothing to a user.
pub(crate) fn without_path(error: &std::io::Error) -> std::io::Error {
    match meetpoint_storage::os_error(error) {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_folder, write};
    use crate::report::{Report, made_up};

    #[test]
    fn the_json_file_reads_back_to_the_same_report() {
        let folder = tempfile::tempdir().unwrap();
        let report = made_up::report(5);
        let (json, html) = write(&report, &folder.path().join("new")).unwrap();
        let read: Report = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        // The last digit of a decimal may differ; nothing before it.
        assert_eq!(format!("{read:.9?}"), format!("{report:.9?}"));
        assert!(html.is_file());
        assert_eq!(std::fs::read_dir(folder.path().join("new")).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_that_takes_nothing_is_an_error_with_a_remedy_and_no_temporary_name() {
        let folder = tempfile::tempdir().unwrap();
        // A name for the file that is there already, as a folder with something in it.
        std::fs::create_dir_all(folder.path().join("report.json/x")).unwrap();
        let error = write(&made_up::report(2), folder.path()).unwrap_err();
        let said = format!("{error:#}").replace(&folder.path().display().to_string(), "out");
        assert!(said.contains("--report") && said.contains("out/report.json: "), "{said}");
        assert!(!said.contains(".tmp"), "{said}");
    }

    #[test]
    fn a_report_that_could_not_be_written_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for wrong in [file.clone(), file.join("below")] {
            assert!(check_folder(&wrong).unwrap_err().to_string().contains("--report"));
        }
        let fresh = folder.path().join("fresh/deep");
        check_folder(&fresh).unwrap();
        assert!(!fresh.exists());
    }
}
