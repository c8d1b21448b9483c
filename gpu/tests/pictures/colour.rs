//! Changes of colours.

use crate::compare::{compare, png, png_of, recipe, start};

fn pictures() -> Vec<Vec<u8>> {
    let sizes = [(37, 29), (1, 1), (90, 3), (3, 70), (2, 2), (24, 24), (19, 40), (64, 31)];
    sizes.iter().zip(0..).map(|((width, height), seed)| png(*width, *height, seed)).collect()
}

#[test]
fn single_changes_are_equal() {
    let mut compute = start();
    let pictures = pictures();
    let changes = [
        "grayscale num_output_channels = 3",
        "random_grayscale p = 0.7",
        "color_jitter brightness = 0.9;contrast = 0.9;saturation = 0.9;hue = 0.5",
        "color_jitter hue = [0.1, 0.4]",
        "color_jitter saturation = [0.0, 3.0]",
        "color_jitter contrast = [0.0, 3.0]",
        "random_photometric_distort p = 0.7",
        "random_channel_permutation",
        "random_adjust_sharpness sharpness_factor = 0.0;p = 0.8",
        "random_adjust_sharpness sharpness_factor = 2.7;p = 1",
        "random_autocontrast p = 0.8",
        "random_equalize p = 0.8",
        "random_invert p = 0.8",
        "random_posterize bits = 3;p = 0.8",
        "random_solarize threshold = 100;p = 0.8",
        "adjust_gamma gamma = 0.7",
        "sigmoid_contrast contrast = 0.4",
        "random_gamma",
        "random_sigmoid_contrast",
        "convert_color space = \"hsv\"",
        "convert_color space = \"hls\"",
        "convert_color space = \"lab\"",
        "convert_color space = \"ycrcb\"",
    ];
    for change in changes {
        for size in ["resize size = [12, 18]", "center_crop size = [15, 27]"] {
            let last = ["decode", size, change];
            compare(&mut *compute, &recipe(&last), &pictures).unwrap_or_else(|it| panic!("{it}"));
            // A picture in memory between two stages.
            let between = ["decode", change, size, "random_horizontal_flip", "pad padding = 1"];
            compare(&mut *compute, &recipe(&between), &pictures)
                .unwrap_or_else(|it| panic!("{it}"));
        }
    }
}

/// Colours whose channels are multiples of 3, and those next to grey.
#[test]
fn colours_of_other_spaces_are_equal() {
    let mut compute = start();
    let step = || (0..=255u8).step_by(3);
    let mut pixels: Vec<u8> = Vec::new();
    for (red, green) in step().flat_map(|red| step().map(move |green| (red, green))) {
        pixels.extend(step().flat_map(|blue| [red, green, blue]));
    }
    for grey in 0..=253u8 {
        let [next, after] = [grey + 1, grey + 2];
        pixels.extend([grey, grey, next, next, grey, after, after, next, grey, grey, after, next]);
    }
    const WIDTH: u32 = 600;
    let height = (pixels.len() as u32 / 3).div_ceil(WIDTH);
    pixels.resize((3 * WIDTH * height) as usize, 255);
    let picture = [png_of((WIDTH, height), &pixels)];
    for space in ["hsv", "hls", "lab", "ycrcb"] {
        let convert = format!("convert_color space = \"{space}\"");
        let flipped = ["decode", "random_horizontal_flip p = 0", &convert];
        compare(&mut *compute, &recipe(&flipped), &picture).unwrap_or_else(|it| panic!("{it}"));
    }
}
