//! Tests of the shipped recipes: what each is, and that none changes.

use super::{Change, ChangeError, SHIPPED, UnknownRecipe, find_shipped, is_recipe_path};
use crate::recipe::{Images, Recipe};
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
        for images in shipped.recipe().images() {
            assert!(images.spec().is_some(), "{shipped}: {}", images.column);
        }
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
fn recipes_of_self_supervised_training_have_the_views_of_their_originals() {
    let views = |name: &str| {
        let recipe = find_shipped(name).unwrap().recipe();
        let of = |it: &Images| (it.column.clone(), it.axes(&it.spec().unwrap()));
        recipe.images().iter().map(of).collect::<Vec<_>>()
    };
    let column = |name: &str, axes: &[u32]| (name.to_owned(), axes.to_vec());
    let expected = [
        column("global_1", &[3, 224, 224]),
        column("global_2", &[3, 224, 224]),
        column("local", &[8, 3, 96, 96]),
    ];
    assert_eq!(views("dinov2"), expected);
    assert_eq!(views("simclr"), [column("view", &[2, 3, 224, 224])]);
}

#[test]
fn a_change_is_of_one_view_or_of_all() {
    let axes = |name: &str, change: &str| {
        let recipe = changed(name, change).unwrap();
        let of = |it: &Images| it.axes(&it.spec().unwrap());
        recipe.images().iter().map(of).collect::<Vec<_>>()
    };
    let (global, local) = (vec![3, 224, 224], vec![8, 3, 96, 96]);
    let small = axes("dinov2", "local.random_resized_crop.size=64");
    assert_eq!(small, [global.clone(), global.clone(), vec![8, 3, 64, 64]]);
    assert_eq!(axes("dinov2", "local.count=6")[2], [6, 3, 96, 96]);
    assert_eq!(axes("dinov2", "random_grayscale.p=1"), [global.clone(), global, local]);
    assert_eq!(axes("simclr", "size=96"), [[2, 3, 96, 96]]);
}

#[test]
fn a_change_of_views_that_cannot_be_made_is_refused_with_the_reason() {
    let error = changed("dinov2", "size=64").unwrap_err();
    assert!(
        matches!(&error, ChangeError::AmbiguousView { views, .. }
            if views == &["global_1", "global_2", "local"]),
        "{error}"
    );
    let remedy = error.remedy().unwrap().spelled(Surface::CommandLine);
    assert!(remedy.contains("global_1.random_resized_crop.size"), "{remedy}");
    for (name, change) in [("dinov2", "lokal.count=2"), ("deit", "local.resize.size=2")] {
        let error = changed(name, change).unwrap_err();
        assert!(matches!(error, ChangeError::NoSuchView { .. }), "{error}");
    }
    let error = changed("dinov2", "global_1.gaussian_blur.sigma=1").unwrap_err();
    assert!(matches!(error, ChangeError::NoSuchKey { .. }), "{error}");
    assert!(matches!(changed("dinov2", "local.count=0"), Err(ChangeError::Refused(_))));
    assert!(matches!(changed("dinov2", "a.b.c.d=0"), Err(ChangeError::NotAChange(_))));
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
