//! The texts of a recipe: TOML round-trips; the canonical form and its hash never change.

use crate::golden;
use crate::recipe::{
    CenterCrop, ColorJitter, Decode, Dtype, Grayscale, Interpolation, Layout, Normalize, Operation,
    RandomGrayscale, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Recipe,
    RecipeError, Resize, Scale, Size, ToDtype,
};
use proptest::prelude::*;

const TRAIN: &str = "
    [[operation]] # comments and spacing don't count
    name = 'decode'
    [[operation]]
    name = 'random_resized_crop'
    size = 224
    [[operation]]
    p = 0.5
    name = 'random_horizontal_flip'
";

const EVALUATE: &str = "
    [[operation]]
    name = 'decode'
    [[operation]]
    name = 'resize'
    size = 256
    interpolation = 'bicubic'
    antialias = false
    [[operation]]
    name = 'center_crop'
    size = [224, 192]
    [[operation]]
    name = 'to_dtype'
    dtype = 'float32'
    scale = true
    [[operation]]
    name = 'normalize'
    mean = [0.485, 0.456, 0.406]
    std = [1e-7, 1e22, 1.5e-40]
    [[operation]]
    name = 'layout'
    layout = 'NCHW'
";

const AUGMENT: &str = "
    [[operation]]
    name = 'decode'
    [[operation]]
    name = 'random_vertical_flip'
    p = 0.25
    [[operation]]
    name = 'color_jitter'
    brightness = 0.4
    saturation = [0.5, 2]
    hue = 0.1
    [[operation]]
    name = 'random_grayscale'
    [[operation]]
    name = 'grayscale'
    [[operation]]
    name = 'to_dtype'
    dtype = 'float16'
    [[operation]]
    name = 'normalize'
    mean = [0.5]
    std = [0.25]
";

const NESTED: &str = "
    [[operation]]
    name = 'decode'
    [[operation]]
    name = 'random_choice'
    p = [1, 0.5]
    [[operation.operations]]
    name = 'random_apply'
    p = 0.8
    operations = [
        { name = 'random_solarize', threshold = 128, p = 1 },
        { name = 'random_posterize', bits = 4 },
    ]
    [[operation.operations]]
    name = 'random_order'
    [[operation.operations.operations]]
    name = 'random_channel_permutation'
    [[operation.operations.operations]]
    name = 'adjust_gamma'
    gamma = 0.1
    [[operation]]
    name = 'random_choice'
    operations = [{ name = 'random_invert' }]
";

#[test]
fn form_and_hash_equal_those_computed_from_the_documentation() {
    for (name, words) in golden::lines("recipe") {
        let text = match name[0] {
            "train" => TRAIN,
            "evaluate" => EVALUATE,
            "augment" => AUGMENT,
            "nested" => NESTED,
            other => panic!("no recipe called {other}"),
        };
        let recipe = Recipe::from_toml(text).unwrap();
        assert_eq!(recipe.canonical(), words[1], "{name:?}");
        assert_eq!(recipe.hash().to_string(), words[0], "{name:?}");
    }
}

#[test]
fn only_keys_of_decode_that_differ_from_their_defaults_are_in_the_canonical_form() {
    let decode = |keys: &str| {
        let text = format!("[[operation]]\nname = 'decode'\n{keys}");
        Recipe::from_toml(&text).unwrap()
    };
    let plain = decode("");
    assert_eq!(plain.canonical(), r#"[{"name":"decode"}]"#);
    assert_eq!(decode("on_error = 'fail'").hash(), plain.hash());
    let lenient = decode("on_error = 'lenient'\norient = true");
    let form = r#"[{"name":"decode","on_error":"lenient","orient":true}]"#;
    assert_eq!(lenient.canonical(), form);
    assert_eq!(Recipe::from_toml(&lenient.to_toml()).unwrap(), lenient);
    let error = Recipe::from_toml("[[operation]]\nname = 'decode'\non_error = 'skip'").unwrap_err();
    assert!(error.to_string().contains("on_error"), "{error}");
}

#[test]
fn the_hash_depends_on_every_value() {
    let base = Recipe::from_toml(EVALUATE).unwrap().hash();
    let changes = [
        ("256", "257"),
        ("bicubic", "bilinear"),
        ("antialias = false", "antialias = true"),
        ("[224, 192]", "[192, 224]"),
        ("float32", "float16"),
        ("scale = true", "scale = false"),
        ("0.485", "0.4850000000000001"),
        ("1.5e-40", "1.0"),
        ("NCHW", "NHWC"),
    ];
    for (from, to) in changes {
        assert!(EVALUATE.contains(from));
        // The smallest and largest numbers of EVALUATE exist in float32 alone.
        let text = EVALUATE.replace(from, to);
        let text =
            if to == "float16" { text.replace("[1e-7, 1e22, 1.5e-40]", "[1, 1, 1]") } else { text };
        let hash = Recipe::from_toml(&text).unwrap().hash();
        assert_ne!(hash, base, "{from} -> {to}");
    }
}

#[test]
fn both_zeros_are_one_recipe() {
    let normalize = |zero: f64| {
        Recipe::new(vec![
            Operation::Decode(Decode::EXACT),
            Operation::ToDtype(ToDtype { dtype: Dtype::Float32, scale: Scale::Multiply }),
            Operation::Normalize(Normalize { mean: [zero; 3].into(), std: [1.0; 3].into() }),
        ])
        .unwrap()
    };
    assert_eq!(normalize(0.0), normalize(-0.0));
    assert_eq!(normalize(0.0).hash(), normalize(-0.0).hash());
}

fn interpolation() -> impl Strategy<Value = Interpolation> {
    use Interpolation::{Bicubic, Bilinear, Nearest};
    proptest::sample::select(vec![Bilinear, Bicubic, Nearest])
}

/// Two numbers of a range, the smaller first.
fn ordered(range: std::ops::RangeInclusive<f64>) -> impl Strategy<Value = (f64, f64)> {
    (range.clone(), range).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn pixels() -> impl Strategy<Value = Operation> {
    // Any two of them give at most as many pixels as a picture may have.
    let side = 1u32..=16384;
    let sides = (side.clone(), side.clone());
    let size = prop_oneof![
        side.prop_map(Size::ShorterSide),
        sides.clone().prop_map(|(height, width)| Size::Exact { height, width }),
    ];
    prop_oneof![
        (size, interpolation(), any::<bool>()).prop_map(|(size, interpolation, antialias)| {
            Operation::Resize(Resize { size, max_size: None, interpolation, antialias })
        }),
        sides
            .clone()
            .prop_map(|(height, width)| Operation::CenterCrop(CenterCrop { height, width })),
        (
            sides,
            ordered(f64::MIN_POSITIVE..=1.0),
            ordered(f64::MIN_POSITIVE..=f64::MAX),
            interpolation(),
            any::<bool>(),
        )
            .prop_map(|((height, width), scale, ratio, interpolation, antialias)| {
                Operation::RandomResizedCrop(RandomResizedCrop {
                    height,
                    width,
                    scale,
                    ratio,
                    interpolation,
                    antialias,
                })
            }),
        (0.0..=1.0).prop_map(|p| RandomHorizontalFlip { p }.into()),
        (0.0..=1.0).prop_map(|p| RandomVerticalFlip { p }.into()),
        (0.0..=1.0).prop_map(|p| RandomGrayscale { p }.into()),
        Just(Grayscale { num_output_channels: 3 }.into()),
        (proptest::array::uniform3(ordered(0.0..=f64::MAX)), ordered(-0.5..=0.5),).prop_map(
            |([brightness, contrast, saturation], hue)| {
                ColorJitter { brightness, contrast, saturation, hue }.into()
            }
        ),
    ]
}

fn scale() -> impl Strategy<Value = Scale> {
    proptest::sample::select(vec![Scale::None, Scale::Multiply, Scale::Divide])
}

fn tail() -> impl Strategy<Value = Vec<Operation>> {
    let number =
        (1e-40f64..1e37, any::<bool>()).prop_map(|(it, minus)| if minus { -it } else { it });
    let three = proptest::array::uniform3(number);
    let layout = proptest::sample::select(vec![Layout::Nhwc, Layout::Nchw]);
    (three.clone(), three, scale(), layout).prop_map(|(mean, std, scale, layout)| {
        vec![
            Operation::ToDtype(ToDtype { dtype: Dtype::Float32, scale }),
            Operation::Normalize(Normalize { mean: mean.into(), std: std.into() }),
            Operation::ToDtype(ToDtype { dtype: Dtype::Float16, scale }),
            Operation::Layout(layout),
        ]
    })
}

fn any_recipe() -> impl Strategy<Value = Recipe> {
    (proptest::collection::vec(pixels(), 0..6), tail(), 0usize..5).prop_filter_map(
        "a shorter side that makes the longer one too long",
        |(pixels, tail, kept)| {
            let tail = tail.into_iter().take(kept);
            let operations =
                [Operation::Decode(Decode::EXACT)].into_iter().chain(pixels).chain(tail).collect();
            let recipe = Recipe::new(operations);
            let too_large = |error: &RecipeError| error.problem.ends_with("pixels");
            assert!(recipe.as_ref().err().is_none_or(too_large), "{recipe:?}");
            recipe.ok()
        },
    )
}

proptest! {
    #[test]
    fn toml_reads_back_to_an_equal_recipe(recipe in any_recipe()) {
        let text = recipe.to_toml();
        let read = Recipe::from_toml(&text);
        prop_assert_eq!(read.as_ref(), Ok(&recipe), "{}", text);
        prop_assert_eq!(read.unwrap().hash(), recipe.hash());
    }

    /// The canonical form is complete: different recipes have different forms.
    #[test]
    fn only_equal_recipes_have_equal_forms(one in any_recipe(), other in any_recipe()) {
        prop_assert_eq!(one == other, one.canonical() == other.canonical());
    }
}
