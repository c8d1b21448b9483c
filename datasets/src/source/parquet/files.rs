//! Which Parquet files of a folder make up the dataset, and which split each belongs to.

use crate::source::arrow::chosen_split;
use crate::source::rows::malformed;
use crate::{Error, natural_order};
use std::path::{Path, PathBuf};

/// How deep files may lie: `data/default/train/0000.parquet`.
const DEPTH_MAX: usize = 4;
/// File or folder names that are splits.
const SPLIT_NAMES: [&str; 8] =
    ["train", "training", "test", "testing", "validation", "valid", "val", "dev"];

/// A file and its split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SplitFile {
    path: PathBuf,
    split: Option<String>,
}

/// The Parquet files below a folder, in natural order; hidden ones are passed over.
pub(super) fn list(folder: &Path) -> Result<Vec<SplitFile>, Error> {
    let mut files = Vec::new();
    let is_shown = |entry: &walkdir::DirEntry| {
        entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
    };
    let walk = walkdir::WalkDir::new(folder).max_depth(DEPTH_MAX).follow_links(true);
    for entry in walk.into_iter().filter_entry(is_shown) {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_path_buf();
            Error::Source { path, source: error.into() }
        })?;
        let is_parquet = entry.path().extension().is_some_and(|name| name == "parquet");
        if is_parquet && entry.file_type().is_file() {
            let relative = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            let split = split_of(relative);
            files.push(SplitFile { path: entry.into_path(), split });
        }
    }
    let name = |file: &SplitFile| file.path.to_string_lossy().into_owned();
    files.sort_by(|left, right| natural_order(&name(left), &name(right)));
    Ok(files)
}

/// The files of the dataset at `path`.
pub(super) fn choose(path: &Path, split: Option<&str>) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        if let Some(split) = split {
            let problem = format!("is one file, not a split {split:?}; leave --split out");
            return Err(malformed(path, None, problem));
        }
        return Ok(vec![path.to_path_buf()]);
    }
    let files = list(path)?;
    if files.is_empty() {
        return Err(malformed(path, None, "holds no files that end in .parquet"));
    }
    let mut splits: Vec<String> = Vec::new();
    for split in files.iter().filter_map(|file| file.split.clone()) {
        if !splits.contains(&split) {
            splits.push(split);
        }
    }
    if splits.is_empty() && split.is_none() {
        return Ok(files.into_iter().map(|file| file.path).collect());
    }
    if let (None, Some(file)) = (split, files.iter().find(|file| file.split.is_none())) {
        let problem = format!(
            "belongs to no split, where other files do ({}); choose one with --split",
            splits.join(", ")
        );
        return Err(malformed(&file.path, None, problem));
    }
    let chosen = chosen_split(path, &splits, split)?;
    let chosen = files.into_iter().filter(|file| file.split.as_ref() == Some(&chosen));
    Ok(chosen.map(|file| file.path).collect())
}

/// The split that a file's name says (`train-00000-of-00002.parquet`, `train.parquet`), or that of
/// its folder (`train/0000.parquet`).
fn split_of(relative: &Path) -> Option<String> {
    let stem = relative.file_stem()?.to_str()?;
    if let Some(split) = before_shard_number(stem) {
        return Some(split.to_owned());
    }
    let folder = relative.parent().and_then(|parent| parent.file_name()?.to_str());
    let name = stem.split(['-', '_', '.']).next().unwrap_or(stem);
    let found = [Some(name), folder].into_iter().flatten().find(|name| SPLIT_NAMES.contains(name));
    found.map(str::to_owned)
}

/// What stands before `-00000-of-00002`.
fn before_shard_number(stem: &str) -> Option<&str> {
    let is_number = |text: &str| text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, count) = stem.rsplit_once("-of-")?;
    // The Hub once put a hash behind the count.
    let count = count.split('-').next().unwrap_or(count);
    let (split, index) = rest.rsplit_once('-')?;
    (is_number(count) && is_number(index) && !split.is_empty()).then_some(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_read_from_names_and_folders() {
        let split = |path: &str| split_of(Path::new(path));
        assert_eq!(split("data/train-00000-of-00002.parquet").as_deref(), Some("train"));
        assert_eq!(split("data/train-00000-of-00001-8f2a.parquet").as_deref(), Some("train"));
        assert_eq!(split("default/test/0000.parquet").as_deref(), Some("test"));
        assert_eq!(split("my-set-00000-of-00001.parquet").as_deref(), Some("my-set"));
        assert_eq!(split("validation.parquet").as_deref(), Some("validation"));
        assert_eq!(split("part-0.parquet"), None);
    }

    #[test]
    fn several_splits_want_a_choice() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["train-00000-of-00001", "train-00001-of-00002", "test-00000-of-00001"] {
            std::fs::write(folder.path().join(format!("{name}.parquet")), b"").unwrap();
        }
        let error = choose(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("test, train") && error.contains("--split"), "{error}");
        assert_eq!(choose(folder.path(), Some("train")).unwrap().len(), 2);
        let error = choose(folder.path(), Some("dev")).unwrap_err().to_string();
        assert!(error.contains("\"dev\"") && error.contains("test, train"), "{error}");
    }
}
