//! The messages of errors, without their remedies.

use super::Error;
use crate::left_out::LeftOut;
use crate::message::Message;
use meetpoint_diagnose::{Change, Remedy, Setting, Surface, printable, shown};
use meetpoint_format::units::show_bytes;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// Unreadable files that an error names.
const NAMED_MAX: usize = 10;

impl Error {
    /// The message without the remedy, with options spelled for the command line or Python;
    /// `to_string` spells them for the command line.
    pub fn in_words(&self, surface: Surface) -> String {
        self.text(surface).in_words(surface)
    }

    /// The message; lists of samples within it are spelled for `surface`.
    fn text(&self, surface: Surface) -> Message {
        let text = match self {
            Self::UnknownSource { path, looked_for } => format!(
                "cannot determine the format of {}; looked for:{}",
                shown(path),
                kinds(looked_for)
            ),
            Self::AmbiguousSource { path, found } => {
                let line =
                    |(name, what, by): &(&str, &str, String)| format!("\n  {name}: {what} ({by})");
                let lines: String = found.iter().map(line).collect();
                format!("{} matches several kinds of source:{lines}", shown(path))
            }
            Self::ResumeDiffers { path, difference } => {
                return Message::from(format!("cannot resume {}: ", shown(path)))
                    + difference.message();
            }
            Self::Malformed { origin, problem } => {
                return Message::from(format!("{origin}: ")) + problem.clone();
            }
            Self::OverBudget { origin, over } => {
                return Message::from(format!("{origin}: ")) + over.message();
            }
            Self::OptionWithoutUse { option, value, source_words } => {
                let option = match value {
                    None => Message::default().name(*option),
                    Some(value) => Message::default().set_to(*option, *value),
                };
                return option + format!(" does not apply to {source_words}");
            }
            Self::NoImages { path, others } => format!(
                "no images in {} ({others} other files); expected JPEG, PNG, WebP, BMP, GIF or \
                 TIFF, flat or in one sub-folder per class",
                shown(path)
            ),
            Self::Unreadable { files, checked } => format!(
                "{} of {checked} samples cannot be read; nothing was written:{}",
                files.len(),
                named(files, surface)
            ),
            Self::LinkLeadsOut { link, target } => {
                return Message::from(format!("{} is ", shown(link))) + link_leads_out(target);
            }
            Self::NotInPlace { origin, problem } => {
                return Message::from(format!("{origin} cannot stay in place: ")) + problem.clone();
            }
            Self::Exists { path } => format!("{} exists", shown(path)),
            Self::Damaged { samples, checked, .. } => format!(
                "{} of {checked} samples cannot be unpacked; nothing was written:{}",
                samples.len(),
                named(samples, surface)
            ),
            Self::Unconverted { samples, checked, .. } => format!(
                "{} of {checked} samples cannot be converted; nothing was written:{}",
                samples.len(),
                named(samples, surface)
            ),
            Self::Unheld { sink, column, reason } => {
                format!("column `{column}` cannot be stored in {sink}: {reason}")
            }
            Self::Write { path, source } => {
                format!("failed to write {}: {source}{}", shown(path), file_size_limit(source))
            }
            Self::Kept { error, place, parts } => {
                return error.text(surface) + "\n" + retained(place, *parts);
            }
            Self::PreparedArrays { path, sink } => format!(
                "the samples of {} are prepared arrays, and {} cannot store their type and \
                 shape",
                shown(path),
                sink.name()
            ),
            Self::ShardsWithoutUse { sink } => {
                let size = Message::default().name(Setting::ShardSize) + " and ";
                return size.name(Setting::ShardSamples)
                    + Message::from(" mean nothing for ").set_to(Setting::To, sink.name());
            }
            Self::SampleLimit { asked, limit } => {
                let (asked, limit) = size_and_limit(*asked, *limit);
                return Message::default().name(Setting::SampleBytesMax)
                    + format!(" is {asked}, and a sample of a dataset has at most {limit}");
            }
            Self::Remote(error) => return error.message(),
            Self::Stopped { place, parts } => format!("interrupted; {}", retained(place, *parts)),
            Self::Operation(error) => return error.message(),
            Self::Shards(error) => return error.message(),
            Self::Source { path, source } => {
                format!("failed to read {}: {source}", shown(path))
            }
            Self::NotAFolder { path } => format!("{} is not a folder", shown(path)),
            Self::NoSuchKind { name, kinds: known } => {
                format!("unknown kind of source {name:?}; known are:{}", kinds(known))
            }
            Self::NoFilesOfKind { path, kind, others } => {
                let kind = kind.name();
                format!("no files of kind {kind} in {} ({others} other files)", shown(path))
            }
            Self::NoSamples { path } => format!("no samples in {}", shown(path)),
            Self::DuplicateKey { key, first, second } => {
                let first = first.as_ref().map_or("an earlier one".to_owned(), |w| w.to_string());
                format!(
                    "two samples have the key {:?}, and keys are unique in a dataset: {first} and \
                     {second}",
                    printable(key)
                )
            }
            Self::LabelWithoutName { key, label, names } => {
                format!("sample {key} has the label {label}, but there are {names} names of labels")
            }
            Self::InUse { destination, place } => format!(
                "{} is being written by another process, in {}",
                shown(destination),
                shown(place)
            ),
            Self::ResumeForeign { path, entry } => format!(
                "cannot resume {}: it contains {entry}, which Meetpoint did not write",
                shown(path)
            ),
            Self::MixedLayout { path, file, folder } => format!(
                "{} has images at the top ({file}) and in sub-folders ({folder})",
                shown(path)
            ),
            Self::EmptyClass { path, class } => format!(
                "class sub-folder {class} of {} has no images, so that its index among the labels \
                 would be unused",
                shown(path)
            ),
            Self::SourceChanged { path } => {
                format!("{} changed while it was read", shown(path))
            }
            Self::NotReplaced { path, entry } => format!(
                "{} is not replaced: it is not a dataset, because it contains {entry}",
                shown(path)
            ),
            Self::Foreign { path, entry } => format!(
                "{} is not replaced: it contains {entry}, which is not in the dataset",
                shown(path)
            ),
            Self::NoColumn { column, .. } => format!("no further column is called `{column}`"),
            Self::Overlap { from, to } => format!(
                "one of source {} and destination {} contains the other",
                shown(from),
                shown(to)
            ),
            Self::Epoch { value } => {
                format!("SOURCE_DATE_EPOCH is {value:?}, not a number of seconds since 1970")
            }
            Self::TooManyThreads { threads, most } => {
                format!("{threads} threads exceed the limit of {most} for reading a source")
            }
            Self::Thread { number, threads, source } => {
                format!("failed to start thread {number} of {threads}: {source}")
            }
            Self::Interrupted => "interrupted; nothing was written".to_owned(),
            Self::Row(error) => error.to_string(),
            Self::Dataset(error) => error.to_string(),
        };
        text.into()
    }
}

/// As on the command line.
impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.in_words(Surface::CommandLine))
    }
}

/// Why a link that leads out of a source is not followed, and what to do.
pub(crate) fn link_leads_out(target: &Path) -> Message {
    let remedy = Remedy::advice("replace the link with its target");
    Message::from(format!("a link to {}, outside of the source", shown(target)))
        .remedy(remedy.or_by("allow such links", Setting::FollowLinks, Change::On))
}

/// A size and the limit that it exceeds; in exact bytes if they would look the same in larger
/// units.
pub(crate) fn size_and_limit(bytes: u64, limit: u64) -> (String, String) {
    let (size, most) = (show_bytes(bytes), show_bytes(limit));
    // Rounding would print "256.0 MiB" for one byte more than 256 MiB.
    if size.replace(".0 ", " ") == most.replace(".0 ", " ") {
        return (format!("{bytes} bytes"), format!("{limit} bytes"));
    }
    (size, most)
}

/// Names and descriptions of source kinds, one per line.
fn kinds(kinds: &[(&str, &str)]) -> String {
    kinds.iter().map(|(name, what)| format!("\n  {name}: {what}")).collect()
}

/// Reports the retained parts.
fn retained(place: &Path, parts: u64) -> String {
    let parts = match parts {
        1 => "1 complete part is".to_owned(),
        _ => format!("{parts} complete parts are"),
    };
    format!("{parts} retained in {}", shown(place))
}

fn named(files: &[LeftOut], surface: Surface) -> String {
    let lines = files.iter().take(NAMED_MAX);
    let mut text: String = lines.map(|file| format!("\n  {}", file.in_words(surface))).collect();
    if files.len() > NAMED_MAX {
        text.push_str(&format!("\n  and {} more", files.len() - NAMED_MAX));
    }
    text
}

/// The file size limit, if the error reports that it was reached and the limit is known.
fn file_size_limit(source: &std::io::Error) -> String {
    let limit =
        getrlimit(Resource::Fsize).current.filter(|_| source.kind() == ErrorKind::FileTooLarge);
    limit.map_or_else(String::new, |most| format!(", the limit is {}", show_bytes(most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_diagnose::Diagnose;

    #[test]
    fn an_option_has_the_spelling_of_its_surface() {
        let exists = || Error::Exists { path: "a.set".into() };
        assert!(exists().in_full(Surface::CommandLine).ends_with("replace it with --force"));
        assert!(exists().in_full(Surface::Python).ends_with("replace it with force=True"));
        let unused = Error::ShardsWithoutUse { sink: crate::SinkKind::Folder };
        assert_eq!(
            unused.in_words(Surface::Python),
            "shard_size and shard_samples mean nothing for to=\"folder\""
        );
        assert!(unused.to_string().contains("--shard-size"), "{unused}");
        let kept = Error::Kept { error: Box::new(exists()), place: "here".into(), parts: 2 };
        assert_eq!(kept.cause(), exists().cause());
        let said = kept.in_full(Surface::Python);
        assert!(said.contains("force=True") && said.contains("resume=True"), "{said}");
    }

    #[test]
    fn options_within_problems_and_reasons_are_spelled_too() {
        let reason = Message::from("longer than the limit (") + Setting::SampleBytesMax + ")";
        let files = vec![LeftOut { path: "a.jpg".into(), reason }];
        let unreadable = Error::Unreadable { files, checked: 1 };
        let malformed = Error::Malformed {
            origin: Box::default(),
            problem: Message::from("no column `x` (") + Setting::Label + ")",
        };
        for (error, shell, python) in [
            (&unreadable, "(--sample-bytes-max)", "(sample_bytes_max=)"),
            (&unreadable, "--on-error skip", "on_error=\"skip\""),
            (&malformed, "(--label)", "(label=)"),
        ] {
            let said = error.in_full(Surface::CommandLine);
            assert!(said.contains(shell), "{said}");
            let said = error.in_full(Surface::Python);
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
