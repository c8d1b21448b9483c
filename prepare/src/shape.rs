//! The shape of a recipe's result, as far as it is known before a picture is decoded.

use crate::Error;
use meetpoint_format::column::{Collate, VARIES};
use meetpoint_format::recipe::{Operation, Recipe, TensorSpec};

/// Shape, type and layout of each picture of a recipe; for a recipe with views, of its first view.
/// An error if one of them has no fixed shape.
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

/// Like [`fixed_shape`], for pictures that are combined by `collate`: height and width are
/// [`VARIES`] if pictures may have different sizes. Refuses recipes that `collate` does not
/// support.
pub fn collated_shape(recipe: &Recipe, collate: Collate) -> Result<TensorSpec, Error> {
    if !collate.takes_sizes() {
        return fixed_shape(recipe);
    }
    let of_several = recipe.images().iter().find(|images| images.pictures() > 1);
    if let (Collate::List(_), Some(images)) = (collate, of_several) {
        return Err(Error::CollateViews { mode: collate.mode(), column: images.column.clone() });
    }
    let (_, on_batches) = recipe.split();
    if let Some(operation) = on_batches.iter().find_map(Operation::mixer_of_tensors) {
        let (mode, operation) = (collate.mode(), operation.name());
        return Err(Error::CollateOnBatches { mode, operation });
    }
    for images in recipe.images() {
        collate.check(images.result)?;
    }
    Ok(recipe.images()[0].result.tensor((VARIES, VARIES)))
}
