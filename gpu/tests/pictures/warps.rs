//! Warps, blurs and policies.

use crate::compare::{compare, png, recipe, start};

fn pictures() -> Vec<Vec<u8>> {
    let sizes = [(37, 29), (1, 1), (40, 3), (3, 50), (2, 2), (24, 24), (19, 40), (31, 30)];
    sizes.iter().zip(0..).map(|((width, height), seed)| png(*width, *height, seed)).collect()
}

fn check(operations: &[&str]) {
    let mut compute = start();
    compare(&mut *compute, &recipe(operations), &pictures()).unwrap_or_else(|it| panic!("{it}"));
}

#[test]
fn warps_are_equal() {
    for by in ["nearest", "bilinear", "bicubic"] {
        let keys = format!("interpolation = \"{by}\";fill = [3, 150, 99]");
        let warps = [
            format!("random_rotation degrees = 180;{keys}"),
            format!("random_rotation degrees = [90, 90];expand = true;{keys}"),
            format!("random_rotation degrees = 40;expand = true;{keys}"),
            format!("random_affine degrees = 0;translate = [0.4, 0.3];{keys}"),
            format!("random_affine degrees = 30;scale = [0.3, 2.0];shear = 20;{keys}"),
            format!("random_perspective p = 1;distortion_scale = 0.8;{keys}"),
        ];
        for warp in warps {
            check(&["decode", &warp, "center_crop size = 21"]);
        }
    }
}

#[test]
fn elastic_transforms_are_equal() {
    for keys in [
        "",
        "alpha = 120;sigma = 3",
        "alpha = [300, 40];sigma = [1.5, 4];fill = [200, 3, 90]",
        "alpha = 20;sigma = 0;fill = 255",
        "alpha = 60;sigma = 2;interpolation = \"nearest\";fill = 7",
        "alpha = [1e300, 0];sigma = 0",
        "alpha = 9;sigma = [1e-200, 0.1]",
    ] {
        let elastic = format!("elastic_transform {keys}");
        check(&["decode", "center_crop size = [21, 18]", &elastic]);
        check(&["decode", &elastic, "resize size = [9, 12]"]);
    }
    check(&["decode mode = \"gray\"", "elastic_transform sigma = 2", "resize size = [9, 12]"]);
}

#[test]
fn blurs_are_equal() {
    check(&["decode", "gaussian_blur sigma = [0.1, 2.0];kernel_size = 5"]);
    check(&["decode", "gaussian_blur sigma = [0.5, 6.0];kernel_size = [3, 23]"]);
    check(&["decode", "pillow_gaussian_blur radius = [0.1, 2.0];p = 0.8"]);
    check(&["decode", "resize size = [30, 17]", "pillow_gaussian_blur radius = [5.0, 20.0];p = 1"]);
    check(&["decode", "resize size = [18, 18]", "three_augment", "random_horizontal_flip"]);
}

#[test]
fn policies_are_equal() {
    for policy in [
        "auto_augment policy = \"imagenet\"",
        "auto_augment policy = \"cifar10\";interpolation = \"bilinear\"",
        "auto_augment policy = \"svhn\"",
        "rand_augment num_ops = 4;magnitude = 12",
        "rand_augment num_ops = 3;interpolation = \"bicubic\";fill = 128",
        "timm_rand_augment",
        "timm_rand_augment num_ops = 5;magnitude_std = 0.5;increasing = true",
        "trivial_augment_wide",
        "aug_mix",
        "aug_mix severity = 10;mixture_width = 5;chain_depth = 2;alpha = 0.4",
        "aug_mix mixture_width = 1;all_ops = false;interpolation = \"bicubic\";fill = 70",
        "trivial_augment_wide interpolation = \"bilinear\";num_magnitude_bins = 11",
    ] {
        for _ in 0..1 {
            check(&[
                "decode",
                "random_resized_crop size = [22, 19]",
                "random_horizontal_flip p = 0.5",
                policy,
                "to_dtype dtype = \"float32\";scale = true",
            ]);
        }
    }
}
