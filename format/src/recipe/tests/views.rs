//! Recipes with views: their results, texts and errors.

use crate::recipe::{Recipe, RecipeError, Subject, VIEWS_MAX};

const DINO: &str = r#"
    [[operation]]
    name = "decode"
    [[views]]
    column = "global"
    count = 2
    [[views.operations]]
    name = "random_resized_crop"
    size = 224
    scale = [0.32, 1.0]
    [[views.operations]]
    name = "random_apply"
    p = 0.8
    [[views.operations.operations]]
    name = "color_jitter"
    brightness = 0.4
    [[views.operations]]
    name = "layout"
    layout = "NCHW"
    [[views]]
    column = "local"
    count = 8
    [[views.operations]]
    name = "random_resized_crop"
    size = 96
    scale = [0.05, 0.32]
"#;

#[test]
fn each_view_is_a_column_with_its_count_as_first_axis() {
    let recipe = Recipe::from_toml(DINO).unwrap();
    let [global, local] = recipe.images() else { panic!("two columns") };
    let (spec, small) = (global.spec().unwrap(), local.spec().unwrap());
    assert_eq!((&*global.column, global.axes(&spec)), ("global", vec![2, 3, 224, 224]));
    assert_eq!((&*local.column, local.axes(&small)), ("local", vec![8, 96, 96, 3]));
    assert_eq!(local.bytes(&small), 8 * 96 * 96 * 3);
    assert_eq!((global.first_view, local.first_view), (0, 2));
    assert_eq!((global.common, local.operations.len()), (1, 2));
    assert_eq!(recipe.output(), None);
    assert!(!recipe.is_deterministic() && !recipe.gives_one_picture());
}

#[test]
fn the_text_of_a_recipe_with_views_reads_back() {
    let recipe = Recipe::from_toml(DINO).unwrap();
    let text = recipe.to_toml();
    assert_eq!(Recipe::from_toml(&text).unwrap(), recipe, "{text}");
    assert_eq!(Recipe::from_toml(&text).unwrap().hash(), recipe.hash());
    let other = DINO.replace("count = 8", "count = 7");
    assert_ne!(Recipe::from_toml(&other).unwrap().hash(), recipe.hash());
}

#[test]
fn the_canonical_form_has_the_views_in_order() {
    let text = "[[operation]]\nname = \"decode\"\n[[views]]\ncolumn = \"b\"\n[[views]]\n\
                column = \"a\"\ncount = 2\noperations = [{ name = \"center_crop\", size = 8 }]\n";
    let recipe = Recipe::from_toml(text).unwrap();
    let form = "{\"operations\":[{\"name\":\"decode\"}],\"views\":[\
                {\"column\":\"b\",\"count\":1,\"operations\":[]},\
                {\"column\":\"a\",\"count\":2,\"operations\":\
                [{\"name\":\"center_crop\",\"size\":[8,8]}]}]}";
    assert_eq!(recipe.canonical(), form);
    assert_eq!(recipe.images()[0].spec(), None, "a view without operations is the picture");
}

#[test]
fn crops_of_one_picture_are_an_axis_of_their_own() {
    let axes = |text: &str| {
        let recipe = Recipe::from_toml(text).unwrap();
        let images = recipe.images()[0].clone();
        (images.axes(&images.spec().unwrap()), images.common, recipe.output())
    };
    let five = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\nsize = 20\n\
                [[operation]]\nname = \"five_crop\"\nsize = 8\n";
    assert_eq!(axes(five), (vec![5, 8, 8, 3], 2, None));
    let views = "[[operation]]\nname = \"decode\"\n[[views]]\ncolumn = \"x\"\ncount = 3\n\
                 [[views.operations]]\nname = \"ten_crop\"\nsize = [8, 9]\n";
    assert_eq!(axes(views), (vec![3, 10, 8, 9, 3], 1, None));
}

fn refused(text: &str) -> RecipeError {
    Recipe::from_toml(text).expect_err(text)
}

/// A recipe with common operations, and one view of these lines.
fn with(common: &[&str], view: &str) -> String {
    let tables = common.iter().map(|name| format!("[[operation]]\nname = \"{name}\"\n"));
    format!("{}[[views]]\n{view}", tables.collect::<String>())
}

#[test]
fn a_view_with_a_wrong_key_is_refused_where_it_stands() {
    for (view, place, part) in [
        ("count = 2", (3, 1), "`column` is missing"),
        ("column = 3", (4, 10), "`column` holds the whole number 3"),
        ("column = \"\"", (4, 10), "`column` is empty"),
        ("column = \"label\"", (4, 10), "`column` is \"label\""),
        ("column = \"x\"\ncount = 0", (5, 9), "`count` holds 0"),
        ("column = \"x\"\ncount = 257", (5, 9), "`count` holds 257"),
        ("column = \"x\"\ncount = -1", (5, 9), "`count` holds the whole number -1"),
        ("column = \"x\"\ncuont = 2", (5, 1), "unknown key `cuont`"),
        ("column = \"x\"\noperations = 2", (5, 14), "`operations` holds the whole number 2"),
        ("column = \"x\"\n[[views]]\ncolumn = \"x\"", (6, 10), "another view has"),
    ] {
        let error = refused(&with(&["decode"], view));
        assert!(matches!(error.subject, Subject::View { .. }), "{error}");
        assert_eq!(error.place, Some(place), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = refused(&with(&["decode"], "column = \"x\"\ncuont = 2"));
    assert!(error.remedy.contains("`count`"), "{}", error.remedy);
    let many: String =
        (0..=VIEWS_MAX).map(|view| format!("[[views]]\ncolumn = \"v{view}\"\n")).collect();
    let error = refused(&format!("[[operation]]\nname = \"decode\"\n{many}"));
    assert_eq!(error.subject, Subject::Recipe);
}

#[test]
fn an_operation_of_a_view_is_named_with_its_view() {
    let view = "column = \"x\"\n[[views.operations]]\nname = \"center_crop\"\nsize = 8\n\
                [[views.operations]]\nname = \"decode\"\n";
    let error = refused(&with(&["decode"], view));
    assert!(error.to_string().contains("view \"x\", operation 2 (decode)"), "{error}");
    assert_eq!(error.place, Some((9, 8)));
    let error = refused(&with(&["decode"], &view.replace("\"decode\"", "\"decoed\"")));
    assert!(error.to_string().contains("view \"x\", operation 2 (decoed)"), "{error}");
}

#[test]
fn what_cannot_be_before_or_in_a_view_is_refused_by_name() {
    let view = "column = \"x\"\n[[views.operations]]\nname = \"center_crop\"\nsize = 8\n";
    let to_dtype = "to_dtype\"\ndtype = \"float32";
    let one_hot = "one_hot\"\nnum_classes = 3\n#\"";
    let five = "five_crop\"\nsize = 4\n#\"";
    for (common, part) in [
        (to_dtype.to_owned(), "gives a tensor, but views begin with an image"),
        (five.to_owned(), "gives 5 pictures, but views begin with one"),
        (one_hot.to_owned(), "takes a batch of one picture"),
    ] {
        let error = refused(&with(&["decode", &common], view));
        assert!(error.to_string().contains(part), "{error}");
        assert!(matches!(&error.subject, Subject::Operation(it) if it.view.is_none()), "{error}");
    }
    let mixed = format!("{view}[[views.operations]]\nname = \"one_hot\"\nnum_classes = 3\n");
    let error = refused(&with(&["decode"], &mixed));
    assert!(error.to_string().contains("view \"x\", operation 2 (one_hot)"), "{error}");
    let targets = format!("{}[targets.mask]\nkind = \"mask\"\n", with(&["decode"], view));
    let error = refused(&targets);
    assert!(matches!(error.subject, Subject::View { .. }), "{error}");
    assert!(error.problem.contains("\"mask\""), "{error}");
}

#[test]
fn a_mode_that_views_cannot_take_is_refused_with_the_key() {
    let view = "column = \"x\"\n[[views.operations]]\nname = \"center_crop\"\nsize = 8\n";
    let error = refused(&with(&["decode\"\nmode = \"rgba"], view));
    assert!(error.to_string().contains("operation 1 (decode): `mode` gives pictures"), "{error}");
    assert_eq!(error.place, Some((3, 8)));
    assert!(Recipe::from_toml(&with(&["decode\"\nmode = \"gray"], view)).is_ok());
}

#[test]
fn several_crops_are_refused_where_one_picture_is_taken() {
    let refuse = |operations: &str| {
        refused(&format!("[[operation]]\nname = \"decode\"\n{operations}")).problem
    };
    let five = "[[operation]]\nname = \"five_crop\"\nsize = 8\n";
    let twice = refuse(&format!("{five}{five}"));
    assert!(twice.contains("there are 5 here"), "{twice}");
    let mixed = refuse(&format!("{five}[[operation]]\nname = \"one_hot\"\nnum_classes = 3\n"));
    assert!(mixed.contains("one picture for each sample"), "{mixed}");
    let chosen = refuse(
        "[[operation]]\nname = \"random_apply\"\n\
         [[operation.operations]]\nname = \"ten_crop\"\nsize = 8\n",
    );
    assert!(chosen.contains("gives 10 pictures, but may not be executed"), "{chosen}");
    let boxed = refuse(&format!("{five}[targets.b]\nkind = \"boxes\"\nformat = \"xyxy\"\n"));
    assert!(boxed.contains("five_crop"), "{boxed}");
}
