//! A recipe: the ordered operations that turn an encoded image into a tensor, as data.
//!
//! Names and semantics follow torchvision.transforms.v2. A [`Recipe`] that exists is valid: it was
//! checked when it was made, and its [`RecipeHash`] names it in every slot.
//!
//! ```
//! use meetpoint_format::recipe::{Dtype, Layout, Recipe};
//!
//! let recipe = Recipe::from_toml(
//!     r#"
//!     [[operation]]
//!     name = "decode"
//!     [[operation]]
//!     name = "random_resized_crop"
//!     size = 224
//!     [[operation]]
//!     name = "random_horizontal_flip"
//!     "#,
//! )?;
//! assert!(!recipe.is_deterministic());
//!
//! let sample = recipe.output().expect("the crop fixes the size");
//! assert_eq!((sample.height, sample.width, sample.channels), (224, 224, 3));
//! assert_eq!((sample.dtype, sample.layout), (Dtype::Uint8, Layout::Nhwc));
//!
//! let error = Recipe::from_toml("[[operation]]\nname = \"decoed\"").unwrap_err();
//! assert!(error.remedy.contains("\"decode\""));
//! # Ok::<(), meetpoint_format::recipe::RecipeError>(())
//! ```
//!
//! In reading order: `vocabulary` and `value` (what keys hold), `declaration` (what an operation
//! says of itself), `sample_type` (what is between two operations), `operations` (the registry, one
//! file for each operation), `targets` (masks, boxes and points), `keys` and `parse` (from TOML),
//! `validate` (possible orders), `canonical` (the hashed form), `schema` (the declarations for
//! others).

mod canonical;
mod declaration;
mod error;
mod keys;
mod operations;
mod parse;
mod sample_type;
mod schema;
mod targets;
#[cfg(test)]
mod tests;
mod validate;
mod value;
mod vocabulary;

pub use declaration::{
    Bounds, Declaration, Gives, Key, Kind, Needs, OnTargets, Place, Presence, Property,
    RandomParameter, Takes, TargetDeclaration, ValueKind, WholeSize,
};
pub use error::{OperationPlace, RecipeError, Subject};
pub use operations::*;
pub use sample_type::{PIXELS_MAX, SampleType, SoftLabels, TensorSpec};
pub use schema::{
    Schema, TextTable, keys_table, operations_table, schema, target_keys_table, targets_table,
};
pub use targets::{
    Boxes, Keypoints, Mask, Saliency, TARGET_DECLARATIONS, TARGETS_MAX, Target, TargetKind,
};
pub use value::{Described, Value};
pub use vocabulary::{
    AugmentPolicy, BoxFormat, CutBox, DecodeMode, Dtype, ErasingMode, Fill, Interpolation, Layout,
    MaskType, MixMode, MixPartner, OnError, OutsidePoint, Padding, PaddingMode, PerChannel, Scale,
    Size, TimmInterpolation, WarpInterpolation,
};

/// SHA-256 of the canonical form of a recipe.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecipeHash(pub [u8; 32]);

impl std::fmt::Display for RecipeHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for RecipeHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecipeHash({self})")
    }
}

/// A checked sequence of operations, and the targets that they move with the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    operations: Vec<Operation>,
    /// In alphabetical order of their columns.
    targets: Vec<Target>,
    /// Type of a prepared sample.
    result: SampleType,
}

impl Recipe {
    /// Parses and checks a recipe in TOML.
    ///
    /// ```toml
    /// [[operation]]
    /// name = "decode"
    /// [[operation]]
    /// name = "random_resized_crop"
    /// size = 224
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, RecipeError> {
        parse::from_toml(text, Self::checked)
    }

    /// Checks operations made in code.
    pub fn new(operations: Vec<Operation>) -> Result<Self, RecipeError> {
        Self::with_targets(operations, vec![])
    }

    /// Checks operations and targets made in code.
    pub fn with_targets(
        operations: Vec<Operation>,
        mut targets: Vec<Target>,
    ) -> Result<Self, RecipeError> {
        targets.sort_by(|one, other| one.column.cmp(&other.column));
        Self::checked(operations, targets).map_err(|problem| problem.at(None))
    }

    fn checked(operations: Vec<Operation>, targets: Vec<Target>) -> Result<Self, error::Problem> {
        let result = validate::check(&operations)?;
        targets::check(&operations, &targets)?;
        Ok(Self { operations, targets, result })
    }

    /// The recipe as TOML that [`Recipe::from_toml`] reads back to an equal recipe.
    pub fn to_toml(&self) -> String {
        canonical::to_toml(&self.operations, &self.targets)
    }

    /// The operations in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The targets, in alphabetical order of their columns.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The operations on samples, which come first, and those on batches.
    pub fn split(&self) -> (&[Operation], &[Operation]) {
        let on_batches = self.operations.iter().position(Operation::is_on_batches);
        self.operations.split_at(on_batches.unwrap_or(self.operations.len()))
    }

    /// What labels become, where the recipe has operations on batches.
    pub fn labels(&self) -> Option<SoftLabels> {
        self.result.labels
    }

    /// The canonical form: JSON with sorted keys, every default spelled out; docs/formats.md has
    /// the grammar.
    pub fn canonical(&self) -> String {
        canonical::json(&self.operations, &self.targets)
    }

    /// Hash of the canonical form (not of the text: comments and spelling of defaults don't count).
    pub fn hash(&self) -> RecipeHash {
        canonical::hash(&self.operations, &self.targets)
    }

    /// Whether no operation has random parameters.
    pub fn is_deterministic(&self) -> bool {
        self.operations.iter().all(|operation| !operation.is_random())
    }

    /// Shape, type and layout of every sample, when it does not depend on the picture.
    ///
    /// Batches can be made only of recipes for which this is `Some`.
    pub fn output(&self) -> Option<TensorSpec> {
        self.result.size.map(|size| self.result.tensor(size))
    }

    /// Type of a prepared sample.
    pub fn result(&self) -> SampleType {
        self.result
    }
}
