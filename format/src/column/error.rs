//! Why columns cannot be selected, with the remedy.

use super::limits::COLUMNS_MAX;
use meetpoint_diagnose::{Diagnose, Remedy};

/// Columns that no batch can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// An empty list.
    #[error("`columns` names no column")]
    Empty {
        /// Columns of the dataset.
        available: Vec<String>,
    },
    /// More columns than the header of a slot describes.
    #[error("`columns` names {count} columns, the limit is {COLUMNS_MAX}")]
    TooMany {
        /// Number of columns that were named.
        count: usize,
    },
    /// A column that the dataset does not have.
    #[error("the dataset has no column {name:?}")]
    Unknown {
        /// As named.
        name: String,
        /// The column whose name is most similar, if one is similar enough.
        nearest: Option<String>,
        /// Columns of the dataset.
        available: Vec<String>,
    },
    /// A column that is named twice.
    #[error("`columns` names {name:?} twice")]
    Twice {
        /// As named the second time.
        name: String,
    },
    /// A column of the dataset with the name of a column that every batch provides.
    #[error(
        "column {name:?} is ambiguous: it names the sample numbers of a batch, and a column of the \
         dataset"
    )]
    Ambiguous {
        /// As named.
        name: String,
    },
    /// A view of the recipe that has the name of a column of the dataset.
    #[error(
        "column {name:?} is ambiguous: it names a view of the recipe, and a column of the dataset"
    )]
    ViewAmbiguous {
        /// As named.
        name: String,
    },
    /// A column of the dataset with the name of a column that `collate` adds for pictures of
    /// different sizes.
    #[error(
        "column {name:?} is ambiguous: it names what `collate` gives for each image, and a column \
         of the dataset"
    )]
    SizeAmbiguous {
        /// As named.
        name: String,
    },
    /// A column that `collate` adds for pictures, without the column of these pictures.
    #[error("column {name:?} describes {image:?}, which is not among the columns")]
    SizeWithoutImage {
        /// As named.
        name: String,
        /// The column with the pictures.
        image: String,
    },
    /// The image of a sample, although the recipe produces views.
    #[error("there is no column {name:?}: the recipe gives the views {}", views.join(", "))]
    Views {
        /// As named.
        name: String,
        /// Columns of the views.
        views: Vec<String>,
    },
    /// A column whose type cannot be represented in a batch.
    #[error(
        "column {name:?} has type {found}, which has no form in a batch ({why}); batches hold \
         numbers and bools, strings, binary, and lists and fixed-size lists of numbers (one \
         variable-length axis, the outermost)"
    )]
    Type {
        /// Its name.
        name: String,
        /// Its type in the dataset.
        found: String,
        /// The mismatch.
        why: &'static str,
    },
    /// A target of the recipe whose column has another type.
    #[error(
        "column {name:?} is a target of the recipe ({target}), but holds {found} for a sample: \
         {why}"
    )]
    Target {
        /// Its name.
        name: String,
        /// Kind of the target.
        target: &'static str,
        /// The type of the dataset's value for a sample.
        found: String,
        /// The mismatch.
        why: &'static str,
    },
    /// A column that cannot drop the values that belong to dropped boxes.
    #[error(
        "column {name:?} is filtered with the boxes of {boxes:?}, but holds {found} for a sample, \
         not a list with one value for each box"
    )]
    NotFiltered {
        /// Its name.
        name: String,
        /// Column of the boxes.
        boxes: String,
        /// The type of a batch's value for a sample.
        found: String,
    },
    /// A column that needs the sizes of images, in a batch without images.
    #[error("column {name:?} depends on the images, but `columns` does not name \"image\"")]
    WithoutImage {
        /// Its name.
        name: String,
    },
}

impl ColumnError {
    /// The column that the error concerns; `None`: the list as a whole.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::Empty { .. } | Self::TooMany { .. } => None,
            Self::Unknown { name, .. }
            | Self::Twice { name }
            | Self::Ambiguous { name }
            | Self::ViewAmbiguous { name }
            | Self::SizeAmbiguous { name }
            | Self::SizeWithoutImage { name, .. }
            | Self::Views { name, .. }
            | Self::Type { name, .. }
            | Self::Target { name, .. }
            | Self::NotFiltered { name, .. }
            | Self::WithoutImage { name } => Some(name),
        }
    }
}

impl Diagnose for ColumnError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "no_columns",
            Self::TooMany { .. } => "too_many_columns",
            Self::Unknown { .. } => "unknown_column",
            Self::Twice { .. } => "column_twice",
            Self::Ambiguous { .. } | Self::ViewAmbiguous { .. } | Self::SizeAmbiguous { .. } => {
                "column_ambiguous"
            }
            Self::Views { .. } => "column_of_views",
            Self::Type { .. } => "column_type",
            Self::Target { .. } => "target_type",
            Self::NotFiltered { .. } => "column_not_filtered",
            Self::SizeWithoutImage { .. } => "size_without_image",
            Self::WithoutImage { .. } => "target_without_image",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Empty { available } => {
                format!("name at least one of {}", available.join(", ")).into()
            }
            Self::TooMany { .. } => format!("name at most {COLUMNS_MAX}").into(),
            Self::Unknown { nearest, available, .. } => {
                let nearest = nearest.as_ref();
                let meant = nearest.map(|it| format!("did you mean {it:?}? ")).unwrap_or_default();
                format!("{meant}choose columns of {}", available.join(", ")).into()
            }
            Self::Twice { .. } => "name each column once".into(),
            Self::Ambiguous { .. } | Self::SizeAmbiguous { .. } => {
                "rename the column of the dataset in its source, and pack again".into()
            }
            Self::ViewAmbiguous { .. } => "give the view of the recipe another name".into(),
            Self::Views { views, .. } => format!("choose columns of {}", views.join(", ")).into(),
            Self::Target { .. } => Remedy::advice("correct the target in the recipe")
                .or("convert the column and pack again"),
            Self::NotFiltered { name, .. } => {
                format!("remove {name:?} from `filters` of the target in the recipe").into()
            }
            Self::SizeWithoutImage { image, .. } => {
                Remedy::advice(format!("add {image:?} to the columns")).or("leave this column out")
            }
            Self::WithoutImage { .. } => {
                Remedy::advice("add \"image\" to the columns").or("leave this column out")
            }
            Self::Type { .. } => {
                Remedy::advice("leave the column out").or("convert it and pack again")
            }
        })
    }
}
