//! Which files of a folder are packed, in which order and with which label.
//!
//! No file is passed over without a word: an image by name or by content is packed or named as
//! unreadable, any other file is named, and only hidden and side files are counted alone.

use super::LeftOut;
use crate::{Error, natural_order};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

/// Extensions of files that call themselves images; those that no decoder here reads among them,
/// so that they are reported.
const IMAGE_EXTENSIONS: [&str; 20] = [
    "jpg", "jpeg", "jpe", "jfif", "png", "webp", "bmp", "dib", "gif", "tif", "tiff", "ppm", "pgm",
    "pbm", "pnm", "avif", "heic", "heif", "jxl", "jp2",
];
/// Files that desktops leave behind (hidden ones are ignored anyway).
const SIDE_FILES: [&str; 4] = ["Thumbs.db", "ehthumbs.db", "desktop.ini", "__MACOSX"];

/// A file to be packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    /// Path relative to the source, `/`-separated.
    pub(super) key: String,
    /// Index into the labels.
    pub(super) label: Option<i32>,
    /// Bytes, for the progress bar and for bounding memory.
    pub(super) bytes: u64,
}

/// What is in the source folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// In natural order.
    pub(super) files: Vec<SourceFile>,
    /// In natural order; empty for a flat folder.
    pub(super) labels: Vec<String>,
    /// Files that are no images.
    pub(super) not_images: Vec<LeftOut>,
    /// Images whose names cannot be keys.
    pub(super) unreadable: Vec<LeftOut>,
    /// Hidden and side files.
    pub(super) ignored: u64,
}

/// Looks through the folder.
pub(super) fn scan(from: &Path) -> Result<Source, Error> {
    let failed = |source| Error::Source { path: from.to_path_buf(), source };
    if !std::fs::metadata(from).map_err(failed)?.is_dir() {
        return Err(Error::NotAFolder { path: from.to_path_buf() });
    }
    let mut source = Source::default();
    let mut folders = BTreeSet::new();
    let mut entries = walkdir::WalkDir::new(from).min_depth(1).follow_links(true).into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                note_broken_link(error, from, &mut source)?;
                continue;
            }
        };
        if is_ignored(entry.file_name()) {
            source.ignored += 1;
            if entry.file_type().is_dir() {
                entries.skip_current_dir();
            }
            continue;
        }
        let key = key_of(entry.path(), from);
        if entry.file_type().is_dir() {
            // A folder whose name is no UTF-8 is named by each file in it.
            if let (1, Ok(key)) = (entry.depth(), key) {
                folders.insert(key);
            }
        } else {
            let metadata = entry.metadata().map_err(|error| walk_error(error, from))?;
            add_file(&mut source, entry.path(), key, &metadata);
        }
    }
    source.files.sort_by(|left, right| natural_order(&left.key, &right.key));
    source.not_images.sort_by(|left, right| natural_order(&left.path, &right.path));
    source.unreadable.sort_by(|left, right| natural_order(&left.path, &right.path));
    label(&mut source, folders, from)?;
    Ok(source)
}

/// Lists a file, whose name is an error where it cannot be a key.
fn add_file(
    source: &mut Source,
    path: &Path,
    key: Result<String, String>,
    metadata: &std::fs::Metadata,
) {
    let shown = match &key {
        Ok(key) | Err(key) => key.clone(),
    };
    if !metadata.is_file() {
        let reason = "a device, pipe or socket".to_owned();
        source.not_images.push(LeftOut { path: shown, reason });
        return;
    }
    let is_image = if has_image_name(path) { Ok(true) } else { begins_as_image(path) };
    match is_image {
        Ok(true) => add_image(source, key, metadata.len()),
        Ok(false) => {
            let reason = "no image, by name and by content".to_owned();
            source.not_images.push(LeftOut { path: shown, reason });
        }
        Err(error) => {
            let reason = format!("no image by name, and its content does not read: {error}");
            source.not_images.push(LeftOut { path: shown, reason });
        }
    }
}

fn add_image(source: &mut Source, key: Result<String, String>, bytes: u64) {
    match key {
        Ok(key) => source.files.push(SourceFile { key, label: None, bytes }),
        Err(path) => {
            let reason = "its name is not UTF-8, as keys are".to_owned();
            source.unreadable.push(LeftOut { path, reason });
        }
    }
}

/// Gives each file its class, or none in a flat folder.
fn label(source: &mut Source, folders: BTreeSet<String>, from: &Path) -> Result<(), Error> {
    if source.files.is_empty() && !source.unreadable.is_empty() {
        let files = std::mem::take(&mut source.unreadable);
        return Err(Error::Unreadable { checked: files.len() as u64, files });
    }
    if source.files.is_empty() {
        let others = source.not_images.len() as u64;
        return Err(Error::NoImages { path: from.to_path_buf(), others });
    }
    let at_top = source.files.iter().find(|file| !file.key.contains('/'));
    let below = source.files.iter().find(|file| file.key.contains('/'));
    match (at_top, below) {
        (Some(file), Some(folder)) => {
            return Err(Error::MixedLayout {
                path: from.to_path_buf(),
                file: file.key.clone(),
                folder: folder.key.clone(),
            });
        }
        // Sub-folders without images beside images at the top hold nothing to be labelled.
        (Some(_), None) => return Ok(()),
        (None, _) => {}
    }
    let mut labels: Vec<String> = folders.into_iter().collect();
    labels.sort_by(|left, right| natural_order(left, right));
    let mut is_used = vec![false; labels.len()];
    for file in &mut source.files {
        let class = file.key.split('/').next().expect("split yields at least one piece");
        let index = labels
            .binary_search_by(|label| natural_order(label, class))
            .expect("a file below the top lies in a folder that was listed");
        is_used[index] = true;
        file.label = Some(i32::try_from(index).expect("fewer than 2^31 folders"));
    }
    // A class of images that are left out keeps its place, as one of images that do not decode.
    for file in &source.unreadable {
        let class = file.path.split('/').next().expect("split yields at least one piece");
        if let Ok(index) = labels.binary_search_by(|label| natural_order(label, class)) {
            is_used[index] = true;
        }
    }
    if let Some(index) = is_used.iter().position(|used| !used) {
        return Err(Error::EmptyClass { path: from.to_path_buf(), class: labels[index].clone() });
    }
    source.labels = labels;
    Ok(())
}

fn is_ignored(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") || SIDE_FILES.iter().any(|side| name == *side)
}

/// The key of a file or folder; where its name is no UTF-8, the name with the bytes at fault
/// written as `\xNN`.
fn key_of(path: &Path, from: &Path) -> Result<String, String> {
    let relative = path.strip_prefix(from).expect("the walk stays below its root");
    relative.to_str().map(str::to_owned).ok_or_else(|| {
        let mut shown = String::new();
        for chunk in relative.as_os_str().as_encoded_bytes().utf8_chunks() {
            shown.push_str(chunk.valid());
            chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02X}")));
        }
        shown
    })
}

fn has_image_name(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        IMAGE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// Whether the first bytes are those of a format that is decoded here. (The two of BMP are too
/// few to tell it from a text.)
fn begins_as_image(path: &Path) -> std::io::Result<bool> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(12).read_to_end(&mut bytes)?;
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    Ok(begins(b"\xff\xd8\xff")
        || begins(b"\x89PNG\r\n\x1a\n")
        || begins(b"GIF87a")
        || begins(b"GIF89a")
        || begins(b"II*\0")
        || begins(b"MM\0*")
        || (begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")))
}

/// A link that leads nowhere is named like a file; other failures hide files, so they are errors.
fn note_broken_link(error: walkdir::Error, from: &Path, source: &mut Source) -> Result<(), Error> {
    let Some(path) = error.path().map(Path::to_path_buf) else {
        return Err(walk_error(error, from));
    };
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    if !is_link || path == from {
        return Err(walk_error(error, from));
    }
    if path.file_name().is_some_and(is_ignored) {
        source.ignored += 1;
        return Ok(());
    }
    let key = key_of(&path, from);
    if error.loop_ancestor().is_none() && has_image_name(&path) {
        add_image(source, key, 0);
        return Ok(());
    }
    let reason = if error.loop_ancestor().is_some() {
        "a link to a folder that it is in"
    } else {
        "a link that leads nowhere"
    };
    let (Ok(path) | Err(path)) = key;
    source.not_images.push(LeftOut { path, reason: reason.to_owned() });
    Ok(())
}

fn walk_error(error: walkdir::Error, from: &Path) -> Error {
    let path = error.path().unwrap_or(from).to_path_buf();
    Error::Source { path, source: error.into() }
}
