//! A folder tree of images inside a ZIP archive.
//!
//! Stored members are returned as ranges of the file after a check of their CRC-32; deflated
//! members are inflated one at a time. Memory: about 100 bytes per member and its name. Follows
//! PKWARE's APPNOTE 6.3.10, with ZIP64; encrypted and split archives are refused.

use super::budget::{MemoryBudget, over_budget};
use super::malformed::malformed;
use super::names::{SeenKeys, TableName, extension, is_ignored, kind_of, relative_path, shown};
use super::{
    Content, ContentKind, Entry, Finished, Item, OpenFile, SampleOrigin, Size, Source,
    SourceOptions, SourceSchema, UnreadTable,
};
use crate::message::Message;
use crate::store::StorePath;
use crate::{Error, LeftOut, natural_order};
use flate2::bufread::DeflateDecoder;
use meetpoint_diagnose::Setting;
use meetpoint_format::dataset::schema::IMAGE_BYTES_MAX;
use rawzip::{
    CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
    ZipFileHeaderRecord,
};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io::{self, BufReader, Read};
use std::sync::Arc;

/// Description for errors.
const WORDS: &str = "a ZIP archive of images";
/// Maximum number of members of an archive: a few gigabytes of memory.
const MEMBERS_MAX: u64 = 1 << 24;
/// Bytes of a local header, without its name and extra fields (APPNOTE 4.3.7).
const LOCAL_HEADER_BYTES: u64 = 30;

/// Returns the evidence that `path` is a ZIP archive: its first bytes and its name.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    if !path.is_file() {
        return Ok(None);
    }
    let failed = |source| Error::Source { path: path.to_path_buf(), source };
    let mut begin = Vec::new();
    path.open().map_err(failed)?.take(4).read_to_end(&mut begin).map_err(failed)?;
    // NumPy's and Torch's files are ZIP archives too, but do not contain images.
    let is_named = extension(&path.shown()).eq_ignore_ascii_case("zip");
    let is_zip = is_named && (begin == *b"PK\x03\x04" || begin == *b"PK\x05\x06");
    Ok(is_zip.then(|| "it begins as a ZIP archive does".to_owned()))
}

/// Opens an archive: reads its directory.
///
/// Folders are classes as in a folder of images, except for a folder that contains all others.
/// Option: `kind`, for archives of other content than images.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    options.allow_only(WORDS, &[Setting::Kind])?;
    let kind = options.kind.unwrap_or(ContentKind::Image);
    if kind == ContentKind::None {
        return Err(Error::OptionWithoutUse {
            option: Setting::Kind,
            value: Some(ContentKind::None.name()),
            source_words: WORDS.to_owned(),
        });
    }
    let failed = |source| Error::Source { path: path.to_path_buf(), source };
    let file = path.open().map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let file = Arc::new(OpenFile { path: path.clone(), file });
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let copy = file.file.try_clone().map_err(failed)?;
    let archive = ZipArchive::from_file(copy, &mut buffer)
        .map_err(|error| malformed(path, None, format!("not a ZIP archive: {error}; {DAMAGED}")))?;
    let mut found = list(path, &archive, &mut buffer, kind, bytes)?;
    let labels = label(path, &mut found, kind)?;
    let unread_table = unread_table(&found)
        .map(|(member, header)| UnreadTable::in_archive(place(path, member, *header)));
    let name = match kind {
        ContentKind::Image => "image",
        ContentKind::Audio => "audio",
        ContentKind::Text => "text",
        ContentKind::Bytes | ContentKind::None => "bytes",
    };
    Ok(Box::new(ZipSource {
        schema: SourceSchema {
            kind,
            name: name.to_owned(),
            extra: Arc::new(arrow_schema::Schema::empty()),
            prepared: None,
        },
        size: Size {
            samples: Some(found.members.len() as u64),
            bytes: Some(found.members.iter().map(|member| member.bytes).sum()),
        },
        file,
        archive,
        noted: found.noted,
        members: found.members.into_iter(),
        labels,
        unread_table,
        budget: MemoryBudget::of(options),
    }))
}

/// The problem that most errors of an archive indicate.
const DAMAGED: &str = "it is damaged or truncated";

/// The location of a member's header.
fn place(path: &StorePath, member: &str, header: u64) -> SampleOrigin {
    SampleOrigin {
        file: path.display().to_string(),
        member: Some(format!("member {member}")),
        offset: Some(header),
    }
}

fn malformed_at(origin: SampleOrigin, problem: impl Into<Message>) -> Error {
    Error::Malformed { origin: Box::new(origin), problem: problem.into() }
}

/// A member that is a sample.
struct Member {
    key: String,
    place: ZipArchiveEntryWayfinder,
    header: u64,
    compressed_bytes: u64,
    bytes: u64,
    is_stored: bool,
    label: Option<i32>,
}

/// The contents of an archive.
#[derive(Default)]
struct ArchiveContents {
    members: Vec<Member>,
    /// Entries that are not samples or cannot be read.
    noted: VecDeque<Entry>,
    unreadable: Vec<LeftOut>,
    others: u64,
    /// Names and headers of tables that are not samples.
    tables: Vec<(String, u64)>,
}

/// Reads the directory.
fn list(
    path: &StorePath,
    archive: &ZipArchive<rawzip::FileReader>,
    buffer: &mut [u8],
    kind: ContentKind,
    file_bytes: u64,
) -> Result<ArchiveContents, Error> {
    let mut found = ArchiveContents::default();
    let mut seen = SeenKeys::default();
    let mut count = 0;
    let damaged = |error: rawzip::Error| {
        malformed(path, None, format!("its directory cannot be read: {error}; {DAMAGED}"))
    };
    let mut entries = archive.entries(buffer);
    while let Some(entry) = entries.next_entry().map_err(damaged)? {
        count += 1;
        if count > MEMBERS_MAX {
            return Err(malformed(path, None, format!("it has more than {MEMBERS_MAX} members")));
        }
        let name = entry.file_path();
        let name = name.as_bytes();
        let header = entry.local_header_offset();
        let left_out = |reason: Message| LeftOut {
            path: place(path, &shown(name), header).to_string(),
            reason,
        };
        if entry.is_dir() {
            found.noted.push_back(Entry::Ignored);
            continue;
        }
        let key = match relative_path(name) {
            Ok(key) => key,
            Err(reason) => {
                found.unreadable.push(left_out(reason));
                continue;
            }
        };
        if is_ignored(&key) {
            found.noted.push_back(Entry::Ignored);
            continue;
        }
        if !seen.insert(&key) {
            let problem = Message::from("it occurs twice").remedy("remove one of them");
            return Err(malformed_at(place(path, &key, header), problem));
        }
        let is_meant = kind == ContentKind::Bytes || kind_of(extension(&key)) == kind;
        if !is_meant {
            found.others += 1;
            if TableName::of(file_name(&key)).is_some() {
                found.tables.push((key.clone(), header));
            }
            let reason = format!("no {}, by name", kind.name());
            found.noted.push_back(Entry::NotASample(left_out(reason.into())));
            continue;
        }
        if let Some(reason) = why_not(&entry) {
            found.unreadable.push(left_out(reason));
            continue;
        }
        found.members.push(Member {
            key,
            place: entry.wayfinder(),
            header,
            compressed_bytes: entry.compressed_size_hint(),
            bytes: entry.uncompressed_size_hint(),
            is_stored: entry.compression_method() == CompressionMethod::STORE,
            label: None,
        });
    }
    let promised = archive.entries_hint();
    if promised != count {
        let problem =
            format!("its directory has {count} members, its end says {promised}; {DAMAGED}");
        return Err(malformed(path, None, problem));
    }
    check_apart(path, &mut found.members, file_bytes)?;
    found.members.sort_by(|left, right| natural_order(&left.key, &right.key));
    found.unreadable.sort_by(|left, right| natural_order(&left.path, &right.path));
    Ok(found)
}

/// The first table `metadata.*`, or else the first that is not named like a sample, which it would
/// describe alone.
fn unread_table(found: &ArchiveContents) -> Option<&(String, u64)> {
    let is_metadata = |(key, _): &&(String, u64)| {
        TableName::of(file_name(key)).is_some_and(|name| name.is_metadata)
    };
    found.tables.iter().find(is_metadata).or_else(|| {
        if found.tables.is_empty() {
            return None;
        }
        let samples: HashSet<&str> = found.members.iter().map(|member| stem(&member.key)).collect();
        found.tables.iter().find(|(key, _)| !samples.contains(stem(key)))
    })
}

/// The last component of a name.
fn file_name(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// A name up to the first dot of its last component.
fn stem(key: &str) -> &str {
    let name = file_name(key);
    let begin = key.len() - name.len();
    &key[..begin + name.find('.').unwrap_or(name.len())]
}

/// Why a member cannot be read, if it cannot.
fn why_not(entry: &ZipFileHeaderRecord<'_>) -> Option<Message> {
    let method = entry.compression_method();
    let (bytes, compressed) = (entry.uncompressed_size_hint(), entry.compressed_size_hint());
    if entry.mode().is_symlink() {
        Some(Message::from("a link").remedy("zip it without --symlinks"))
    } else if entry.flags().is_encrypted() {
        Some(Message::from("it is encrypted").remedy("decrypt the archive first"))
    } else if method != CompressionMethod::STORE && method != CompressionMethod::DEFLATE {
        let problem = Message::from(format!("compressed with {method}"));
        Some(problem.remedy("zip it again, stored or deflated"))
    } else if bytes > IMAGE_BYTES_MAX {
        Some(format!("{bytes} bytes, the limit is {IMAGE_BYTES_MAX}").into())
    } else if method == CompressionMethod::STORE && bytes != compressed {
        Some(format!("stored in {compressed} bytes, but its length is {bytes}").into())
    } else {
        None
    }
}

/// Refuses members that share bytes, the trick with which small archives expand to petabytes.
fn check_apart(path: &StorePath, members: &mut [Member], file_bytes: u64) -> Result<(), Error> {
    members.sort_by_key(|member| member.header);
    let mut end = 0;
    for member in members {
        if member.header < end {
            let problem = format!("it overlaps another member; {DAMAGED}");
            return Err(malformed_at(place(path, &member.key, member.header), problem));
        }
        end = member.header.saturating_add(member.compressed_bytes);
        end = end.saturating_add(LOCAL_HEADER_BYTES + 1);
        if end > file_bytes {
            let problem = format!("it extends beyond the end of the file; {DAMAGED}");
            return Err(malformed_at(place(path, &member.key, member.header), problem));
        }
    }
    Ok(())
}

/// Sets the class of each member: the first folder in its name, below a folder shared by all.
fn label(
    path: &StorePath,
    found: &mut ArchiveContents,
    kind: ContentKind,
) -> Result<Vec<String>, Error> {
    if found.members.is_empty() {
        if found.unreadable.is_empty() {
            return Err(match kind {
                ContentKind::Image => {
                    Error::NoImages { path: path.to_path_buf(), others: found.others }
                }
                kind => {
                    Error::NoFilesOfKind { path: path.to_path_buf(), kind, others: found.others }
                }
            });
        }
        let files = std::mem::take(&mut found.unreadable);
        return Err(Error::Unreadable { checked: files.len() as u64, files });
    }
    found.noted.extend(std::mem::take(&mut found.unreadable).into_iter().map(Entry::Unreadable));
    // Keys include the outer folders, classes do not.
    let mut outer = 0;
    while let Some(next) = shared_folder(&found.members, outer) {
        outer = next;
    }
    let has_class = |member: &&Member| member.key[outer..].contains('/');
    let at_top = found.members.iter().find(|member| !has_class(member));
    let below = found.members.iter().find(has_class);
    match (at_top, below) {
        (Some(file), Some(folder)) => Err(Error::MixedLayout {
            path: path.to_path_buf(),
            file: file.key.clone(),
            folder: folder.key.clone(),
        }),
        (_, None) => Ok(Vec::new()),
        (None, Some(_)) => {
            let class = |member: &Member| member.key[outer..].split('/').next().map(str::to_owned);
            let names: BTreeSet<String> = found.members.iter().filter_map(class).collect();
            let mut labels: Vec<String> = names.into_iter().collect();
            labels.sort_by(|left, right| natural_order(left, right));
            for member in &mut found.members {
                let class = class(member).unwrap_or_default();
                let index = labels.binary_search_by(|label| natural_order(label, &class));
                let index = index.expect("the class of each member is among them");
                member.label = Some(i32::try_from(index).expect("at most 2^24 members"));
            }
            Ok(labels)
        }
    }
}

/// The length of the outer folders including one more, if all members are at least two folders
/// below them and share the first, which then is not a class.
fn shared_folder(members: &[Member], outer: usize) -> Option<usize> {
    let first = &members.first()?.key[outer..];
    let folder = &first[..=first.find('/')?];
    let is_below = |member: &Member| {
        member.key[outer..].strip_prefix(folder).is_some_and(|rest| rest.contains('/'))
    };
    members.iter().all(is_below).then_some(outer + folder.len())
}

struct ZipSource {
    schema: SourceSchema,
    size: Size,
    file: Arc<OpenFile>,
    archive: ZipArchive<rawzip::FileReader>,
    noted: VecDeque<Entry>,
    members: std::vec::IntoIter<Member>,
    labels: Vec<String>,
    unread_table: Option<UnreadTable>,
    budget: MemoryBudget,
}

impl Source for ZipSource {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        self.size
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        if let Some(entry) = self.noted.pop_front() {
            return Ok(Some(entry));
        }
        let Some(member) = self.members.next() else {
            return Ok(None);
        };
        let origin = place(&self.file.path, &member.key, member.header);
        Ok(Some(match self.content(&member) {
            Ok(content) => Entry::Sample(Box::new(Item {
                key: member.key,
                origin,
                content,
                label: member.label,
                extra: None,
            })),
            Err(error) => {
                if let Some(over) = over_budget(&error) {
                    return Err(Error::OverBudget { origin: Box::new(origin), over });
                }
                let reason = format!("{error}; {DAMAGED}");
                Entry::Unreadable(LeftOut { path: origin.to_string(), reason: reason.into() })
            }
        }))
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        Ok(Finished { labels: std::mem::take(&mut self.labels), ..Finished::default() })
    }

    fn unread_table(&self) -> Option<&UnreadTable> {
        self.unread_table.as_ref()
    }
}

impl ZipSource {
    /// The bytes of a member, or their location; its CRC-32 is checked either way.
    fn content(&self, member: &Member) -> io::Result<Content> {
        let entry = self.archive.get_entry(member.place).map_err(io::Error::other)?;
        let mut verified: Box<dyn Read> = if member.is_stored {
            Box::new(entry.verifying_reader(entry.reader()))
        } else {
            let inflated = DeflateDecoder::new(BufReader::new(entry.reader()));
            Box::new(entry.verifying_reader(inflated))
        };
        if member.is_stored {
            io::copy(&mut verified, &mut io::sink())?;
            let (begin, end) = entry.compressed_data_range();
            return Ok(Content::Range {
                file: self.file.clone(),
                offset: begin,
                bytes: end - begin,
            });
        }
        // One additional byte detects a member that is too long.
        let (most, compressed) = (member.bytes + 1, member.compressed_bytes);
        let read = self.budget.read_to_end(verified.as_mut(), Vec::new(), most, compressed)?;
        let bytes = read.into_bytes();
        if bytes.len() as u64 != member.bytes {
            return Err(io::Error::other(format!(
                "it inflates to {} bytes or more, its length is {}",
                bytes.len(),
                member.bytes
            )));
        }
        Ok(Content::Bytes(bytes))
    }
}
