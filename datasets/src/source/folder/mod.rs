//! A folder with one file per sample: selects, orders and labels the files.
//!
//! No file is skipped silently: an image by name or content is a sample or listed as unreadable,
//! any other file is listed, and only hidden and side files are merely counted. Folders of sounds,
//! texts or other files are read by name if [`SourceOptions::kind`] is set.
//!
//! In reading order: [`recognise`] and [`open`], `scan` (the files of a folder), `classes` (their
//! labels).

mod classes;
mod scan;

use super::names::{AUDIO_EXTENSIONS, IMAGE_EXTENSIONS, TableName};
use super::{
    Content, ContentKind, Entry, Finished, Item, SampleOrigin, Size, Source, SourceOptions,
    SourceSchema, UnreadTable,
};
use crate::Error;
use crate::store::{FileKind, StorePath};
use meetpoint_diagnose::{Remedy, Setting};
pub(super) use scan::list;
use scan::{EVERYTHING, Scan, WORDS, has_name_of, is_ignored, look_through, table_file};
use std::path::PathBuf;
use std::sync::Arc;

/// Entries of a folder that are examined to determine whether it holds images.
const RECOGNISE_MAX: usize = 10_000;

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

impl Folder {
    fn open(path: &StorePath, kind: ContentKind, follow_links: bool) -> Result<Self, Error> {
        let (mut found, folders) = look_through(path, kind, follow_links)?;
        classes::label(&mut found, folders, path)?;
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
