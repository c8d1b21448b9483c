//! A recipe: the ordered operations that turn an encoded image into a tensor, as data.
//!
//! Names and semantics follow torchvision.transforms.v2. A [`Recipe`] that exists is valid: it was
//! checked when it was made, and its [`RecipeHash`] names it in every slot.

mod canonical;
mod error;
mod keys;
mod nearest;
mod operation;
mod parse;
#[cfg(test)]
mod tests;
mod validate;

pub use error::RecipeError;
pub use operation::{Decode, Dtype, Interpolation, Layout, OnError, Operation, Scale, Size};
pub use validate::{PIXELS_MAX, TensorSpec};

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

/// A checked sequence of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    operations: Vec<Operation>,
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
        parse::from_toml(text)
    }

    /// Checks operations made in code.
    pub fn new(operations: Vec<Operation>) -> Result<Self, RecipeError> {
        validate::check(&operations).map_err(|problem| problem.at(None))?;
        Ok(Self { operations })
    }

    /// The recipe as TOML that [`Recipe::from_toml`] reads back to an equal recipe.
    pub fn to_toml(&self) -> String {
        canonical::to_toml(&self.operations)
    }

    /// The operations in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The canonical form: JSON with sorted keys, every default spelled out; docs/formats.md has
    /// the grammar.
    pub fn canonical(&self) -> String {
        canonical::json(&self.operations)
    }

    /// Hash of the canonical form (not of the text: comments and spelling of defaults don't count).
    pub fn hash(&self) -> RecipeHash {
        canonical::hash(&self.operations)
    }

    /// Whether no operation draws random numbers.
    pub fn is_deterministic(&self) -> bool {
        self.operations.iter().all(|operation| !operation.is_random())
    }

    /// Shape, type and layout of every sample, when it does not depend on the picture.
    ///
    /// Batches can be made only of recipes for which this is `Some`.
    pub fn output(&self) -> Option<TensorSpec> {
        validate::output(&self.operations)
    }
}
