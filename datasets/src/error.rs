//! What can go wrong when a dataset is made or looked at.

use crate::LeftOut;
use crate::source::Whence;
use std::path::PathBuf;

/// How many unreadable files an error names.
const NAMED_MAX: usize = 10;

/// A folder that does not become a dataset, or a dataset that does not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source does not read.
    #[error("failed to read {}: {source}", path.display())]
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
    /// An option that means nothing for this source or its kind of content.
    #[error("--{option} means nothing for {source_words}; leave it out")]
    OptionWithoutUse {
        /// Its name, without the dashes.
        option: String,
        /// What the source is, in words: "a folder of images".
        source_words: String,
    },
    /// No image in the source.
    #[error(
        "no images in {} ({others} other files); expected JPEG, PNG, WebP, BMP, GIF or TIFF, flat \
         or in one sub-folder a class",
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
    #[error("{} of {checked} images do not read; nothing was written:{}\
             \nrepair, rename or remove them, or leave them out with --on-error skip",
            files.len(), named(files))]
    Unreadable {
        /// All of them.
        files: Vec<LeftOut>,
        /// Images looked at.
        checked: u64,
    },
    /// A file that was written to while it was packed.
    #[error("{} changed while it was read; pack again when nothing writes to it", path.display())]
    SourceChanged {
        /// File.
        path: PathBuf,
    },
    /// The destination is there already.
    #[error("{} exists; choose another name or replace it with --force", path.display())]
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
    #[error("{} of {checked} samples do not unpack; nothing was written:{}\
             \nrestore the dataset, or leave them out with --on-error skip",
            samples.len(), named(samples))]
    Damaged {
        /// All of them, by key.
        samples: Vec<LeftOut>,
        /// Samples looked at.
        checked: u64,
    },
    /// Samples that do not go from a source to a sink, where that is to be an error.
    #[error("{} of {checked} samples do not convert; nothing was written:{}\
             \nrepair them, or leave them out with --on-error skip",
            samples.len(), named(samples))]
    Unconverted {
        /// All of them, by key or place.
        samples: Vec<LeftOut>,
        /// Samples looked at.
        checked: u64,
    },
    /// A source without samples.
    #[error("no samples in {}", path.display())]
    NoSamples {
        /// Source.
        path: PathBuf,
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
    #[error("failed to write {}: {source}{}", path.display(), remedy(source))]
    Write {
        /// File or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// An image that a dataset cannot hold.
    #[error(transparent)]
    Row(meetpoint_format::dataset::DatasetError),
    /// Stopped on request.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// A dataset that does not read.
    #[error(transparent)]
    Dataset(#[from] meetpoint_prepare::Error),
}

fn named(files: &[LeftOut]) -> String {
    let mut text: String = files
        .iter()
        .take(NAMED_MAX)
        .map(|file| format!("\n  {}: {}", file.path, file.reason))
        .collect();
    if files.len() > NAMED_MAX {
        text.push_str(&format!("\n  and {} more", files.len() - NAMED_MAX));
    }
    text
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn remedy(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; a dataset is about as large as its images: free space or choose another place"
        }
        ErrorKind::PermissionDenied => "; choose a place that you may write to",
        ErrorKind::ReadOnlyFilesystem => "; choose a place that can be written to",
        ErrorKind::NotFound => "; make the folder that it is to lie in first",
        _ => "",
    }
}
