//! What errors call the options that their remedies name: as on the command line, or in Python.

use crate::error::named;
use crate::source::size_and_limit;
use crate::{Error, LeftOut, SinkKind};
use std::path::Path;

/// Where a message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Options are `--force`.
    CommandLine,
    /// Options are `force=True`.
    Python,
}

/// An option that a remedy names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Force,
    Kind,
    Resume,
    OnErrorSkip,
}

impl Setting {
    fn spelled(self, words: Words) -> &'static str {
        match (self, words) {
            (Self::Force, Words::CommandLine) => "--force",
            (Self::Force, Words::Python) => "force=True",
            (Self::Kind, Words::CommandLine) => "--from",
            (Self::Kind, Words::Python) => "from_=",
            (Self::Resume, Words::CommandLine) => "--resume",
            (Self::Resume, Words::Python) => "resume=True",
            (Self::OnErrorSkip, Words::CommandLine) => "--on-error skip",
            (Self::OnErrorSkip, Words::Python) => "on_error=\"skip\"",
        }
    }
}

impl Error {
    /// The message in these words; `to_string` is in those of the command line.
    pub fn in_words(&self, words: Words) -> String {
        match self {
            Self::UnknownSource { path, looked_for } => words.unknown_source(path, looked_for),
            Self::AmbiguousSource { path, found } => words.ambiguous_source(path, found),
            Self::ResumeDiffers { path, difference } => words.resume_differs(path, difference),
            Self::Exists { path } => words.exists(path),
            Self::Kept { error, place, parts } => {
                format!("{}\n{}", error.in_words(words), words.kept(place, *parts))
            }
            Self::Stopped { place, parts } => format!("interrupted; {}", words.kept(place, *parts)),
            Self::Unreadable { files, checked } => words.unreadable(files, *checked),
            Self::OptionWithoutUse { option, source_words } => {
                words.option_without_use(option, source_words)
            }
            Self::ShardsWithoutUse { sink } => words.shards_without_use(*sink),
            Self::SampleLimit { asked, limit } => words.sample_limit(*asked, *limit),
            // These name no option.
            other => other.to_string(),
        }
    }
}

impl Words {
    pub(crate) fn unreadable(self, files: &[LeftOut], checked: u64) -> String {
        format!(
            "{} of {checked} samples do not read; nothing was written:{}\nrepair, rename or remove \
             them, or leave them out with {}",
            files.len(),
            named(files),
            Setting::OnErrorSkip.spelled(self)
        )
    }

    pub(crate) fn option_without_use(self, option: &str, source_words: &str) -> String {
        format!("{} means nothing for {source_words}; leave it out", self.option(option))
    }

    pub(crate) fn shards_without_use(self, sink: SinkKind) -> String {
        let to = match self {
            Self::CommandLine => format!("--to {}", sink.name()),
            Self::Python => format!("to={:?}", sink.name()),
        };
        let [size, samples] = ["shard-size", "shard-samples"].map(|name| self.option(name));
        format!("{size} and {samples} mean nothing for {to}; leave them out")
    }

    pub(crate) fn sample_limit(self, asked: u64, limit: u64) -> String {
        let (asked, limit) = size_and_limit(asked, limit);
        let convert = match self {
            Self::CommandLine => "`meetpoint convert`",
            Self::Python => "meetpoint.convert",
        };
        format!(
            "{} is {asked}, and a sample of a dataset has at most {limit}; {convert} takes longer \
             ones",
            self.option("sample-bytes-max")
        )
    }

    /// An option by its name on the command line without the dashes.
    pub(crate) fn option(self, name: &str) -> String {
        match self {
            Self::CommandLine => format!("--{name}"),
            Self::Python => name.replace('-', "_"),
        }
    }

    pub(crate) fn unknown_source(self, path: &Path, looked_for: &[(&str, &str)]) -> String {
        format!(
            "cannot determine the format of {}; looked for:{}\nname its kind with {}",
            path.display(),
            kinds(looked_for),
            Setting::Kind.spelled(self)
        )
    }

    pub(crate) fn ambiguous_source(self, path: &Path, found: &[(&str, &str, String)]) -> String {
        let lines: String =
            found.iter().map(|(name, what, by)| format!("\n  {name}: {what} ({by})")).collect();
        format!(
            "{} matches several kinds of source:{lines}\nchoose one with {}, or move the others \
             away",
            path.display(),
            Setting::Kind.spelled(self)
        )
    }

    pub(crate) fn resume_differs(self, path: &Path, difference: &str) -> String {
        format!(
            "cannot resume {}: {difference}; start over without {}, which removes it",
            path.display(),
            Setting::Resume.spelled(self)
        )
    }

    pub(crate) fn exists(self, path: &Path) -> String {
        let force = Setting::Force.spelled(self);
        format!("{} exists; choose another name or replace it with {force}", path.display())
    }

    pub(crate) fn kept(self, place: &Path, parts: u64) -> String {
        let parts = match parts {
            1 => "1 whole part is".to_owned(),
            _ => format!("{parts} whole parts are"),
        };
        let same = match self {
            Self::CommandLine => "command",
            Self::Python => "call",
        };
        format!(
            "{parts} kept in {}; the same {same} with {} resumes from there",
            place.display(),
            Setting::Resume.spelled(self)
        )
    }
}

/// Kinds of source and what they are, a line each.
pub(crate) fn kinds(kinds: &[(&str, &str)]) -> String {
    kinds.iter().map(|(name, what)| format!("\n  {name}: {what}")).collect()
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
}
