//! Arrow IPC: a `.arrow` or `.feather` file (file or stream format), and datasets that the
//! `datasets` library of Hugging Face saved with `save_to_disk`.
//!
//! A saved dataset is a folder with `state.json` (which lists its files), `dataset_info.json` and
//! `data-00000-of-00001.arrow`; a dictionary of datasets is a folder with `dataset_dict.json` and
//! one such folder for each split. Buffers may be compressed with LZ4. If bytes are not compressed,
//! the content is a range of the file, and is not read here.

mod layout;
mod message;
mod shard;
mod table;

use super::rows::hugging_face::Features;
use super::rows::row_source::TABLE_OPTIONS;
use super::rows::{RowSource, malformed};
use super::{Source, SourceOptions};
use crate::Error;
use crate::message::Message;
use crate::source::budget::MemoryBudget;
use crate::store::StorePath;
use meetpoint_diagnose::{Change, Remedy, Setting};
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use table::ArrowTable;

/// Longest side file that is read.
const SIDE_FILE_BYTES_MAX: u64 = 64 << 20;

/// Returns the evidence that `path` is an Arrow file or a saved dataset.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    if path.is_dir() {
        if path.join("dataset_dict.json").is_file() {
            return Ok(Some("it holds dataset_dict.json of Hugging Face".to_owned()));
        }
        let is_saved =
            path.join("state.json").is_file() && path.join("dataset_info.json").is_file();
        return Ok(is_saved
            .then(|| "it holds state.json and dataset_info.json of Hugging Face".to_owned()));
    }
    let name = path.extension().and_then(|extension| extension.to_str());
    let is_named = name.is_some_and(|name| ["arrow", "feather", "ipc", "arrows"].contains(&name));
    let mut first = Vec::new();
    let file = path.open();
    let file = file.map_err(|source| Error::Source { path: path.to_path_buf(), source })?;
    let read = file.take(8).read_to_end(&mut first);
    read.map_err(|source| Error::Source { path: path.to_path_buf(), source })?;
    if first.starts_with(b"ARROW1") {
        return Ok(Some("it begins as an Arrow file".to_owned()));
    }
    Ok((is_named && first.starts_with(&[0xff; 4]))
        .then(|| "it begins as an Arrow stream".to_owned()))
}

/// Opens an Arrow file, or a saved dataset.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    let known = TABLE_OPTIONS.iter().copied().chain([Setting::Split]).collect::<Vec<_>>();
    options.allow_only("an Arrow dataset", &known)?;
    let (files, info) = files_of(path, options)?;
    let features = info.as_ref().map(Features::of_info);
    let table = ArrowTable::open(files, features, MemoryBudget::of(options))?;
    Ok(Box::new(RowSource::open(table, options, &path.display().to_string())?))
}

/// The files of a dataset, in order, and its `dataset_info.json`.
fn files_of(
    path: &StorePath,
    options: &SourceOptions,
) -> Result<(Vec<StorePath>, Option<Value>), Error> {
    if !path.is_dir() {
        if let Some(split) = &options.split {
            let problem = Message::from(format!("holds one set, not a split {split:?}"))
                .remedy(Remedy::set(Setting::Split, Change::Off));
            return Err(malformed(path, None, problem));
        }
        return Ok((vec![path.clone()], None));
    }
    let dictionary = path.join("dataset_dict.json");
    let folder = if dictionary.is_file() {
        let splits = json(&dictionary)?;
        let splits: Vec<String> = splits["splits"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        path.join(chosen_split(path, &splits, options.split.as_deref())?)
    } else {
        path.clone()
    };
    let info = folder.join("dataset_info.json");
    let info = if info.is_file() { Some(json(&info)?) } else { None };
    let state_path = folder.join("state.json");
    let state = json(&state_path)?;
    if !dictionary.is_file()
        && let Some(split) = &options.split
        && state["_split"].as_str() != Some(split)
    {
        let problem = Message::from(format!("is no split {split:?}"))
            .remedy(Remedy::set(Setting::Split, Change::Off));
        return Err(malformed(&folder, None, problem));
    }
    let mut files = Vec::new();
    for file in state["_data_files"].as_array().into_iter().flatten() {
        let name = file["filename"].as_str().unwrap_or_default();
        files.push(folder.join(plain_name(&state_path, name)?));
    }
    if files.is_empty() {
        return Err(malformed(
            &state_path,
            None,
            Message::from("lists no data files").remedy("save the dataset again"),
        ));
    }
    if state["_indices_data_files"].as_array().is_some_and(|files| !files.is_empty()) {
        let problem =
            Message::from("the rows are selected by an indices file, which is not supported")
                .remedy("call flatten_indices() and save the dataset again");
        return Err(malformed(&state_path, None, problem));
    }
    Ok((files, info))
}

/// The split that the user chose.
pub(crate) fn chosen_split(
    path: &StorePath,
    splits: &[String],
    wanted: Option<&str>,
) -> Result<String, Error> {
    let list = || splits.join(", ");
    match (splits, wanted) {
        (_, Some(wanted)) if splits.iter().any(|split| split == wanted) => {
            plain_name(path, wanted).map(str::to_owned)
        }
        (_, Some(wanted)) => {
            let problem = Message::from(format!("has no split {wanted:?}"))
                .remedy(format!("choose one of {}", list()));
            Err(malformed(path, None, problem))
        }
        ([only], None) => plain_name(path, only).map(str::to_owned),
        ([], None) => Err(malformed(path, None, "lists no splits")),
        _ => Err(malformed(
            path,
            None,
            Message::from(format!("holds several splits ({})", list())).remedy(Remedy::by(
                "choose one",
                Setting::Split,
                Change::Other,
            )),
        )),
    }
}

/// Checks that a name is a plain file name.
pub(crate) fn plain_name<'a>(file: &StorePath, name: &'a str) -> Result<&'a str, Error> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(std::path::Component::Normal(_)), None) => Ok(name),
        _ => Err(malformed(file, None, format!("names {name:?}, which is not a plain file name"))),
    }
}

/// A JSON side file.
pub(crate) fn json(path: &StorePath) -> Result<Value, Error> {
    let unreadable = |source| Error::Source { path: path.to_path_buf(), source };
    let file = path.open().map_err(unreadable)?;
    let mut text = Vec::new();
    file.take(SIDE_FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > SIDE_FILE_BYTES_MAX {
        let problem = format!("is longer than {SIDE_FILE_BYTES_MAX} bytes");
        return Err(malformed(path, None, problem));
    }
    serde_json::from_slice(&text)
        .map_err(|error| malformed(path, None, format!("is not JSON: {error}")))
}
