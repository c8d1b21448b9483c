//! Determines which files of a folder form a dataset, and the split of each.

use super::malformed;
use crate::message::Message;
use crate::source::arrow::chosen_split;
use crate::store::{FileKind, StorePath, WalkEntry, WalkError, WalkOptions};
use crate::{Error, natural_order};
use meetpoint_diagnose::{Change, Remedy, Setting};
use std::path::Path;

/// Maximum depth of files: `data/default/train/0000.parquet`.
const DEPTH_MAX: usize = 4;
/// Names of files or folders that denote splits.
const SPLIT_NAMES: [&str; 8] =
    ["train", "training", "test", "testing", "validation", "valid", "val", "dev"];

/// Maximum number of entries of a folder that are examined to determine its kind.
const LOOK_ENTRIES: usize = 4096;

/// A file and its split.
#[derive(Debug, Clone)]
pub(crate) struct SplitFile {
    path: StorePath,
    split: Option<String>,
}

/// Whether a file whose name `is_member` accepts is among the first entries of a folder.
pub(crate) fn has_one(folder: &StorePath, is_member: fn(&str) -> bool) -> bool {
    // A dangling link, or a folder that cannot be opened, is not such a file.
    let is_one = |found: WalkEntry| {
        found.name().to_str().is_some_and(is_member) && found.kind == FileKind::File
    };
    walk(folder).take(LOOK_ENTRIES).filter_map(Result::ok).any(is_one)
}

fn walk(folder: &StorePath) -> impl Iterator<Item = Result<WalkEntry, WalkError>> {
    let options = WalkOptions { min_depth: 0, max_depth: DEPTH_MAX, follow_links: true };
    folder.walk(options, |found| {
        found.depth == 0 || !found.name().as_encoded_bytes().starts_with(b".")
    })
}

/// The files below a folder whose names `is_member` accepts, in natural order; hidden files are
/// skipped.
pub(crate) fn list(
    folder: &StorePath,
    is_member: fn(&str) -> bool,
) -> Result<Vec<SplitFile>, Error> {
    let mut files = Vec::new();
    for found in walk(folder) {
        let found =
            found.map_err(|WalkError { path, source, .. }| Error::Source { path, source })?;
        if found.name().to_str().is_some_and(is_member) && found.kind == FileKind::File {
            let relative = found.path.strip_prefix(folder.path()).unwrap_or(&found.path);
            let split = split_of(relative);
            files.push(SplitFile { path: folder.at(found.path), split });
        }
    }
    files.sort_by(|left, right| natural_order(&left.path.shown(), &right.path.shown()));
    Ok(files)
}

/// The files of the dataset at `path`, which are called `words` ("Parquet files").
pub(crate) fn choose(
    path: &StorePath,
    words: &str,
    is_member: fn(&str) -> bool,
    split: Option<&str>,
) -> Result<Vec<StorePath>, Error> {
    if !path.is_dir() {
        if let Some(split) = split {
            let problem = Message::from(format!("is one file, not a split {split:?}"))
                .remedy(Remedy::set(Setting::Split, Change::Off));
            return Err(malformed(path, None, problem));
        }
        return Ok(vec![path.clone()]);
    }
    let files = list(path, is_member)?;
    if files.is_empty() {
        return Err(malformed(path, None, format!("holds no {words}")));
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
        let problem = Message::from(format!(
            "belongs to no split, where other files do ({})",
            splits.join(", ")
        ))
        .remedy(Remedy::by("choose one", Setting::Split, Change::Other));
        return Err(malformed(&file.path, None, problem));
    }
    let chosen = chosen_split(path, &splits, split)?;
    let chosen = files.into_iter().filter(|file| file.split.as_ref() == Some(&chosen));
    Ok(chosen.map(|file| file.path).collect())
}

/// The split in a file's name (`train-00000-of-00002.parquet`, `train.parquet`), or in that of its
/// folder (`train/0000.parquet`). TFRecord files have the number after their extension
/// (`mnist-train.tfrecord-00000-of-00001`).
fn split_of(relative: &Path) -> Option<String> {
    let name = relative.file_name()?.to_str()?;
    let name = name.replace(".tfrecords", "").replace(".tfrecord", "").replace(".tfrec", "");
    let stem = name.split('.').next().unwrap_or(&name);
    if let Some(split) = before_shard_number(stem) {
        let last = split.rsplit('-').next().unwrap_or(split);
        return Some(if SPLIT_NAMES.contains(&last) { last } else { split }.to_owned());
    }
    let folder = relative.parent().and_then(|parent| parent.file_name()?.to_str());
    let name = stem.split(['-', '_']).next().unwrap_or(stem);
    let found = [Some(name), folder].into_iter().flatten().find(|name| SPLIT_NAMES.contains(name));
    found.map(str::to_owned)
}

/// The part of a name before `-00000-of-00002`.
fn before_shard_number(stem: &str) -> Option<&str> {
    let is_number = |text: &str| text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, count) = stem.rsplit_once("-of-")?;
    // Old files of the Hub have a hash after the count.
    let count = count.split('-').next().unwrap_or(count);
    let (split, index) = rest.rsplit_once('-')?;
    (is_number(count) && is_number(index) && !split.is_empty()).then_some(split)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_diagnose::{Diagnose, Surface};

    #[test]
    fn splits_are_read_from_names_and_folders() {
        let split = |path: &str| split_of(Path::new(path));
        assert_eq!(split("data/train-00000-of-00002.parquet").as_deref(), Some("train"));
        assert_eq!(split("data/train-00000-of-00001-8f2a.parquet").as_deref(), Some("train"));
        assert_eq!(split("default/test/0000.parquet").as_deref(), Some("test"));
        assert_eq!(split("my-set-00000-of-00001.parquet").as_deref(), Some("my-set"));
        assert_eq!(split("validation.parquet").as_deref(), Some("validation"));
        assert_eq!(split("mnist-train.tfrecord-00000-of-00001").as_deref(), Some("train"));
        assert_eq!(split("train_3.tfrecord.gz").as_deref(), Some("train"));
        assert_eq!(split("part-0.parquet"), None);
    }

    #[test]
    fn several_splits_require_a_choice() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["train-00000-of-00001", "train-00001-of-00002", "test-00000-of-00001"] {
            std::fs::write(folder.path().join(format!("{name}.parquet")), b"").unwrap();
        }
        let path = StorePath::local(folder.path());
        let is_parquet = |name: &str| name.ends_with(".parquet");
        let error =
            choose(&path, "files", is_parquet, None).unwrap_err().in_full(Surface::CommandLine);
        assert!(error.contains("test, train") && error.contains("--split"), "{error}");
        assert_eq!(choose(&path, "files", is_parquet, Some("train")).unwrap().len(), 2);
        let error = choose(&path, "files", is_parquet, Some("dev"))
            .unwrap_err()
            .in_full(Surface::CommandLine);
        assert!(error.contains("\"dev\"") && error.contains("test, train"), "{error}");
    }
}
