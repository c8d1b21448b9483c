//! Tests of the shipped recipes: what each is, and that none changes.

use super::{Change, ChangeError, SHIPPED, UnknownRecipe, find_shipped, is_recipe_path};
use crate::recipe::Recipe;
use meetpoint_diagnose::{Diagnose, Surface};

/// The hash of every recipe. A line is added with a recipe and never changes.
const HASHES: &str = include_str!("hashes.txt");

#[test]
fn a_shipped_recipe_never_changes() {
    let lines: Vec<String> =
        SHIPPED.iter().map(|it| format!("{} {it}", it.recipe().hash())).collect();
    let known: Vec<&str> = HASHES.lines().collect();
    assert_eq!(lines, known, "a changed recipe needs another version");
}

#[test]
fn the_list_is_sorted_and_versions_count_from_one() {
    let keys: Vec<(&str, u32)> = SHIPPED.iter().map(|it| (it.name, it.version)).collect();
    assert!(keys.is_sorted() && keys.windows(2).all(|pair| pair[0] != pair[1]));
    for recipe in SHIPPED {
        let before = keys.iter().filter(|it| it.0 == recipe.name && it.1 < recipe.version);
        assert_eq!(before.count() as u32 + 1, recipe.version, "{recipe}");
    }
}

#[test]
fn every_recipe_can_be_batched_and_its_file_reads_back() {
    for shipped in SHIPPED {
        assert!(shipped.recipe().output().is_some(), "{shipped}");
        assert_eq!(Recipe::from_toml(&shipped.file()).unwrap(), shipped.recipe(), "{shipped}");
        assert!(!is_recipe_path(shipped.name), "{shipped}");
        assert!(find_shipped(&shipped.to_string()).is_ok_and(|found| found == shipped));
    }
}

#[test]
fn the_documentation_lists_every_recipe() {
    let page = include_str!("../../../../docs/recipes.md");
    let listed: Vec<&str> =
        page.lines().filter(|line| line.contains("@") && line.starts_with("| `")).collect();
    let expected: Vec<String> =
        SHIPPED.iter().map(|it| format!("| `{it}` | {} | {} |", it.about, it.source)).collect();
    assert_eq!(listed, expected);
}

#[test]
fn without_a_version_a_name_is_the_latest() {
    assert_eq!(find_shipped("imagenet-resnet").unwrap().version, 2);
    assert_eq!(find_shipped("deit").unwrap().to_string(), "deit@1");
}

#[test]
fn an_unknown_name_or_version_names_what_there_is() {
    let remedy = |name: &str| {
        let error = find_shipped(name).unwrap_err();
        error.remedy().unwrap().spelled(Surface::CommandLine)
    };
    assert!(matches!(find_shipped("dait"), Err(UnknownRecipe::Name { .. })));
    assert!(remedy("imagenet_resnt@1").contains("imagenet-resnet"));
    assert!(remedy("something else").contains("rsb-a3"));
    assert!(matches!(find_shipped("deit@2"), Err(UnknownRecipe::Version { .. })));
    assert!(remedy("imagenet-resnet@3").contains("imagenet-resnet@1 or imagenet-resnet@2"));
    assert!(find_shipped("deit@").is_err() && find_shipped("deit@01").is_err());
}

fn changed(name: &str, change: &str) -> Result<Recipe, ChangeError> {
    find_shipped(name).unwrap().recipe().changed(&[change.parse::<Change>()?])
}

#[test]
fn a_change_sets_a_key_in_every_operation_that_has_it() {
    let recipe = changed("imagenet-resnet@2", "num_classes = 10").unwrap();
    assert_eq!(recipe.labels().unwrap().classes, 10);
    let text = recipe.to_toml();
    assert_eq!((text.matches("num_classes = 10").count(), text.contains("1000")), (2, false));
    let recipe = changed("imagenet-resnet-eval@1", "center_crop.size=[96, 128]").unwrap();
    assert_eq!(recipe.output().map(|it| (it.height, it.width)), Some((96, 128)));
    let recipe = changed("mae", "interpolation=bilinear").unwrap();
    assert!(recipe.to_toml().contains("\"bilinear\""));
}

#[test]
fn a_change_that_cannot_be_made_is_refused_with_the_reason() {
    let is_ambiguous = |it: &ChangeError| {
        matches!(it, ChangeError::Ambiguous { operations, .. }
        if operations == &["resize", "center_crop"])
    };
    assert!(is_ambiguous(&changed("imagenet-resnet-eval", "size=96").unwrap_err()));
    let error = changed("deit", "num_clases=10").unwrap_err();
    assert!(error.remedy().unwrap().spelled(Surface::CommandLine).contains("`num_classes`"));
    assert!(matches!(changed("deit", "resize.size=1"), Err(ChangeError::NoSuchKey { .. })));
    assert!(matches!(changed("deit", "size"), Err(ChangeError::NotAChange(_))));
    assert!(matches!(changed("deit", ".size=1"), Err(ChangeError::NotAChange(_))));
    let Err(ChangeError::Refused(error)) = changed("deit", "random_resized_crop.size=0") else {
        panic!("a size of 0 is refused");
    };
    assert_eq!(error.place, None);
}
