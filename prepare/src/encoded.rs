//! The stored form of a sample, and the part of it that a recipe needs.

use meetpoint_format::recipe::{Needs, Recipe};
use meetpoint_kernels::{Error, Interrupt, jpeg};
use std::borrow::Cow;

/// The original file of stored bytes; the bytes themselves if they are a file.
pub fn original(stored: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    original_until(stored, &Interrupt::default())
}

/// The same, but can be interrupted.
pub fn original_until<'a>(stored: &'a [u8], interrupt: &Interrupt) -> Result<Cow<'a, [u8]>, Error> {
    match jpeg::form_of(stored) {
        Some(_) => Ok(Cow::Owned(jpeg::from_form_until(stored, interrupt)?)),
        None => Ok(Cow::Borrowed(stored)),
    }
}

/// Whether a recipe crops the decoded picture before any operation needs all of it, so that entry
/// points save work; with views, whether every view does.
pub fn decodes_regions(recipe: &Recipe) -> bool {
    recipe.images().iter().all(|images| {
        let mut needs = images.operations.iter().map(|operation| operation.declaration().needs);
        needs.find(|needs| *needs != Needs::AsNext) == Some(Needs::Region)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recipes_that_cut_first_decode_regions() {
        let recipe = |operations: &[&str]| {
            let text: String = ["decode"]
                .iter()
                .chain(operations)
                .map(|operation| format!("[[operation]]\nname = \"{operation}\"\n"))
                .collect();
            Recipe::from_toml(&text.replace("crop\"\n", "crop\"\nsize = 8\n")).unwrap()
        };
        assert!(decodes_regions(&recipe(&["random_resized_crop"])));
        assert!(decodes_regions(&recipe(&["random_horizontal_flip", "center_crop"])));
        assert!(!decodes_regions(&recipe(&["random_horizontal_flip"])));
        let resized = "[[operation]]\nname = \"decode\"\n\
                       [[operation]]\nname = \"resize\"\nsize = 9\n\
                       [[operation]]\nname = \"center_crop\"\nsize = 8\n";
        assert!(!decodes_regions(&Recipe::from_toml(resized).unwrap()));
    }
}
