//! Invalid recipes: each error names position, key and remedy.

use crate::recipe::{
    CenterCrop, Decode, Dtype, Operation, RandomHorizontalFlip, Recipe, Scale, ToDtype,
};
use proptest::prelude::*;

const DECODE: &str = "[[operation]]\nname = 'decode'\n";

/// Asserts that `text` is refused at a position, with a message that contains each of `words`.
#[track_caller]
fn refused(text: &str, place: (usize, usize), words: &[&str]) {
    let error = Recipe::from_toml(text).expect_err(text);
    let message = format!("{error} ({})", error.remedy);
    assert_eq!(error.place, Some(place), "{message}\n{text}");
    for word in words {
        assert!(message.contains(word), "{word:?} is missing in: {message}");
    }
    assert!(!error.remedy.is_empty() && !message.contains('\n'), "{message}");
}

/// As [`refused`], for one operation after a decode; line 1 is the operation's name.
#[track_caller]
fn operation_refused(inside: &str, place: (usize, usize), words: &[&str]) {
    refused(&format!("{DECODE}[[operation]]\n{inside}\n"), (place.0 + 3, place.1), words);
}

#[test]
fn a_text_that_is_no_toml_is_refused_where_it_breaks() {
    refused("[[operation]]\nname = \n", (2, 8), &["not TOML"]);
    refused("[[operation]\n", (1, 13), &["not TOML"]);
    refused("[[operation]]\nname = 'decode'\nname = 'decode'\n", (3, 1), &["duplicate"]);
}

#[test]
fn an_empty_recipe_is_refused() {
    refused("", (1, 1), &["no operations", "decode"]);
    refused("# nothing\n", (1, 1), &["no operations"]);
    refused("operation = []\n", (1, 1), &["no operations"]);
}

#[test]
fn anything_but_operation_tables_is_refused() {
    refused("[[operations]]\nname = 'decode'\n", (1, 3), &["unknown key `operations`"]);
    refused("name = 'x'\n[[operation]]\nname = 'decode'\n", (1, 1), &["unknown key `name`"]);
    refused("[operation]\nname = 'decode'\n", (1, 1), &["[[operation]], with two brackets"]);
    refused("operation = 3\n", (1, 13), &["whole number 3"]);
    refused("operation = [{name = 'decode'}, 3]\n", (1, 33), &["operation 2 is not a table"]);
}

#[test]
fn an_operation_needs_a_known_name() {
    refused("[[operation]]\n", (1, 1), &["operation 1", "`name` is missing"]);
    refused("[[operation]]\nname = 3\n", (2, 8), &["whole number 3", "name = \"decode\""]);
    operation_refused("name = 'resiez'\nsize = 3", (1, 8), &["did you mean \"resize\"?"]);
    operation_refused(
        "name = 'RandomResizedCrop'",
        (1, 8),
        &["operation 2 (RandomResizedCrop)", "did you mean \"random_resized_crop\"?"],
    );
    operation_refused("name = 'vignette'", (1, 8), &["unknown operation", "known are decode"]);
}

#[test]
fn an_unknown_key_is_named_with_its_nearest() {
    operation_refused("name = 'resize'\nsiez = 3", (2, 1), &["`siez`", "did you mean `size`?"]);
    operation_refused(
        "name = 'random_horizontal_flip'\nprob = 3",
        (2, 1),
        &["`prob`", "its keys are p"],
    );
    operation_refused("name = 'resize'\nsize = 3\n  largest = 3", (3, 3), &["`largest`"]);
    let keyed = "[[operation]]\nname = 'decode'\ncolour = 'RGB'\n";
    refused(keyed, (3, 1), &["`colour`", "its keys are scaled"]);
}

#[test]
fn more_pixels_than_the_kernels_take_are_refused_where_they_are_asked_for() {
    for name in ["resize", "center_crop", "random_resized_crop"] {
        let inside = format!("name = '{name}'\nsize = [60000, 60000]");
        operation_refused(&inside, (2, 8), &["`size`", "3600000000 pixels", "268435456"]);
    }
    // A side follows from the preceding shape.
    let inside = "name = 'resize'\nsize = [1, 60000]\n[[operation]]\nname = 'resize'\nsize = 6000";
    operation_refused(inside, (5, 8), &["operation 3", "6000 x 360000000"]);
    let most = format!("{DECODE}[[operation]]\nname = 'resize'\nsize = [16384, 16384]\n");
    assert!(Recipe::from_toml(&most).is_ok());
}

#[test]
fn a_missing_key_is_named() {
    for (name, key) in [
        ("resize", "size"),
        ("center_crop", "size"),
        ("random_resized_crop", "size"),
        ("to_dtype", "dtype"),
        ("layout", "layout"),
        ("normalize", "mean"),
    ] {
        let missing = format!("the key `{key}` is missing");
        operation_refused(&format!("name = '{name}'"), (1, 8), &[name, &missing]);
    }
    let half = "name = 'normalize'\nmean = [0, 0, 0]";
    operation_refused(half, (1, 8), &["the key `std` is missing"]);
}

#[test]
fn a_value_of_the_wrong_type_is_named() {
    let crop = "name = 'random_resized_crop'\nsize = 9\n";
    let cases = [
        ("name = 'resize'\nsize = 'big'", (2, 8), "`size` holds the text \"big\""),
        ("name = 'resize'\nsize = 2.5", (2, 8), "`size` holds the number 2.5"),
        ("name = 'resize'\nsize = [1]", (2, 8), "`size` is an array of 1"),
        ("name = 'resize'\nsize = [1, 2, 3]", (2, 8), "`size` is an array of 3"),
        ("name = 'resize'\nsize = [1, true]", (2, 12), "`size` holds true"),
        ("name = 'resize'\nsize = 3\nantialias = 1", (3, 13), "`antialias` holds"),
        ("name = 'resize'\nsize = 3\ninterpolation = 2", (3, 17), "`interpolation` holds"),
        ("name = 'random_horizontal_flip'\np = 'often'", (2, 5), "`p` holds the text"),
        (&format!("{crop}scale = 0.5"), (3, 9), "`scale` holds the number 0.5"),
        ("name = 'to_dtype'\ndtype = 'float32'\nscale = 'times'", (3, 9), "`scale` is \"times\""),
        (&format!("{crop}ratio = [1]"), (3, 9), "`ratio` is an array of 1"),
        ("name = 'normalize'\nmean = 0.5\nstd = 0.5", (2, 8), "`mean` holds the number 0.5"),
        ("name = 'normalize'\nmean = [1, 2, 1979-05-27]\nstd = 1", (2, 15), "the date 1979"),
        ("name = 'to_dtype'\ndtype = {}", (2, 9), "`dtype` holds a table"),
    ];
    for (inside, place, words) in cases {
        operation_refused(inside, place, &[words]);
    }
}

#[test]
fn a_word_that_is_no_choice_is_named_with_the_choices() {
    let case = "name = 'resize'\nsize = 3\ninterpolation = 'Bilinear'";
    operation_refused(case, (3, 17), &["did you mean \"bilinear\"?", "\"bicubic\""]);
    let case = "name = 'to_dtype'\ndtype = 'float64'";
    operation_refused(case, (2, 9), &["`dtype` is \"float64\"", "\"uint16\", \"float16\""]);
    operation_refused("name = 'layout'\nlayout = 'nchw'", (2, 10), &["did you mean \"NCHW\"?"]);
}

#[test]
fn a_size_out_of_range_is_refused() {
    for size in ["0", "65536", "-1", "[224, 0]", "[65536, 1]", "99999999999999999999"] {
        for name in ["resize", "center_crop", "random_resized_crop"] {
            let text = format!("{DECODE}[[operation]]\nname = '{name}'\nsize = {size}\n");
            let error = Recipe::from_toml(&text).unwrap_err();
            assert_eq!(error.place.unwrap().0, 5, "{error}");
            assert!(error.remedy.contains("pixels from 1 to 65535"), "{error}");
        }
    }
}

#[test]
fn a_number_out_of_range_is_refused() {
    for p in ["-0.1", "1.1", "nan", "inf", "-inf", "1e400", "2"] {
        let inside = format!("name = 'random_horizontal_flip'\np = {p}");
        operation_refused(&inside, (2, 5), &["`p` is", "from 0 to 1"]);
    }
    for scale in ["[0, 1]", "[0.5, 0.1]", "[0.5, 1.5]", "[-1, 1]", "[nan, 1]", "[0.1, nan]"] {
        let inside = format!("name = 'random_resized_crop'\nsize = 9\nscale = {scale}");
        operation_refused(&inside, (3, 9), &["`scale` is", "0 < low <= high <= 1"]);
    }
    for ratio in ["[0, 1]", "[2, 1]", "[-1, 1]", "[1, inf]", "[nan, 1]", "[1, nan]"] {
        let inside = format!("name = 'random_resized_crop'\nsize = 9\nratio = {ratio}");
        operation_refused(&inside, (3, 9), &["`ratio` is", "width over height"]);
    }
}

#[test]
fn a_normalisation_needs_numbers_that_exist_in_its_type() {
    let normalize = |dtype: &str, mean: &str, std: &str| {
        format!(
            "{DECODE}[[operation]]\nname = 'to_dtype'\ndtype = '{dtype}'\n[[operation]]\n\
             name = 'normalize'\nmean = [0, 0, {mean}]\nstd = [1, {std}, 1]\n"
        )
    };
    for mean in ["inf", "nan", "1e39", "3.4028236e38"] {
        refused(&normalize("float32", mean, "1"), (8, 8), &["`mean` holds", "finite float32"]);
    }
    for std in ["0", "-0.0", "nan", "inf", "1e-50", "1e39"] {
        refused(&normalize("float32", "0", std), (9, 7), &["`std` holds", "zero or not finite"]);
    }
    for std in ["2.9802322387695312e-8", "65520", "-65520"] {
        refused(&normalize("float16", "0", std), (9, 7), &["float16"]);
        Recipe::from_toml(&normalize("float32", "0", std)).unwrap();
    }
    refused(&normalize("float16", "65520", "1"), (8, 8), &["finite float16"]);
    for (mean, std) in [("65519", "-65519"), ("3e-8", "3e-8")] {
        Recipe::from_toml(&normalize("float16", mean, std)).unwrap();
    }
    Recipe::from_toml(&normalize("float32", "3.4028235e38", "1e-45")).unwrap();
}

#[test]
fn an_operation_out_of_order_is_refused_with_the_way_out() {
    let case = "[[operation]]\nname = 'resize'\nsize = 9\n";
    refused(case, (2, 8), &["before the picture is decoded", "first operation must be \"decode\""]);
    operation_refused("name = 'decode'", (1, 8), &["operation 2", "decoded already"]);
    let normalize = "name = 'normalize'\nmean = [0, 0, 0]\nstd = [1, 1, 1]";
    operation_refused(
        normalize,
        (1, 8),
        &["takes a tensor of float16 or float32, but", "to_dtype"],
    );
    let layout = "name = 'layout'\nlayout = 'NCHW'";
    let twice = format!("{layout}\n[[operation]]\n{layout}");
    operation_refused(&twice, (4, 8), &["operation 3", "layout is set already"]);
    let back = "name = 'to_dtype'\ndtype = 'float32'\n[[operation]]\nname = 'to_dtype'\n\
                dtype = 'uint8'";
    operation_refused(back, (5, 9), &["`dtype` is \"uint8\"", "float32 here"]);
}

#[test]
fn an_operation_on_pixels_comes_before_all_that_leave_pixels() {
    let pixels = [
        "name = 'resize'\nsize = 6000",
        "name = 'center_crop'\nsize = 9",
        "name = 'random_resized_crop'\nsize = 9",
        "name = 'random_horizontal_flip'",
    ];
    let ends = [
        ("to_dtype", "dtype = 'uint8'"),
        ("to_dtype", "dtype = 'float32'"),
        ("layout", "layout = 'NHWC'"),
    ];
    for (end, key) in ends {
        for operation in pixels {
            let inside = format!("name = '{end}'\n{key}\n[[operation]]\n{operation}");
            operation_refused(&inside, (4, 8), &[&format!("move it up, before `{end}`")]);
        }
    }
}

#[test]
fn columns_count_characters_and_lines_may_end_as_in_windows() {
    let text = "[[operation]]\r\nname = 'decode'\r\n[[operation]]\r\n\
                \"name\" = 'größe' # ü\r\n";
    refused(text, (4, 10), &["größe"]);
    let inline = "operation = [{ name = 'decode' }, { name = 'résizé', size = 0 }]";
    refused(inline, (1, 44), &["did you mean \"resize\"?"]);
    let after = "operation = [{ name = 'decode' }, { 'größe' = 1, name = 'rezise' }]";
    refused(after, (1, 57), &["did you mean \"resize\"?"]);
}

#[test]
fn a_recipe_built_in_code_is_checked_too_and_has_no_position() {
    let error = Recipe::new(vec![]).unwrap_err();
    assert_eq!(error.place, None);
    assert_eq!(error.to_string(), "the recipe has no operations");
    let crop = Operation::CenterCrop(CenterCrop { height: 0, width: 5 });
    let error = Recipe::new(vec![Operation::Decode(Decode::EXACT), crop]).unwrap_err();
    assert_eq!(error.to_string(), "operation 2 (center_crop): `size` holds 0");
    assert_eq!(error.remedy, "set `size` to pixels from 1 to 65535, or [height, width]");
    let flip = Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: f64::NAN });
    assert!(Recipe::new(vec![Operation::Decode(Decode::EXACT), flip]).is_err());
}

#[test]
fn a_recipe_has_no_more_operations_than_can_draw() {
    let mut operations =
        vec![Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 0.5 }); 255];
    operations[0] = Operation::Decode(Decode::EXACT);
    Recipe::new(operations.clone()).unwrap();
    operations.push(Operation::ToDtype(ToDtype { dtype: Dtype::Float32, scale: Scale::Multiply }));
    let error = Recipe::new(operations).unwrap_err();
    assert!(error.to_string().contains("256 operations"), "{error}");
    assert_eq!(error.remedy, "at most 255");
}

proptest! {
    /// Any text is a recipe or an error with a position inside it.
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        if let Err(error) = Recipe::from_toml(&text) {
            prop_assert!(error.place.is_some(), "{error}");
        }
    }

    /// A valid recipe with some characters replaced is read, or refused at a position.
    #[test]
    fn a_damaged_recipe_never_panics(
        cuts in proptest::collection::vec((0usize..400, "[\\[\\]{}='\",.#0-9a-z\n-]{0,3}"), 1..4),
    ) {
        let recipe = "[[operation]]\nname = 'decode'\n[[operation]]\nname = 'random_resized_crop'\n\
                      size = [9, 8]\nscale = [0.1, 1.0]\nratio = [1.0, 2]\n[[operation]]\n\
                      name = 'normalize'\nmean = [0.1, 0.2, 0.3]\nstd = [1, 1, 1]\n";
        let mut characters: Vec<char> = recipe.chars().collect();
        for (at, inserted) in cuts {
            let at = at % characters.len();
            characters.splice(at..=at, inserted.chars());
        }
        let damaged: String = characters.into_iter().collect();
        if let Err(error) = Recipe::from_toml(&damaged) {
            let (line, column) = error.place.expect("a refused text has a place");
            prop_assert!(line >= 1 && column >= 1 && line <= damaged.lines().count() + 1);
        }
    }
}

#[test]
fn a_number_for_an_interval_is_refused_as_it_was_written() {
    let words =
        ["`hue` is 0.6 (set `hue` to a number from 0 to 0.5, or [low, high] with -0.5 <= low"];
    operation_refused("name = 'color_jitter'\nhue = 0.6", (2, 7), &words);
    let words = ["`contrast` is -0.1 (set `contrast` to a number of at least 0, or [low, high]"];
    operation_refused("name = 'color_jitter'\ncontrast = -0.1", (2, 12), &words);
}

#[test]
fn operations_on_colours_refuse_pictures_that_they_are_not_defined_for_and_name_both_types() {
    let (rgba, words, float) = ("mode = 'rgba'\n", "mode = 'rgb16'\n", "mode = 'float'\n");
    let hsv = "[[operation]]\nname = 'convert_color'\nspace = 'hsv'\n";
    for (before, operation, said) in [
        (rgba, "random_autocontrast'", "gives an image of uint8 with 4"),
        (rgba, "random_grayscale'", "gives an image of uint8 with 4"),
        (rgba, "random_channel_permutation'", "of uint16 or float32 with 1 or 3 channels"),
        (rgba, "grayscale'", "uint8 with 1 or 3 channels and cannot follow `decode`"),
        (words, "random_equalize'", "gives an image of uint16 with 3"),
        (words, "random_solarize'\nthreshold = 9", "or of float32 with 1 or 3 channels"),
        (words, "pillow_gaussian_blur'", "gives an image of uint16 with 3"),
        (words, "sigmoid_contrast'\ncontrast = 1", "gives an image of uint16 with 3"),
        (float, "random_gamma'", "gives an image of float32 with 1"),
        (float, "random_solarize'\nthreshold = 128", "from 0 to 1"),
        (words, "color_jitter'\nhue = 0.1", "values of uint16 and 3 channels"),
        (rgba, "color_jitter'\nhue = 0.1", "values of uint8 and 4 channels"),
        (hsv, "random_invert'", "`convert_color` to hsv"),
    ] {
        let text = format!("{DECODE}{before}[[operation]]\nname = '{operation}\n");
        let error = Recipe::from_toml(&text).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        let flip = "[[operation]]\nname = 'random_vertical_flip'\n";
        assert!(Recipe::from_toml(&format!("{DECODE}{before}{flip}")).is_ok());
    }
    for (before, operation) in [
        (rgba, "random_invert'"),
        (rgba, "random_equalize'"),
        (rgba, "color_jitter'\nbrightness = 0.4\nsaturation = 0.3"),
        (words, "random_grayscale'"),
        (words, "random_autocontrast'"),
        (words, "gaussian_blur'\nsigma_relative = [0.1, 0.2]"),
        (float, "random_solarize'\nthreshold = 0.5"),
        (float, "adjust_gamma'\ngamma = 2"),
    ] {
        let text = format!("{DECODE}{before}[[operation]]\nname = '{operation}\n");
        assert!(Recipe::from_toml(&text).is_ok(), "{text}");
    }
}

#[test]
fn keys_of_crumpets_operations_are_refused_out_of_their_range() {
    for (operation, key) in [
        ("crumpets_affine'\nsize = 8\nscale = [0, 1]", "scale"),
        ("crumpets_affine'\nsize = 8\naspect_sigma = 2", "aspect_sigma"),
        ("crumpets_affine'\nsize = 8\nscale_mode = 'longer'", "scale_mode"),
        ("crumpets_affine'\nsize = 8\nshift = [1, -1]", "shift"),
        ("crumpets_affine'", "size"),
        ("random_gamma'\nbrightness = [-2, 0]", "brightness"),
        ("random_gamma'\ncontrast = [0, 1.5]", "contrast"),
        ("random_sigmoid_contrast'\np = 2", "p"),
        ("gaussian_blur'\nsigma_relative = [0, 0.1]", "sigma_relative"),
        ("gaussian_blur'\nsigma = [1, 2]\nsigma_relative = [0.1, 0.1]", "sigma_relative"),
        ("gaussian_blur'\nkernel_size = 4", "kernel_size"),
    ] {
        let text = format!("{DECODE}[[operation]]\nname = '{operation}\n");
        let error = Recipe::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains(&format!("`{key}`")), "{error}");
    }
    let mode = "mode = 'gray16'\n[[operation]]\nname = 'crumpets_affine'\nsize = 8\n";
    let error = Recipe::from_toml(&format!("{DECODE}{mode}")).unwrap_err().to_string();
    assert!(error.contains("`supersampling`"), "{error}");
}
