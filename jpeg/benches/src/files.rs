//! The JPEG files of a folder.

use anyhow::{Context, ensure};
use meetpoint_kernels::ImageFormat;
use std::path::{Path, PathBuf};

/// Maximum depth of folders that are searched.
const DEPTH_MAX: u32 = 16;

/// Every JPEG at or below `path`, recognised by its first bytes, sorted by name.
pub fn jpeg_files(path: &Path) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    collect(path, 0, &mut found)?;
    ensure!(!found.is_empty(), "no JPEG at or below {}", path.display());
    found.sort();
    Ok(found)
}

fn collect(path: &Path, depth: u32, found: &mut Vec<(PathBuf, Vec<u8>)>) -> anyhow::Result<()> {
    ensure!(depth <= DEPTH_MAX, "{} is deeper than {DEPTH_MAX} folders", path.display());
    let reading = || format!("reading {}", path.display());
    if !path.is_dir() {
        let bytes = std::fs::read(path).with_context(reading)?;
        if ImageFormat::of(&bytes) == Some(ImageFormat::Jpeg) {
            found.push((path.to_path_buf(), bytes));
        }
        return Ok(());
    }
    for entry in std::fs::read_dir(path).with_context(reading)? {
        collect(&entry.with_context(reading)?.path(), depth + 1, found)?;
    }
    Ok(())
}
