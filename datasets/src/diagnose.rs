//! Causes and remedies of operations on datasets.

use crate::Error;
use meetpoint_diagnose::{Diagnose, Remedy};

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Kept { error, .. } => error.cause(),
            Self::Row(source) => source.cause(),
            Self::Dataset(source) => source.cause(),
            Self::Operation(_) => "dataset_operation",
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
            Self::ShardsWithoutUse { .. } => "shards_without_use",
            Self::SampleLimit { .. } => "sample_limit",
            Self::Remote(_) => "remote",
            Self::Elsewhere { .. } => "elsewhere",
            Self::TooManyThreads { .. } => "too_many_threads",
            Self::Thread { .. } => "thread",
            Self::Interrupted => "interrupted",
            Self::Stopped { .. } => "stopped",
        }
    }

    /// Errors of this crate itself name the remedy in the message, in the words of
    /// [`Error::in_words`].
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Kept { error, .. } => error.remedy(),
            Self::Row(source) => source.remedy(),
            Self::Dataset(source) => source.remedy(),
            _ => None,
        }
    }
}
