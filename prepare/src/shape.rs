//! The shape of what a recipe makes of a picture, as far as batches need to know it before any is
//! decoded.

use crate::Error;
use meetpoint_format::column::{Collate, VARIES};
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

/// As [`fixed_shape`], where pictures become one batch by `collate`: height and width are
/// [`VARIES`] where pictures may have different sizes. Refuses recipes whose result has no form
/// then.
pub fn collated_shape(recipe: &Recipe, collate: Collate) -> Result<TensorSpec, Error> {
    if !collate.takes_sizes() {
        return fixed_shape(recipe);
    }
    if !recipe.gives_one_picture() {
        return Err(Error::CollateViews { mode: collate.mode() });
    }
    let (_, on_batches) = recipe.split();
    if let Some(operation) = on_batches.first() {
        let (mode, operation) = (collate.mode(), operation.name());
        return Err(Error::CollateOnBatches { mode, operation });
    }
    let result = recipe.images()[0].result;
    collate.check(result)?;
    Ok(result.tensor((VARIES, VARIES)))
}
