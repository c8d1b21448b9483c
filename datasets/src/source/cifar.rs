//! CIFAR-10 and CIFAR-100 in their binary version: a folder, or the distributed archive.
//!
//! A record is one byte of label (CIFAR-100: coarse and fine), then 1024 bytes of red, green and
//! blue each, 32 by 32, row by row (<https://www.cs.toronto.edu/~kriz/cifar.html>). Pictures become
//! raw pixels or PNG, both lossless. Memory: one record batch of samples.

use super::budget::MemoryBudget;
use super::columns::{Cell, Gather, Shape};
use super::input::Input;
use super::pixels::{PixelStore, Pixels};
use super::reader_source::{ReaderSource, SampleReader};
use super::tar::members::{Member, MemberKind, Members};
use super::{
    Content, ContentKind, Entry, Finished, Item, SampleOrigin, Size, Source, SourceOptions,
    SourceSchema,
};
use crate::message::Message;
use crate::store::StorePath;
use crate::{Error, LeftOut, natural_order};
use meetpoint_diagnose::Setting;
use serde_json::Value;

/// Description for errors.
const WORDS: &str = "CIFAR-10 or CIFAR-100";
/// Rows and columns of a picture.
const SIDE: u32 = 32;
/// Bytes of a channel.
const CHANNEL_BYTES: usize = 1024;
/// Bytes of a picture.
const PICTURE_BYTES: usize = 3 * CHANNEL_BYTES;
/// Maximum bytes of a file with names.
const NAMES_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of members of the archive, which has about ten.
const MEMBERS_MAX: usize = 100;

/// Which of the two datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Ten,
    Hundred,
}

impl Variant {
    /// Bytes of the labels in a record.
    fn label_bytes(self) -> usize {
        match self {
            Self::Ten => 1,
            Self::Hundred => 2,
        }
    }

    /// Bytes of a record.
    fn record_bytes(self) -> usize {
        self.label_bytes() + PICTURE_BYTES
    }
}

/// The dataset and the split of a file with samples.
fn batch(name: &str) -> Option<(Variant, &'static str)> {
    let number = name.strip_prefix("data_batch_").and_then(|rest| rest.strip_suffix(".bin"));
    match name {
        "test_batch.bin" => Some((Variant::Ten, "test")),
        "train.bin" => Some((Variant::Hundred, "train")),
        "test.bin" => Some((Variant::Hundred, "test")),
        _ => number.and_then(|number| number.parse::<u32>().ok()).map(|_| (Variant::Ten, "train")),
    }
}

/// Whether a file contains names of labels, fine or coarse.
fn is_names(name: &str) -> bool {
    matches!(name, "batches.meta.txt" | "fine_label_names.txt" | "coarse_label_names.txt")
}

/// Returns the evidence that `path` is CIFAR: names of files or members, and their lengths.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    let folder = folder_of(path);
    if folder.is_dir() {
        let is_batch = |name: &str, variant: Variant| {
            let bytes = folder.join(name).metadata().map_or(0, |metadata| metadata.bytes);
            bytes > 0 && bytes.is_multiple_of(variant.record_bytes() as u64)
        };
        let names = [("data_batch_1.bin", Variant::Ten), ("test_batch.bin", Variant::Ten)];
        let found = names.iter().find(|(name, variant)| is_batch(name, *variant));
        let hundred = is_batch("train.bin", Variant::Hundred)
            && folder.join("fine_label_names.txt").is_file();
        return Ok(match (found, hundred) {
            (Some((name, _)), _) => Some(format!("it holds {name} of CIFAR-10")),
            (None, true) => Some("it holds train.bin of CIFAR-100".to_owned()),
            (None, false) => None,
        });
    }
    if !path.is_file() {
        return Ok(None);
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some((variant, _)) = batch(name) {
        let bytes = path.metadata().map_or(0, |metadata| metadata.bytes);
        let fits = bytes > 0 && bytes.is_multiple_of(variant.record_bytes() as u64);
        return Ok(fits.then(|| format!("{name} is a file of {WORDS}, by name and length")));
    }
    if !super::tar::begins_as_tar(path)? {
        return Ok(None);
    }
    let mut members = Members::open(path, &MemoryBudget::default())?;
    let first = members.next().ok().flatten();
    let first = first.and_then(|member| String::from_utf8(member.name).ok()).unwrap_or_default();
    let known = ["cifar-10-batches-bin", "cifar-100-binary"];
    let known = known.iter().chain(&PYTHON_FOLDERS);
    let folder = first.split('/').next().unwrap_or_default();
    Ok(known.into_iter().any(|known| *known == folder).then(|| format!("it begins with {folder}")))
}

/// Folders of the Python version, which is pickled.
const PYTHON_FOLDERS: [&str; 2] = ["cifar-10-batches-py", "cifar-100-python"];

/// The folder with the files: the given one, or the sub-folder that the archive unpacks to.
fn folder_of(path: &StorePath) -> StorePath {
    let inner = ["cifar-10-batches-bin", "cifar-100-binary"];
    let inner = inner.iter().map(|name| path.join(name)).find(|path| path.is_dir());
    inner.unwrap_or_else(|| path.clone())
}

/// Opens a folder, an archive or a single file.
///
/// Option: `split` (`train` or `test`); the column `split` contains the split of each sample. For
/// CIFAR-100 the fine label is the label, and the coarse one a column.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    options.allow_only(WORDS, &[Setting::Split, Setting::Store])?;
    let wrong = |problem: Message| {
        let origin = SampleOrigin { file: path.display().to_string(), ..SampleOrigin::default() };
        Error::Malformed { origin: Box::new(origin), problem }
    };
    let budget = MemoryBudget::of(options);
    let mut found = CifarFiles::in_path(path, &budget)?;
    let split = options.split.as_deref();
    found.files.retain(|file| split.is_none_or(|split| file.split == split));
    let Some(first) = found.files.first() else {
        return Err(wrong(match split {
            Some(split) => Message::from(format!("no files of the set {split}"))
                .remedy("choose one of train and test"),
            None => Message::from("no files such as data_batch_1.bin or train.bin in it")
                .remedy("download the binary version"),
        }));
    };
    let variant = first.variant;
    if let Some(other) = found.files.iter().find(|file| file.variant != variant) {
        return Err(wrong(
            Message::from(format!(
                "{} and {} belong to different datasets",
                first.name, other.name
            ))
            .remedy("move one of them away"),
        ));
    }
    let mut bytes = 0;
    for file in &found.files {
        let record = variant.record_bytes() as u64;
        if !file.bytes.is_multiple_of(record) || file.bytes == 0 {
            return Err(wrong(
                Message::from(format!(
                    "{} has {} bytes, which is not a multiple of the record length {record}: it is \
                     truncated",
                    file.name, file.bytes
                ))
                .remedy("fetch it again"),
            ));
        }
        bytes += file.bytes;
    }
    let coarse = ("coarse_label".to_owned(), Shape::Int);
    let mut columns = vec![("split".to_owned(), Shape::Text)];
    columns.extend((variant == Variant::Hundred).then_some(coarse));
    let mut gather = Gather::new(&columns);
    if variant == Variant::Hundred && !found.coarse.is_empty() {
        gather.name_integers("coarse_label", &found.coarse);
    }
    let schema = SourceSchema {
        kind: ContentKind::Image,
        name: "image".to_owned(),
        extra: gather.schema().clone(),
        prepared: None,
    };
    let samples = Some(bytes / variant.record_bytes() as u64);
    Ok(Box::new(ReaderSource::new(
        CifarSource {
            schema,
            size: Size { samples, bytes: Some(bytes) },
            variant,
            store: options.store.unwrap_or_default(),
            labels: found.labels,
            coarse: found.coarse.len(),
            reader: Reader::open(path, &found.files, &budget)?,
            files: found.files,
            open: None,
        },
        gather,
    )))
}

/// A file with samples.
#[derive(Debug, Clone)]
struct BatchFile {
    name: String,
    /// Its path; `None` for a member of an archive.
    path: Option<StorePath>,
    bytes: u64,
    variant: Variant,
    split: &'static str,
}

impl BatchFile {
    fn of(name: &str, path: Option<StorePath>, bytes: u64) -> Option<Self> {
        let (variant, split) = batch(name)?;
        Some(Self { name: name.to_owned(), path, bytes, variant, split })
    }
}

/// The files and label names that were found.
#[derive(Default)]
struct CifarFiles {
    files: Vec<BatchFile>,
    labels: Vec<String>,
    coarse: Vec<String>,
}

impl CifarFiles {
    fn in_path(path: &StorePath, budget: &MemoryBudget) -> Result<Self, Error> {
        let folder = folder_of(path);
        if folder.is_dir() {
            return Self::in_folder(&folder);
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if batch(name).is_none() {
            return Self::in_archive(path, budget);
        }
        let mut found = Self::in_folder(&path.folder())?;
        found.files.retain(|file| file.name == name);
        Ok(found)
    }

    fn in_folder(folder: &StorePath) -> Result<Self, Error> {
        let failed = |source| Error::Source { path: folder.to_path_buf(), source };
        let mut found = Self::default();
        for entry in folder.list().map_err(failed)? {
            let (path, _) = entry.map_err(failed)?;
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if is_names(name) {
                let mut input = Input::open(&path)?;
                let text = input.read_at_most(NAMES_BYTES_MAX);
                let text = text.map_err(|error| input.unreadable(None, &error))?;
                found.take_names(name, &text);
            } else if let Ok(metadata) = path.metadata() {
                found.files.extend(BatchFile::of(name, Some(path.clone()), metadata.bytes));
            }
        }
        found.files.sort_by(|left, right| natural_order(&left.name, &right.name));
        Ok(found)
    }

    fn in_archive(path: &StorePath, budget: &MemoryBudget) -> Result<Self, Error> {
        let mut members = Members::open(path, budget)?;
        let mut found = Self::default();
        let mut count = 0;
        while let Some(member) = members.next()? {
            count += 1;
            let (folder, name) = folder_and_name(&member);
            let is_python = PYTHON_FOLDERS.contains(&folder.as_str());
            if count > MEMBERS_MAX || is_python {
                let problem = match is_python {
                    true => {
                        "the version for Python is pickled, which cannot be read safely; \
                             fetch the binary version"
                    }
                    false => "more members than CIFAR has",
                };
                return Err(members.input().malformed(
                    Some(member.shown()),
                    member.offset,
                    problem,
                ));
            }
            if member.kind != MemberKind::File {
                continue;
            }
            if is_names(&name) && member.bytes <= NAMES_BYTES_MAX {
                let text = members.read(&member)?;
                found.take_names(&name, text.as_ref());
            } else {
                let file = BatchFile::of(&name, None, member.bytes);
                if let Some(file) = file {
                    if found.files.iter().any(|known| known.name == name) {
                        let problem = Message::from("it occurs twice").remedy("remove one of them");
                        let place = Some(member.shown());
                        return Err(members.input().malformed(place, member.offset, problem));
                    }
                    found.files.push(file);
                }
            }
        }
        Ok(found)
    }

    fn take_names(&mut self, file: &str, text: &[u8]) {
        let lines = String::from_utf8_lossy(text);
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let names = lines.map(str::to_owned).collect();
        match file {
            "coarse_label_names.txt" => self.coarse = names,
            _ => self.labels = names,
        }
    }
}

fn folder_and_name(member: &Member) -> (String, String) {
    let path = String::from_utf8_lossy(&member.name).into_owned();
    let folder = path.split('/').next().unwrap_or_default().to_owned();
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    (folder, name)
}

/// Reads records, file by file.
enum Reader {
    Files(std::vec::IntoIter<BatchFile>),
    Archive(Box<Members>),
}

/// A file whose records are read.
struct OpenBatch {
    file: BatchFile,
    input: Option<Input>,
    record: u64,
}

impl Reader {
    fn open(path: &StorePath, files: &[BatchFile], budget: &MemoryBudget) -> Result<Self, Error> {
        Ok(match files.iter().all(|file| file.path.is_some()) {
            true => Self::Files(Vec::from(files).into_iter()),
            false => Self::Archive(Box::new(Members::open(path, budget)?)),
        })
    }

    /// The next of the selected files.
    fn next(&mut self, meant: &[BatchFile]) -> Result<Option<OpenBatch>, Error> {
        match self {
            Self::Files(files) => {
                let Some(file) = files.next() else {
                    return Ok(None);
                };
                let path = file.path.clone().expect("files that lie somewhere have a path");
                Ok(Some(OpenBatch { input: Some(Input::open(&path)?), file, record: 0 }))
            }
            Self::Archive(members) => {
                while let Some(member) = members.next()? {
                    let (_, name) = folder_and_name(&member);
                    let is_meant = |file: &&BatchFile| {
                        file.name == name
                            && member.kind == MemberKind::File
                            && file.bytes == member.bytes
                    };
                    if let Some(file) = meant.iter().find(is_meant) {
                        return Ok(Some(OpenBatch { file: file.clone(), input: None, record: 0 }));
                    }
                }
                Ok(None)
            }
        }
    }
}

struct CifarSource {
    schema: SourceSchema,
    size: Size,
    variant: Variant,
    store: PixelStore,
    labels: Vec<String>,
    /// Names of the coarse labels.
    coarse: usize,
    files: Vec<BatchFile>,
    reader: Reader,
    open: Option<OpenBatch>,
}

impl SampleReader for CifarSource {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        self.size
    }

    fn advance(&mut self, to: &mut Gather) -> Result<bool, Error> {
        let size = self.variant.record_bytes() as u64;
        if self.open.as_ref().is_none_or(|open| (open.record + 1) * size > open.file.bytes) {
            self.open = self.reader.next(&self.files)?;
        }
        let Some(open) = &mut self.open else {
            return Ok(false);
        };
        let input = match (&mut open.input, &mut self.reader) {
            (Some(input), _) => input,
            (None, Reader::Archive(members)) => members.input_mut(),
            (None, Reader::Files(_)) => unreachable!("files have an input of their own"),
        };
        let member = format!("{}, record {}", open.file.name, open.record);
        let offset = input.position();
        let record = input.read_held(size);
        let record = record.map_err(|error| input.unreadable(Some(member.clone()), &error))?;
        let record = record.as_ref();
        if record.len() as u64 != size {
            let problem = "the file ends within a record; it is truncated";
            return Err(input.malformed(Some(member), offset, problem));
        }
        let origin = input.origin(Some(member.clone()), offset);
        let stem = open.file.name.trim_end_matches(".bin");
        let key = format!("{stem}/{:05}", open.record);
        let split = open.file.split;
        open.record += 1;
        let (labels, pixels) = record.split_at(self.variant.label_bytes());
        let label = labels[labels.len() - 1];
        let limit =
            |names: usize, usual: u8| u8::try_from(names).ok().filter(|n| *n > 0).unwrap_or(usual);
        let (most, coarse_most) = match self.variant {
            Variant::Ten => (limit(self.labels.len(), 10), None),
            Variant::Hundred => (limit(self.labels.len(), 100), Some(limit(self.coarse, 20))),
        };
        if label >= most || coarse_most.is_some_and(|most| labels[0] >= most) {
            let reason = format!("label {labels:?} is not among the {most} classes");
            to.note(Entry::Unreadable(LeftOut { path: member, reason: reason.into() }));
            return Ok(true);
        }
        let mut cells = vec![Cell::Json(Value::String(split.to_owned()))];
        cells.extend(coarse_most.map(|_| Cell::Json(labels[0].into())));
        let file = self.store.file((SIDE, SIDE), Pixels::Rgb, &interleaved(pixels));
        let item = Item {
            key,
            origin,
            content: Content::Bytes(file),
            label: Some(label.into()),
            extra: None,
        };
        to.push(item, cells).map_err(|problem| self.changed(&problem))?;
        Ok(true)
    }

    fn changed(&self, problem: &str) -> Error {
        unreachable!("cells are of the types that the columns have: {problem}")
    }

    fn finish(&mut self) -> Finished {
        Finished { labels: std::mem::take(&mut self.labels), ..Finished::default() }
    }
}

/// Red, green and blue of each pixel side by side.
fn interleaved(planes: &[u8]) -> Vec<u8> {
    let (red, rest) = planes.split_at(CHANNEL_BYTES);
    let (green, blue) = rest.split_at(CHANNEL_BYTES);
    let pixels = red.iter().zip(green).zip(blue);
    pixels.flat_map(|((red, green), blue)| [*red, *green, *blue]).collect()
}
