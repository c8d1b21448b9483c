//! A recipe by the name that a user gives: the path of a file, or the name of a shipped recipe.

use crate::recipe_files::begin_files_at;
use crate::{Error, read_recipe_files};
use meetpoint_diagnose::{Command, Diagnose, Remedy, shown};
use meetpoint_format::recipe::{
    Recipe, RecipeError, ShippedRecipe, UnknownRecipe, find_shipped, is_recipe_path,
};
use meetpoint_storage::files::read_text;
use std::io;
use std::path::{Path, PathBuf};

/// Why a recipe cannot be read by its name.
#[derive(Debug, thiserror::Error)]
pub enum RecipeFileError {
    /// The file cannot be read.
    #[error("failed to read recipe {}: {source}", shown(path))]
    NotRead {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No file and no shipped recipe has this name.
    #[error("failed to read recipe {}: there is no such file, and {source}", shown(path))]
    Unknown {
        /// The path that the name would denote.
        path: PathBuf,
        /// Why it is not the name of a shipped recipe.
        source: UnknownRecipe,
    },
    /// Both a file and a shipped recipe have this name.
    #[error("{} is both a file and the shipped recipe {shipped}", shown(path))]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// The recipe.
        shipped: &'static ShippedRecipe,
    },
    /// The file is not a recipe.
    #[error("{}: {source}", shown(path))]
    Recipe {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<RecipeError>,
    },
    /// A file that the recipe needs is not usable.
    #[error("{}: {source}", shown(path))]
    File {
        /// The recipe file; the name of a shipped recipe.
        path: PathBuf,
        /// The problem with the other file.
        source: Box<Error>,
    },
}

impl Diagnose for RecipeFileError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NotRead { .. } => "recipe_not_read",
            Self::Unknown { source, .. } => source.cause(),
            Self::Ambiguous { .. } => "ambiguous_recipe",
            Self::Recipe { source, .. } => source.cause(),
            Self::File { source, .. } => source.cause(),
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NotRead { .. } => Some(
                Remedy::advice("give the path of a recipe file in TOML")
                    .or("the name of a shipped recipe, such as imagenet-resnet@1"),
            ),
            Self::Unknown { source, .. } => source.remedy(),
            Self::Ambiguous { path, shipped } => {
                let name = path.file_name().unwrap_or_default().display();
                let file = format!("give ./{name} for the file");
                Some(
                    Remedy::advice(file)
                        .or("rename it for the shipped recipe")
                        .or_run(Command::ShowRecipe { name: shipped.to_string() }),
                )
            }
            Self::Recipe { source, .. } => source.remedy(),
            Self::File { source, .. } => source.remedy(),
        }
    }
}

impl RecipeFileError {
    /// The file that the error concerns.
    pub fn path(&self) -> &Path {
        match self {
            Self::NotRead { path, .. }
            | Self::Unknown { path, .. }
            | Self::Ambiguous { path, .. }
            | Self::Recipe { path, .. }
            | Self::File { path, .. } => path,
        }
    }
}

/// Reads the recipe with this name: a file, whose path is relative to `folder`, or a recipe that
/// comes with the program, such as `deit` or `deit@1`.
///
/// A name with a separator, or one that ends in `.toml`, is always a path. Any other name that both
/// a file and a shipped recipe have is refused.
///
/// The files that it needs are read, as by [`read_recipe_files`]; relative paths of them are
/// resolved against the folder of the recipe file, those of a shipped recipe against `folder`.
pub fn read_recipe(name: &Path, folder: &Path) -> Result<Recipe, RecipeFileError> {
    let of_file = |source| RecipeFileError::File { path: name.into(), source: Box::new(source) };
    read_recipe_files(find_recipe(name, folder)?).map_err(of_file)
}

/// As [`read_recipe`], but the files that it needs are not read.
pub fn find_recipe(name: &Path, folder: &Path) -> Result<Recipe, RecipeFileError> {
    let path = folder.join(name);
    let shipped = name.to_str().filter(|text| !is_recipe_path(text)).map(find_shipped);
    match shipped {
        Some(Ok(shipped)) if path.exists() => {
            return Err(RecipeFileError::Ambiguous { path, shipped });
        }
        Some(Ok(shipped)) => return Ok(begin_files_at(shipped.recipe(), folder)),
        Some(Err(source)) if !path.exists() => {
            return Err(RecipeFileError::Unknown { path, source });
        }
        Some(Err(_)) | None => {}
    }
    match read_text(&path) {
        Err(source) => Err(RecipeFileError::NotRead { path, source }),
        Ok(text) => {
            let parsed = Recipe::from_toml(&text);
            let of_files = path.parent().unwrap_or(folder).to_path_buf();
            let refused = |error| RecipeFileError::Recipe { path, source: Box::new(error) };
            Ok(begin_files_at(parsed.map_err(refused)?, &of_files))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RecipeFileError, read_recipe};
    use meetpoint_format::recipe::find_shipped;
    use std::path::Path;

    const RECIPE: &str = "[[operation]]\nname = \"decode\"\n";

    #[test]
    fn a_name_is_a_file_or_a_shipped_recipe_but_never_silently_one_of_two() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| read_recipe(Path::new(name), folder.path());
        assert_eq!(read("deit").unwrap(), find_shipped("deit@1").unwrap().recipe());
        assert_eq!(read("imagenet-resnet@1").unwrap().output().unwrap().height, 224);

        for name in ["deit", "mine", "deit.toml"] {
            std::fs::write(folder.path().join(name), RECIPE).unwrap();
        }
        let plain = meetpoint_format::recipe::Recipe::from_toml(RECIPE).unwrap();
        for name in ["mine", "./deit", "deit.toml"] {
            assert_eq!(read(name).unwrap(), plain, "{name}");
        }
        let error = read("deit").unwrap_err();
        assert!(
            matches!(&error, RecipeFileError::Ambiguous { shipped, .. } if shipped.name == "deit"),
            "{error:?}"
        );
    }

    #[test]
    fn what_is_neither_a_file_nor_shipped_is_an_error_that_says_which() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| read_recipe(Path::new(name), folder.path()).unwrap_err();
        assert!(matches!(read("dait"), RecipeFileError::Unknown { .. }));
        assert!(matches!(read("deit@7"), RecipeFileError::Unknown { .. }));
        assert!(matches!(read("deit.toml"), RecipeFileError::NotRead { .. }));
        assert!(matches!(read("./deit"), RecipeFileError::NotRead { .. }));
        std::fs::write(folder.path().join("x.toml"), "[[operation]]\nname = \"x\"").unwrap();
        assert!(matches!(read("x.toml"), RecipeFileError::Recipe { .. }));
    }
}
