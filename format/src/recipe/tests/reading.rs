//! What a recipe means: defaults, sizes, the shape of its result.

use crate::recipe::{
    CenterCrop, Decode, Dtype, Interpolation, Layout, Normalize, Operation, RandomHorizontalFlip,
    RandomResizedCrop, Recipe, Resize, Scale, Size, TensorSpec, ToDtype,
};

fn recipe(text: &str) -> Recipe {
    Recipe::from_toml(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A recipe of `decode` and the operations in `rest`, each written as the content of a table.
fn with(rest: &[&str]) -> Recipe {
    let tables = rest.iter().map(|inside| format!("[[operation]]\n{inside}\n"));
    recipe(&format!("[[operation]]\nname = \"decode\"\n{}", tables.collect::<String>()))
}

/// The signatures in torchvision.transforms.v2: RandomResizedCrop(size, scale=(0.08, 1.0),
/// ratio=(3/4, 4/3), interpolation=BILINEAR, antialias=True), RandomHorizontalFlip(p=0.5),
/// Resize(size, interpolation=BILINEAR, antialias=True), ToDtype(dtype, scale=False).
#[test]
fn what_is_left_out_is_as_in_torchvision() {
    let recipe = with(&[
        "name = 'resize'\nsize = 256",
        "name = 'random_resized_crop'\nsize = 224",
        "name = 'random_horizontal_flip'",
        "name = 'to_dtype'\ndtype = 'float32'",
    ]);
    let (interpolation, antialias) = (Interpolation::Bilinear, true);
    assert_eq!(
        recipe.operations(),
        [
            Operation::Decode(Decode::EXACT),
            Operation::Resize(Resize {
                size: Size::ShorterSide(256),
                max_size: None,
                interpolation,
                antialias,
            }),
            Operation::RandomResizedCrop(RandomResizedCrop {
                height: 224,
                width: 224,
                scale: (0.08, 1.0),
                ratio: (3.0 / 4.0, 4.0 / 3.0),
                interpolation,
                antialias,
            }),
            Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 0.5 }),
            Operation::ToDtype(ToDtype { dtype: Dtype::Float32, scale: Scale::None }),
        ]
    );
    assert!(!recipe.is_deterministic());
}

#[test]
fn every_key_is_read() {
    let recipe = recipe(
        r#"
        operation = [
            { name = "decode" },
            { name = "resize", size = [3_00, 0x190], interpolation = "bicubic", antialias = false },
            { name = "center_crop", size = [200, 100] },
            { name = "random_resized_crop", size = [60, 50], scale = [0.5, 1], ratio = [1, 2.5],
              interpolation = "bicubic", antialias = false },
            { name = "random_horizontal_flip", p = 1 },
            { name = "layout", layout = "NCHW" },
            { name = "to_dtype", dtype = "float16", scale = true },
            { name = "normalize", mean = [0, -1.5, 1e-1], std = [1, 2, 3] },
        ]
        "#,
    );
    let (interpolation, antialias) = (Interpolation::Bicubic, false);
    let size = Size::Exact { height: 300, width: 400 };
    assert_eq!(
        recipe.operations(),
        [
            Operation::Decode(Decode::EXACT),
            Operation::Resize(Resize { size, max_size: None, interpolation, antialias }),
            Operation::CenterCrop(CenterCrop { height: 200, width: 100 }),
            Operation::RandomResizedCrop(RandomResizedCrop {
                height: 60,
                width: 50,
                scale: (0.5, 1.0),
                ratio: (1.0, 2.5),
                interpolation,
                antialias,
            }),
            Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 1.0 }),
            Operation::Layout(Layout::Nchw),
            Operation::ToDtype(ToDtype { dtype: Dtype::Float16, scale: Scale::Multiply }),
            Operation::Normalize(Normalize {
                mean: [0.0, -1.5, 0.1].into(),
                std: [1.0, 2.0, 3.0].into()
            }),
        ]
    );
}

#[test]
fn the_result_is_known_only_where_no_picture_can_change_it() {
    assert_eq!(with(&[]).output(), None);
    assert_eq!(with(&["name = 'resize'\nsize = 256"]).output(), None);
    let spec = |height, width, dtype, layout| {
        Some(TensorSpec { height, width, channels: 3, dtype, layout })
    };
    let plain = |height, width| spec(height, width, Dtype::Uint8, Layout::Nhwc);
    let crop = "name = 'center_crop'\nsize = [200, 100]";
    assert_eq!(with(&["name = 'resize'\nsize = [30, 40]"]).output(), plain(30, 40));
    assert_eq!(with(&["name = 'resize'\nsize = 256", crop]).output(), plain(200, 100));
    assert_eq!(with(&["name = 'random_resized_crop'\nsize = 9"]).output(), plain(9, 9));
    // After a fixed shape, a resize of the shorter side has a fixed shape too.
    assert_eq!(with(&[crop, "name = 'resize'\nsize = 33"]).output(), plain(66, 33));
    let rest = ["name = 'layout'\nlayout = 'NCHW'", "name = 'to_dtype'\ndtype = 'float16'"];
    let output = with(&[crop, rest[0], rest[1]]).output();
    assert_eq!(output, spec(200, 100, Dtype::Float16, Layout::Nchw));
    let output = output.unwrap();
    assert_eq!(output.bytes(), 3 * 200 * 100 * 2);
    assert_eq!(output.batch_shape(7), [7, 3, 200, 100]);
    assert_eq!(plain(2, 5).unwrap().batch_shape(7), [7, 2, 5, 3]);
}

/// torchvision's `_compute_resized_output_size`, by hand: int(size * long / short).
#[test]
fn the_shorter_side_is_scaled_as_in_torchvision() {
    let resolve = |side, height, width| Size::ShorterSide(side).resolve(height, width);
    assert_eq!(resolve(256, 375, 500), (256, 341));
    assert_eq!(resolve(256, 500, 375), (341, 256));
    assert_eq!(resolve(256, 100, 100), (256, 256));
    assert_eq!(resolve(7, 3, 1_000_000), (7, 2_333_333));
    assert_eq!(resolve(65535, 1, u32::MAX), (65535, u32::MAX));
    assert_eq!(resolve(5, 0, 9), (0, 9));
    assert_eq!(Size::Exact { height: 3, width: 4 }.resolve(100, 200), (3, 4));
}

#[test]
fn types_may_follow_each_other_where_the_values_survive() {
    let recipe = with(&[
        "name = 'to_dtype'\ndtype = 'uint8'",
        "name = 'to_dtype'\ndtype = 'float32'\nscale = true",
        "name = 'normalize'\nmean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.5, 0.5]",
        "name = 'to_dtype'\ndtype = 'float16'",
    ]);
    assert_eq!(recipe.operations().len(), 5);
    assert!(recipe.is_deterministic());
}

#[test]
fn the_spread_and_the_inline_form_are_one_recipe() {
    let spread = with(&["name = 'center_crop'\nsize = 8"]);
    let inline = recipe("operation = [{name = 'decode'}, {size = [8, 8], name = 'center_crop'}]");
    assert_eq!(spread, inline);
    assert_eq!(spread.hash(), inline.hash());
}
