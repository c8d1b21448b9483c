//! A folder with one file per sample: selects, orders and labels the files.
//!
//! No file is skipped silently: an image by name or content is a sample or listed as unreadable,
//! any other file is listed, and only hidden and side files are merely counted. Folders of sounds,
//! texts or other files are read by name if [`SourceOptions::kind`] is set.

use super::links::Links;
use super::names::TableName;
use super::{
    Content, ContentKind, Entry, Finished, Item, SampleOrigin, Size, Source, SourceOptions,
    SourceSchema, UnreadTable,
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
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Description for errors.
const WORDS: &str = "a folder of files";
/// Entries of a folder that are examined to determine whether it holds images.
const RECOGNISE_MAX: usize = 10_000;

/// Extensions of images, including formats that cannot be decoded, so that their files are
/// reported.
pub(super) const IMAGE_EXTENSIONS: [&str; 20] = [
    "jpg", "jpeg", "jpe", "jfif", "png", "webp", "bmp", "dib", "gif", "tif", "tiff", "ppm", "pgm",
    "pbm", "pnm", "avif", "heic", "heif", "jxl", "jp2",
];
/// Extensions of audio files.
pub(super) const AUDIO_EXTENSIONS: [&str; 12] =
    ["wav", "flac", "mp3", "ogg", "oga", "opus", "m4a", "aac", "aif", "aiff", "wma", "au"];
/// Extensions of text files.
pub(super) const TEXT_EXTENSIONS: [&str; 7] = ["txt", "text", "md", "rst", "html", "htm", "xhtml"];
/// Files that desktops leave behind (hidden ones are ignored anyway).
pub(super) const SIDE_FILES: [&str; 4] = ["Thumbs.db", "ehthumbs.db", "desktop.ini", "__MACOSX"];

/// Everything below a folder.
const EVERYTHING: WalkOptions =
    WalkOptions { min_depth: 1, max_depth: usize::MAX, follow_links: true };

/// Extension of files with an array of measurements.
const ARRAY_EXTENSIONS: [&str; 1] = ["npy"];

/// Extensions of documents that are samples in a folder of text alone. Other text files describe
/// the files beside them.
const DOCUMENT_EXTENSIONS: [&str; 5] = ["txt", "text", "html", "htm", "xhtml"];

/// Returns the evidence that `path` is a folder with, by name, an image, a recording or an array of
/// measurements in it or below it, or with text files alone.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    let found = content_of(path);
    Ok(found.map(|(kind, file)| {
        let below = file.strip_prefix(path.path()).unwrap_or(&file);
        let words = match kind {
            ContentKind::Image => "image",
            ContentKind::Audio => "recording",
            ContentKind::Text => "text",
            ContentKind::Bytes | ContentKind::None => "array",
        };
        format!("it holds the {words} {}", below.display())
    }))
}

/// The content of a folder by the names of its files, and the first such file: images, else
/// recordings, else arrays of measurements, else text if there are no other files.
fn content_of(path: &StorePath) -> Option<(ContentKind, PathBuf)> {
    if !path.is_dir() {
        return None;
    }
    let files = path
        .walk(EVERYTHING, |found| !is_ignored(found.name()))
        .take(RECOGNISE_MAX)
        .filter_map(Result::ok)
        .filter(|found| found.kind == FileKind::File);
    let (mut recording, mut array, mut text, mut has_others) = (None, None, None, false);
    for file in files {
        if has_name_of(&file.path, &IMAGE_EXTENSIONS) {
            return Some((ContentKind::Image, file.path));
        } else if recording.is_none() && has_name_of(&file.path, &AUDIO_EXTENSIONS) {
            recording = Some((ContentKind::Audio, file.path));
        } else if array.is_none() && has_name_of(&file.path, &ARRAY_EXTENSIONS) {
            array = Some((ContentKind::Bytes, file.path));
        } else if !has_name_of(&file.path, &DOCUMENT_EXTENSIONS) {
            has_others = true;
        } else if text.is_none() {
            text = Some((ContentKind::Text, file.path));
        }
    }
    recording.or(array).or_else(|| text.filter(|_| !has_others))
}

/// Opens a folder: lists all of its files.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    options.allow_only(WORDS, &[Setting::Kind])?;
    let kind = options.kind.or_else(|| content_of(path).map(|(kind, _)| kind));
    let kind = kind.unwrap_or(ContentKind::Image);
    let mut folder = Folder::open(path, kind, options.follow_links)?;
    if options.kind == Some(ContentKind::Bytes) {
        // Every file is a sample, as requested.
        folder.unread_table = None;
    }
    Ok(Box::new(folder))
}

/// A folder of files.
struct Folder {
    path: StorePath,
    schema: SourceSchema,
    size: Size,
    found: Scan,
    /// Number of returned files.
    given: usize,
    unread_table: Option<UnreadTable>,
}

/// A file that is a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundFile {
    /// Path relative to the folder, `/`-separated.
    key: String,
    /// Index into the labels.
    label: Option<i32>,
    /// Bytes.
    bytes: u64,
}

/// The result of scanning a folder.
#[derive(Debug, PartialEq, Eq)]
struct Scan {
    kind: ContentKind,
    /// In natural order.
    files: Vec<FoundFile>,
    /// In natural order; empty for a flat folder.
    labels: Vec<String>,
    /// Files that are not samples, in natural order.
    others: Vec<LeftOut>,
    /// Samples whose names cannot be keys, in natural order.
    unreadable: Vec<LeftOut>,
    /// Hidden and side files.
    ignored: u64,
    /// Path of the first table that is not read, in natural order.
    table: Option<String>,
}

impl Folder {
    fn open(path: &StorePath, kind: ContentKind, follow_links: bool) -> Result<Self, Error> {
        let mut found = scan(path, kind, follow_links)?;
        // They are returned from the end.
        found.others.reverse();
        found.unreadable.reverse();
        let unread_table = found.table.take().map(|table| unread_table(path, &table));
        Ok(Self {
            path: path.clone(),
            schema: SourceSchema {
                kind,
                name: name_of(kind).to_owned(),
                extra: Arc::new(arrow_schema::Schema::empty()),
                prepared: None,
            },
            size: Size {
                samples: Some(found.files.len() as u64),
                bytes: Some(found.files.iter().map(|file| file.bytes).sum()),
            },
            found,
            given: 0,
            unread_table,
        })
    }
}

impl Source for Folder {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        self.size
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        let found = &mut self.found;
        if let Some(left_out) = found.unreadable.pop() {
            return Ok(Some(Entry::Unreadable(left_out)));
        }
        if let Some(left_out) = found.others.pop() {
            return Ok(Some(Entry::NotASample(left_out)));
        }
        if found.ignored > 0 {
            found.ignored -= 1;
            return Ok(Some(Entry::Ignored));
        }
        let Some(file) = found.files.get_mut(self.given) else { return Ok(None) };
        self.given += 1;
        let key = std::mem::take(&mut file.key);
        let path = self.path.join(&key);
        Ok(Some(Entry::Sample(Box::new(Item {
            origin: SampleOrigin { file: path.display().to_string(), ..SampleOrigin::default() },
            content: Content::File { path, bytes: file.bytes },
            label: file.label,
            extra: None,
            key,
        }))))
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        Ok(Finished { labels: std::mem::take(&mut self.found.labels), ..Finished::default() })
    }

    fn unread_table(&self) -> Option<&UnreadTable> {
        self.unread_table.as_ref()
    }
}

/// A table in a folder or below it.
fn unread_table(folder: &StorePath, table: &str) -> UnreadTable {
    let path = folder.join(table);
    let origin = SampleOrigin { file: path.display().to_string(), ..SampleOrigin::default() };
    let is_undecodable = TableName::of(table_file(table)).is_some_and(|name| name.is_undecodable);
    let remedy = match is_undecodable {
        true => Remedy::advice("decompress it, or compress it with gzip or zstd"),
        false => {
            Remedy::advice(format!("pack the folder of the table, {}", path.folder().display()))
        }
    };
    UnreadTable { origin, remedy }
}

/// The name of a file in a relative path.
fn table_file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a file, by its relative path, is a table that a folder of files ignores: Hugging Face's
/// `metadata.*` of any folder, or a table beside the samples in a compression that is not read.
/// Other tables at the top are read or do not name files.
fn is_unread_table(path: &str) -> bool {
    let name = TableName::of(table_file(path));
    name.is_some_and(|name| name.is_metadata || name.is_undecodable && !path.contains('/'))
}

/// Name of the content column.
fn name_of(kind: ContentKind) -> &'static str {
    match kind {
        ContentKind::Image => "image",
        ContentKind::Audio => "audio",
        ContentKind::Text => "text",
        ContentKind::Bytes => "bytes",
        ContentKind::None => "",
    }
}

/// The files of a folder, by relative path, in natural order.
pub(super) struct FolderListing {
    /// Files that would be samples of a folder.
    pub(super) samples: Vec<String>,
    /// Files that would be unreadable samples.
    pub(super) unreadable: Vec<LeftOut>,
    /// Files that are not samples.
    pub(super) others: Vec<LeftOut>,
    /// Hidden and side files.
    pub(super) ignored: u64,
}

/// Lists a folder, whatever its layout.
pub(super) fn list(
    from: &StorePath,
    kind: ContentKind,
    follow_links: bool,
) -> Result<FolderListing, Error> {
    let (found, _) = look_through(from, kind, follow_links)?;
    let Scan { files, unreadable, others, ignored, .. } = found;
    let samples = files.into_iter().map(|file| file.key).collect();
    Ok(FolderListing { samples, unreadable, others, ignored })
}

/// Lists the folder, and determines the classes.
fn scan(from: &StorePath, kind: ContentKind, follow_links: bool) -> Result<Scan, Error> {
    let (mut found, folders) = look_through(from, kind, follow_links)?;
    label(&mut found, folders, from)?;
    Ok(found)
}

/// Lists the files, and the sub-folders of the first level.
fn look_through(
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

/// Gives each file its class, or none in a flat folder.
fn label(found: &mut Scan, folders: BTreeSet<String>, from: &StorePath) -> Result<(), Error> {
    if found.files.is_empty() && !found.unreadable.is_empty() {
        let files = std::mem::take(&mut found.unreadable);
        return Err(Error::Unreadable { checked: files.len() as u64, files });
    }
    if found.files.is_empty() {
        let others = found.others.len() as u64;
        return Err(match found.kind {
            ContentKind::Image => Error::NoImages { path: from.to_path_buf(), others },
            kind => Error::NoFilesOfKind { path: from.to_path_buf(), kind, others },
        });
    }
    let at_top = found.files.iter().find(|file| !file.key.contains('/'));
    let below = found.files.iter().find(|file| file.key.contains('/'));
    match (at_top, below) {
        (Some(file), Some(folder)) => {
            return Err(Error::MixedLayout {
                path: from.to_path_buf(),
                file: file.key.clone(),
                folder: folder.key.clone(),
            });
        }
        // If the images are at the top level, sub-folders without images are not classes.
        (Some(_), None) => return Ok(()),
        (None, _) => {}
    }
    let mut labels: Vec<String> = folders.into_iter().collect();
    labels.sort_by(|left, right| natural_order(left, right));
    let mut is_used = vec![false; labels.len()];
    for file in &mut found.files {
        let class = file.key.split('/').next().expect("split yields at least one piece");
        let index = labels
            .binary_search_by(|label| natural_order(label, class))
            .expect("a file below the top lies in a folder that was listed");
        is_used[index] = true;
        file.label = Some(i32::try_from(index).expect("fewer than 2^31 folders"));
    }
    // A class whose images are all left out retains its index, like one whose images cannot be
    // decoded.
    for file in &found.unreadable {
        let class = file.path.split('/').next().expect("split yields at least one piece");
        if let Ok(index) = labels.binary_search_by(|label| natural_order(label, class)) {
            is_used[index] = true;
        }
    }
    if let Some(index) = is_used.iter().position(|used| !used) {
        return Err(Error::EmptyClass { path: from.to_path_buf(), class: labels[index].clone() });
    }
    found.labels = labels;
    Ok(())
}

fn is_ignored(name: &std::ffi::OsStr) -> bool {
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

fn has_name_of(path: &Path, extensions: &[&str]) -> bool {
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
