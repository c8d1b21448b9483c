//! Operations that contain others: read, written, checked and numbered.

use crate::recipe::{
    ColorJitter, Decode, Operation, RandomApply, RandomChoice, RandomInvert, RandomOrder, Recipe,
    RecipeError,
};

const DECODE: &str = "[[operation]]\nname = 'decode'\n";

const NESTED: &str = "
[[operation]]
name = 'decode'
[[operation]]
name = 'center_crop'
size = 8
[[operation]]
name = 'random_choice'
p = [1, 0.5]
[[operation.operations]]
name = 'random_apply'
p = 0.8
operations = [{ name = 'color_jitter', hue = 0.1 }, { name = 'random_invert', p = 1 }]
[[operation.operations]]
name = 'random_order'
[[operation.operations.operations]]
name = 'random_equalize'
[[operation.operations.operations]]
name = 'random_grayscale'
";

fn after_decode(text: &str) -> Result<Recipe, RecipeError> {
    Recipe::from_toml(&format!("{DECODE}{text}"))
}

#[test]
fn nested_operations_read_back_from_both_texts() {
    let recipe = Recipe::from_toml(NESTED).unwrap();
    assert_eq!(Recipe::from_toml(&recipe.to_toml()), Ok(recipe.clone()));
    assert_eq!(recipe.output().map(|spec| (spec.height, spec.width)), Some((8, 8)));
    assert!(!recipe.is_deterministic());
    let Operation::RandomChoice(choice) = &recipe.operations()[2] else { panic!("{recipe:?}") };
    assert_eq!(choice.p, [1.0, 0.5]);
    let [Operation::RandomApply(apply), Operation::RandomOrder(order)] = &choice.operations[..]
    else {
        panic!("{choice:?}")
    };
    assert_eq!((apply.p, apply.operations.len(), order.operations.len()), (0.8, 2, 2));
    assert_eq!(apply.operations[1], RandomInvert { p: 1.0 }.into());
}

#[test]
fn the_canonical_form_holds_the_nested_operations_with_their_defaults() {
    let recipe = after_decode(
        "[[operation]]
        name = 'random_apply'
        operations = [{ p = 0.25, name = 'random_invert' }]",
    );
    let form = "[{\"name\":\"decode\"},{\"name\":\"random_apply\",\"operations\":\
                [{\"name\":\"random_invert\",\"p\":0.25}],\"p\":0.5}]";
    assert_eq!(recipe.unwrap().canonical(), form);
}

/// Text after `decode`, path and position of the operation, and words of the error.
const REFUSED: &[(&str, (usize, usize), &[&str])] = &[
    (
        "[[operation]]\nname = 'random_apply'\n[[operation.operations]]\nname = 'random_inver'",
        (6, 8),
        &["operation 2.1 (random_inver in random_apply): unknown operation", "\"random_invert\"?"],
    ),
    (
        "[[operation]]\nname = 'random_order'\n[[operation.operations]]\nname = 'random_invert'\n\
         [[operation.operations]]\nname = 'random_invert'\np = 2",
        (9, 5),
        &["operation 2.2 (random_invert in random_order): `p` is 2.0", "from 0 to 1"],
    ),
    (
        "[[operation]]\nname = 'random_apply'\n[[operation.operations]]\nname = 'random_choice'\n\
         operations = [{ name = 'random_invert' }, { name = 'to_dtype', dtype = 'float32' }]",
        (7, 52),
        &["operation 2.1.2 (to_dtype in random_choice in random_apply): gives a tensor"],
    ),
    (
        "[[operation]]\nname = 'random_apply'\noperations = [{ name = 'grayscale' }]",
        (5, 24),
        &["operation 2.1 (grayscale in random_apply)", "number of channels from 3 to 1"],
    ),
    (
        "[[operation]]\nname = 'random_apply'\noperations = [{ name = 'decode' }]",
        (5, 24),
        &["operation 2.1 (decode in random_apply)", "decoded already"],
    ),
    (
        "[[operation]]\nname = 'random_apply'\noperations = [3]",
        (5, 15),
        &["operation 2 (random_apply): `operations` holds the whole number 3 at 1"],
    ),
    (
        "[[operation]]\nname = 'random_apply'\noperations = []",
        (5, 14),
        &["operation 2 (random_apply): `operations` is []", "at least one operation"],
    ),
    (
        "[[operation]]\nname = 'random_apply'",
        (4, 8),
        &["operation 2 (random_apply): the key `operations` is missing"],
    ),
    (
        "[[operation]]\nname = 'random_choice'\np = [1, 2]\n\
         operations = [{ name = 'random_invert' }]",
        (5, 5),
        &["`p` has 2 weights, but `operations` has 1"],
    ),
    (
        "[[operation]]\nname = 'random_choice'\np = [0]\n\
         operations = [{ name = 'random_invert' }]",
        (5, 5),
        &["`p` is [0.0]", "not all 0"],
    ),
    (
        "[[operation]]\nname = 'random_choice'\np = [nan]\n\
         operations = [{ name = 'random_invert' }]",
        (5, 5),
        &["`p` is [NaN]"],
    ),
    (
        "[[operation]]\nname = 'random_choice'\np = [-1]\n\
         operations = [{ name = 'random_invert' }]",
        (5, 5),
        &["`p` is [-1.0]"],
    ),
    (
        "[[operation]]\nname = 'layout'\nlayout = 'NCHW'\n\
         [[operation]]\nname = 'random_apply'\noperations = [{ name = 'random_invert' }]",
        (7, 8),
        &["operation 3 (random_apply): takes an image and cannot follow `layout`"],
    ),
];

#[test]
fn errors_name_the_path_and_the_position_of_a_nested_operation() {
    for (text, place, words) in REFUSED {
        let error = after_decode(text).expect_err(text);
        let message = format!("{error} ({})", error.remedy);
        assert_eq!(error.place, Some(*place), "{message}\n{text}");
        for word in *words {
            assert!(message.contains(word), "{word:?} is missing in: {message}");
        }
    }
}

#[test]
fn operations_nest_eight_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let open = "{ name = 'random_apply', operations = [".repeat(depth - 1);
        let close = "] }".repeat(depth - 1);
        after_decode(&format!(
            "[[operation]]\nname = 'random_apply'\noperations = [{open}{{ name = \
                               'random_invert' }}{close}]"
        ))
    };
    assert!(nested(7).is_ok());
    let error = nested(8).unwrap_err();
    assert!(error.problem.contains("`operations` is inside of 7 operations"), "{error}");
    assert!(error.remedy.contains("8 deep"), "{error}");
}

#[test]
fn nested_operations_count_towards_the_limit() {
    let recipe = |count: usize| {
        let operations = vec![Operation::from(RandomInvert { p: 0.5 }); count];
        let apply = RandomApply { operations, p: 0.5 };
        Recipe::new(vec![Decode::EXACT.into(), apply.into()])
    };
    assert!(recipe(253).is_ok());
    let error = recipe(254).unwrap_err();
    assert_eq!(error.problem, "the recipe has 256 operations");
}

#[test]
fn the_size_is_known_where_it_does_not_depend_on_what_is_chosen() {
    let size = |text: &str| {
        let crop = "[[operation]]\nname = 'center_crop'\nsize = 9\n";
        let output = after_decode(&format!("{crop}[[operation]]\n{text}")).unwrap().output();
        output.map(|spec| (spec.height, spec.width))
    };
    let [same, other] =
        ["{ name = 'center_crop', size = 9 }", "{ name = 'center_crop', size = 8 }"];
    for (name, content, expected) in [
        ("random_apply", same.to_owned(), Some((9, 9))),
        ("random_apply", other.to_owned(), None),
        ("random_apply", format!("{other}, {same}"), Some((9, 9))),
        ("random_choice", format!("{other}, {other}"), Some((8, 8))),
        ("random_choice", format!("{other}, {same}"), None),
        ("random_order", same.to_owned(), Some((9, 9))),
        ("random_order", format!("{other}, {same}"), None),
    ] {
        let text = format!("name = '{name}'\noperations = [{content}]");
        assert_eq!(size(&text), expected, "{text}");
    }
}

#[test]
fn recipes_made_in_code_are_those_of_the_text() {
    let jitter = ColorJitter {
        brightness: (1.0, 1.0),
        contrast: (1.0, 1.0),
        saturation: (1.0, 1.0),
        hue: (-0.1, 0.1),
    };
    let order = RandomOrder { operations: vec![jitter.into(), RandomInvert { p: 0.5 }.into()] };
    let choice = RandomChoice { operations: vec![order.into()], p: vec![] };
    let made = Recipe::new(vec![Decode::EXACT.into(), choice.into()]).unwrap();
    let read = after_decode(
        "[[operation]]
        name = 'random_choice'
        [[operation.operations]]
        name = 'random_order'
        operations = [{ name = 'color_jitter', hue = 0.1 }, { name = 'random_invert' }]",
    );
    assert_eq!(read.as_ref(), Ok(&made));
    assert_eq!(read.unwrap().hash(), made.hash());
}
