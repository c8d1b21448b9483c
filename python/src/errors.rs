//! Converts errors of the other crates to the exceptions of `meetpoint.errors`.

pub(crate) use crate::exceptions::plain;

use crate::exceptions::{ErrorLocation, ProblemText, at, raise};
use crate::panics;
use meetpoint_datasets::Error as DatasetsError;
use meetpoint_datasets::operations::OperationError;
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::recipe::{OperationPosition, RecipeError, Subject};
use meetpoint_host::Error as HostError;
use meetpoint_planner::Error as PlannerError;
use meetpoint_prepare::cache::CacheError;
use meetpoint_prepare::{Error as PrepareError, RecipeFileError};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// An error of the runtime.
pub(crate) fn of_host(py: Python<'_>, error: &HostError) -> PyErr {
    let said = ProblemText::of(error);
    match error {
        HostError::Prepare(error) => of_prepare(py, error),
        HostError::OfRank { source, .. } => of_host(py, source),
        HostError::Interrupted => plain(py, "ClosedError", "the loader was closed"),
        HostError::Collective(_) | HostError::RankPanicked { .. } => plain(py, "RankError", said),
        HostError::Storage(_) | HostError::RingMemory { .. } | HostError::Spool { .. } => {
            plain(py, "StorageError", said)
        }
        HostError::SocketFolder { .. }
        | HostError::DeviceStart { .. }
        | HostError::DeviceEnded { .. }
        | HostError::DeviceLost { .. }
        | HostError::DeviceUnreachable { .. }
        | HostError::NotASocket { .. }
        | HostError::NotADevice { .. }
        | HostError::DeviceUnresponsive { .. }
        | HostError::DeviceTimeout { .. }
        | HostError::DeviceVersion { .. }
        | HostError::DeviceRefused { .. }
        | HostError::AddressFile(_)
        | HostError::DeviceUntrusted { .. }
        | HostError::OfDevice { .. } => plain(py, "DeviceError", said),
        HostError::EmptyDataset { dataset } | HostError::TooFewParts { dataset, .. } => {
            raise(py, "DatasetError", said, at(dataset))
        }
        HostError::TooManyErrors { key, file, .. } => {
            let place =
                ErrorLocation { file: Some(file.clone()), row: None, key: Some(key.clone()) };
            raise(py, "DamageLimitError", said, place)
        }
        HostError::Quarantine { .. } => plain(py, "StorageError", said),
        HostError::AllBatchesKept { .. }
        | HostError::BudgetTooLarge { .. }
        | HostError::SpoolTooLarge { .. } => plain(py, "BudgetError", said),
        HostError::Cache(CacheError::TooLarge { .. } | CacheError::TooSmall { .. }) => {
            plain(py, "BudgetError", said)
        }
        HostError::Cache(
            CacheError::Io { .. } | CacheError::NotPrivate { .. } | CacheError::Locked { .. },
        ) => plain(py, "StorageError", said),
        HostError::Panicked => panics::of_thread(py),
        HostError::Thread(_) | HostError::EpochFailed => plain(py, "MeetpointError", said),
        HostError::Gpu { gpu, source } => {
            let message = format!("gpu_decode: {gpu} cannot be used: {source}");
            raise(py, "GpuError", ProblemText::new(message, error), ErrorLocation::default())
        }
        HostError::Resume { .. } => plain(py, "StateError", said),
        _ => plain(py, "SettingError", said),
    }
}

/// A dataset or a sample that cannot be read.
pub(crate) fn of_prepare(py: Python<'_>, error: &PrepareError) -> PyErr {
    let said = ProblemText::of(error);
    if error.remote_failure().is_some() {
        return raise(py, "StorageError", said, place_of(error));
    }
    match error {
        PrepareError::Remote { .. } => plain(py, "SettingError", said),
        PrepareError::Open { path, .. } | PrepareError::NotADataset { path, .. } => {
            raise(py, "DatasetError", said, at(path))
        }
        PrepareError::Dataset { path, source } => {
            let part = source.part().map(|part| path.join(part));
            raise(py, "DatasetError", said, at(part.as_deref().unwrap_or(path)))
        }
        PrepareError::ReadTimeout { path, .. }
        | PrepareError::NoRoot { root: path, .. }
        | PrepareError::ColumnsDiffer { path, .. }
        | PrepareError::NotMapped { root: path } => raise(py, "DatasetError", said, at(path)),
        PrepareError::Prepared { .. } => plain(py, "RecipeError", said),
        PrepareError::Columns { .. }
        | PrepareError::NoDataset
        | PrepareError::TooManyDatasets { .. } => plain(py, "SettingError", said),
        PrepareError::ChecksumMismatch { .. }
        | PrepareError::Sample { .. }
        | PrepareError::PreparedSample { .. }
        | PrepareError::Column { .. }
        | PrepareError::NullValue { .. }
        | PrepareError::RowsOfBoxes { .. }
        | PrepareError::Read { .. }
        | PrepareError::InPlace { .. }
        | PrepareError::Content { .. }
        | PrepareError::ContentChanged { .. }
        | PrepareError::ContentChecksum { .. } => raise(py, "SampleError", said, place_of(error)),
        PrepareError::NoReplacement { source, .. } => {
            raise(py, "SampleError", said, place_of(source))
        }
        PrepareError::DecodeMemory { .. } => raise(py, "BudgetError", said, place_of(error)),
        PrepareError::Defect { .. } => raise(py, "InternalError", said, place_of(error)),
        PrepareError::Interrupted => plain(py, "ClosedError", "the loader was closed"),
        PrepareError::Sampler(_) | PrepareError::SamplerColumn { .. } => {
            plain(py, "SettingError", said)
        }
        PrepareError::NoFixedShape | PrepareError::ViewShape { .. } => {
            plain(py, "RecipeError", said)
        }
        PrepareError::CollateViews { .. }
        | PrepareError::CollateOnBatches { .. }
        | PrepareError::Collate(_)
        | PrepareError::NoPictureSizes { .. } => plain(py, "SettingError", said),
        PrepareError::BatchTooLarge { .. } => plain(py, "BudgetError", said),
        PrepareError::RecipeDoesNotFit { .. } => raise(py, "RecipeError", said, place_of(error)),
        PrepareError::Storage(_) => plain(py, "StorageError", said),
        _ => plain(py, "MeetpointError", said),
    }
}

/// The location of a damaged sample.
fn place_of(error: &PrepareError) -> ErrorLocation {
    match error {
        PrepareError::ChecksumMismatch { part, row, key, .. }
        | PrepareError::DecodeMemory { part, row, key, .. }
        | PrepareError::Defect { part, row, key, .. }
        | PrepareError::RecipeDoesNotFit { part, row, key, .. }
        | PrepareError::Column { part, row, key, .. }
        | PrepareError::NullValue { part, row, key, .. }
        | PrepareError::RowsOfBoxes { part, row, key, .. }
        | PrepareError::PreparedSample { part, row, key, .. }
        | PrepareError::Sample { part, row, key, .. } => {
            ErrorLocation { file: Some(part.clone()), row: Some(*row), key: Some(key.clone()) }
        }
        PrepareError::Read { row, key, source } => {
            let file = source.path().map(|path| path.display().to_string());
            ErrorLocation { file, row: Some(*row), key: Some(key.clone()) }
        }
        PrepareError::InPlace { row, key, source } => {
            ErrorLocation { row: Some(*row), key: Some(key.clone()), ..place_of(source) }
        }
        PrepareError::Content { path, .. }
        | PrepareError::ContentChanged { path, .. }
        | PrepareError::ContentChecksum { path, .. } => at(path),
        _ => ErrorLocation::default(),
    }
}

/// A recipe that cannot be executed.
pub(crate) fn of_recipe(py: Python<'_>, error: &RecipeError) -> PyErr {
    plain(py, "RecipeError", ProblemText::of(error))
}

/// A recipe file or name that does not denote a recipe.
pub(crate) fn of_recipe_file(py: Python<'_>, error: &RecipeFileError) -> PyErr {
    raise(py, "RecipeError", ProblemText::of(error), at(error.path()))
}

/// An error in a recipe created from transforms, with the transform that it concerns.
pub(crate) fn of_transforms(
    py: Python<'_>,
    error: &RecipeError,
    transforms: &[(usize, String)],
) -> PyErr {
    let OperationPosition { path, names, view } = match &error.subject {
        Subject::Operation(place) => &**place,
        Subject::Recipe | Subject::View { .. } | Subject::Target { .. } => {
            return plain(py, "RecipeError", ProblemText::new(error.located(), error));
        }
    };
    let (transforms, of_view) = match view {
        None => (transforms, String::new()),
        // The text was created from the common transforms; those of views have separate positions.
        Some((_, column)) => (&[][..], format!("view {column:?}, ")),
    };
    let (position, class) =
        transforms.get(path[0]).cloned().unwrap_or_else(|| (path[0] + 1, class_of(&names[0])));
    let inner = names[..names.len() - 1].iter().map(|name| class_of(name));
    let classes: Vec<String> = inner.chain([class]).collect();
    let positions = path[1..].iter().map(|index| index + 1);
    let positions: Vec<String> =
        [position].into_iter().chain(positions).map(|number| number.to_string()).collect();
    let message = format!(
        "{of_view}operation {} ({}): {}",
        positions.join("."),
        classes.join(" in "),
        error.problem
    );
    plain(py, "RecipeError", ProblemText::new(message, error))
}

/// The class of an operation: `RandomCrop` for `random_crop`.
fn class_of(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(word).collect()
}

/// A dataset or a folder of files that cannot be written, or a dataset that cannot be read.
pub(crate) fn of_datasets(py: Python<'_>, error: &DatasetsError) -> PyErr {
    let said = || ProblemText::of(error);
    match error {
        DatasetsError::Interrupted => PyKeyboardInterrupt::new_err(()),
        DatasetsError::Stopped { .. } => {
            PyKeyboardInterrupt::new_err(error.in_full(Surface::Python))
        }
        DatasetsError::Dataset(error) => of_prepare(py, error),
        DatasetsError::Damaged { .. } => plain(py, "DatasetError", said()),
        DatasetsError::NoSuchKind { .. }
        | DatasetsError::OptionWithoutUse { .. }
        | DatasetsError::NoColumn { .. }
        | DatasetsError::ShardsWithoutUse { .. }
        | DatasetsError::SampleLimit { .. } => plain(py, "SettingError", said()),
        DatasetsError::Operation(operation) => match operation {
            OperationError::Hopeless { path, .. } => raise(py, "DatasetError", said(), at(path)),
            OperationError::TooMany { .. }
            | OperationError::Range { .. }
            | OperationError::Fraction { .. }
            | OperationError::Shares { .. }
            | OperationError::NoColumn { .. }
            | OperationError::Prefixes { .. }
            | OperationError::Pattern { .. }
            | OperationError::NoLabel { .. }
            | OperationError::NoLabels { .. } => plain(py, "SettingError", said()),
            _ => plain(py, "PackError", said()),
        },
        _ => plain(py, "PackError", said()),
    }
}

/// A dataset that cannot be prepared.
pub(crate) fn of_planner(py: Python<'_>, error: &PlannerError) -> PyErr {
    let said = || ProblemText::of(error);
    match error {
        PlannerError::Stopped => PyKeyboardInterrupt::new_err(()),
        PlannerError::Datasets(error) => of_datasets(py, error),
        PlannerError::Unreadable(error) => of_datasets(py, error),
        PlannerError::Dataset(error) => of_prepare(py, error),
        PlannerError::AlreadyPrepared { path, .. } => raise(py, "DatasetError", said(), at(path)),
        PlannerError::DecodeMemory { .. } => plain(py, "BudgetError", said()),
        PlannerError::Cut(_) | PlannerError::Number { .. } => plain(py, "SettingError", said()),
        _ => plain(py, "PackError", said()),
    }
}

/// The error for a forked process, which cannot use objects of its parent.
pub(crate) fn forked(py: Python<'_>) -> PyErr {
    plain(
        py,
        "ForkError",
        (
            "this loader was created before the process was forked, and its threads are not in \
             this process",
            "create the loader in the child, or start children with the method \"spawn\"",
        ),
    )
}
