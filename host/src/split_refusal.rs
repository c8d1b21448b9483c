//! Why a recipe is not divided between the host and a GPU, as a value; `Display` is the phrase.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why the host executes the conversion of samples, although batches are delivered to a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum SplitRefusal {
    /// The recipe gives bytes, which need no conversion.
    Bytes,
    /// Pictures of different sizes are combined, and padding has the value of an element.
    DifferentSizes,
    /// An operation needs the finished tensor.
    FollowedBy {
        /// Its name.
        operation: String,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
    /// Samples are not bytes before the conversion: sound, text, or pictures with more than 8 bits.
    NotBytes {
        /// Element type of the result.
        dtype: String,
    },
    /// The conversion was executed when the dataset was prepared.
    PreparedOffline,
    /// The checksums of whole batches are computed on the host.
    Compared,
}

impl fmt::Display for SplitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => f.write_str("the recipe gives uint8, which needs no conversion"),
            Self::DifferentSizes => f.write_str("pictures of different sizes are combined"),
            Self::FollowedBy { operation, position } => {
                write!(f, "operation {position}, `{operation}`, needs the finished tensor")
            }
            Self::NotBytes { dtype } => {
                write!(f, "samples are not 8-bit pictures before they become {dtype}")
            }
            Self::PreparedOffline => {
                f.write_str("the dataset contains the results of operations up to the conversion")
            }
            Self::Compared => {
                f.write_str("the checksums of whole batches are computed on the host")
            }
        }
    }
}
