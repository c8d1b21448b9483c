//! Problems with the files that a recipe needs.

use meetpoint_diagnose::{Diagnose, Remedy, shown};
use meetpoint_kernels::FileMisfit;
use std::path::PathBuf;

/// A file of a recipe that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecipeFilesError {
    /// It cannot be read.
    #[error("failed to read {}, which `{operation}` needs: {source}", shown(path))]
    NotRead {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its checksum differs from the recipe's.
    #[error(
        "{}, which `{operation}` needs, has the SHA-256 {found}, but the recipe says {expected}",
        shown(path)
    )]
    Changed {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// SHA-256 in the recipe.
        expected: String,
        /// SHA-256 of the file.
        found: String,
    },
    /// Its content does not suit its operation.
    #[error(transparent)]
    Misfit(#[from] FileMisfit),
}

impl Diagnose for RecipeFilesError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NotRead { .. } => "recipe_file_not_read",
            Self::Changed { .. } => "recipe_file_changed",
            Self::Misfit(source) => source.cause(),
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NotRead { operation, .. } => Some(
                Remedy::advice(format!("correct the path in `{operation}` of the recipe"))
                    .or("copy the file to there"),
            ),
            Self::Changed { .. } => Some(
                Remedy::advice("restore the file").or("remove `sha256` from the recipe to use it"),
            ),
            Self::Misfit(source) => source.remedy(),
        }
    }
}
