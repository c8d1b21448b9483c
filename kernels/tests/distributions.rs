//! Compares the distribution of random parameters with that of the original, by the two-sample test
//! of Kolmogorov and Smirnov over 100,000 values of each, with fixed seeds.
//!
//! Our parameters are those of exported programs: no pixel is computed. The original's are
//! torchvision's definitions, implemented again here on another generator.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

use meetpoint_format::recipe::Recipe;
use meetpoint_format::split_mix::SplitMix64;
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use meetpoint_kernels::{PictureChange, PictureProgram, PositionMap, WarpForm};

/// Values of each parameter.
const VALUES: u64 = 100_000;
/// Columns and rows of the picture.
const WIDTH: f64 = 32.0;
const HEIGHT: f64 = 24.0;
/// Largest distance of two distributions. Of two samples of [`VALUES`] numbers from the same one,
/// one pair in 70,000 exceeds it.
const DISTANCE_MAX: f64 = 0.0109;

/// A generator from which no random parameter comes.
struct Other(SplitMix64);

impl Other {
    /// A number from 0 to 1.
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// torch's `randint(low, high)`, without `high`.
    fn whole(&mut self, low: f64, high: f64) -> f64 {
        (low + ((high - low) * self.uniform()).floor()).min(high - 1.0)
    }

    fn chance(&mut self, p: f64) -> f64 {
        f64::from(self.uniform() < p)
    }
}

/// The largest distance between the distribution functions of two samples.
fn distance(mut ours: Vec<f64>, mut others: Vec<f64>) -> f64 {
    ours.sort_by(f64::total_cmp);
    others.sort_by(f64::total_cmp);
    let (mut of_ours, mut of_others, mut largest) = (0, 0, 0.0_f64);
    while of_ours < ours.len() && of_others < others.len() {
        let value = ours[of_ours].min(others[of_others]);
        while ours.get(of_ours).is_some_and(|it| *it <= value) {
            of_ours += 1;
        }
        while others.get(of_others).is_some_and(|it| *it <= value) {
            of_others += 1;
        }
        let shares = [of_ours as f64 / ours.len() as f64, of_others as f64 / others.len() as f64];
        largest = largest.max((shares[0] - shares[1]).abs());
    }
    largest
}

/// Compares `N` observations of the programs of an operation with those of the original.
fn compare<const N: usize>(
    operation: &str,
    observe: impl Fn(&PictureProgram) -> [f64; N],
    original: impl Fn(&mut Other) -> [f64; N],
) {
    let text = format!("operation = [{{ name = 'decode' }}, {{ {operation} }}]");
    let mut preparer = SamplePreparer::new(&Recipe::from_toml(&text).unwrap(), Cpu::detect());
    let file = [&b"P6 32 24 255\n"[..], &[0; 32 * 24 * 3]].concat();
    let mut programs = Vec::new();
    let mut other = Other(SplitMix64::new(20_261_127));
    let (mut ours, mut others) = (vec![Vec::new(); N], vec![Vec::new(); N]);
    for sample in 0..VALUES {
        let id = SampleId { seed: 17, epoch: 3, sample };
        preparer.export((&file).into(), id, &mut programs).unwrap().unwrap();
        for (values, value) in ours.iter_mut().zip(observe(&programs[0])) {
            values.push(value);
        }
        for (values, value) in others.iter_mut().zip(original(&mut other)) {
            values.push(value);
        }
    }
    for (index, (ours, others)) in ours.into_iter().zip(others).enumerate() {
        let distance = distance(ours, others);
        assert!(distance < DISTANCE_MAX, "{operation}: {distance} of observation {index}");
    }
}

/// The first of the changes with a value.
fn first<T>(
    program: &PictureProgram,
    of: impl Fn(&PictureProgram, &PictureChange) -> Option<T>,
) -> Option<T> {
    program.changes.iter().find_map(|change| of(program, change))
}

/// Whether the picture changes.
fn is_changed(program: &PictureProgram) -> [f64; 1] {
    [f64::from(u8::from(!program.changes.is_empty()))]
}

/// The affine map of a warp, also where it is a move by whole pixels.
fn affine(program: &PictureProgram) -> [f64; 6] {
    let found = first(program, |_, change| match change {
        PictureChange::Warp { form, .. } => Some(*form),
        _ => None,
    });
    match found {
        Some(
            WarpForm::Nearest(PositionMap { coefficients, .. })
            | WarpForm::Bilinear(PositionMap { coefficients, .. })
            | WarpForm::Bicubic(PositionMap { coefficients, .. }),
        ) => coefficients[..6].try_into().unwrap(),
        Some(WarpForm::Fixed { .. }) => panic!("the maps here are bilinear"),
        None => [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
    }
}

fn factor(program: &PictureProgram) -> [f64; 1] {
    let found = first(program, |program, change| match change {
        PictureChange::Contrast(factor) | PictureChange::Saturation(factor) => {
            Some(f64::from(*factor))
        }
        PictureChange::Hue(shift) => Some(f64::from(*shift)),
        PictureChange::Table { table } => Some(f64::from(program.tables[*table][100])),
        _ => None,
    });
    [found.unwrap()]
}

#[test]
fn flips() {
    for (operation, is_across) in [
        ("name = 'random_horizontal_flip', p = 0.3", true),
        ("name = 'random_vertical_flip', p = 0.3", false),
    ] {
        let flipped = |program: &PictureProgram| {
            let stage = &program.stages[0];
            [f64::from(u8::from(if is_across { stage.mirrored } else { stage.flipped }))]
        };
        compare(operation, flipped, |other| [other.chance(0.3)]);
    }
}

#[test]
fn crops() {
    let corner = |program: &PictureProgram| {
        let region = program.stages[0].region;
        [region.x, region.y].map(f64::from)
    };
    compare("name = 'random_crop', size = 16", corner, |other| {
        let y = other.whole(0.0, HEIGHT - 16.0 + 1.0);
        [other.whole(0.0, WIDTH - 16.0 + 1.0), y]
    });
}

#[test]
fn resized_crops() {
    let region = |program: &PictureProgram| {
        let region = program.stages[0].region;
        let [x, y, width, height] =
            [region.x, region.y, region.width, region.height].map(f64::from);
        [x, y, width, height, width * height, width / height]
    };
    compare("name = 'random_resized_crop', size = [24, 32]", region, |other| {
        for _ in 0..10 {
            let area = WIDTH * HEIGHT * other.within(0.08, 1.0);
            let ratio = other.within((3.0_f64 / 4.0).ln(), (4.0_f64 / 3.0).ln()).exp();
            let width = (area * ratio).sqrt().round_ties_even();
            let height = (area / ratio).sqrt().round_ties_even();
            if (1.0..=WIDTH).contains(&width) && (1.0..=HEIGHT).contains(&height) {
                let y = other.whole(0.0, HEIGHT - height + 1.0);
                let x = other.whole(0.0, WIDTH - width + 1.0);
                return [x, y, width, height, width * height, width / height];
            }
        }
        // The picture is 4 : 3, so that all of it is the central crop.
        [0.0, 0.0, WIDTH, HEIGHT, WIDTH * HEIGHT, WIDTH / HEIGHT]
    });
}

#[test]
fn sizes() {
    let size = |program: &PictureProgram| {
        let (width, height) = program.stages[0].canvas;
        [width, height].map(f64::from)
    };
    // torchvision's size of the longer side.
    let longer = |shorter: f64| [(shorter * WIDTH / HEIGHT).floor(), shorter];
    compare("name = 'random_resize', min_size = 10, max_size = 30", size, |other| {
        longer(other.whole(10.0, 30.0))
    });
    compare("name = 'random_shortest_size', min_size = [10, 16, 20, 24]", size, |other| {
        longer([10.0, 16.0, 20.0, 24.0][other.whole(0.0, 4.0) as usize])
    });
    compare("name = 'scale_jitter', target_size = [20, 30]", size, |other| {
        let ratio = other.within(0.1, 2.0) * (30.0 / HEIGHT).min(20.0 / WIDTH);
        [(WIDTH * ratio).floor(), (HEIGHT * ratio).floor()]
    });
    let zoomed = |program: &PictureProgram| {
        let stage = &program.stages[0];
        [stage.canvas.0, stage.canvas.1, stage.at.0, stage.at.1].map(f64::from)
    };
    compare("name = 'random_zoom_out', p = 0.7", zoomed, |other| {
        if other.chance(0.7) == 0.0 {
            return [WIDTH, HEIGHT, 0.0, 0.0];
        }
        let ratio = other.within(1.0, 4.0);
        let (width, height) = ((WIDTH * ratio).floor(), (HEIGHT * ratio).floor());
        let left = ((width - WIDTH) * other.uniform()).floor();
        [width, height, left, ((height - HEIGHT) * other.uniform()).floor()]
    });
}

#[test]
fn rotations() {
    let angle = |program: &PictureProgram| {
        let [a0, a1, ..] = affine(program);
        [a1.atan2(a0).to_degrees().abs()]
    };
    let operation = "name = 'random_rotation', degrees = [10.0, 70.0], interpolation = 'bilinear'";
    compare(operation, angle, |other| [other.within(10.0, 70.0)]);
}

#[test]
fn affine_maps() {
    let with = |keys: &str| format!("name = 'random_affine', interpolation = 'bilinear', {keys}");
    let angle = |program: &PictureProgram| {
        let [a0, a1, ..] = affine(program);
        [a1.atan2(a0).to_degrees()]
    };
    compare(&with("degrees = [-40.0, 40.0]"), angle, |other| [other.within(-40.0, 40.0)]);
    let shift = |program: &PictureProgram| {
        let [_, _, column, _, _, row] = affine(program);
        [column, row]
    };
    compare(&with("degrees = [0.0, 0.0], translate = [0.2, 0.3]"), shift, |other| {
        let mut pixels = |most: f64| other.within(-most, most).round_ties_even();
        let column = pixels(0.2 * WIDTH);
        [column, pixels(0.3 * HEIGHT)]
    });
    let scale = |program: &PictureProgram| [1.0 / affine(program)[0]];
    compare(&with("degrees = [0.0, 0.0], scale = [0.5, 1.7]"), scale, |other| {
        [other.within(0.5, 1.7)]
    });
    let shear = |program: &PictureProgram| {
        let [a0, a1, _, a3, a4, _] = affine(program);
        // The determinant is that of a turn; both signs are equally likely.
        [(a1 / a4).atan().to_degrees().abs(), (a3 / a0).atan().to_degrees().abs()]
    };
    compare(&with("degrees = [0.0, 0.0], shear = [-20.0, 20.0]"), shear, |other| {
        [other.within(-20.0, 20.0).abs(), 0.0]
    });
}

#[test]
fn perspectives() {
    // The corners of the picture are moved to where the map finds them.
    let corners = |program: &PictureProgram| {
        let form = first(program, |_, change| match change {
            PictureChange::Warp { form: WarpForm::Bilinear(map), .. } => Some(map.coefficients),
            _ => None,
        });
        let [a, b, c, d, e, f, g, h] = form.unwrap();
        let moved = |u: f64, v: f64| {
            // (a x + b y + c) / (g x + h y + 1) = u, and the same for v.
            let rows = [[a - u * g, b - u * h, u - c], [d - v * g, e - v * h, v - f]];
            let determinant = rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0];
            let x = (rows[0][2] * rows[1][1] - rows[0][1] * rows[1][2]) / determinant;
            let y = (rows[0][0] * rows[1][2] - rows[0][2] * rows[1][0]) / determinant;
            [x.round(), y.round()]
        };
        let (right, bottom) = (WIDTH - 1.0, HEIGHT - 1.0);
        let [[a, b], [c, d]] = [moved(0.0, 0.0), moved(right, 0.0)];
        let [[e, f], [g, h]] = [moved(right, bottom), moved(0.0, bottom)];
        [a, b, c, d, e, f, g, h]
    };
    compare("name = 'random_perspective', p = 1.0, distortion_scale = 0.6", corners, |other| {
        let (across, down) = ((0.6 * WIDTH / 2.0).floor(), (0.6 * HEIGHT / 2.0).floor());
        let left = |other: &mut Other| other.whole(0.0, across + 1.0);
        let right = |other: &mut Other| other.whole(WIDTH - across - 1.0, WIDTH);
        let top = |other: &mut Other| other.whole(0.0, down + 1.0);
        let bottom = |other: &mut Other| other.whole(HEIGHT - down - 1.0, HEIGHT);
        let (a, b, c, d) = (left(other), top(other), right(other), top(other));
        [a, b, c, d, right(other), bottom(other), left(other), bottom(other)]
    });
}

#[test]
fn colours() {
    let with = |keys: &str| format!("name = 'color_jitter', {keys}");
    compare(&with("brightness = [0.3, 1.9]"), factor, |other| {
        [(100.0 * other.within(0.3, 1.9)).floor()]
    });
    for key in ["contrast", "saturation"] {
        compare(&with(&format!("{key} = [0.3, 1.9]")), factor, |other| [other.within(0.3, 1.9)]);
    }
    // Pillow's hue is a byte; numbers below 0 wrap.
    compare(&with("hue = [-0.2, 0.3]"), factor, |other| {
        [(other.within(-0.2, 0.3) * 255.0).trunc().rem_euclid(256.0)]
    });
    let order = |program: &PictureProgram| {
        let kind = |change: &PictureChange| match change {
            PictureChange::Table { .. } => 0,
            PictureChange::Contrast(_) => 1,
            PictureChange::Saturation(_) => 2,
            _ => 3,
        };
        let found: Vec<usize> = program.changes.iter().map(kind).collect();
        assert_eq!(found.len(), 4);
        [(64 * found[0] + 16 * found[1] + 4 * found[2] + found[3]) as f64]
    };
    let all =
        "brightness = [0.3, 1.9], contrast = [0.3, 1.9], saturation = [0.3, 1.9], hue = [0.1, 0.2]";
    compare(&with(all), order, |other| {
        let mut left = vec![0, 1, 2, 3];
        let mut code = 0;
        while !left.is_empty() {
            let index = other.whole(0.0, left.len() as f64) as usize;
            code = 4 * code + left.remove(index);
        }
        [f64::from(code)]
    });
}

#[test]
fn changes_with_a_probability() {
    for name in [
        "name = 'random_grayscale', p = 0.37",
        "name = 'random_invert', p = 0.37",
        "name = 'random_autocontrast', p = 0.37",
        "name = 'random_equalize', p = 0.37",
        "name = 'random_posterize', bits = 3, p = 0.37",
        "name = 'random_solarize', threshold = 77.0, p = 0.37",
        "name = 'random_adjust_sharpness', sharpness_factor = 2.0, p = 0.37",
    ] {
        compare(name, is_changed, |other| [other.chance(0.37)]);
    }
}

#[test]
fn photometric_distortions() {
    // Each part by the presence and the number of its change.
    let parts = |program: &PictureProgram| {
        let mut found = [0.0; 5];
        for change in &program.changes {
            match change {
                PictureChange::Table { table } => found[0] = f64::from(program.tables[*table][100]),
                PictureChange::Contrast(factor) => {
                    found[1] = f64::from(*factor);
                    // Whether it follows the saturation or the hue.
                    found[4] += f64::from(u8::from(found[2] != 0.0 || found[3] != 0.0));
                }
                PictureChange::Saturation(factor) => found[2] = f64::from(*factor),
                PictureChange::Hue(shift) => found[3] = 1.0 + f64::from(*shift),
                PictureChange::Channels(order) => {
                    found[4] += 2.0 * f64::from(9 * order[0] + 3 * order[1] + order[2]);
                }
                _ => panic!("{change:?}"),
            }
        }
        found
    };
    compare("name = 'random_photometric_distort'", parts, |other| {
        let mut found = [0.0; 5];
        if other.chance(0.5) == 1.0 {
            found[0] = (100.0 * other.within(0.875, 1.125)).floor();
        }
        if other.chance(0.5) == 1.0 {
            found[1] = other.within(0.5, 1.5);
        }
        if other.chance(0.5) == 1.0 {
            found[2] = other.within(0.5, 1.5);
        }
        if other.chance(0.5) == 1.0 {
            found[3] = 1.0 + (other.within(-0.05, 0.05) * 255.0).trunc().rem_euclid(256.0);
        }
        let is_after = other.chance(0.5) == 0.0 && found[1] != 0.0;
        found[4] = f64::from(u8::from(is_after && (found[2] != 0.0 || found[3] != 0.0)));
        if other.chance(0.5) == 1.0 {
            let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
            let order = orders[other.whole(0.0, 6.0) as usize];
            found[4] += 2.0 * f64::from(9 * order[0] + 3 * order[1] + order[2]);
        }
        found
    });
}

#[test]
fn orders_of_channels() {
    let order = |program: &PictureProgram| {
        let found = first(program, |_, change| match change {
            PictureChange::Channels([a, b, c]) => Some(f64::from(9 * a + 3 * b + c)),
            _ => None,
        });
        // The order that changes nothing.
        [found.unwrap_or(5.0)]
    };
    compare("name = 'random_channel_permutation'", order, |other| {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let [a, b, c] = orders[other.whole(0.0, 6.0) as usize];
        [f64::from(9 * a + 3 * b + c)]
    });
}

#[test]
fn blurs() {
    let sigma = |program: &PictureProgram| {
        let weights = first(program, |program, change| match change {
            PictureChange::KernelBlur { across: (first, count), .. } => {
                let middle = first + *count as usize / 2;
                let weight =
                    |at: usize| f64::from(f32::from_bits(program.words[at].cast_unsigned()));
                Some(weight(middle) / weight(middle + 1))
            }
            _ => None,
        });
        // Weights are exp(-x^2 / (2 sigma^2)).
        [(0.5 / weights.unwrap().ln()).sqrt()]
    };
    compare("name = 'gaussian_blur', kernel_size = 5, sigma = [0.5, 2.0]", sigma, |other| {
        [other.within(0.5, 2.0)]
    });
}

#[test]
fn erasures() {
    let rectangle = |program: &PictureProgram| match program.erasures.first() {
        None => [-1.0; 5],
        Some(erasure) => {
            let [top, left, height, width] =
                [erasure.top, erasure.left, erasure.height, erasure.width].map(f64::from);
            [top, left, height, width, height * width]
        }
    };
    compare("name = 'random_erasing', p = 0.8", rectangle, |other| {
        if other.chance(0.8) == 0.0 {
            return [-1.0; 5];
        }
        for _ in 0..10 {
            let area = WIDTH * HEIGHT * other.within(0.02, 0.33);
            let ratio = other.within(0.3_f64.ln(), 3.3_f64.ln()).exp();
            let height = (area * ratio).sqrt().round_ties_even();
            let width = (area / ratio).sqrt().round_ties_even();
            if height < HEIGHT && width < WIDTH {
                let top = other.whole(0.0, HEIGHT - height + 1.0);
                let left = other.whole(0.0, WIDTH - width + 1.0);
                return [top, left, height, width, height * width];
            }
        }
        [-1.0; 5]
    });
}
