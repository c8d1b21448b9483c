//! The sizes that pictures of a recipe can have.

use crate::recipe::{Recipe, SizeRange};

fn sizes(operations: &str, source: Option<(u32, u32)>) -> SizeRange {
    let text = format!("[[operation]]\nname = \"decode\"\n{operations}");
    Recipe::from_toml(&text).unwrap().sizes(source)
}

fn operation(name: &str, keys: &str) -> String {
    format!("[[operation]]\nname = \"{name}\"\n{keys}\n")
}

#[test]
fn what_has_a_largest_side_has_a_limit_without_any_picture() {
    let shortest = operation("random_shortest_size", "min_size = [640, 800]\nmax_size = 1333");
    assert_eq!(sizes(&shortest, None).limit(), Some((1333, 1333)));
    let open = operation("random_shortest_size", "min_size = [640, 800]");
    assert_eq!(sizes(&open, None).limit(), None);
    assert_eq!(sizes("", None).limit(), None);
    let jitter = operation("scale_jitter", "target_size = [640, 320]\nscale_range = [0.5, 2.0]");
    assert_eq!(sizes(&jitter, None).limit(), Some((640, 1280)));
    let crop = operation("center_crop", "size = [30, 40]");
    assert_eq!(sizes(&format!("{shortest}{crop}"), None).only(), Some((30, 40)));
    let padded = format!("{shortest}{}", operation("pad", "padding = [1, 2, 3, 4]"));
    assert_eq!(sizes(&padded, None).limit(), Some((1339, 1337)));
}

#[test]
fn with_a_picture_there_is_always_a_limit() {
    let of = |operations: &str| sizes(operations, Some((480, 640))).limit().unwrap();
    assert_eq!(of(""), (480, 640));
    assert_eq!(of(&operation("resize", "size = 240")), (240, 320));
    let (height, width) = of(&operation("random_shortest_size", "min_size = [240, 480]"));
    assert!((480..=482).contains(&height) && (640..=642).contains(&width), "{height} {width}");
    assert_eq!(of(&operation("random_zoom_out", "side_range = [1.0, 4.0]")), (1920, 2560));
    let boxes = "[targets.boxes]\nkind = \"boxes\"\nformat = \"xyxy\"\n";
    let crop = format!("{}{boxes}", operation("random_iou_crop", ""));
    assert_eq!(of(&crop), (480, 640));
    let turned = operation("random_rotation", "degrees = 45\nexpand = true");
    assert_eq!(of(&turned), (802, 802));
    let flip = operation("random_horizontal_flip", "");
    assert_eq!(of(&flip), (480, 640));
}
