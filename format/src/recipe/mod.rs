//! A recipe: the ordered operations that turn an encoded image, sound, signal or text into a
//! tensor, as data.
//!
//! Names and semantics of operations on images follow torchvision.transforms.v2, those on sound
//! librosa and torchaudio. Every [`Recipe`] is valid: it is checked when it is created, and every
//! slot contains its [`RecipeHash`].
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
//! In reading order: `vocabulary` and `value` (the values of keys), `declaration` (declarations of
//! operations), `named_file` (files that operations need), `sample_type` (the type of a sample
//! between two operations), `sizes` (possible sizes of pictures), `operations` (the registry, one
//! file for each operation), `targets` (masks, boxes and points), `views` (several pictures of one
//! sample), `keys` and `parse` (from TOML), `validate` (valid orders), `cut` (where a recipe can be
//! divided), `canonical` (the hashed form), `schema` (the declarations as JSON), `shipped` (recipes
//! that come with the program).

mod canonical;
mod cut;
mod declaration;
mod error;
mod keys;
mod named_file;
mod operations;
mod parse;
mod sample_type;
mod schema;
mod shipped;
mod sizes;
mod targets;
#[cfg(test)]
mod tests;
mod validate;
mod value;
mod views;
mod vocabulary;

pub use cut::CutRefusal;
pub use declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Presence,
    Property, RandomParameter, TargetDeclaration, ValueKind, WholeSize,
};
pub use error::{OperationPosition, RecipeError, Subject};
pub use named_file::{FileContent, NamedFile};
pub use operations::*;
pub use sample_type::{LENGTH_MAX, PIXELS_MAX, SampleType, Series, SoftLabels, TensorSpec};
pub use schema::{
    Schema, TextTable, keys_table, operations_table, schema, target_keys_table, targets_table,
};
pub use shipped::{
    Change, ChangeError, SHIPPED, ShippedRecipe, UnknownRecipe, find_shipped, is_recipe_path,
};
pub use sizes::SizeRange;
pub use targets::{
    Boxes, Keypoints, Mask, Saliency, TARGET_DECLARATIONS, TARGETS_MAX, Target, TargetKind,
};
pub use value::{Described, Value};
pub use views::{IMAGE_COLUMN, Images, OWN_COLUMNS, VIEW_COUNT_MAX, VIEWS_MAX, View};
pub use vocabulary::{
    AugmentPolicy, BoxFormat, ColorSpace, CutBox, DecodeMode, DecodingErrors, Dtype, Encoding,
    ErasingMode, Fill, Interpolation, Layout, LogBase, MaskType, MelNorm, MelScale, MixMode,
    MixPartner, OnError, OutsidePoint, Packing, PadMode, Padding, PaddingMode, PerChannel, Planes,
    Scale, ScaleMode, Size, TimmInterpolation, WarpInterpolation,
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

/// A checked sequence of operations, the views that follow them, and the targets that are
/// transformed together with the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    operations: Vec<Operation>,
    views: Vec<View>,
    /// The columns that it produces, one for each view.
    images: Vec<Images>,
    /// Sorted by column name.
    targets: Vec<Target>,
    /// Type of a sample after the operations.
    result: SampleType,
}

/// The parts of a recipe.
#[derive(Debug, Clone, Default)]
pub struct RecipeParts {
    /// The operations, common to all views.
    pub operations: Vec<Operation>,
    /// The views, in the order in which their pictures are numbered.
    pub views: Vec<View>,
    /// The targets, in any order.
    pub targets: Vec<Target>,
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
        targets: Vec<Target>,
    ) -> Result<Self, RecipeError> {
        Self::from_parts(RecipeParts { operations, targets, ..RecipeParts::default() })
    }

    /// Checks operations, views and targets made in code.
    pub fn from_parts(mut parts: RecipeParts) -> Result<Self, RecipeError> {
        parts.targets.sort_by(|one, other| one.column.cmp(&other.column));
        Self::checked(parts).map_err(|problem| problem.at(None))
    }

    fn checked(parts: RecipeParts) -> Result<Self, error::Problem> {
        let RecipeParts { operations, views, targets } = parts;
        let result = validate::check(&operations)?;
        targets::check(&operations, &targets)?;
        let images = views::check(&operations, result, &views, &targets)?;
        Ok(Self { operations, views, images, targets, result })
    }

    /// The recipe as TOML that [`Recipe::from_toml`] reads back to an equal recipe.
    pub fn to_toml(&self) -> String {
        canonical::to_toml(self)
    }

    /// The operations in order; in a recipe with views, those that precede the views.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The views; empty if the recipe produces one column.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// The columns that the recipe prepares from the picture of a sample: one for each view, or
    /// one.
    pub fn images(&self) -> &[Images] {
        &self.images
    }

    /// The targets, sorted by column name.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The operations on samples, which come first, and those on batches.
    pub fn split(&self) -> (&[Operation], &[Operation]) {
        let on_batches = self.operations.iter().position(Operation::is_on_batches);
        self.operations.split_at(on_batches.unwrap_or(self.operations.len()))
    }

    /// Whether operations on batches mix the tensors of samples with one another.
    pub fn mixes_tensors(&self) -> bool {
        self.split().1.iter().any(|operation| operation.mixer_of_tensors().is_some())
    }

    /// The conversion of labels, if the recipe has operations on batches.
    pub fn labels(&self) -> Option<SoftLabels> {
        self.result.labels
    }

    /// The canonical form: JSON with sorted keys, every default spelled out; docs/formats.md has
    /// the grammar.
    pub fn canonical(&self) -> String {
        canonical::json(self)
    }

    /// As [`Self::canonical`], but with the paths of files whose checksum is known.
    pub fn form(&self) -> String {
        canonical::whole(self)
    }

    /// Hash of the canonical form (not of the text: comments and spelled-out defaults don't count).
    pub fn hash(&self) -> RecipeHash {
        canonical::hash(self)
    }

    /// The files that its operations need, in the order of the operations.
    pub fn files(&self) -> Vec<&NamedFile> {
        self.operations.iter().filter_map(Operation::file).collect()
    }

    /// The same recipe with its files replaced: `replace` receives each file with the name of its
    /// operation.
    ///
    /// # Errors
    ///
    /// The first error of `replace`.
    pub fn with_files<E>(
        mut self,
        mut replace: impl FnMut(&'static str, &NamedFile) -> Result<NamedFile, E>,
    ) -> Result<Self, E> {
        let of_images = self.images.iter_mut().flat_map(|images| &mut images.operations);
        for operation in self.operations.iter_mut().chain(of_images) {
            let name = operation.name();
            if let Some(file) = operation.file_mut() {
                *file = replace(name, file)?;
            }
        }
        Ok(self)
    }

    /// Whether no operation has random parameters.
    pub fn is_deterministic(&self) -> bool {
        let of_views = self.views.iter().flat_map(|view| &view.operations);
        self.operations.iter().chain(of_views).all(|operation| !operation.is_random())
    }

    /// Whether the recipe produces one picture per sample, in the column `image`.
    pub fn gives_one_picture(&self) -> bool {
        self.views.is_empty() && self.result.pictures == 1
    }

    /// Shape, type and layout of every sample, if they do not depend on the picture; `None` also if
    /// the recipe produces several pictures per sample; see [`Self::images`].
    pub fn output(&self) -> Option<TensorSpec> {
        let size = self.result.size.filter(|_| self.gives_one_picture());
        size.map(|size| self.result.tensor(size))
    }

    /// The possible sizes of a picture after all operations on samples; `source`: height and width
    /// of the picture in its file, if known. With views, those of the first view.
    pub fn sizes(&self, source: Option<(u32, u32)>) -> SizeRange {
        self.images()[0].sizes(source)
    }

    /// Type of a sample after the operations that [`Self::operations`] returns.
    pub fn result(&self) -> SampleType {
        self.result
    }
}
