//! Crops, resizes, canvases and tensors.

use crate::compare::{compare, pixels, png, recipe, start};
use jpeg_encoder::{ColorType, Encoder};

const SIZES: [(u32, u32); 6] = [(37, 29), (1, 1), (90, 3), (3, 70), (64, 48), (50, 41)];

fn pictures() -> Vec<Vec<u8>> {
    SIZES.iter().zip(0..).map(|((width, height), seed)| png(*width, *height, seed)).collect()
}

#[test]
fn crops_that_are_resized_and_flipped_are_equal() {
    let mut compute = start();
    let pictures = pictures();
    for interpolation in ["bilinear", "bicubic", "nearest", "box", "hamming", "lanczos"] {
        for size in ["16, 16", "23, 18", "5, 40"] {
            let crop =
                format!("random_resized_crop size = [{size}];interpolation = \"{interpolation}\"");
            let recipe = recipe(&[
                "decode",
                &crop,
                "random_horizontal_flip p = 0.5",
                "random_vertical_flip p = 0.5",
                "to_dtype dtype = \"float32\"",
                "normalize mean = [0.485, 0.456, 0.406];std = [0.229, 0.224, 0.225]",
                "layout layout = \"NCHW\"",
            ]);
            compare(&mut *compute, &recipe, &pictures).unwrap();
        }
    }
}

#[test]
fn elements_of_every_type_and_order_are_equal() {
    let mut compute = start();
    let pictures = pictures();
    let types: [&[&str]; 4] = [
        &[],
        &["to_dtype dtype = \"float16\";scale = true"],
        &["to_dtype dtype = \"float32\";scale = \"divide\""],
        &["to_dtype dtype = \"float16\"", "normalize mean = [120, 130, 7];std = [3, 50, 0.7]"],
    ];
    for dtype in types {
        for layout in ["NHWC", "NCHW"] {
            for size in ["16, 16", "7, 21", "3, 2"] {
                let crop = format!("random_resized_crop size = [{size}]");
                let layout = format!("layout layout = \"{layout}\"");
                let first = ["decode", &crop, "random_horizontal_flip p = 0.5"];
                let operations = [&first[..], dtype, &[&layout]].concat();
                compare(&mut *compute, &recipe(&operations), &pictures).unwrap();
            }
        }
    }
}

#[test]
fn pictures_of_one_channel_are_equal() {
    let mut compute = start();
    let pictures = pictures();
    for layout in ["NHWC", "NCHW"] {
        let layout = format!("layout layout = \"{layout}\"");
        let grey = ["decode", "resize size = [9, 14]", "grayscale", "random_autocontrast", &layout];
        compare(&mut *compute, &recipe(&grey), &pictures).unwrap();
    }
}

#[test]
fn padded_pictures_and_several_stages_are_equal() {
    let mut compute = start();
    let pictures = pictures();
    let of_one_size = "center_crop size = [31, 34]";
    let recipes: [&[&str]; 12] = [
        &["decode", of_one_size],
        &["decode", "pad padding = [1, 2, 3, 4];fill = [9, 80, 200]", of_one_size],
        &["decode", "random_crop size = 20;padding = 19;fill = 77;pad_if_needed = true"],
        &["decode", "random_crop size = 40;pad_if_needed = true;padding_mode = \"reflect\""],
        &["decode", "random_crop size = 13;padding = 13;padding_mode = \"symmetric\""],
        &["decode", "pad padding = 5;padding_mode = \"edge\"", "resize size = [17, 19]"],
        &["decode", "resize size = [40, 9]", "resize size = [12, 33]", of_one_size],
        &["decode", "random_horizontal_flip p = 1", "random_resized_crop size = 17"],
        &["decode", "random_vertical_flip p = 1", "random_resized_crop size = 17"],
        &["decode", "resize size = 20;antialias = false", "random_zoom_out p = 1"],
        &[
            "decode",
            "random_horizontal_flip p = 0.5",
            "resize size = [50, 60];interpolation = \"bicubic\"",
            "random_horizontal_flip p = 0.5",
            "random_crop size = 60;padding = 12;fill = 3",
            "random_vertical_flip p = 0.5",
            "resize size = [25, 12];interpolation = \"nearest\"",
            "random_horizontal_flip p = 0.5",
        ],
        &[
            "decode",
            "scale_jitter target_size = [30, 20]",
            "random_shortest_size min_size = [8, 9]",
        ],
    ];
    for operations in recipes {
        compare(&mut *compute, &recipe(operations), &pictures).unwrap();
    }
}

#[test]
fn rows_that_are_reduced_first_are_equal() {
    let mut compute = start();
    let pictures = [png(12, 90, 1), png(33, 120, 2), png(260, 300, 3)];
    for first in ["decode", "decode mode = \"gray\""] {
        for flip in ["random_horizontal_flip p = 0", "random_horizontal_flip p = 1"] {
            let recipe = recipe(&[first, flip, "resize size = [10, 11]"]);
            compare(&mut *compute, &recipe, &pictures).unwrap();
        }
    }
}

#[test]
fn a_picture_of_the_usual_size_is_equal() {
    let mut compute = start();
    let recipe = recipe(&[
        "decode",
        "random_resized_crop size = 224;scale = [0.5, 1.0]",
        "random_horizontal_flip p = 0.5",
        "to_dtype dtype = \"float16\";scale = true",
        "normalize mean = [0.485, 0.456, 0.406];std = [0.229, 0.224, 0.225]",
        "layout layout = \"NCHW\"",
    ]);
    compare(&mut *compute, &recipe, &[png(500, 375, 1)]).unwrap();
}

/// A JPEG with an Exif orientation.
fn turned((width, height): (u32, u32), orientation: u8) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut encoder = Encoder::new(&mut encoded, 90);
    // An IFD with one entry: tag 0x0112, one number of 16 bits.
    let header = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0";
    let segment = [&header[..], &[orientation, 0, 0, 0, 0, 0, 0]].concat();
    encoder.add_app_segment(1, segment).expect("a short segment");
    let pixels = pixels((width, height), u64::from(orientation));
    encoder.encode(&pixels, width as u16, height as u16, ColorType::Rgb).expect("pixels in memory");
    encoded
}

#[test]
fn turned_pictures_are_equal() {
    let mut compute = start();
    let all = (1..=8).flat_map(|orientation| SIZES.map(|size| turned(size, orientation)));
    let pictures: Vec<Vec<u8>> = all.collect();
    for first in ["decode orient = true", "decode orient = true;mode = \"gray\""] {
        let recipes: [&[&str]; 6] = [
            &[first, "center_crop size = [30, 31]"],
            &[first, "resize size = [17, 40]", "random_horizontal_flip p = 0.5"],
            &[first, "random_resized_crop size = [19, 16]", "random_vertical_flip p = 0.5"],
            &[first, "random_resized_crop size = 14;interpolation = \"nearest\""],
            &[first, "random_horizontal_flip p = 1", "resize size = [9, 7]", "pad padding = 2"],
            &[first, "random_equalize p = 0.5", "resize size = [20, 12];antialias = false"],
        ];
        for operations in recipes {
            compare(&mut *compute, &recipe(operations), &pictures).unwrap();
        }
    }
    let upright = recipe(&["decode", "resize size = [17, 40]"]);
    compare(&mut *compute, &upright, &pictures).unwrap();
}
