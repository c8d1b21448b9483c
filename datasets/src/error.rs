//! What can go wrong when a dataset is made or looked at.

use crate::LeftOut;
use crate::source::{ContentKind, OverBudget, RemoteError, Whence, link_words};
use crate::words::{self, Words};
use meetpoint_format::units::show_bytes;
use meetpoint_storage::open_files_limit;
use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};

const CLI: Words = Words::CommandLine;

/// How many unreadable files an error names.
const NAMED_MAX: usize = 10;
/// Letters of a name that are shown; a file system's path has 4,096 bytes at most.
const SHOWN_MAX: usize = 400;

/// A folder that does not become a dataset, or a dataset that does not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source does not read.
    #[error("failed to read {}: {source}{}", path.display(), read_remedy(source))]
    Source {
        /// File or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The source is something else than a folder.
    #[error("{} is no folder; name the folder that holds the images", path.display())]
    NotAFolder {
        /// What was named.
        path: PathBuf,
    },
    /// Nothing that is known.
    #[error("{}", CLI.unknown_source(path, looked_for))]
    UnknownSource {
        /// What was named.
        path: PathBuf,
        /// Names and words of all kinds.
        looked_for: Vec<(&'static str, &'static str)>,
    },
    /// Two kinds of source at once.
    #[error("{}", CLI.ambiguous_source(path, found))]
    AmbiguousSource {
        /// What was named.
        path: PathBuf,
        /// Name and words of each kind, and what it was known by.
        found: Vec<(&'static str, &'static str, String)>,
    },
    /// A kind of source that is not known.
    #[error("unknown kind of source {name:?}; choose one of:{}", words::kinds(kinds))]
    NoSuchKind {
        /// What was asked for.
        name: String,
        /// Names and words of all kinds.
        kinds: Vec<(&'static str, &'static str)>,
    },
    /// No file of a kind in a folder.
    #[error("no files of kind {kind:?} in {} ({others} other files)", path.display())]
    NoFilesOfKind {
        /// Source.
        path: PathBuf,
        /// What was asked for.
        kind: ContentKind,
        /// Files that are something else.
        others: u64,
    },
    /// A source without samples.
    #[error("no samples in {}; name a source that has some", path.display())]
    NoSamples {
        /// Source.
        path: PathBuf,
    },
    /// Two samples of one key.
    #[error(
        "two samples have the key {:?}: {} and {second}; keys are unique in a dataset, so \
         rename or remove one",
        printable(key),
        first.as_ref().map_or("an earlier one".to_owned(), |first| first.to_string())
    )]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where the first lies, where that is known.
        first: Option<Box<Whence>>,
        /// Where the second lies.
        second: Box<Whence>,
    },
    /// A label beyond the names.
    #[error(
        "sample {key} has the label {label}, but there are {names} names of labels (labels without \
         names are 0 to 1048575)"
    )]
    LabelWithoutName {
        /// The sample.
        key: String,
        /// Its label.
        label: i32,
        /// Names that there are; 0 where labels are integers.
        names: u64,
    },
    /// What a killed process left cannot be gone on with.
    #[error("{}", CLI.resume_differs(path, difference))]
    ResumeDiffers {
        /// What was left.
        path: PathBuf,
        /// What is not the same.
        difference: String,
    },
    /// Another process writes to the destination, where only one may go on.
    #[error(
        "{} is being written by another process, in {}; wait for it or stop it",
        destination.display(), place.display()
    )]
    InUse {
        /// Destination.
        destination: PathBuf,
        /// The folder that it writes in.
        place: PathBuf,
    },
    /// What was left to go on with holds something else, too.
    #[error(
        "{} cannot be gone on with: it holds {entry}, which is not ours; move that away, or move \
         the whole folder away to start over",
        path.display()
    )]
    ResumeForeign {
        /// What was left.
        path: PathBuf,
        /// A file or folder in it.
        entry: String,
    },
    /// A source that breaks the rules of its format, or uses what is not supported; what follows
    /// in it cannot be read.
    #[error("{whence}: {problem}")]
    Malformed {
        /// Where.
        whence: Box<Whence>,
        /// What is wrong with it, and what to do about it: "checksum is 00000001, its data give
        /// 00000002; the file is damaged, fetch it again".
        problem: String,
    },
    /// A source that needs more memory than its limit.
    #[error("{whence}: {over}")]
    OverBudget {
        /// Where.
        whence: Box<Whence>,
        /// What it needs.
        over: OverBudget,
    },
    /// An option that means nothing for this source or its kind of content.
    #[error("{}", Words::CommandLine.option_without_use(option, source_words))]
    OptionWithoutUse {
        /// Its name, without the dashes.
        option: String,
        /// What the source is, in words: "a folder of images".
        source_words: String,
    },
    /// No image in the source.
    #[error(
        "no images in {} ({others} other files); expected JPEG, PNG, WebP, BMP, GIF or TIFF, flat \
         or in one sub-folder a class: name the folder or file that has them, or say with --kind \
         what else its files are",
        path.display()
    )]
    NoImages {
        /// Source.
        path: PathBuf,
        /// Files that are something else.
        others: u64,
    },
    /// Images beside class sub-folders.
    #[error(
        "{} has images at the top ({file}) and in sub-folders ({folder}); move the first into a \
         class sub-folder, or pack the sub-folders apart",
        path.display()
    )]
    MixedLayout {
        /// Source.
        path: PathBuf,
        /// An image at the top.
        file: String,
        /// An image in a sub-folder.
        folder: String,
    },
    /// A class without images.
    #[error(
        "class sub-folder {class} of {} has no images; remove it or fill it, since its place \
         among the labels would stay empty",
        path.display()
    )]
    EmptyClass {
        /// Source.
        path: PathBuf,
        /// Sub-folder.
        class: String,
    },
    /// Files that do not decode, where that is to be an error.
    #[error("{}", Words::CommandLine.unreadable(files, *checked))]
    Unreadable {
        /// All of them.
        files: Vec<LeftOut>,
        /// Samples looked at.
        checked: u64,
    },
    /// A file that was written to while it was packed.
    #[error("{} changed while it was read; pack again when nothing writes to it", path.display())]
    SourceChanged {
        /// File.
        path: PathBuf,
    },
    /// A link in a source that leads out of it.
    #[error("{} is {}", link.display(), link_words(target))]
    LinkLeadsOut {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A sample that cannot be indexed where it lies.
    #[error("{whence} cannot stay in place: {problem}")]
    NotInPlace {
        /// The sample and where it is.
        whence: String,
        /// Why, and what can be done.
        problem: String,
    },
    /// The destination is there already.
    #[error("{}", CLI.exists(path))]
    Exists {
        /// Destination.
        path: PathBuf,
    },
    /// The destination holds what no dataset holds, so it is not replaced.
    #[error(
        "{} is not replaced, since it is no dataset: it holds {entry}; choose another name",
        path.display()
    )]
    NotReplaced {
        /// Destination.
        path: PathBuf,
        /// A file in it, or what it is.
        entry: String,
    },
    /// The destination holds what the dataset does not, so it is not replaced.
    #[error(
        "{} is not replaced, since it holds {entry}, which the dataset does not; choose another \
         name",
        path.display()
    )]
    Foreign {
        /// Destination.
        path: PathBuf,
        /// A file or folder in it, or what it is.
        entry: String,
    },
    /// Samples that cannot be unpacked, where that is to be an error.
    #[error("{} of {checked} samples do not unpack; nothing was written:{}\n{remedy}",
            samples.len(), named(samples))]
    Damaged {
        /// All of them, by key.
        samples: Vec<LeftOut>,
        /// Samples looked at.
        checked: u64,
        /// What to do about them.
        remedy: String,
    },
    /// Samples that do not go from a source to a sink, where that is to be an error.
    #[error("{} of {checked} samples do not convert; nothing was written:{}\n{remedy}",
            samples.len(), named(samples))]
    Unconverted {
        /// All of them, by key or place.
        samples: Vec<LeftOut>,
        /// Samples looked at.
        checked: u64,
        /// What to do about them.
        remedy: String,
    },
    /// A column that a sink has no place for.
    #[error(
        "column `{column}` does not go into {sink}: {reason}; leave it out with --without {column}"
    )]
    Unheld {
        /// The sink, in words.
        sink: &'static str,
        /// The column.
        column: String,
        /// Why not.
        reason: String,
    },
    /// A column that is to be left out and is not there.
    #[error("no further column is called `{column}`; there are {}", listed(there))]
    NoColumn {
        /// The name that was given.
        column: String,
        /// The columns.
        there: Vec<String>,
    },
    /// Source and destination contain one another.
    #[error(
        "source {} and destination {} are one inside the other; choose a destination elsewhere",
        from.display(), to.display()
    )]
    Overlap {
        /// Source.
        from: PathBuf,
        /// Destination.
        to: PathBuf,
    },
    /// The dataset cannot be written.
    #[error("failed to write {}: {source}{}", path.display(), remedy(path, source))]
    Write {
        /// File or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A dataset that was not written to its end, and whose whole parts can be gone on with.
    #[error("{error}\n{}", CLI.kept(place, *parts))]
    Kept {
        /// What failed.
        error: Box<Error>,
        /// The folder that it wrote in.
        place: PathBuf,
        /// Parts that are whole, at least one.
        parts: u64,
    },
    /// An image that a dataset cannot hold.
    #[error(transparent)]
    Row(meetpoint_format::dataset::DatasetError),
    /// A limit of shards for a sink that writes none.
    #[error("{}", Words::CommandLine.shards_without_use(*sink))]
    ShardsWithoutUse {
        /// The sink.
        sink: crate::SinkKind,
    },
    /// A limit of a sample's bytes that a dataset cannot keep.
    #[error("{}", Words::CommandLine.sample_limit(*asked, *limit))]
    SampleLimit {
        /// What was asked for.
        asked: u64,
        /// The most that a dataset holds.
        limit: u64,
    },
    /// A source elsewhere.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// An error about a file that stands for an object elsewhere.
    #[error("{told}")]
    Elsewhere {
        /// What it says, with URLs in place of the paths.
        told: String,
        /// The error.
        error: Box<Error>,
    },
    /// More threads than a source is read by.
    #[error("{threads} threads are more than the {most} that read a source; ask for fewer")]
    TooManyThreads {
        /// Number that was asked for.
        threads: usize,
        /// Most that are started.
        most: usize,
    },
    /// The system did not start a thread.
    #[error(
        "failed to start thread {number} of {threads}: {source}; ask for fewer threads, or raise \
         the limits of processes and memory (ulimit -u, -v)"
    )]
    Thread {
        /// Which one, from 1.
        number: usize,
        /// Number that was asked for.
        threads: usize,
        /// Why.
        source: std::io::Error,
    },
    /// Stopped on request.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// Stopped on request, with whole parts that can be gone on with.
    #[error("interrupted; {}", CLI.kept(place, *parts))]
    Stopped {
        /// The folder that it wrote in.
        place: PathBuf,
        /// Parts that are whole, at least one.
        parts: u64,
    },
    /// An operation on datasets that cannot be done.
    #[error(transparent)]
    Operation(#[from] crate::operations::OperationError),
    /// A dataset that does not read.
    #[error(transparent)]
    Dataset(#[from] meetpoint_prepare::Error),
}

impl Error {
    /// What ended a transfer; being stopped is no failure of it.
    pub(crate) fn of_remote(error: RemoteError) -> Self {
        match error {
            RemoteError::Interrupted => Self::Interrupted,
            error => error.into(),
        }
    }
}

/// A name from a source as it is shown: its control characters escaped, since they would be orders
/// to a terminal or lines of their own, and of a very long one both ends.
pub fn printable(name: &str) -> String {
    let escaped = |letter: char| -> String {
        if letter.is_control() { letter.escape_default().collect() } else { letter.into() }
    };
    let letters = name.chars().count();
    if letters <= SHOWN_MAX {
        return name.chars().map(escaped).collect();
    }
    let begin: String = name.chars().take(SHOWN_MAX / 2).map(escaped).collect();
    let end: String = name.chars().skip(letters - SHOWN_MAX / 2).map(escaped).collect();
    format!("{begin}[{} more]{end}", letters - SHOWN_MAX / 2 * 2)
}

pub(crate) fn named(files: &[LeftOut]) -> String {
    let mut text: String = files.iter().take(NAMED_MAX).map(|file| format!("\n  {file}")).collect();
    if files.len() > NAMED_MAX {
        text.push_str(&format!("\n  and {} more", files.len() - NAMED_MAX));
    }
    text
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn read_remedy(source: &std::io::Error) -> String {
    use std::io::ErrorKind;
    if let Some(limit) = open_files_limit(source) {
        return format!("; {limit}");
    }
    let remedy = match source.kind() {
        ErrorKind::NotFound => "; is its name right, and is it still there?",
        ErrorKind::PermissionDenied => "; make it readable for you",
        _ => "",
    };
    remedy.to_owned()
}

/// The option that makes files of such a name smaller, where one does.
fn smaller(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "arrow" => Some("--part-size"),
        "tar" | "parquet" | "mds" | "tfrecord" => Some("--shard-size"),
        _ => None,
    }
}

fn remedy(path: &Path, source: &std::io::Error) -> String {
    use std::io::ErrorKind;
    if let Some(limit) = open_files_limit(source) {
        return format!("; {limit}");
    }
    let remedy = match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; a dataset is about as large as its images: free space or choose another place"
        }
        ErrorKind::FileTooLarge => {
            let or = |option| format!(", or let files be smaller with {option}");
            let smaller = smaller(path).map_or_else(String::new, or);
            return match getrlimit(Resource::Fsize).current {
                Some(most) => {
                    format!(", the limit is {} (ulimit -f); raise it{smaller}", show_bytes(most))
                }
                None => format!("; choose a file system that takes longer ones{smaller}"),
            };
        }
        ErrorKind::PermissionDenied => "; choose a place that you may write to",
        ErrorKind::ReadOnlyFilesystem => "; choose a place that can be written to",
        ErrorKind::NotFound => "; make the folder that it is to lie in first",
        _ => "",
    };
    remedy.to_owned()
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn names_give_no_orders_to_a_terminal() {
        assert_eq!(
            printable("c\u{1b}[31mX\u{7}\nerror: é.jpg"),
            "c\\u{1b}[31mX\\u{7}\\nerror: é.jpg"
        );
        let long = printable(&format!("begin{}end", "é".repeat(6000)));
        assert!(long.starts_with("beginé") && long.ends_with("éend") && long.len() < 900);
        assert!(long.contains("[5608 more]"));
    }
}
