//! Why no contact sheet can be drawn.

use meetpoint_diagnose::{Diagnose, Remedy, shown};
use meetpoint_prepare::Error as PrepareError;
use std::path::PathBuf;

/// A contact sheet that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// A sample that cannot be prepared, or columns that the dataset lacks.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// A dataset whose content is not images.
    #[error("the content of {} is {kind}, not images", shown(path))]
    NotImages {
        /// The dataset.
        path: PathBuf,
        /// Its content.
        kind: &'static str,
    },
    /// A dataset without samples.
    #[error("{} has no samples", shown(path))]
    NoSamples {
        /// The dataset.
        path: PathBuf,
    },
    /// A number that is too large or too small.
    #[error("{what} is {value}")]
    Range {
        /// What it counts.
        what: &'static str,
        /// The given value.
        value: u32,
        /// The largest.
        most: u32,
    },
    /// A sheet that does not fit into memory.
    #[error("the contact sheet is too large")]
    TooLarge,
    /// The PNG cannot be encoded.
    #[error("failed to encode the contact sheet: {0}")]
    Encode(#[from] image::ImageError),
}

impl Diagnose for PreviewError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Prepare(error) => error.cause(),
            Self::NotImages { .. } => "not_images",
            Self::NoSamples { .. } => "no_samples",
            Self::Range { .. } => "out_of_range",
            Self::TooLarge => "too_large",
            Self::Encode(_) => "not_encoded",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Prepare(error) => error.remedy(),
            Self::NotImages { .. } => Some(Remedy::advice("name a dataset of images")),
            Self::NoSamples { .. } => Some(Remedy::advice("name a dataset with samples")),
            Self::Range { what, most, .. } => {
                let least = if *what == "epoch" { 0 } else { 1 };
                Some(format!("set {what} to a number from {least} to {most}").into())
            }
            Self::TooLarge => Some(Remedy::advice("ask for fewer samples or draws")),
            Self::Encode(_) => None,
        }
    }
}
