//! Targets of recipes: parsing, hashes, and error messages.

use crate::recipe::{
    BoxFormat, Boxes, DECLARATIONS, Decode, Keypoints, Mask, MaskType, OnTargets, Operation,
    OutsidePoint, Phase, Recipe, Saliency, Subject, TARGET_DECLARATIONS, Target, TargetKind,
    ValueKind,
};

const CROP: &str = "[[operation]]\nname = 'decode'\n\
                    [[operation]]\nname = 'random_resized_crop'\nsize = 8\n";

fn read(operations: &str, targets: &str) -> Result<Recipe, crate::recipe::RecipeError> {
    Recipe::from_toml(&format!("{operations}{targets}"))
}

/// Asserts that a recipe is refused in this line, behind the lines of [`CROP`], with these words.
#[track_caller]
fn refused(operations: &str, targets: &str, line: usize, words: &[&str]) {
    let error = read(operations, targets).expect_err(targets);
    let message = format!("{error} ({})", error.remedy);
    assert_eq!(error.place.map(|(line, _)| line), Some(line), "{message}");
    for word in words {
        assert!(message.contains(word), "{word:?} is missing in: {message}");
    }
}

const ALL: &str = "
[targets.mask]
kind = 'mask'
fill = 255
dtype = 'uint16'
[targets.'eye fixations']
kind = 'saliency'
[targets.boxes]
kind = 'boxes'
format = 'xywh'
to_format = 'xyxy'
min_size = 1
filters = ['labels', 'joints']
[targets.joints]
kind = 'keypoints'
swap = [[1, 2], [3, 4]]
outside = 'zero'
";

#[test]
fn every_kind_of_target_is_read_with_its_options_and_sorted_by_column() {
    let recipe = read(CROP, ALL).unwrap();
    let target = |column: &str, kind: TargetKind| Target { column: column.to_owned(), kind };
    let boxes = Boxes {
        format: BoxFormat::Xywh,
        to_format: Some(BoxFormat::Xyxy),
        min_size: Some(1.0),
        min_area: None,
        filters: vec!["labels".to_owned(), "joints".to_owned()],
    };
    let joints = Keypoints { swap: vec![[1, 2], [3, 4]], outside: OutsidePoint::Zero };
    let expected = [
        target("boxes", boxes.into()),
        target("eye fixations", Saliency { fill: 0 }.into()),
        target("joints", joints.into()),
        target("mask", Mask { fill: 255.0, dtype: MaskType::Uint16 }.into()),
    ];
    assert_eq!(recipe.targets(), expected);
    let made = Recipe::with_targets(recipe.operations().to_vec(), expected.into()).unwrap();
    assert_eq!((&made, made.hash()), (&recipe, recipe.hash()));
    assert_eq!(Recipe::from_toml(&recipe.to_toml()).unwrap(), recipe, "{}", recipe.to_toml());
}

#[test]
fn the_canonical_form_is_an_object_with_targets_and_an_array_without() {
    let plain = read(CROP, "").unwrap();
    assert!(plain.canonical().starts_with("[{"), "{}", plain.canonical());
    let recipe = read(CROP, "[targets.'größe \"1\"']\nkind = 'mask'\n").unwrap();
    let expected = format!(
        r#"{{"operations":{},"targets":{{"größe \"1\"":{{{}}}}}}}"#,
        plain.canonical(),
        r#""dtype":"uint8","fill":0,"kind":"mask""#
    );
    assert_eq!(recipe.canonical(), expected);
    assert_ne!(recipe.hash(), plain.hash());
    assert_eq!(Recipe::from_toml(&recipe.to_toml()).unwrap(), recipe);
    let empty = read(CROP, "[targets]\n").unwrap();
    assert_eq!((empty.canonical(), empty.hash()), (plain.canonical(), plain.hash()));
}

#[test]
fn tables_of_targets_are_refused_where_they_are_wrong() {
    refused(CROP, "targets = 3\n", 6, &["operation 2", "unknown key `targets`"]);
    refused("targets = 3\n", CROP, 1, &["`targets` is the whole number 3", "[targets.mask]"]);
    refused("targets = {mask = 3}\n", CROP, 1, &["target \"mask\" is the whole number 3"]);
    refused(CROP, "[targets.mask]\n", 6, &["target \"mask\"", "`kind` is missing"]);
    refused(CROP, "[targets.m]\nkind = 'masks'\n", 7, &["did you mean \"mask\"?"]);
    refused(CROP, "[targets.m]\nkind = 'mask'\nfil = 1\n", 8, &["unknown key `fil`", "`fill`"]);
    refused(CROP, "[targets.b]\nkind = 'boxes'\n", 7, &["target \"b\" (boxes)", "`format`"]);
    let boxes = |rest: &str| format!("[targets.b]\nkind = 'boxes'\nformat = 'xyxy'\n{rest}\n");
    for format in ["xywhr", "cxcywhr", "xyxyxyxy"] {
        let rotated = format!("[targets.b]\nkind = 'boxes'\nformat = '{format}'\n");
        refused(CROP, &rotated, 8, &["rotated boxes are not supported", format]);
    }
    refused(CROP, &boxes("min_size = -1"), 9, &["`min_size`", "0 or more"]);
    refused(CROP, &boxes("filters = ['labels']"), 9, &["all boxes are kept", "min_size = 1"]);
    refused(CROP, &boxes("min_size = 1\nfilters = ['a', 'a']"), 10, &["`filters` is"]);
    refused(CROP, &boxes("min_size = 1\nfilters = ['b']"), 10, &["holds boxes itself"]);
    let points = |swap: &str| format!("[targets.p]\nkind = 'keypoints'\nswap = {swap}\n");
    refused(CROP, &points("[[1, 2], [2, 3]]"), 8, &["names the point 2 twice"]);
    refused(CROP, &points("[[1, 1]]"), 8, &["names the point 1 twice"]);
    refused(CROP, &points("[[1, 2, 3]]"), 8, &["array of 3"]);
}

#[test]
fn two_targets_do_not_share_a_column_that_is_filtered() {
    let target = |column: &str| {
        let kind = Boxes {
            format: BoxFormat::Xyxy,
            to_format: None,
            min_size: Some(1.0),
            min_area: None,
            filters: vec!["labels".to_owned()],
        };
        Target { column: column.to_owned(), kind: kind.into() }
    };
    let recipe = |targets| Recipe::with_targets(vec![Decode::EXACT.into()], targets);
    recipe(vec![target("boxes")]).unwrap();
    let error = recipe(vec![target("boxes"), target("others")]).unwrap_err();
    let of = Subject::Target { column: "others".into(), kind: "boxes".into() };
    assert_eq!(error.subject, of);
    assert!(error.problem.contains("filtered already"), "{error}");
    let error = recipe(vec![target("boxes"), target("boxes")]).unwrap_err();
    assert!(error.problem.contains("there are two"), "{error}");
}

#[test]
fn operations_that_move_pixels_in_ways_of_their_own_name_the_target_that_they_refuse() {
    let refusing: Vec<&str> = DECLARATIONS
        .iter()
        .filter(|it| it.targets == OnTargets::Refuses && it.phase != Phase::Batch)
        .filter(|it| it.takes.iter().any(|takes| takes.kind == ValueKind::Image))
        .map(|it| it.name)
        .collect();
    let policies =
        ["auto_augment", "rand_augment", "timm_rand_augment", "trivial_augment_wide", "aug_mix"];
    let crops = ["five_crop", "ten_crop"];
    assert_eq!(refusing, [&crops[..], &policies[..]].concat());
    for name in crops {
        let operations = format!("{CROP}[[operation]]\nname = '{name}'\nsize = 3\n");
        let targets = "[targets.mask]\nkind = 'mask'\n";
        refused(&operations, targets, 7, &[name, "target \"mask\" (mask)", "remove"]);
    }
    for name in policies {
        let operations = format!("{CROP}[[operation]]\nname = '{name}'\n");
        let targets = "[targets.mask]\nkind = 'mask'\n";
        refused(&operations, targets, 7, &[name, "target \"mask\" (mask)", "remove"]);
        let nested = format!(
            "{CROP}[[operation]]\nname = 'random_apply'\n\
             [[operation.operations]]\nname = '{name}'\n"
        );
        refused(&nested, targets, 7, &["random_apply", name, "\"mask\""]);
    }
}

#[test]
fn operations_move_targets_exactly_if_they_move_pixels() {
    for it in DECLARATIONS {
        let moves = match it.phase {
            Phase::Geometry | Phase::Picture | Phase::Choice => true,
            Phase::Decode
            | Phase::Pixels
            | Phase::Series
            | Phase::Text
            | Phase::Elements
            | Phase::Tensor
            | Phase::Batch => false,
        };
        // Several crops of a picture would take several rows of each target.
        let is_one = !["five_crop", "ten_crop"].contains(&it.name);
        assert_eq!(it.targets == OnTargets::Moves, moves && is_one, "{}", it.name);
    }
}

#[test]
fn a_padding_that_repeats_the_picture_moves_masks_but_no_points() {
    let with = |mode: &str, operation: &str, targets: &str| {
        let operations =
            format!("{CROP}[[operation]]\nname = '{operation}'\npadding_mode = '{mode}'\n");
        read(&operations, targets)
    };
    let boxes = "[targets.boxes]\nkind = 'boxes'\nformat = 'xyxy'\n";
    for operation in ["pad'\npadding = 2 # '", "random_crop'\nsize = 4 # '"] {
        for mode in ["edge", "reflect", "symmetric"] {
            with(mode, operation, "[targets.mask]\nkind = 'mask'\n").unwrap();
            let error = with(mode, operation, boxes).unwrap_err();
            assert_eq!(error.place.unwrap().0, 9, "{error}");
            assert!(error.problem.contains(mode) && error.problem.contains("\"boxes\""), "{error}");
        }
        with("constant", operation, boxes).unwrap();
    }
}

#[test]
fn a_crop_by_boxes_needs_exactly_one_target_of_boxes() {
    let operations = format!("{CROP}[[operation]]\nname = 'random_iou_crop'\n");
    refused(
        &operations,
        "",
        7,
        &["needs one target of the kind boxes", "has 0", "[targets.boxes]"],
    );
    let one = "[targets.a]\nkind = 'boxes'\nformat = 'xyxy'\n";
    let recipe = read(&operations, one).unwrap();
    assert!(matches!(recipe.operations()[2], Operation::RandomIouCrop(_)));
    let two = format!("{one}[targets.b]\nkind = 'boxes'\nformat = 'xyxy'\n");
    refused(&operations, &two, 7, &["has 2"]);
    let turned = format!("{operations}min_scale = 0.5\nmax_scale = 0.4\n");
    refused(&turned, one, 8, &["`min_scale` is 0.5, more than `max_scale`, which is 0.4"]);
}

#[test]
fn the_schema_has_the_kinds_of_targets_with_their_keys() {
    let names: Vec<&str> = TARGET_DECLARATIONS.iter().map(|it| it.name).collect();
    assert_eq!(names, ["mask", "saliency", "boxes", "keypoints"]);
    let schema = crate::recipe::schema(Some("mask")).unwrap();
    assert!(schema.operations.is_empty());
    let text = toml::to_string(&schema).unwrap();
    let read: toml::Table = text.parse().unwrap();
    assert_eq!(read["targets"][0]["keys"][0]["name"].as_str(), Some("fill"));
}
