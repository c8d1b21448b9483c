//! Boxes, points and masks drawn onto a picture.

use image::{Rgb, RgbImage};
use meetpoint_format::column::{ColumnKind, ElementType};
use meetpoint_format::recipe::{BoxFormat, Target, TargetKind};

/// Colours that differ from one another and from most pictures, by the index of the drawn object.
const COLOURS: [[u8; 3]; 8] = [
    [255, 64, 64],
    [64, 220, 64],
    [64, 128, 255],
    [255, 210, 0],
    [255, 64, 255],
    [0, 220, 220],
    [255, 140, 0],
    [170, 110, 255],
];
/// Width in pixels of the outline of a box, and radius of a point.
const THICKNESS: i64 = 2;

/// Draws the value of a target onto the picture, whose sides are integer multiples of those of the
/// tensor.
pub(super) fn draw(
    picture: &mut RgbImage,
    scale: u32,
    (target, kind): (&Target, &ColumnKind),
    bytes: &[u8],
) {
    let values = numbers(kind.element(), bytes);
    match &target.kind {
        TargetKind::Boxes(boxes) => {
            let format = boxes.to_format.unwrap_or(boxes.format);
            for (index, four) in values.chunks_exact(4).enumerate() {
                outline(picture, scale, corners(format, four), colour(index));
            }
        }
        TargetKind::Keypoints(_) => {
            let axes = kind.axes();
            let numbers = axes.last().map_or(2, |&axis| axis as usize).max(2);
            for (index, point) in values.chunks_exact(numbers).enumerate() {
                let is_missing = point.get(2) == Some(&0.0);
                if !is_missing {
                    dot(picture, scale, (point[0], point[1]), colour(index));
                }
            }
        }
        TargetKind::Mask(mask) => {
            blend(picture, scale, &values, &|value| match value {
                0.0 => None,
                value if value == mask.fill => Some(([0; 3], 0.7)),
                value => Some((colour(value as usize), 0.5)),
            });
        }
        TargetKind::Saliency(_) => {
            blend(picture, scale, &values, &|value| Some((COLOURS[0], value / 255.0 * 0.7)));
        }
    }
}

fn colour(index: usize) -> [u8; 3] {
    COLOURS[index % COLOURS.len()]
}

/// Left, top, right and bottom.
fn corners(format: BoxFormat, four: &[f64]) -> [f64; 4] {
    let [a, b, c, d] = [four[0], four[1], four[2], four[3]];
    match format {
        BoxFormat::Xyxy => [a, b, c, d],
        BoxFormat::Xywh => [a, b, a + c, b + d],
        BoxFormat::Cxcywh => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
    }
}

fn outline(picture: &mut RgbImage, scale: u32, corners: [f64; 4], colour: [u8; 3]) {
    let [left, top, right, bottom] =
        corners.map(|corner| (corner * f64::from(scale)).round() as i64);
    if right <= left || bottom <= top {
        return;
    }
    for y in top..bottom {
        for x in left..right {
            let is_inside = (left + THICKNESS..right - THICKNESS).contains(&x)
                && (top + THICKNESS..bottom - THICKNESS).contains(&y);
            if !is_inside {
                set(picture, x, y, colour);
            }
        }
    }
}

fn dot(picture: &mut RgbImage, scale: u32, (x, y): (f64, f64), colour: [u8; 3]) {
    let [x, y] = [x, y].map(|it| (it * f64::from(scale)).floor() as i64);
    for (dx, dy) in
        (-THICKNESS..=THICKNESS).flat_map(|dx| (-THICKNESS..=THICKNESS).map(move |dy| (dx, dy)))
    {
        set(picture, x + dx, y + dy, colour);
    }
}

/// Sets a pixel, if it is inside the picture.
fn set(picture: &mut RgbImage, x: i64, y: i64, colour: [u8; 3]) {
    let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { return };
    if let Some(pixel) = picture.get_pixel_mut_checked(x, y) {
        *pixel = Rgb(colour);
    }
}

/// Blends the pixel of each element with a colour; one mask after another.
fn blend(
    picture: &mut RgbImage,
    scale: u32,
    values: &[f64],
    colour: &dyn Fn(f64) -> Option<([u8; 3], f64)>,
) {
    let (width, height) = picture.dimensions();
    let (columns, rows) = (width / scale, height / scale);
    for mask in values.chunks_exact((columns * rows) as usize) {
        for (x, y, pixel) in picture.enumerate_pixels_mut() {
            let value = mask[(y / scale * columns + x / scale) as usize];
            if let Some((over, share)) = colour(value) {
                for (under, over) in pixel.0.iter_mut().zip(over) {
                    let mixed = f64::from(*under) * (1.0 - share) + f64::from(over) * share;
                    *under = mixed.round() as u8;
                }
            }
        }
    }
}

/// The elements of a value as floats.
fn numbers(element: ElementType, bytes: &[u8]) -> Vec<f64> {
    macro_rules! read {
        ($type:ty) => {
            bytes
                .chunks_exact(size_of::<$type>())
                .map(|it| <$type>::from_le_bytes(it.try_into().expect("its size")) as f64)
                .collect()
        };
    }
    match element {
        ElementType::Bool | ElementType::Uint8 => read!(u8),
        ElementType::Int8 => read!(i8),
        ElementType::Uint16 => read!(u16),
        ElementType::Int16 => read!(i16),
        ElementType::Uint32 => read!(u32),
        ElementType::Int32 => read!(i32),
        ElementType::Uint64 => read!(u64),
        ElementType::Int64 => read!(i64),
        ElementType::Float16 => bytes
            .chunks_exact(2)
            .map(|it| f64::from(half::f16::from_le_bytes([it[0], it[1]])))
            .collect(),
        ElementType::Float32 => read!(f32),
        ElementType::Float64 => read!(f64),
    }
}

#[cfg(test)]
mod tests {
    use super::{COLOURS, THICKNESS, draw};
    use image::{Rgb, RgbImage};
    use meetpoint_format::column::{ColumnKind, ElementType};
    use meetpoint_format::recipe::Recipe;

    /// The target of a recipe that has one.
    fn target(keys: &str) -> meetpoint_format::recipe::Target {
        let text = format!("[[operation]]\nname = 'decode'\n[targets.it]\n{keys}");
        Recipe::from_toml(&text).unwrap().targets()[0].clone()
    }

    #[test]
    fn a_box_in_any_format_has_the_same_outline() {
        let kind = ColumnKind::Ragged { element: ElementType::Float32, inner: vec![4] };
        let mut drawn = Vec::new();
        for (format, four) in [
            ("xyxy", [2.0_f32, 4.0, 14.0, 12.0]),
            ("xywh", [2.0, 4.0, 12.0, 8.0]),
            ("cxcywh", [8.0, 8.0, 12.0, 8.0]),
        ] {
            let mut picture = RgbImage::new(40, 40);
            let bytes: Vec<u8> = four.iter().flat_map(|it| it.to_le_bytes()).collect();
            let target = target(&format!("kind = 'boxes'\nformat = '{format}'"));
            draw(&mut picture, 2, (&target, &kind), &bytes);
            drawn.push(picture);
        }
        assert!(drawn.iter().all(|it| *it == drawn[0]));
        let red: Vec<(u32, u32)> = drawn[0]
            .enumerate_pixels()
            .filter(|(.., pixel)| **pixel == Rgb(COLOURS[0]))
            .map(|(x, y, _)| (x, y))
            .collect();
        assert_eq!((red.first(), red.last()), (Some(&(4, 8)), Some(&(27, 23))));
        let t = THICKNESS as usize;
        assert_eq!(red.len(), 24 * 16 - (24 - 2 * t) * (16 - 2 * t));
    }

    #[test]
    fn a_mask_colours_its_pixels_and_what_is_0_stays() {
        let kind = ColumnKind::Tensor { element: ElementType::Uint8, shape: vec![1, 3] };
        let mut picture = RgbImage::from_pixel(3, 1, Rgb([100; 3]));
        draw(&mut picture, 1, (&target("kind = 'mask'\nfill = 255"), &kind), &[0, 1, 255]);
        let [_, green, _] = COLOURS[1];
        assert_eq!(picture.get_pixel(0, 0), &Rgb([100; 3]));
        assert_eq!(picture.get_pixel(1, 0)[1], (100 + u16::from(green)).div_ceil(2) as u8);
        assert_eq!(picture.get_pixel(2, 0), &Rgb([30; 3]));
    }

    #[test]
    fn a_missing_point_is_not_drawn_and_one_at_the_border_is_cut() {
        let kind = ColumnKind::Tensor { element: ElementType::Float32, shape: vec![2, 3] };
        let mut picture = RgbImage::new(20, 20);
        let six = [10.0_f32, 10.0, 0.0, 0.0, 0.0, 2.0];
        let bytes: Vec<u8> = six.iter().flat_map(|it| it.to_le_bytes()).collect();
        draw(&mut picture, 1, (&target("kind = 'keypoints'"), &kind), &bytes);
        let drawn = picture.pixels().filter(|pixel| pixel.0 != [0; 3]).count();
        assert_eq!(drawn, 9);
        assert_eq!(picture.get_pixel(0, 0), &Rgb(COLOURS[1]));
    }
}
