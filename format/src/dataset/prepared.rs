//! The manifest's description of prepared samples.

use crate::npy;
use crate::recipe::{CutRefusal, Layout, Recipe, SampleType, TensorSpec};
use meetpoint_diagnose::{Command, Diagnose, Remedy};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Compression of each stored sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Uncompressed.
    None,
    /// An LZ4 block, preceded by its uncompressed length.
    Lz4,
    /// A Zstandard frame, about the reference implementation's level 1, preceded by its
    /// uncompressed length.
    Zstd,
}

impl Codec {
    /// Every codec.
    pub const ALL: &'static [Self] = &[Self::None, Self::Lz4, Self::Zstd];

    /// The name in options, manifests and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Which operations were executed before the samples of a dataset were stored, and how samples are
/// stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// Number of operations that were executed.
    pub operations: u32,
    /// The recipe of these operations, in TOML.
    pub recipe: String,
    /// Its hash, hexadecimal.
    pub recipe_sha256: String,
    /// Compression of each sample.
    pub codec: Codec,
    /// Quality, 1 to 100, of pictures that were re-encoded as JPEG, which loses detail; absent if
    /// samples are arrays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jpeg_quality: Option<u8>,
}

/// Why a recipe cannot be applied to prepared samples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreparedError {
    /// The recipe begins with other operations.
    #[error(
        "its samples were prepared by other operations than the recipe begins with: operation \
         {position} was `{stored}`, the recipe has {}",
        given.as_ref().map_or("no such operation".to_owned(), |it| format!("`{it}`"))
    )]
    Differs {
        /// Position of the first operation that differs, counted from 1.
        position: usize,
        /// The operation that was executed, with its keys.
        stored: String,
        /// The operation of the recipe; `None` if it has fewer.
        given: Option<String>,
    },
    /// The recipe begins with these operations, but their result depends on later ones.
    #[error("its samples were prepared by the first {operations} operations; {because}")]
    Cut {
        /// Operations that were executed.
        operations: usize,
        /// Why the recipe cannot be cut after them.
        because: CutRefusal,
    },
}

impl Diagnose for PreparedError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Differs { .. } => "prepared_by_other_operations",
            Self::Cut { .. } => "prepared_beyond_cut",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(Remedy::run(Command::Prepare).or("use the dataset that it was prepared from"))
    }
}

impl Prepared {
    /// The description of samples prepared by the first `operations` operations of a recipe.
    ///
    /// # Panics
    ///
    /// If the recipe has fewer operations, or `operations` is 0.
    pub fn of(recipe: &Recipe, operations: usize, codec: Codec, jpeg_quality: Option<u8>) -> Self {
        let beginning = recipe.beginning(operations);
        Self {
            operations: u32::try_from(operations).expect("a recipe has at most 255 operations"),
            recipe: beginning.to_toml(),
            recipe_sha256: beginning.hash().to_string(),
            codec,
            jpeg_quality,
        }
    }

    /// The operations that were executed; an error if the fields contradict each other.
    pub fn beginning(&self) -> Result<Recipe, String> {
        let recipe = Recipe::from_toml(&self.recipe)
            .map_err(|error| format!("`prepared.recipe` cannot be read: {}", error.problem))?;
        let (got, stated) = (recipe.hash().to_string(), &self.recipe_sha256);
        if got != *stated {
            return Err(format!("`prepared.recipe` has the hash {got}, not {stated}"));
        }
        if recipe.operations().len() != self.operations as usize {
            let (found, stated) = (recipe.operations().len(), self.operations);
            return Err(format!("`prepared.recipe` has {found} operations, not {stated}"));
        }
        if !recipe.targets().is_empty() {
            return Err("`prepared.recipe` has targets".to_owned());
        }
        if self.jpeg_quality.is_some_and(|quality| !(1..=100).contains(&quality)) {
            return Err("`prepared.jpeg_quality` is not 1 to 100".to_owned());
        }
        Ok(recipe)
    }

    /// Refuses a recipe that does not begin with these operations, or that cannot be cut after
    /// them. `beginning` is [`Self::beginning`].
    pub fn check(&self, beginning: &Recipe, recipe: &Recipe) -> Result<(), PreparedError> {
        let operations = beginning.operations().len();
        if let Some(position) = recipe.differs_from(beginning) {
            let words = |recipe: &Recipe| {
                let operation = recipe.operations().get(position - 1)?;
                let keys = operation.describe().keys;
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(key, value)| format!("{key} = {}", value.to_toml()))
                    .collect();
                let name = operation.name();
                Some(if keys.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name} ({})", keys.join(", "))
                })
            };
            let stored = words(beginning).expect("it differs there");
            return Err(PreparedError::Differs { position, stored, given: words(recipe) });
        }
        match recipe.refusal_of_cut(operations) {
            Some(because) => Err(PreparedError::Cut { operations, because }),
            None => Ok(()),
        }
    }
}

/// A prepared sample as the content of a row, before compression: a `.npy` file with the axes of
/// its layout.
pub fn encode_sample(spec: &TensorSpec, data: &[u8]) -> Vec<u8> {
    npy::encode(&spec.axes(), spec.dtype, data)
}

/// The position of the elements in the content of a prepared sample of a type, and its shape; the
/// error is the problem.
pub fn decode_sample(
    content: &[u8],
    result: &SampleType,
) -> Result<(TensorSpec, Range<usize>), String> {
    let npy::Header { shape, dtype, data } = npy::decode(content)?;
    let expected = result.tensor(result.size.unwrap_or_default());
    let spec = match (shape.as_slice(), expected.layout) {
        (&[height, width, channels], Layout::Nhwc) | (&[channels, height, width], Layout::Nchw) => {
            TensorSpec { height, width, channels, dtype, layout: expected.layout }
        }
        (&[channels, width], Layout::Nct) => {
            TensorSpec { height: 1, width, channels, dtype, layout: expected.layout }
        }
        (&[width], Layout::Nt) => {
            TensorSpec { height: 1, width, channels: 1, dtype, layout: expected.layout }
        }
        (&[width, channels], Layout::Ntc) => {
            TensorSpec { height: 1, width, channels, dtype, layout: expected.layout }
        }
        _ => return Err(format!("its shape is {shape:?}")),
    };
    let has_size = match (result.size, result.series) {
        (Some(size), _) => size == (spec.height, spec.width),
        (None, Some(series)) => series.rows == spec.height,
        (None, None) => true,
    };
    if !has_size || (spec.dtype, spec.channels) != (expected.dtype, expected.channels) {
        return Err(format!(
            "its shape is {shape:?} of {}, not what the recipe gives",
            dtype.name()
        ));
    }
    Ok((spec, data))
}
