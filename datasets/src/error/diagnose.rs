//! Causes and remedies of errors.

use super::{DIGIT_LABELS_MAX, Error, link_leads_out};
use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting, Surface, known, nearest};
use meetpoint_format::units::show_bytes;
use meetpoint_storage::open_files_limit;
use rustix::process::{Resource, getrlimit};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Introduces the command that resumes an interrupted one.
const RESUME: &str = "to resume from there, repeat this";

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Kept { error, .. } => error.cause(),
            Self::Row(source) => source.cause(),
            Self::Dataset(source) => source.cause(),
            Self::Operation(error) => error.cause(),
            Self::Shards(error) => error.cause(),
            Self::Source { .. } => "source_unreadable",
            Self::NotAFolder { .. } => "not_a_folder",
            Self::UnknownSource { .. } => "unknown_source",
            Self::AmbiguousSource { .. } => "ambiguous_source",
            Self::NoSuchKind { .. } => "no_such_kind",
            Self::NoFilesOfKind { .. } => "no_files_of_kind",
            Self::NoSamples { .. } => "no_samples",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::LabelWithoutName { .. } => "label_without_name",
            Self::ResumeDiffers { .. } => "resume_differs",
            Self::InUse { .. } => "in_use",
            Self::ResumeForeign { .. } => "resume_foreign",
            Self::Malformed { .. } => "malformed",
            Self::OverBudget { .. } => "over_budget",
            Self::OptionWithoutUse { .. } => "option_without_use",
            Self::NoImages { .. } => "no_images",
            Self::MixedLayout { .. } => "mixed_layout",
            Self::EmptyClass { .. } => "empty_class",
            Self::Unreadable { .. } => "unreadable",
            Self::SourceChanged { .. } => "source_changed",
            Self::LinkLeadsOut { .. } => "link_leads_out",
            Self::NotInPlace { .. } => "not_in_place",
            Self::Exists { .. } => "exists",
            Self::NotReplaced { .. } => "not_replaced",
            Self::Foreign { .. } => "foreign",
            Self::Damaged { .. } => "damaged",
            Self::Unconverted { .. } => "unconverted",
            Self::Unheld { .. } => "unheld",
            Self::NoColumn { .. } => "no_column",
            Self::Overlap { .. } => "overlap",
            Self::Write { .. } => "not_written",
            Self::PreparedArrays { .. } => "prepared_arrays",
            Self::ShardsWithoutUse { .. } => "shards_without_use",
            Self::SampleLimit { .. } => "sample_limit",
            Self::Remote(error) => error.cause(),
            Self::Epoch { .. } => "source_date_epoch",
            Self::TooManyThreads { .. } => "too_many_threads",
            Self::Thread { .. } => "thread",
            Self::Interrupted => "interrupted",
            Self::Stopped { .. } => "stopped",
        }
    }

    fn message(&self, surface: Surface) -> String {
        self.in_words(surface)
    }

    fn remedy(&self) -> Option<Remedy> {
        let restore = || Remedy::advice("repair the source").or("fetch it again");
        Some(match self {
            Self::Kept { error, .. } => match error.remedy() {
                Some(remedy) => remedy.or_by(RESUME, Setting::Resume, Change::On),
                None => Remedy::by(RESUME, Setting::Resume, Change::On),
            },
            Self::Row(source) => return source.remedy(),
            Self::Dataset(source) => return source.remedy(),
            Self::Operation(source) => return source.remedy(),
            Self::Shards(error) => return error.remedy(),
            Self::Remote(source) => return source.remedy(),
            Self::Source { source, .. } => return read_remedy(source),
            Self::Write { path, source } => return write_remedy(path, source),
            Self::NotAFolder { .. } => "name the folder that holds the images".into(),
            Self::UnknownSource { .. } => Remedy::by("name its kind", Setting::From, Change::Other),
            Self::AmbiguousSource { .. } => {
                Remedy::by("choose one", Setting::From, Change::Other).or("move the others away")
            }
            Self::NoSuchKind { name, kinds } => {
                let known: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
                match nearest(name, &known) {
                    Some(near) => {
                        let meant = Change::To(near.to_owned());
                        Remedy::by("choose the intended one", Setting::From, meant)
                    }
                    None => Remedy::by("choose one of them", Setting::From, Change::Other),
                }
            }
            Self::NoFilesOfKind { .. } => {
                Remedy::by("name the kind of its files", Setting::Kind, Change::Other)
                    .or("name another source")
            }
            Self::NoSamples { .. } => "name a source that has samples".into(),
            Self::DuplicateKey { .. } => "rename or remove one of them".into(),
            Self::LabelWithoutName { names: 0, .. } => {
                format!("use labels from 0 to {}", DIGIT_LABELS_MAX - 1).into()
            }
            Self::LabelWithoutName { names, .. } => {
                Remedy::advice(format!("use labels from 0 to {}", names - 1))
                    .or("give every label a name")
            }
            Self::ResumeDiffers { .. } => {
                Remedy::by("remove it and start over", Setting::Resume, Change::Off)
            }
            Self::InUse { .. } => Remedy::advice("wait for it").or("stop it"),
            Self::ResumeForeign { .. } => {
                Remedy::advice("move that away").or("move the whole folder away to start over")
            }
            Self::Malformed { problem, .. } => problem.advice().cloned().unwrap_or_else(restore),
            Self::OverBudget { over, .. } => return over.message().advice().cloned(),
            Self::OptionWithoutUse { option, .. } => Remedy::set(*option, Change::Off),
            Self::NoImages { .. } => Remedy::advice("name the folder or file that has them").or_by(
                "name the kind of its files",
                Setting::Kind,
                Change::Other,
            ),
            Self::MixedLayout { .. } => Remedy::advice("move the first into a class sub-folder")
                .or("pack the sub-folders separately"),
            Self::EmptyClass { .. } => Remedy::advice("remove it").or("fill it"),
            Self::Unreadable { .. } => Remedy::advice("repair, rename or remove them").or_by(
                "leave them out",
                Setting::OnError,
                Change::To("skip".to_owned()),
            ),
            Self::SourceChanged { .. } => "pack again when no program writes to it".into(),
            Self::LinkLeadsOut { target, .. } => {
                return link_leads_out(target).advice().cloned();
            }
            Self::NotInPlace { problem, .. } => {
                problem.advice().cloned().unwrap_or_else(|| Remedy::run(Command::Pack))
            }
            Self::Exists { .. } => Remedy::advice("choose another name").or_by(
                "replace it",
                Setting::Force,
                Change::On,
            ),
            Self::NotReplaced { .. } | Self::Foreign { .. } => "choose another name".into(),
            Self::Damaged { remedy, .. } | Self::Unconverted { remedy, .. } => remedy.clone(),
            Self::Unheld { column, .. } => {
                Remedy::by("leave it out", Setting::Without, Change::To(column.clone()))
            }
            Self::NoColumn { there, .. } if there.is_empty() => {
                Remedy::set(Setting::Without, Change::Off)
            }
            Self::NoColumn { column, there } => {
                let there: Vec<&str> = there.iter().map(String::as_str).collect();
                known(column, &there).into()
            }
            Self::Overlap { .. } => "choose a destination elsewhere".into(),
            Self::PreparedArrays { .. } => {
                Remedy::advice("export the dataset that it was prepared from")
                    .or("load it with the recipe that it was prepared for")
            }
            Self::ShardsWithoutUse { .. } => "leave them out".into(),
            Self::SampleLimit { limit, .. } => {
                Remedy::set(Setting::SampleBytesMax, Change::AtMost(show_bytes(*limit)))
                    .or_run(Command::Convert)
            }
            Self::Epoch { .. } => "correct it, or unset it".into(),
            Self::TooManyThreads { most, .. } => {
                Remedy::set(Setting::Threads, Change::AtMost(most.to_string()))
            }
            Self::Thread { .. } => Remedy::set(Setting::Threads, Change::Lower)
                .or("raise the limits of processes and memory (ulimit -u, -v)"),
            Self::Interrupted => return None,
            Self::Stopped { .. } => Remedy::by(RESUME, Setting::Resume, Change::On),
        })
    }
}

fn read_remedy(source: &io::Error) -> Option<Remedy> {
    if let Some(limit) = open_files_limit(source) {
        return Some(limit.into());
    }
    match source.kind() {
        ErrorKind::NotFound => Some(Remedy::advice("correct the name").or("put the file back")),
        ErrorKind::PermissionDenied => Some("make it readable for you".into()),
        _ => None,
    }
}

/// The option that limits the size of files with this name, if there is one.
fn smaller(path: &Path) -> Option<Setting> {
    match path.extension()?.to_str()? {
        "arrow" => Some(Setting::PartSize),
        "tar" | "parquet" | "mds" | "tfrecord" => Some(Setting::ShardSize),
        _ => None,
    }
}

fn write_remedy(path: &Path, source: &io::Error) -> Option<Remedy> {
    if let Some(limit) = open_files_limit(source) {
        return Some(limit.into());
    }
    Some(match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Remedy::advice("free about as much space as the images take")
                .or("choose another folder")
        }
        ErrorKind::FileTooLarge => {
            let limit = match getrlimit(Resource::Fsize).current {
                Some(_) => "raise the limit (ulimit -f)",
                None => "choose a file system that supports longer files",
            };
            let remedy = Remedy::advice(limit);
            match smaller(path) {
                Some(option) => remedy.or_by("make the files smaller", option, Change::Other),
                None => remedy,
            }
        }
        ErrorKind::PermissionDenied => "choose a folder that you may write to".into(),
        ErrorKind::ReadOnlyFilesystem => "choose a folder that can be written to".into(),
        ErrorKind::NotFound => "create its parent folder first".into(),
        _ => return None,
    })
}
