//! Recipes of text: the type of their result, their files, and operations that cannot follow each
//! other.

use crate::recipe::{Dtype, Layout, NamedFile, Recipe, RecipeError, ValueKind};
use std::convert::Infallible;

const TOKENIZE: &str = "tokenize tokenizer = \"t.json\"";
const EMBED: &str = "embed table = \"w.npy\";dim = 4";
const PLANES: &str = "pad_sequence length = 9;planes = \"ids_segments_positions\"";

fn recipe(operations: &[&str]) -> Result<Recipe, RecipeError> {
    let tables = operations.iter().map(|keys| {
        let (name, rest) = keys.split_once(' ').unwrap_or((keys, ""));
        format!("[[operation]]\nname = \"{name}\"\n{}\n", rest.replace(';', "\n"))
    });
    Recipe::from_toml(&tables.collect::<String>())
}

#[test]
fn the_shape_is_known_as_soon_as_the_length_is() {
    let spec = |operations: &[&str]| {
        let recipe = recipe(operations).unwrap_or_else(|error| panic!("{error}"));
        recipe.output().map(|spec| (spec.axes(), spec.dtype, spec.layout))
    };
    assert_eq!(spec(&["decode_text"]), None);
    assert_eq!(spec(&["decode_text", "html_to_text", TOKENIZE]), None);
    assert_eq!(spec(&["decode_text", TOKENIZE, EMBED]), None);
    let padded = ["decode_text", TOKENIZE, "pad_sequence length = 9"];
    assert_eq!(spec(&padded), Some((vec![9], Dtype::Int32, Layout::Nt)));
    let planes = ["decode_text", TOKENIZE, PLANES];
    assert_eq!(spec(&planes), Some((vec![3, 9], Dtype::Int32, Layout::Nct)));
    let embedded = ["decode_text", TOKENIZE, "pad_sequence length = 9", EMBED];
    assert_eq!(spec(&embedded), Some((vec![9, 4], Dtype::Float32, Layout::Ntc)));
    let halves = format!("{EMBED};dtype = \"float16\"");
    let embedded = ["decode_text", TOKENIZE, "pad_sequence length = 9", &halves];
    assert_eq!(spec(&embedded), Some((vec![9, 4], Dtype::Float16, Layout::Ntc)));
}

#[test]
fn packed_rows_are_a_batch_without_labels_of_classes() {
    let recipe = recipe(&["decode_text", TOKENIZE, PLANES, "pack_sequences"]).unwrap();
    assert_eq!(recipe.result().kind, ValueKind::Batch);
    assert_eq!((recipe.labels(), recipe.split().1.len()), (None, 1));
    assert_eq!(recipe.output().unwrap().batch_shape(5), [5, 3, 9]);
    assert!(recipe.is_deterministic());
    assert_eq!(recipe.refusal_of_cut(3), None);
    assert!(recipe.refusal_of_cut(4).is_some());
}

#[test]
fn what_cannot_follow_names_both_types() {
    let refused = |operations: &[&str], words: &[&str]| {
        let error = recipe(operations).unwrap_err();
        let error = format!("{error} ({})", error.remedy);
        for word in words {
            assert!(error.contains(word), "{word:?} is missing in: {error}");
        }
    };
    refused(&["html_to_text"], &["comes before the sample is decoded", "\"decode_text\""]);
    refused(&["decode_text", EMBED], &["takes tokens", "`decode_text`, which gives text"]);
    refused(&["decode", "html_to_text"], &["takes text", "which gives an image", "decode_text"]);
    refused(
        &["decode_text", TOKENIZE, "html_to_text"],
        &["takes text", "`tokenize`, which gives tokens", "move it up"],
    );
    refused(&["decode_text", "resize size = 8"], &["takes image", "gives text"]);
    refused(&["decode_text", "log"], &["takes audio", "gives text"]);
    refused(&["decode_text", TOKENIZE, PLANES, EMBED], &["1 planes", "3 here", "`planes`"]);
    let padded = "pad_sequence length = 9";
    refused(&["decode_text", TOKENIZE, padded, "pack_sequences"], &["3 planes", "`planes`"]);
    refused(&["decode_text", TOKENIZE, padded, "to_dtype dtype = \"float32\""], &["tokens"]);
    refused(&["decode", "to_dtype dtype = \"int32\""], &["`dtype`", "int32"]);
    refused(&["decode_text", "tokenize tokenizer = 3"], &["`tokenizer`", "path"]);
    let short = format!("{TOKENIZE};sha256 = \"abc\"");
    refused(&["decode_text", &short], &["`sha256`", "64"]);
}

#[test]
fn a_path_counts_in_the_hash_only_while_the_content_is_not_known() {
    let of =
        |path: &str| recipe(&["decode_text", &format!("tokenize tokenizer = {path:?}")]).unwrap();
    assert_ne!(of("a.json").hash(), of("b.json").hash());
    assert!(of("a \"b\\.json").canonical().contains(r#""a \"b\\.json""#));
    assert_eq!(Recipe::from_toml(&of("a \"b\\.json").to_toml()).unwrap(), of("a \"b\\.json"));
    let known = |path: &str, digit: &str| {
        let read = |_: &'static str, file: &NamedFile| {
            Ok::<_, Infallible>(NamedFile { sha256: Some(digit.repeat(64)), ..file.clone() })
        };
        let Ok(recipe) = of(path).with_files(read);
        recipe
    };
    assert_eq!(known("a.json", "0").hash(), known("b.json", "0").hash());
    assert_ne!(known("a.json", "0").hash(), known("a.json", "1").hash());
    assert!(!known("a.json", "0").canonical().contains("a.json"));
    assert!(known("a.json", "0").form().contains("a.json"));
    let text = known("a.json", "0").to_toml();
    assert_eq!(Recipe::from_toml(&text).unwrap().hash(), known("b.json", "0").hash());
    assert_eq!(known("a.json", "0").files()[0].path, "a.json");
}

#[test]
fn text_has_no_targets_and_no_views() {
    let operations = "[[operation]]\nname = \"decode_text\"\n";
    let target = format!("{operations}[targets.mask]\nkind = \"mask\"\n");
    assert!(Recipe::from_toml(&target).unwrap_err().to_string().contains("decode_text"));
    let view = format!(
        "{operations}[[views]]\ncolumn = \"a\"\n[[views.operations]]\nname = \"html_to_text\"\n"
    );
    assert!(Recipe::from_toml(&view).unwrap_err().to_string().contains("views"));
}
