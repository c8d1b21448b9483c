//! The files that a recipe needs, such as a tokenizer: read, identified and checked.

use crate::{Error, RecipeFilesError};
use meetpoint_format::recipe::{FileContent, NamedFile, Recipe};
use meetpoint_kernels::check_files;
use meetpoint_storage::files::read_regular;
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// Longest file of a recipe: enough for half a million vectors of 2048 float32.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The recipe with relative paths of its files resolved against a folder.
pub fn begin_files_at(recipe: Recipe, folder: &Path) -> Recipe {
    let moved = |_: &'static str, file: &NamedFile| {
        let path = folder.join(&file.path);
        // If the path is not valid UTF-8, it stays as given.
        let path = path.to_str().unwrap_or(&file.path).to_owned();
        Ok::<_, Infallible>(NamedFile { path, ..file.clone() })
    };
    let Ok(recipe) = recipe.with_files(moved);
    recipe
}

/// The recipe with the contents of its files and their checksums, by which its hash identifies
/// them. Paths become absolute, so that a device finds the files as well. Files that have been read
/// already are unchanged.
///
/// # Errors
///
/// [`Error::RecipeFile`]: a file cannot be read, its checksum differs from the recipe's, or its
/// content does not suit its operation.
pub fn read_recipe_files(recipe: Recipe) -> Result<Recipe, Error> {
    if recipe.files().iter().all(|file| file.content.is_some()) {
        return Ok(recipe);
    }
    let mut known: Vec<NamedFile> = Vec::new();
    let recipe = recipe.with_files(|operation, file| -> Result<NamedFile, RecipeFilesError> {
        if file.content.is_some() {
            return Ok(file.clone());
        }
        let is_it = |it: &&NamedFile| it.path == file.path && file.sha256.is_none();
        // A recipe may use the same file more than once.
        if let Some(read) = known.iter().find(is_it) {
            return Ok(read.clone());
        }
        let read = read_file(operation, file)?;
        known.push(NamedFile { path: file.path.clone(), ..read.clone() });
        Ok(read)
    })?;
    check_files(&recipe).map_err(RecipeFilesError::from)?;
    Ok(recipe)
}

fn read_file(operation: &'static str, file: &NamedFile) -> Result<NamedFile, RecipeFilesError> {
    let given = PathBuf::from(&file.path);
    let not_read = |source| RecipeFilesError::NotRead { operation, path: given.clone(), source };
    let path = std::path::absolute(&given).map_err(not_read)?;
    let bytes = read_regular(&path, FILE_BYTES_MAX).map_err(not_read)?;
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(expected) = file.sha256.clone().filter(|expected| *expected != found) {
        return Err(RecipeFilesError::Changed { operation, path, expected, found });
    }
    let path = path.to_str().unwrap_or(&file.path).to_owned();
    Ok(NamedFile { path, sha256: Some(found), content: Some(FileContent::new(bytes)) })
}

#[cfg(test)]
mod tests {
    use super::{begin_files_at, read_recipe_files};
    use crate::{Error, RecipeFilesError};
    use meetpoint_format::recipe::Recipe;
    use std::path::Path;

    fn recipe(keys: &str) -> Recipe {
        Recipe::from_toml(&format!(
            "[[operation]]\nname = \"decode_text\"\n[[operation]]\nname = \"tokenize\"\n{keys}"
        ))
        .unwrap()
    }

    fn vocabulary(tokens: &[&str]) -> String {
        let vocabulary: Vec<String> =
            tokens.iter().enumerate().map(|(at, token)| format!("{token:?}:{at}")).collect();
        format!(
            "{{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\
             \"normalizer\":null,\"pre_tokenizer\":null,\"post_processor\":null,\"decoder\":null,\
             \"model\":{{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\
             \"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,\
             \"byte_fallback\":false,\"vocab\":{{{}}},\"merges\":[]}}}}",
            vocabulary.join(",")
        )
    }

    #[test]
    fn the_content_of_a_file_and_not_its_path_counts_in_the_hash() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("one.json", &vocabulary(&["a", "b"])).unwrap();
        write("same.json", &vocabulary(&["a", "b"])).unwrap();
        write("other.json", &vocabulary(&["a", "c"])).unwrap();
        let read = |name: &str| {
            let recipe =
                begin_files_at(recipe(&format!("tokenizer = \"{name}\"\n")), folder.path());
            read_recipe_files(recipe).unwrap()
        };
        let [one, same, other] = ["one.json", "same.json", "other.json"].map(read);
        assert_eq!(one.hash(), same.hash());
        assert_eq!(one, same);
        assert_ne!(one.hash(), other.hash());
        assert!(Path::new(&one.files()[0].path).is_absolute());
        // As a device receives it.
        let again = Recipe::from_toml(&one.to_toml()).unwrap();
        assert_eq!(again.hash(), one.hash());
        assert_eq!(read_recipe_files(again).unwrap().hash(), one.hash());

        let text = one.to_toml();
        write("one.json", &vocabulary(&["b", "a"])).unwrap();
        let changed = read_recipe_files(Recipe::from_toml(&text).unwrap()).unwrap_err();
        let Error::RecipeFile(error) = &changed else { panic!("{changed:?}") };
        assert!(matches!(**error, RecipeFilesError::Changed { operation: "tokenize", .. }));
        // Files are not read a second time.
        assert_eq!(read_recipe_files(one.clone()).unwrap().hash(), one.hash());
    }

    #[test]
    fn a_file_that_is_missing_or_no_tokenizer_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| {
            let recipe =
                begin_files_at(recipe(&format!("tokenizer = \"{name}\"\n")), folder.path());
            match read_recipe_files(recipe) {
                Err(Error::RecipeFile(error)) => *error,
                other => panic!("{other:?}"),
            }
        };
        assert!(matches!(read("none.json"), RecipeFilesError::NotRead { .. }));
        assert!(matches!(read("."), RecipeFilesError::NotRead { .. }));
        std::fs::write(folder.path().join("empty.json"), "").unwrap();
        let misfit = read("empty.json");
        assert!(misfit.to_string().contains("empty.json"), "{misfit}");
        assert!(matches!(misfit, RecipeFilesError::Misfit(_)));
    }
}
