//! Operations on the geometry of a picture: what they refuse, and how their keys may be written.

use crate::recipe::{Operation, Padding, Recipe};

fn read(operations: &str) -> Result<Recipe, crate::recipe::RecipeError> {
    Recipe::from_toml(&format!("[[operation]]\nname = 'decode'\n[[operation]]\n{operations}\n"))
}

fn refused(operations: &str, words: &[&str]) {
    let error = read(operations).unwrap_err();
    let text = format!("{error} ({})", error.remedy);
    assert!(words.iter().all(|word| text.contains(word)), "{operations}: {text}");
    assert!(error.place.is_some(), "{text}");
}

#[test]
fn a_value_out_of_range_is_refused_with_the_range() {
    for (operation, words) in [
        ("name = 'random_rotation'\ndegrees = 361", ["`degrees`", "0 to 360"]),
        ("name = 'random_rotation'\ndegrees = [10, -10]", ["`degrees`", "-360 <= low <= high"]),
        ("name = 'random_rotation'\ndegrees = 1\nfill = 256", ["`fill` holds 256", "0 to 255"]),
        ("name = 'random_rotation'\ndegrees = 1\nfill = [1, 2]", ["array of 2", "3 or 4 integers"]),
        (
            "name = 'random_rotation'\ndegrees = 1\ncenter = [1, inf]",
            ["`center`", "-2147483648 to"],
        ),
        (
            "name = 'random_rotation'\ndegrees = 1\ncenter = [1, 1e20]",
            ["`center`", "to 2147483648"],
        ),
        ("name = 'random_affine'\ndegrees = 1\ncenter = [-3e9, 0]", ["`center`", "-2147483648 to"]),
        ("name = 'random_affine'\ndegrees = 1\nscale = [0, 1]", ["`scale`", "0 < low <= high"]),
        ("name = 'random_affine'\ndegrees = 1\nshear = [3, 2]", ["`shear`", "low and high"]),
        ("name = 'random_affine'\ndegrees = 1\nshear = [1, 2, 3]", ["array of 3", "2 or 4"]),
        ("name = 'random_affine'\ndegrees = 1\nsupersampling = 4", ["holds 4", "1 to 3"]),
        ("name = 'random_affine'\ndegrees = 1\nsupersampling = 'all'", ["\"all\"", "auto"]),
        ("name = 'random_perspective'\ndistortion_scale = 1.1", ["1.1", "0 to 1"]),
        ("name = 'elastic_transform'\nsigma = [0, 1]", ["`sigma`", "both above 0"]),
        ("name = 'elastic_transform'\nsigma = 101", ["`sigma`", "0 to 100"]),
        ("name = 'elastic_transform'\ninterpolation = 'bicubic'", ["bilinear", "nearest"]),
        ("name = 'pad'\npadding = 65536", ["65536", "0 to 65535"]),
        ("name = 'pad'\npadding = []", ["array of 0", "2 or 4"]),
        ("name = 'pad'\npadding = 1\npadding_mode = 'symetric'", ["mean \"symmetric\"", "edge"]),
        ("name = 'random_zoom_out'\nside_range = [0.9, 2]", ["`side_range`", "1 <= low"]),
        ("name = 'random_resize'\nmin_size = 9\nmax_size = 9", ["not above", "`min_size` = 9"]),
        ("name = 'random_shortest_size'\nmin_size = []", ["array of 0", "up to 32"]),
        ("name = 'scale_jitter'\ntarget_size = [0, 9]", ["holds 0", "1 to 65535"]),
        ("name = 'resize'\nsize = 9\nmax_size = 9", ["`max_size` is 9", "`size` = 9"]),
        ("name = 'resize'\nsize = [9, 9]\nmax_size = 19", ["a height and a width", "remove"]),
    ] {
        refused(operation, &words);
    }
}

#[test]
fn a_crop_larger_than_a_picture_of_a_known_size_is_refused() {
    let crop = |keys: &str| {
        format!("name = 'center_crop'\nsize = 8\n[[operation]]\nname = 'random_crop'\n{keys}")
    };
    refused(&crop("size = 9"), &["`size`", "8 x 8", "pad_if_needed = true"]);
    refused(&crop("size = [8, 13]\npadding = 2"), &["`size`", "12 x 12"]);
    read(&crop("size = [8, 12]\npadding = 2")).unwrap();
    read(&crop("size = 99\npad_if_needed = true")).unwrap();
    // With pictures of any size, it is known only per sample.
    read("name = 'random_crop'\nsize = 9").unwrap();
}

#[test]
fn a_colour_of_three_channels_is_refused_for_a_grey_picture() {
    for operation in [
        "name = 'random_rotation'\ndegrees = 1",
        "name = 'random_affine'\ndegrees = 1",
        "name = 'random_perspective'",
        "name = 'elastic_transform'",
        "name = 'pad'\npadding = 1",
        "name = 'random_crop'\nsize = 9",
        "name = 'random_zoom_out'",
    ] {
        let grey = format!("name = 'grayscale'\n[[operation]]\n{operation}");
        refused(&format!("{grey}\nfill = [1, 2, 3]"), &["`fill`", "1 channel", "one number"]);
        read(&format!("{grey}\nfill = 1")).unwrap();
    }
}

#[test]
fn fewer_numbers_stand_for_all_of_them() {
    let last = |text: &str| read(text).unwrap().operations().last().unwrap().clone();
    for (padding, expected) in [
        ("3", [3, 3, 3, 3]),
        ("[3]", [3, 3, 3, 3]),
        ("[1, 2]", [1, 2, 1, 2]),
        ("[1, 2, 3, 4]", [1, 2, 3, 4]),
    ] {
        let Operation::Pad(pad) = last(&format!("name = 'pad'\npadding = {padding}")) else {
            panic!("no pad")
        };
        let [left, top, right, bottom] = expected;
        assert_eq!(pad.padding, Padding { left, top, right, bottom });
    }
    for (shear, expected) in [
        ("3", [(-3.0, 3.0), (0.0, 0.0)]),
        ("[1, 2]", [(1.0, 2.0), (0.0, 0.0)]),
        ("[1, 2, 3, 4]", [(1.0, 2.0), (3.0, 4.0)]),
    ] {
        let text = format!("name = 'random_affine'\ndegrees = 1\nshear = {shear}");
        let Operation::RandomAffine(affine) = last(&text) else { panic!("no affine") };
        assert_eq!(affine.shear, expected);
    }
}

#[test]
fn a_size_is_known_where_it_follows_from_that_before() {
    let size = |operation: &str| {
        let text = format!("name = 'center_crop'\nsize = [8, 6]\n[[operation]]\n{operation}");
        read(&text).unwrap().output().map(|it| (it.height, it.width))
    };
    assert_eq!(size("name = 'pad'\npadding = [1, 2, 3, 4]"), Some((14, 10)));
    assert_eq!(size("name = 'random_affine'\ndegrees = 9"), Some((8, 6)));
    assert_eq!(size("name = 'random_affine'\ndegrees = 9\nsize = [3, 5]"), Some((3, 5)));
    assert_eq!(size("name = 'random_rotation'\ndegrees = 9"), Some((8, 6)));
    assert_eq!(size("name = 'random_rotation'\ndegrees = 9\nexpand = true"), None);
    assert_eq!(size("name = 'resize'\nsize = 30\nmax_size = 35"), Some((35, 26)));
    assert_eq!(size("name = 'resize'\nsize = 30\nmax_size = 40"), Some((40, 30)));
    for varying in [
        "name = 'random_zoom_out'",
        "name = 'random_resize'\nmin_size = 3\nmax_size = 9",
        "name = 'random_shortest_size'\nmin_size = 3",
        "name = 'scale_jitter'\ntarget_size = [9, 9]",
    ] {
        assert_eq!(size(varying), None);
        let fixed = format!("{varying}\n[[operation]]\nname = 'center_crop'\nsize = 4");
        assert_eq!(size(&fixed), Some((4, 4)));
    }
}

#[test]
fn a_key_without_a_value_is_left_out_of_both_forms() {
    let recipe = read("name = 'resize'\nsize = 30").unwrap();
    assert!(!recipe.canonical().contains("max_size"), "{}", recipe.canonical());
    assert!(!recipe.to_toml().contains("max_size"), "{}", recipe.to_toml());
    let recipe = read("name = 'resize'\nsize = 30\nmax_size = 40").unwrap();
    assert!(recipe.canonical().contains("\"max_size\":40"), "{}", recipe.canonical());
    assert_eq!(Recipe::from_toml(&recipe.to_toml()).unwrap(), recipe);
}
