//! The shape of what a recipe makes of a picture, which batches need to know before any is decoded.

use crate::Error;
use meetpoint_format::recipe::{Recipe, TensorSpec};

/// Shape, type and layout of each picture of a recipe; of its first view, where it has views. An
/// error where one of them has no fixed shape.
pub fn fixed_shape(recipe: &Recipe) -> Result<TensorSpec, Error> {
    let mut first = None;
    for images in recipe.images() {
        let Some(spec) = images.spec() else {
            return Err(match recipe.views() {
                [] => Error::NoFixedShape,
                _ => Error::ViewShape { view: images.column.clone() },
            });
        };
        first = first.or(Some(spec));
    }
    first.ok_or(Error::NoFixedShape)
}
