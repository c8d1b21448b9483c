//! Why a cut that a user selects is invalid.

use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting, nearest};
use meetpoint_format::recipe::CutRefusal;

/// An invalid cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// The text is neither a number nor a name in the recipe.
    #[error("the recipe has no cut {cut:?}; its cuts are {}", legal.join(", "))]
    Unknown {
        /// The given value.
        cut: String,
        /// Names of the cuts that are legal.
        legal: Vec<String>,
    },
    /// The number exceeds the recipe.
    #[error("the recipe has {operations} operations, so there is no cut {cut}")]
    Outside {
        /// The given value.
        cut: usize,
        /// Operations of the recipe.
        operations: usize,
    },
    /// The recipe has several operations with this name.
    #[error("the recipe has `{name}` {} times, as {}", cuts.len(), cuts.join(", "))]
    Ambiguous {
        /// Its name.
        name: String,
        /// Names of the cuts after each.
        cuts: Vec<String>,
    },
    /// The rest of the recipe cannot be applied after this cut.
    #[error("the recipe cannot be cut after operation {operations}, `{operation}`: {because}")]
    Refused {
        /// Operations before the cut.
        operations: usize,
        /// The last of these operations.
        operation: String,
        /// The reason.
        because: CutRefusal,
    },
    /// The form is created by packing, not by this command.
    #[error("{name} is a form of packing, in which no operation is executed")]
    Packed {
        /// Its name.
        name: String,
    },
    /// A lossy form without the option that allows it.
    #[error("{name} stores pictures as JPEG again, which loses detail")]
    Lossy {
        /// Its name.
        name: String,
    },
    /// The result is not a picture, so it cannot be stored as JPEG.
    #[error("after operation {operations}, `{operation}`, samples are not pictures")]
    NotPictures {
        /// Operations before the cut.
        operations: usize,
        /// The last of these operations.
        operation: String,
    },
}

/// The legal cut whose name, or whose operation, is most similar.
fn similar<'a>(cut: &str, legal: &'a [String]) -> Option<&'a String> {
    let operation = |name: &'a String| name.split_once('-').map_or(&name[..], |(_, it)| it);
    let of = |known: Vec<&'a str>| {
        let near = nearest(cut, &known)?;
        legal.get(known.iter().position(|name| *name == near)?)
    };
    let full = || of(legal.iter().map(String::as_str).collect());
    of(legal.iter().map(operation).collect()).or_else(full)
}

impl Diagnose for CutError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Unknown { .. } | Self::Outside { .. } | Self::Ambiguous { .. } => "unknown_cut",
            Self::Refused { .. } => "cut_refused",
            Self::Packed { .. } => "cut_of_packing",
            Self::Lossy { .. } => "lossy",
            Self::NotPictures { .. } => "not_pictures",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        let to = |cut: &String| Remedy::set(Setting::Cut, Change::To(cut.clone()));
        Some(match self {
            // The most similar name may be that of an operation without its number.
            Self::Unknown { cut, legal } => similar(cut, legal)
                .or(legal.first())
                .map_or_else(|| "begin the recipe with an operation that is not random".into(), to),
            Self::Outside { cut: 0, .. } => {
                Remedy::set(Setting::Cut, Change::AtLeast("1".to_owned()))
            }
            Self::Outside { operations, .. } => {
                Remedy::set(Setting::Cut, Change::AtMost(operations.to_string()))
            }
            Self::Ambiguous { cuts, .. } => to(&cuts[0]),
            Self::Refused { .. } => Remedy::set(Setting::Cut, Change::Lower),
            Self::Packed { .. } => Remedy::run(Command::Pack),
            Self::Lossy { .. } => Remedy::by("allow it", Setting::LossyJpeg, Change::Other),
            Self::NotPictures { .. } => {
                Remedy::set(Setting::LossyJpeg, Change::Off).or_set(Setting::Cut, Change::Lower)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, CutError, Diagnose, Remedy, Setting};

    #[test]
    fn a_misspelled_cut_suggests_the_most_similar_one() {
        let legal = ["1-decode", "2-resize", "3-center_crop"].map(str::to_owned).to_vec();
        let remedy =
            |cut: &str| CutError::Unknown { cut: cut.to_owned(), legal: legal.clone() }.remedy();
        let to = |cut: &str| Some(Remedy::set(Setting::Cut, Change::To(cut.to_owned())));
        assert_eq!(remedy("resise"), to("2-resize"));
        assert_eq!(remedy("3-centre_crop"), to("3-center_crop"));
        assert_eq!(remedy("unrelated"), to("1-decode"));
    }
}
