//! The files of a folder: which are samples, which are listed as something else.

use super::super::ContentKind;
use super::super::links::Links;
use super::super::names::{
    AUDIO_EXTENSIONS, IMAGE_EXTENSIONS, SIDE_FILES, TEXT_EXTENSIONS, TableName,
};
use crate::error::link_leads_out;
use crate::message::Message;
use crate::store::{FileKind, Metadata, StorePath, WalkEntry, WalkError, WalkOptions};
use crate::{Error, LeftOut, natural_order};
use meetpoint_diagnose::{Remedy, Setting};
use meetpoint_kernels::decode::TIFF_MAGIC;
use meetpoint_storage::is_of_the_file;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

/// Description for errors.
pub(super) const WORDS: &str = "a folder of files";
/// Everything below a folder.
pub(super) const EVERYTHING: WalkOptions =
    WalkOptions { min_depth: 1, max_depth: usize::MAX, follow_links: true };

/// A file that is a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    /// Path relative to the folder, `/`-separated.
    pub(super) key: String,
    /// Index into the labels.
    pub(super) label: Option<i32>,
    /// Bytes.
    pub(super) bytes: u64,
}

/// The result of scanning a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) kind: ContentKind,
    /// In natural order.
    pub(super) files: Vec<FoundFile>,
    /// In natural order; empty for a flat folder.
    pub(super) labels: Vec<String>,
    /// Files that are not samples, in natural order.
    pub(super) others: Vec<LeftOut>,
    /// Samples whose names cannot be keys, in natural order.
    pub(super) unreadable: Vec<LeftOut>,
    /// Hidden and side files.
    pub(super) ignored: u64,
    /// Path of the first table that is not read, in natural order.
    pub(super) table: Option<String>,
}

/// The files of a folder, by relative path, in natural order.
pub(in crate::source) struct FolderListing {
    /// Files that would be samples of a folder.
    pub(in crate::source) samples: Vec<String>,
    /// Files that would be unreadable samples.
    pub(in crate::source) unreadable: Vec<LeftOut>,
    /// Files that are not samples.
    pub(in crate::source) others: Vec<LeftOut>,
    /// Hidden and side files.
    pub(in crate::source) ignored: u64,
}

/// Lists a folder, whatever its layout.
pub(in crate::source) fn list(
    from: &StorePath,
    kind: ContentKind,
    follow_links: bool,
) -> Result<FolderListing, Error> {
    let (found, _) = look_through(from, kind, follow_links)?;
    let Scan { files, unreadable, others, ignored, .. } = found;
    let samples = files.into_iter().map(|file| file.key).collect();
    Ok(FolderListing { samples, unreadable, others, ignored })
}

/// Lists the files, and the sub-folders of the first level.
pub(super) fn look_through(
    from: &StorePath,
    kind: ContentKind,
    follow_links: bool,
) -> Result<(Scan, BTreeSet<String>), Error> {
    if kind == ContentKind::None {
        return Err(Error::OptionWithoutUse {
            option: Setting::Kind,
            value: Some(ContentKind::None.name()),
            source_words: WORDS.to_owned(),
        });
    }
    let failed = |source| Error::Source { path: from.to_path_buf(), source };
    if from.metadata().map_err(failed)?.kind != FileKind::Folder {
        return Err(Error::NotAFolder { path: from.to_path_buf() });
    }
    let mut found = Scan {
        kind,
        files: Vec::new(),
        labels: Vec::new(),
        others: Vec::new(),
        unreadable: Vec::new(),
        ignored: 0,
        table: None,
    };
    let links = Links::below(from, follow_links)?;
    let mut folders = BTreeSet::new();
    let mut ignored = 0;
    let mut leading_out = Vec::new();
    let is_seen = |entry: &WalkEntry| {
        if is_ignored(entry.name()) {
            ignored += 1;
            return false;
        }
        let target = if entry.is_link { links.leads_out(&from.at(&entry.path)) } else { None };
        let Some(target) = target else { return true };
        let (Ok(path) | Err(path)) = key_of(&entry.path, from);
        leading_out.push(LeftOut { path, reason: link_leads_out(&target) });
        false
    };
    for entry in from.walk(EVERYTHING, is_seen) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                note_unlisted(error, from, &mut found)?;
                continue;
            }
        };
        let key = key_of(&entry.path, from);
        if entry.kind == FileKind::Folder {
            // A folder whose name is not UTF-8 is reported for each file in it.
            if let (1, Ok(key)) = (entry.depth, key) {
                folders.insert(key);
            }
            continue;
        }
        let path = from.at(entry.path);
        match path.metadata() {
            Ok(metadata) => add_file(&mut found, &path, key, &metadata)?,
            Err(source) => {
                let error = WalkError { path: path.to_path_buf(), source, is_loop: false };
                note_unlisted(error, from, &mut found)?;
            }
        }
    }
    found.ignored += ignored;
    found.unreadable.append(&mut leading_out);
    found.files.sort_by(|left, right| natural_order(&left.key, &right.key));
    found.others.sort_by(|left, right| natural_order(&left.path, &right.path));
    found.unreadable.sort_by(|left, right| natural_order(&left.path, &right.path));
    Ok((found, folders))
}

/// Lists a file; a name that cannot be a key is an error.
fn add_file(
    found: &mut Scan,
    path: &StorePath,
    key: Result<String, String>,
    metadata: &Metadata,
) -> Result<(), Error> {
    let shown = match &key {
        Ok(key) | Err(key) => key.clone(),
    };
    if metadata.kind != FileKind::File {
        let reason = "a device, pipe or socket".into();
        found.others.push(LeftOut { path: shown, reason });
        return Ok(());
    }
    let is_first = |table: &String| natural_order(&shown, table).is_lt();
    if is_unread_table(&shown) && found.table.as_ref().is_none_or(is_first) {
        found.table = Some(shown.clone());
    }
    let why_not = match found.kind {
        ContentKind::Image if has_name_of(path.path(), &IMAGE_EXTENSIONS) => None,
        ContentKind::Image => match begins_as_image(path) {
            Ok(true) => None,
            Ok(false) => Some("not an image, by name and content".to_owned()),
            Err(source) if !is_of_the_file(&source) => {
                return Err(Error::Source { path: path.to_path_buf(), source });
            }
            Err(error) => {
                Some(format!("not an image by name, and its content cannot be read: {error}"))
            }
        },
        ContentKind::Audio if has_name_of(path.path(), &AUDIO_EXTENSIONS) => None,
        ContentKind::Audio => Some("not a sound file, by name".to_owned()),
        ContentKind::Text if has_name_of(path.path(), &TEXT_EXTENSIONS) => None,
        ContentKind::Text => Some("not a text file, by name".to_owned()),
        ContentKind::Bytes | ContentKind::None => None,
    };
    match why_not {
        None => add_sample(found, key, metadata.bytes),
        Some(reason) => found.others.push(LeftOut { path: shown, reason: reason.into() }),
    }
    Ok(())
}

fn add_sample(found: &mut Scan, key: Result<String, String>, bytes: u64) {
    match key {
        Ok(key) => found.files.push(FoundFile { key, label: None, bytes }),
        Err(path) => {
            let reason = "its name is not UTF-8, which keys must be".into();
            found.unreadable.push(LeftOut { path, reason });
        }
    }
}

/// Whether a file, by its relative path, is a table that a folder of files ignores: Hugging Face's
/// `metadata.*` of any folder, or a table beside the samples in a compression that is not read.
/// Other tables at the top are read or do not name files.
fn is_unread_table(path: &str) -> bool {
    let name = TableName::of(table_file(path));
    name.is_some_and(|name| name.is_metadata || name.is_undecodable && !path.contains('/'))
}

/// The name of a file in a relative path.
pub(super) fn table_file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(super) fn is_ignored(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") || SIDE_FILES.iter().any(|side| name == *side)
}

/// The key of a file or folder; the error is the name with invalid UTF-8 written as `\xNN`.
fn key_of(path: &Path, from: &StorePath) -> Result<String, String> {
    let relative = path.strip_prefix(from.path()).expect("the walk stays below its root");
    relative.to_str().map(str::to_owned).ok_or_else(|| {
        let mut shown = String::new();
        for chunk in relative.as_os_str().as_encoded_bytes().utf8_chunks() {
            shown.push_str(chunk.valid());
            chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02X}")));
        }
        shown
    })
}

pub(super) fn has_name_of(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        extensions.iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// Whether the first bytes identify a format that can be decoded. (The two of BMP are too short to
/// distinguish it from text.)
fn begins_as_image(path: &StorePath) -> std::io::Result<bool> {
    let mut bytes = Vec::new();
    path.open()?.take(12).read_to_end(&mut bytes)?;
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    Ok(begins(b"\xff\xd8\xff")
        || begins(b"\x89PNG\r\n\x1a\n")
        || begins(b"GIF87a")
        || begins(b"GIF89a")
        || TIFF_MAGIC.iter().any(|magic| begins(magic))
        || (begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")))
}

/// A dangling link is reported like a file, and so is a path that is too long to open; other
/// failures hide files, so they are errors.
fn note_unlisted(error: WalkError, from: &StorePath, found: &mut Scan) -> Result<(), Error> {
    let WalkError { path, source, is_loop } = error;
    let is_root = path == from.path();
    if source.kind() == std::io::ErrorKind::InvalidFilename && !is_root {
        let bytes = path.as_os_str().len();
        let (Ok(path) | Err(path)) = key_of(&path, from);
        let reason = Message::from(format!("its path has {bytes} bytes and does not open")).remedy(
            Remedy::advice("shorten the names of its folders")
                .or(format!("name {} by a shorter path", from.display())),
        );
        found.unreadable.push(LeftOut { path, reason });
        return Ok(());
    }
    if is_root || !from.at(&path).is_link() {
        return Err(Error::Source { path, source });
    }
    if path.file_name().is_some_and(is_ignored) {
        found.ignored += 1;
        return Ok(());
    }
    let key = key_of(&path, from);
    let has_name = match found.kind {
        ContentKind::Image => has_name_of(&path, &IMAGE_EXTENSIONS),
        ContentKind::Audio => has_name_of(&path, &AUDIO_EXTENSIONS),
        ContentKind::Text => has_name_of(&path, &TEXT_EXTENSIONS),
        ContentKind::Bytes | ContentKind::None => true,
    };
    if !is_loop && has_name {
        add_sample(found, key, 0);
        return Ok(());
    }
    let reason =
        if is_loop { "a link to a folder that it is in" } else { "a link that leads nowhere" };
    let (Ok(path) | Err(path)) = key;
    found.others.push(LeftOut { path, reason: reason.into() });
    Ok(())
}
