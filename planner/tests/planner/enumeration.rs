//! Points and strategies, against a closed formula and operation by operation.

use crate::recipe;
use meetpoint_format::recipe::CutRefusal;
use meetpoint_planner::{Codec, Form, GpuIndex, Settings, enumerate, materialization_points};
use proptest::prelude::*;

/// Names of the legal points.
fn names(operations: &[&str], has_jpegs: bool) -> Vec<String> {
    let points = materialization_points(&recipe(operations), has_jpegs);
    points.legal.iter().map(ToString::to_string).collect()
}

#[test]
fn every_point_of_a_deterministic_recipe_is_listed_in_its_order() {
    let operations =
        ["decode", "resize size = 8", "to_dtype dtype = \"float32\"", "layout layout = \"NCHW\""];
    let expected = [
        "files",
        "packed",
        "coefficients-fast",
        "coefficients-compact",
        "1-decode",
        "1-decode-jpeg",
        "2-resize",
        "2-resize-jpeg",
        "3-to_dtype",
        "4-layout",
    ];
    assert_eq!(names(&operations, true), expected);
    // Without JPEGs there is no coefficient form.
    let without: Vec<&str> =
        expected.into_iter().filter(|name| !name.starts_with("coefficients")).collect();
    assert_eq!(names(&operations, false), without);
}

#[test]
fn a_cut_after_a_random_operation_is_refused_and_names_it() {
    let operations = ["decode", "random_horizontal_flip", "resize size = 8"];
    let points = materialization_points(&recipe(&operations), false);
    assert_eq!(names(&operations, false), ["files", "packed", "1-decode", "1-decode-jpeg"]);
    let refused: Vec<_> =
        points.refused.iter().map(|it| (it.operations, it.operation, it.because)).collect();
    let because = CutRefusal::Random { by: "random_horizontal_flip", position: 2 };
    assert_eq!(refused, [(2, "random_horizontal_flip", because), (3, "resize", because)]);
}

#[test]
fn a_decode_that_looks_at_the_first_resize_is_not_cut_off_from_it() {
    let operations =
        ["decode scaled = true", "center_crop size = 9", "resize size = 8", "grayscale"];
    let points = materialization_points(&recipe(&operations), false);
    let because = CutRefusal::LooksAhead { by: "decode", position: 1 };
    let refused: Vec<_> = points.refused.iter().map(|it| (it.operations, it.because)).collect();
    assert_eq!(refused, [(1, because), (2, because)]);
    assert_eq!(
        names(&operations, false),
        ["files", "packed", "3-resize", "3-resize-jpeg", "4-grayscale", "4-grayscale-jpeg"]
    );
    // Later resizes and random crops do not matter; an operation that may be a crop does.
    let operations = ["decode scaled = true", "resize size = 9", "random_resized_crop size = 8"];
    assert_eq!(names(&operations, false)[2..], ["2-resize", "2-resize-jpeg"]);
    let operations = ["decode scaled = true", "random_grayscale", "random_resized_crop size = 8"];
    assert_eq!(names(&operations, false), ["files", "packed"]);
    assert_eq!(names(&["decode scaled = true"], false)[2..], ["1-decode", "1-decode-jpeg"]);
    // A JPEG has no alpha.
    assert_eq!(names(&["decode mode = \"rgba\""], false)[2..], ["1-decode"]);
}

proptest! {
    /// With `d` leading deterministic operations of which `i` give a picture, there are
    /// `p = 2 + 2 j + d + i` points and `(1 + (p - 1) c) t k` strategies.
    #[test]
    fn the_number_of_strategies_is_that_of_the_closed_formula(
        pictures in 0usize..5,
        has_random in any::<bool>(),
        tensors in 0usize..2,
        has_jpegs in any::<bool>(),
        codecs in 1usize..=3,
        threads in 1usize..4,
    ) {
        let mut operations = vec!["decode"];
        operations.extend(std::iter::repeat_n("resize size = 8", pictures));
        if has_random {
            operations.push("random_grayscale");
        }
        operations.extend(std::iter::repeat_n("to_dtype dtype = \"float32\"", tensors));
        let settings = Settings {
            codecs: Codec::ALL[..codecs].to_vec(),
            threads: (1..=threads).collect(),
        };
        let points = materialization_points(&recipe(&operations), has_jpegs);
        let i = 1 + pictures;
        let d = i + if has_random { 0 } else { tensors };
        let p = 2 + 2 * usize::from(has_jpegs) + d + i;
        prop_assert_eq!(points.legal.len(), p);
        prop_assert_eq!(points.refused.len(), operations.len() - d);
        let strategies = enumerate(&points.legal, &settings, None);
        prop_assert_eq!(strategies.len(), (1 + (p - 1) * codecs) * threads * 3);
        let distinct: std::collections::HashSet<_> = strategies.iter().collect();
        prop_assert_eq!(distinct.len(), strategies.len());
        let files = strategies.iter().filter(|it| it.point.form == Form::Files);
        prop_assert!(files.clone().all(|it| it.codec == Codec::None));
        prop_assert_eq!(files.count(), threads * 3);
        // Whole files and coefficient forms without a codec, from the drive and the page cache.
        let gpu = Some(GpuIndex(1));
        let with_gpu = enumerate(&points.legal, &settings, gpu);
        let of_gpu = with_gpu.iter().filter(|it| it.gpu == gpu);
        prop_assert!(of_gpu.clone().all(|it| it.point.operations == 0 && it.codec == Codec::None));
        let forms = if has_jpegs { 4 } else { 2 };
        prop_assert_eq!(of_gpu.count(), forms * threads * 2);
        prop_assert_eq!(with_gpu.len(), strategies.len() + forms * threads * 2);
    }
}
