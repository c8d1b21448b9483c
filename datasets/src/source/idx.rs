//! IDX files, the format of MNIST and similar datasets: pictures and labels, plain or compressed.
//!
//! Two zero bytes, a type, the number of dimensions, each of them in four bytes big-endian, then
//! the values, the last dimension fastest (<http://yann.lecun.com/exdb/mnist/>). Pictures become
//! raw grey pixels or grey PNG, both lossless; arrays of other types are refused, naming the type.
//! Memory: one record batch of samples.

use super::budget::{MemoryBudget, ReservedBytes};
use super::columns::{Cell, Gather, Shape};
use super::input::{Input, read_up_to};
use super::pixels::{PixelStore, Pixels};
use super::reader_source::{ReaderSource, SampleReader};
use super::side_files::images_of;
use super::{
    Content, ContentKind, Finished, Item, SampleOrigin, Size, Source, SourceOptions, SourceSchema,
};
use crate::message::Message;
use crate::store::StorePath;
use crate::{Error, natural_order};
use meetpoint_diagnose::Setting;
use serde_json::Value;

/// Description for errors.
const WORDS: &str = "IDX files";
/// Maximum number of pixels of a picture.
const PIXELS_MAX: u64 = 1 << 24;
/// Maximum number of files of a folder that are examined.
const FOLDER_ENTRIES_MAX: usize = 10_000;

/// A file of values.
struct IdxFile {
    input: Input,
    /// Lengths of the dimensions, the slowest first.
    lengths: Vec<u64>,
}

impl IdxFile {
    /// Opens a file and checks that its values are bytes, in `dimensions` dimensions.
    fn open(path: &StorePath, dimensions: usize, budget: &MemoryBudget) -> Result<Self, Error> {
        let mut input = Input::open_within(path, budget)?;
        let mut head = [0; 4];
        let got = read_up_to(&mut input, &mut head);
        let got = got.map_err(|error| input.unreadable(None, &error))?;
        let problem = match head {
            _ if got < 4 => {
                Some(Message::from("the file ends within its header").remedy("fetch it again"))
            }
            [0, 0, 0x08, count] if usize::from(count) == dimensions => None,
            [0, 0, 0x08, count] => Some(
                Message::from(format!("{count} dimensions, where {dimensions} are expected"))
                    .remedy("name grey pictures and their labels"),
            ),
            [0, 0, kind, _] => Some(
                Message::from(format!("its values are {}, not bytes", type_name(kind)))
                    .remedy("convert it with NumPy"),
            ),
            _ => Some("it does not begin like an IDX file".into()),
        };
        if let Some(problem) = problem {
            return Err(input.malformed(None, 0, problem));
        }
        let mut lengths = Vec::new();
        for _ in 0..dimensions {
            let mut length = [0; 4];
            let got = read_up_to(&mut input, &mut length);
            if got.map_err(|error| input.unreadable(None, &error))? < 4 {
                let problem = "the file ends within its header";
                return Err(input.malformed(None, input.position(), problem));
            }
            lengths.push(u64::from(u32::from_be_bytes(length)));
        }
        Ok(Self { input, lengths })
    }

    /// Values of one item.
    fn item_bytes(&self) -> u64 {
        // At most 2^64 - 2^33 + 1 for the two of a picture; a label has one.
        self.lengths[1..].iter().product()
    }

    /// Reads an item; fails at the end of the file.
    fn next(&mut self, index: u64) -> Result<ReservedBytes, Error> {
        let (offset, bytes) = (self.input.position(), self.item_bytes());
        let read = self.input.read_held(bytes);
        let read = read.map_err(|error| self.input.unreadable(None, &error))?;
        if read.as_ref().len() as u64 == bytes {
            return Ok(read);
        }
        let count = self.lengths[0];
        let problem = format!("the file ends here, its header says {count} items");
        Err(self.input.malformed(Some(format!("item {index}")), offset, problem))
    }

    /// Fails if the file continues. Reading to the end also verifies the checksum of a compressed
    /// file.
    fn end(&mut self) -> Result<(), Error> {
        let mut byte = [0];
        let got = read_up_to(&mut self.input, &mut byte);
        if got.map_err(|error| self.input.unreadable(None, &error))? > 0 {
            let problem = format!("the file continues after {} items", self.lengths[0]);
            return Err(self.input.malformed(None, self.input.position() - 1, problem));
        }
        self.input.check_unchanged()
    }
}

fn type_name(kind: u8) -> String {
    match kind {
        0x09 => "signed bytes".to_owned(),
        0x0b => "integers of 16 bits".to_owned(),
        0x0c => "integers of 32 bits".to_owned(),
        0x0d => "floats of 32 bits".to_owned(),
        0x0e => "floats of 64 bits".to_owned(),
        other => format!("of the unknown type {other:#04x}"),
    }
}

/// A set of pictures and their labels.
#[derive(Debug, Clone)]
struct Set {
    /// `train`, `t10k`.
    name: String,
    images: StorePath,
    labels: Option<StorePath>,
}

/// The sets of a folder, or the set of a file of pictures, in natural order.
fn sets_of(path: &StorePath) -> Vec<Set> {
    let (folder, only) = match path.is_dir() {
        true => (path.clone(), None),
        false => (path.folder(), path.file_name()),
    };
    let names: Vec<String> = match only {
        Some(name) => name.to_str().map(str::to_owned).into_iter().collect(),
        None => {
            let entries = folder.list().into_iter().flatten().flatten();
            let names = entries.take(FOLDER_ENTRIES_MAX).filter_map(|(path, _)| {
                path.file_name().and_then(|name| name.to_str()).map(str::to_owned)
            });
            names.collect()
        }
    };
    let mut sets: Vec<Set> = Vec::new();
    for name in &names {
        let Some((set, labels)) = images_of(name).filter(|_| !name.starts_with('.')) else {
            continue;
        };
        // The plain and the compressed file are the same set.
        let plain = name.strip_suffix(".gz");
        if plain.is_some_and(|plain| names.iter().any(|name| name == plain)) {
            continue;
        }
        let labels = labels.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        sets.push(Set { name: set, images: folder.join(name), labels });
    }
    sets.sort_by(|left, right| natural_order(&left.name, &right.name));
    sets
}

/// Returns the evidence that `path` is of this kind: names of files, and their first bytes.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    let sets = sets_of(path);
    let Some(set) = sets.first().filter(|set| set.images.is_file()) else {
        return Ok(None);
    };
    let mut head = [0; 2];
    let mut input = Input::open(&set.images)?;
    let is_idx = matches!(read_up_to(&mut input, &mut head), Ok(2)) && head == [0, 0];
    let name = set.images.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(is_idx.then(|| format!("{name} is an IDX file")))
}

/// Opens a folder of IDX files, or one file of pictures with its labels beside it.
///
/// Option: `split` names one of the sets (`train`, `t10k`); the column `split` contains the set of
/// each sample.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    options.allow_only(WORDS, &[Setting::Split, Setting::Store])?;
    path.metadata().map_err(|source| Error::Source { path: path.to_path_buf(), source })?;
    let mut sets = sets_of(path);
    let wrong = |problem: Message| {
        let origin = SampleOrigin { file: path.display().to_string(), ..SampleOrigin::default() };
        Error::Malformed { origin: Box::new(origin), problem }
    };
    if let Some(twice) = sets.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(wrong(format!("two files of pictures of the set {}", twice[0].name).into()));
    }
    if let Some(split) = &options.split {
        let names: Vec<String> = sets.iter().map(|set| set.name.clone()).collect();
        sets.retain(|set| set.name == *split);
        if sets.is_empty() {
            let names = names.join(", ");
            let absent = Message::from(format!("no set {split} (")) + Setting::Split;
            return Err(wrong(absent + format!(") in it; there are {names}")));
        }
    }
    if sets.is_empty() {
        return Err(wrong("no file such as train-images-idx3-ubyte(.gz) in it".into()));
    }
    let (mut samples, mut bytes) = (0, 0);
    let budget = MemoryBudget::of(options);
    for set in &sets {
        let open = OpenSet::open(set, &budget)?;
        samples += open.images.lengths[0];
        bytes += open.images.input.file_bytes();
    }
    let gather = Gather::new(&[("split".to_owned(), Shape::Text)]);
    Ok(Box::new(ReaderSource::new(
        IdxSource {
            schema: SourceSchema {
                kind: ContentKind::Image,
                name: "image".to_owned(),
                extra: gather.schema().clone(),
                prepared: None,
            },
            size: Size { samples: Some(samples), bytes: Some(bytes) },
            sets: sets.into_iter(),
            store: options.store.unwrap_or_default(),
            open: None,
            budget,
        },
        gather,
    )))
}

/// A set whose files are open.
struct OpenSet {
    name: String,
    images: IdxFile,
    labels: Option<IdxFile>,
    next: u64,
}

impl OpenSet {
    fn open(set: &Set, budget: &MemoryBudget) -> Result<Self, Error> {
        let images = IdxFile::open(&set.images, 3, budget)?;
        let labels = set.labels.as_ref().map(|path| IdxFile::open(path, 1, budget)).transpose()?;
        if let [count, height, width] = images.lengths[..] {
            let pixels = height.saturating_mul(width);
            if pixels == 0 || pixels > PIXELS_MAX || count == 0 {
                let problem = format!("{count} pictures of {width} by {height} pixels");
                return Err(images.input.malformed(None, 4, problem));
            }
        }
        match &labels {
            Some(labels) if labels.lengths[0] != images.lengths[0] => {
                let problem = format!(
                    "{} labels for {} pictures; the files do not belong together",
                    labels.lengths[0], images.lengths[0]
                );
                Err(labels.input.malformed(None, 4, problem))
            }
            _ => Ok(Self { name: set.name.clone(), images, labels, next: 0 }),
        }
    }
}

struct IdxSource {
    schema: SourceSchema,
    size: Size,
    sets: std::vec::IntoIter<Set>,
    store: PixelStore,
    open: Option<OpenSet>,
    budget: MemoryBudget,
}

impl SampleReader for IdxSource {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        self.size
    }

    fn advance(&mut self, to: &mut Gather) -> Result<bool, Error> {
        if self.open.is_none() {
            let Some(set) = self.sets.next() else {
                return Ok(false);
            };
            self.open = Some(OpenSet::open(&set, &self.budget)?);
        }
        let set = self.open.as_mut().expect("it was just opened");
        let index = set.next;
        let offset = set.images.input.position();
        let pixels = set.images.next(index)?;
        let label = set.labels.as_mut().map(|labels| labels.next(index)).transpose()?;
        let member = Some(format!("picture {index}"));
        let side = |length: u64| u32::try_from(length).expect("it stands in four bytes");
        let (height, width) = (side(set.images.lengths[1]), side(set.images.lengths[2]));
        let item = Item {
            key: format!("{}/{index:05}", set.name),
            origin: set.images.input.origin(member, offset),
            content: Content::Bytes(self.store.file(
                (width, height),
                Pixels::Grey,
                pixels.as_ref(),
            )),
            label: label.map(|label| i32::from(label.as_ref()[0])),
            extra: None,
        };
        let cells = vec![Cell::Json(Value::String(set.name.clone()))];
        set.next += 1;
        if set.next == set.images.lengths[0] {
            set.images.end()?;
            if let Some(labels) = &mut set.labels {
                labels.end()?;
            }
            self.open = None;
        }
        to.push(item, cells).map_err(|problem| self.changed(&problem))?;
        Ok(true)
    }

    fn changed(&self, problem: &str) -> Error {
        unreachable!("cells are of the types that the columns have: {problem}")
    }

    fn finish(&mut self) -> Finished {
        Finished::default()
    }
}
