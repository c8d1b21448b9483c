//! Causes and remedies of errors between a batch index and its tensor.

use crate::error::{Error, RemoteRefusal};
use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting};
use meetpoint_storage::open_files_limit;

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        if let Some(failure) = self.remote_failure() {
            return failure.cause();
        }
        match self {
            Self::Open { .. } => "dataset_not_opened",
            Self::NotADataset { .. } => "not_a_dataset",
            Self::Dataset { source, .. } => source.cause(),
            Self::RecipeFile(source) => source.cause(),
            Self::Remote { refusal: RemoteRefusal::NotOpened, .. } => "remote_not_used_here",
            Self::Remote { refusal: RemoteRefusal::NotMapped, .. } => "dataset_not_mapped",
            Self::Remote { refusal: RemoteRefusal::InPlace, .. } => "remote_in_place",
            Self::Remote { refusal: RemoteRefusal::AtDevice, .. } => "remote_at_device",
            Self::Extents { source, .. } => source.cause(),
            Self::Csx(source) => source.cause(),
            Self::NoDataset => "no_dataset",
            Self::TooManyDatasets { .. } => "too_many_datasets",
            Self::ColumnsDiffer { .. } => "columns_differ",
            Self::KeyIndex { .. } => "key_index",
            Self::NotMapped { .. } => "dataset_not_mapped",
            Self::NoRoot { .. } => "content_folder_missing",
            Self::Content { .. } => "content_unreadable",
            Self::ContentChanged { .. } => "content_changed",
            Self::ContentChecksum { .. } => "content_checksum",
            Self::InPlace { source, .. } => source.cause(),
            Self::Storage(source) => source.cause(),
            Self::Read { .. } => "sample_unreadable",
            Self::ReadTimeout { .. } => "read_timeout",
            Self::DecodeMemory { .. } => "decode_memory",
            Self::Interrupted => "interrupted",
            Self::NoSuchBatch { .. } => "no_such_batch",
            Self::OutputTooSmall { .. } => "output_too_small",
            Self::Columns { source, .. } => source.cause(),
            Self::Column { .. } => "column_unreadable",
            Self::NullValue { .. } => "null_value",
            Self::RowsOfBoxes { .. } => "rows_of_boxes",
            Self::Sampler(source) => source.cause(),
            Self::SamplerColumn { .. } => "sampler_column",
            Self::ChecksumMismatch { .. } => "sample_checksum",
            Self::Sample { source, .. } => source.cause(),
            Self::Prepared { source, .. } => source.cause(),
            Self::PreparedSample { .. } => "prepared_sample",
            Self::RecipeDoesNotFit { source, .. } => source.cause(),
            Self::Defect { .. } => "defect",
            Self::NoReplacement { .. } => "no_replacement",
            Self::NoFixedShape | Self::ViewShape { .. } => "no_fixed_shape",
            Self::CollateViews { .. } => "collate_views",
            Self::CollateOnBatches { .. } => "collate_on_batches",
            Self::Collate(source) => source.cause(),
            Self::BatchTooLarge { .. } => "batch_too_large",
            Self::NoPictureSizes { .. } => "no_picture_sizes",
            Self::NoLabels { .. } => "no_labels",
            Self::Label { .. } => "label_not_in_classes",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        let restore = || Remedy::advice("restore the part from its source").or("pack again");
        let index = || Remedy::advice("restore the file").or_run(Command::Index);
        let limit_or = |source: &std::io::Error, other: Remedy| {
            Some(open_files_limit(source).map_or(other, Remedy::from))
        };
        if let Some(failure) = self.remote_failure() {
            return failure.remedy();
        }
        match self {
            Self::Remote { refusal, .. } => Some(match refusal {
                RemoteRefusal::NotOpened => "copy it to a folder of this machine".into(),
                RemoteRefusal::NotMapped => Remedy::advice("read it without a mapping")
                    .or("copy it to a folder of this machine"),
                RemoteRefusal::InPlace => Remedy::run(Command::Pack),
                RemoteRefusal::AtDevice => {
                    let host = Change::To("host-only".to_owned());
                    Remedy::set(Setting::Strategy, host).or("copy it to the device's machine")
                }
            }),
            Self::Open { source, .. } => limit_or(
                source,
                Remedy::advice("name the readable folder of a dataset").or_run(Command::Pack),
            ),
            Self::NotADataset { .. } => Some(Remedy::run(Command::Pack)),
            Self::Dataset { source, .. } => source.remedy(),
            Self::RecipeFile(source) => source.remedy(),
            Self::Extents { source, .. } => source.remedy(),
            Self::Csx(source) => source.remedy(),
            Self::NoDataset => Some("name one or more".into()),
            Self::TooManyDatasets { .. } => Some(Remedy::run(Command::Merge)),
            Self::ColumnsDiffer { .. } => {
                Some("pack both with the same columns, in the same order".into())
            }
            Self::KeyIndex { remedy, .. } => Some(remedy.clone()),
            Self::NotMapped { .. } => {
                Some(Remedy::advice("read it without a mapping").or_run(Command::Pack))
            }
            Self::NoRoot { .. } => {
                Some(Remedy::advice("restore the folder").or_run(Command::Index))
            }
            Self::Content { source, .. } => limit_or(source, index()),
            Self::ContentChanged { .. } | Self::ContentChecksum { .. } => Some(index()),
            Self::InPlace { source, .. } => source.remedy(),
            Self::Storage(source) => source.remedy(),
            Self::Read { .. } | Self::ChecksumMismatch { .. } => Some(restore()),
            Self::ReadTimeout { .. } => Some("check the drive".into()),
            Self::DecodeMemory { source, .. } => Some(source.remedy()),
            Self::Sample { source, .. } => source.remedy(),
            Self::Prepared { source, .. } => source.remedy(),
            Self::PreparedSample { .. } => Some(Remedy::run(Command::Prepare)),
            Self::RecipeDoesNotFit { source, .. } => source.remedy(),
            Self::RowsOfBoxes { .. } => Some(
                Remedy::advice("correct the target in the recipe")
                    .or("correct the column and pack again"),
            ),
            Self::Defect { .. } => Some("report it with this sample".into()),
            Self::NoReplacement { .. } => Some(Remedy::run(Command::Verify)),
            Self::NullValue { .. } => {
                Some(Remedy::advice("leave the column out").or("fill it in and pack again"))
            }
            Self::Column { source, .. } => source.remedy(),
            Self::Columns { source, .. } => source.remedy(),
            Self::Sampler(source) => source.remedy(),
            Self::SamplerColumn { .. } => Some("use signed integers of at most 64 bits".into()),
            Self::NoLabels { operation, .. } => Some(
                Remedy::advice(format!("remove `{operation}` and what follows it"))
                    .or("leave out the column `label`"),
            ),
            Self::Label { label: None, .. } => {
                Some("exclude it with a filter, `label is not null`".into())
            }
            Self::Label { label: Some(label), .. } => Some(
                Remedy::advice(format!("set `num_classes` to {} or more", i64::from(*label) + 1))
                    .or("exclude it with a filter on `label`"),
            ),
            Self::NoFixedShape => Some(
                Remedy::advice("end the recipe with a crop or an exact resize")
                    .or_set(Setting::Collate, Change::To("pad".to_owned()))
                    .or_set(Setting::Collate, Change::To("list".to_owned())),
            ),
            Self::CollateViews { column, .. } => Some(
                Remedy::set(Setting::Collate, Change::To("pad".to_owned()))
                    .or(format!("use a view with `count = 1` for each picture of {column:?}")),
            ),
            Self::CollateOnBatches { operation, .. } => Some(
                Remedy::advice(format!("remove `{operation}`"))
                    .or_set(Setting::Collate, Change::To("stack".to_owned())),
            ),
            Self::Collate(source) => source.remedy(),
            Self::BatchTooLarge { .. } => Some(
                Remedy::advice("raise `max_size` of `collate`, or leave it out")
                    .or_set(Setting::MemoryBudget, Change::Raise)
                    .or_set(Setting::BatchSize, Change::Lower),
            ),
            Self::NoPictureSizes { .. } => Some(
                Remedy::advice("name columns with widths and heights")
                    .or("use the dataset that it was prepared from")
                    .or("set `max_size` of `collate`"),
            ),
            Self::ViewShape { .. } => Some(
                Remedy::advice("end the view with a crop or an exact resize")
                    .or_set(Setting::Collate, Change::To("pad".to_owned())),
            ),
            // Nothing is wrong, or the error does not depend on a user's input.
            Self::Interrupted | Self::NoSuchBatch { .. } | Self::OutputTooSmall { .. } => None,
        }
    }
}
