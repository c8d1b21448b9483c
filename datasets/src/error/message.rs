//! The words of errors.

use super::Error;
use crate::left_out::LeftOut;
use crate::message::Message;
use crate::printable::printable;
use crate::words::{Setting, Words};
use meetpoint_format::units::show_bytes;
use meetpoint_storage::open_files_limit;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// Unreadable files that an error names.
const NAMED_MAX: usize = 10;

impl Error {
    /// The message, with options as the command line or Python spells them; `to_string` is that of
    /// the command line.
    pub fn in_words(&self, words: Words) -> String {
        self.message(words).in_words(words)
    }

    /// The message; lists of samples within it are spelled for `words`.
    fn message(&self, words: Words) -> Message {
        let text = match self {
            Self::UnknownSource { path, looked_for } => {
                let looked_for = kinds(looked_for);
                return Message::from(format!(
                    "cannot determine the format of {}; looked for:{looked_for}\nname its kind \
                     with ",
                    path.display()
                )) + Setting::From;
            }
            Self::AmbiguousSource { path, found } => {
                let line =
                    |(name, what, by): &(&str, &str, String)| format!("\n  {name}: {what} ({by})");
                let lines: String = found.iter().map(line).collect();
                return Message::from(format!(
                    "{} matches several kinds of source:{lines}\nchoose one with ",
                    path.display()
                )) + Setting::From
                    + ", or move the others away";
            }
            Self::ResumeDiffers { path, difference } => {
                return Message::from(format!(
                    "cannot resume {}: {difference}; start over without ",
                    path.display()
                )) + Setting::Resume
                    + ", which removes it";
            }
            Self::Malformed { whence, problem } => {
                return Message::from(format!("{whence}: ")) + problem.clone();
            }
            Self::OverBudget { whence, over } => {
                return Message::from(format!("{whence}: ")) + over.message();
            }
            Self::OptionWithoutUse { option, value, source_words } => {
                let option = match value {
                    None => Message::default().name(*option),
                    Some(value) => Message::default().set_to(*option, *value),
                };
                return option + format!(" means nothing for {source_words}; leave it out");
            }
            Self::NoImages { path, others } => {
                return Message::from(format!(
                    "no images in {} ({others} other files); expected JPEG, PNG, WebP, BMP, GIF \
                     or TIFF, flat or in one sub-folder per class: name the folder or file that \
                     has them, or name the kind of its files with ",
                    path.display()
                )) + Setting::Kind;
            }
            Self::Unreadable { files, checked } => {
                return Message::from(format!(
                    "{} of {checked} samples do not read; nothing was written:{}\nrepair, rename \
                     or remove them, or leave them out with ",
                    files.len(),
                    named(files, words)
                ))
                .set_to(Setting::OnError, "skip");
            }
            Self::LinkLeadsOut { link, target } => {
                return Message::from(format!("{} is ", link.display())) + link_leads_out(target);
            }
            Self::NotInPlace { whence, problem } => {
                return Message::from(format!("{whence} cannot stay in place: ")) + problem.clone();
            }
            Self::Exists { path } => {
                return Message::from(format!(
                    "{} exists; choose another name or replace it with ",
                    path.display()
                )) + Setting::Force;
            }
            Self::Damaged { samples, checked, remedy } => {
                return Message::from(format!(
                    "{} of {checked} samples do not unpack; nothing was written:{}\n",
                    samples.len(),
                    named(samples, words)
                )) + remedy.clone();
            }
            Self::Unconverted { samples, checked, remedy } => {
                return Message::from(format!(
                    "{} of {checked} samples do not convert; nothing was written:{}\n",
                    samples.len(),
                    named(samples, words)
                )) + remedy.clone();
            }
            Self::Unheld { sink, column, reason } => {
                return Message::from(format!(
                    "column `{column}` does not go into {sink}: {reason}; leave it out with "
                ))
                .set_to(Setting::Without, column);
            }
            Self::Write { path, source } => {
                return Message::from(format!("failed to write {}: {source}", path.display()))
                    + write_remedy(path, source);
            }
            Self::Kept { error, place, parts } => {
                return error.message(words) + "\n" + retained(place, *parts);
            }
            Self::ShardsWithoutUse { sink } => {
                let size = Message::default().name(Setting::ShardSize) + " and ";
                return size.name(Setting::ShardSamples)
                    + Message::from(" mean nothing for ").set_to(Setting::To, sink.name())
                    + "; leave them out";
            }
            Self::SampleLimit { asked, limit } => {
                let (asked, limit) = size_and_limit(*asked, *limit);
                let limit = Message::default().name(Setting::SampleBytesMax)
                    + format!(" is {asked}, and a sample of a dataset has at most {limit}; ");
                return limit.either("`meetpoint convert`", "meetpoint.convert")
                    + " supports longer ones";
            }
            Self::Remote(error) => return error.message(),
            Self::Stopped { place, parts } => {
                return Message::from("interrupted; ") + retained(place, *parts);
            }
            Self::Operation(error) => return error.message(),
            Self::Source { path, source } => {
                format!("failed to read {}: {source}{}", path.display(), read_remedy(source))
            }
            Self::NotAFolder { path } => {
                format!("{} is no folder; name the folder that holds the images", path.display())
            }
            Self::NoSuchKind { name, kinds: known } => {
                format!("unknown kind of source {name:?}; choose one of:{}", kinds(known))
            }
            Self::NoFilesOfKind { path, kind, others } => {
                format!("no files of kind {kind:?} in {} ({others} other files)", path.display())
            }
            Self::NoSamples { path } => {
                format!("no samples in {}; name a source that has some", path.display())
            }
            Self::DuplicateKey { key, first, second } => {
                let first = first.as_ref().map_or("an earlier one".to_owned(), |w| w.to_string());
                format!(
                    "two samples have the key {:?}: {first} and {second}; keys are unique in a \
                     dataset, so rename or remove one",
                    printable(key)
                )
            }
            Self::LabelWithoutName { key, label, names } => format!(
                "sample {key} has the label {label}, but there are {names} names of labels \
                 (labels without names are 0 to 1048575)"
            ),
            Self::InUse { destination, place } => format!(
                "{} is being written by another process, in {}; wait for it or stop it",
                destination.display(),
                place.display()
            ),
            Self::ResumeForeign { path, entry } => format!(
                "cannot resume {}: it contains {entry}, which Meetpoint did not write; move that \
                 away, or move the whole folder away to start over",
                path.display()
            ),
            Self::MixedLayout { path, file, folder } => format!(
                "{} has images at the top ({file}) and in sub-folders ({folder}); move the first \
                 into a class sub-folder, or pack the sub-folders apart",
                path.display()
            ),
            Self::EmptyClass { path, class } => format!(
                "class sub-folder {class} of {} has no images; remove it or fill it, since its \
                 index among the labels would be unused",
                path.display()
            ),
            Self::SourceChanged { path } => format!(
                "{} changed while it was read; pack again when nothing writes to it",
                path.display()
            ),
            Self::NotReplaced { path, entry } => format!(
                "{} is not replaced: it is not a dataset, as it holds {entry}; choose another name",
                path.display()
            ),
            Self::Foreign { path, entry } => format!(
                "{} is not replaced, since it holds {entry}, which the dataset does not; choose \
                 another name",
                path.display()
            ),
            Self::NoColumn { column, there } => {
                format!("no further column is called `{column}`; there are {}", listed(there))
            }
            Self::Overlap { from, to } => format!(
                "source {} and destination {} are one inside the other; choose a destination \
                 elsewhere",
                from.display(),
                to.display()
            ),
            Self::TooManyThreads { threads, most } => format!(
                "{threads} threads are more than the {most} that read a source; ask for fewer"
            ),
            Self::Thread { number, threads, source } => format!(
                "failed to start thread {number} of {threads}: {source}; ask for fewer threads, \
                 or raise the limits of processes and memory (ulimit -u, -v)"
            ),
            Self::Interrupted => "interrupted; nothing was written".to_owned(),
            Self::Row(error) => error.to_string(),
            Self::Elsewhere { told, .. } => told.clone(),
            Self::Dataset(error) => error.to_string(),
        };
        text.into()
    }
}

/// As on the command line.
impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.in_words(Words::CommandLine))
    }
}

/// Why a link that leads out of a source is not followed, and what to do.
pub(crate) fn link_leads_out(target: &Path) -> Message {
    Message::from(format!(
        "a link to {}, outside of the source; replace the link with its target, or allow such \
         links with ",
        target.display()
    )) + Setting::FollowLinks
}

/// A size and the limit below it; exact where they would read the same with a unit.
pub(crate) fn size_and_limit(bytes: u64, limit: u64) -> (String, String) {
    let (size, most) = (show_bytes(bytes), show_bytes(limit));
    // A fraction that is rounded away leaves "256.0 MiB" of what is one byte more than 256 MiB.
    if size.replace(".0 ", " ") == most.replace(".0 ", " ") {
        return (format!("{bytes} bytes"), format!("{limit} bytes"));
    }
    (size, most)
}

/// Kinds of source and what they are, a line each.
fn kinds(kinds: &[(&str, &str)]) -> String {
    kinds.iter().map(|(name, what)| format!("\n  {name}: {what}")).collect()
}

/// The parts that remain, and how to resume.
fn retained(place: &Path, parts: u64) -> Message {
    let parts = match parts {
        1 => "1 complete part is".to_owned(),
        _ => format!("{parts} complete parts are"),
    };
    Message::from(format!("{parts} retained in {}; the same ", place.display()))
        .either("command", "call")
        + " with "
        + Setting::Resume
        + " resumes from there"
}

fn named(files: &[LeftOut], words: Words) -> String {
    let lines = files.iter().take(NAMED_MAX);
    let mut text: String = lines.map(|file| format!("\n  {}", file.in_words(words))).collect();
    if files.len() > NAMED_MAX {
        text.push_str(&format!("\n  and {} more", files.len() - NAMED_MAX));
    }
    text
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn read_remedy(source: &std::io::Error) -> String {
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
fn smaller(path: &Path) -> Option<Setting> {
    match path.extension()?.to_str()? {
        "arrow" => Some(Setting::PartSize),
        "tar" | "parquet" | "mds" | "tfrecord" => Some(Setting::ShardSize),
        _ => None,
    }
}

fn write_remedy(path: &Path, source: &std::io::Error) -> Message {
    if let Some(limit) = open_files_limit(source) {
        return format!("; {limit}").into();
    }
    let remedy = match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; a dataset is about as large as its images: free space or choose another folder"
        }
        ErrorKind::FileTooLarge => {
            let or = |option: Setting| Message::from(", or make the files smaller with ") + option;
            let smaller = smaller(path).map_or_else(Message::default, or);
            let limit = match getrlimit(Resource::Fsize).current {
                Some(most) => {
                    format!(", the limit is {} (ulimit -f); raise it", show_bytes(most))
                }
                None => "; choose a file system that supports longer ones".to_owned(),
            };
            return Message::from(limit) + smaller;
        }
        ErrorKind::PermissionDenied => "; choose a folder that you may write to",
        ErrorKind::ReadOnlyFilesystem => "; choose a folder that can be written to",
        ErrorKind::NotFound => "; create its parent folder first",
        _ => "",
    };
    remedy.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_spelled_as_where_the_message_is_read() {
        let exists = || Error::Exists { path: "a.set".into() };
        assert_eq!(exists().in_words(Words::CommandLine), exists().to_string());
        assert!(exists().in_words(Words::Python).ends_with("force=True"));
        let unused = Error::ShardsWithoutUse { sink: crate::SinkKind::Folder };
        assert_eq!(
            unused.in_words(Words::Python),
            "shard_size and shard_samples mean nothing for to=\"folder\"; leave them out"
        );
        let kept = Error::Kept { error: Box::new(exists()), place: "here".into(), parts: 2 };
        assert_eq!(kept.in_words(Words::CommandLine), kept.to_string());
        let said = kept.in_words(Words::Python);
        assert!(said.contains("force=True") && said.contains("resume=True"), "{said}");
    }

    #[test]
    fn options_within_problems_and_reasons_are_spelled_too() {
        let reason = Message::from("longer than the limit (") + Setting::SampleBytesMax + ")";
        let files = vec![LeftOut { path: "a.jpg".into(), reason }];
        let unreadable = Error::Unreadable { files, checked: 1 };
        let malformed = Error::Malformed {
            whence: Box::default(),
            problem: Message::from("no column `x` (") + Setting::Label + ")",
        };
        for (error, shell, python) in [
            (&unreadable, "(--sample-bytes-max)", "(sample_bytes_max=)"),
            (&unreadable, "--on-error skip", "on_error=\"skip\""),
            (&malformed, "(--label)", "(label=)"),
        ] {
            assert!(error.to_string().contains(shell), "{error}");
            let said = error.in_words(Words::Python);
            assert!(said.contains(python) && !said.contains("--"), "{said}");
        }
    }

    #[test]
    fn a_size_and_its_limit_never_read_the_same() {
        let words = |bytes, limit| {
            let (size, most) = size_and_limit(bytes, limit);
            format!("{size} of {most}")
        };
        assert_eq!(words(300 << 20, 256 << 20), "300 MiB of 256 MiB");
        assert_eq!(words(60_000, 50_000), "58.6 KiB of 48.8 KiB");
        assert_eq!(words((256 << 20) + 1, 256 << 20), "268435457 bytes of 268435456 bytes");
        assert_eq!(words(900, 899), "900 bytes of 899 bytes");
    }
}
