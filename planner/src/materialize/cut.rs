//! The cut of a recipe that a user selects: by a number, by the name of an operation, or by that of
//! a point.

use crate::cut_error::CutError;
use crate::enumerate::materialization_points;
use crate::vocabulary::{Form, Point};
use meetpoint_format::recipe::Recipe;

/// The point of a recipe that a user selects: `2`, `resize`, `2-resize`, or its name in a profile.
/// With `is_jpeg`, pictures are re-encoded as JPEG.
pub fn find_cut(recipe: &Recipe, cut: &str, is_jpeg: bool) -> Result<Point, CutError> {
    let names: Vec<&str> = recipe.operations().iter().map(|it| it.name()).collect();
    let encoded = [Form::Files, Form::Packed, Form::CoefficientsFast, Form::CoefficientsCompact];
    if encoded.into_iter().any(|form| form.name() == cut) {
        return Err(CutError::Packed { name: cut.to_owned() });
    }
    let (place, names_jpeg) = match cut.strip_suffix("-jpeg") {
        Some(place) => (place, true),
        None => (cut, false),
    };
    if names_jpeg && !is_jpeg {
        return Err(CutError::Lossy { name: cut.to_owned() });
    }
    let cut_after = |index: usize| format!("{}-{}", index + 1, names[index]);
    let operations = if let Ok(number) = place.parse::<usize>() {
        if !(1..=names.len()).contains(&number) {
            return Err(CutError::Outside { cut: number, operations: names.len() });
        }
        number
    } else if let Some(index) = (0..names.len()).find(|index| cut_after(*index) == place) {
        index + 1
    } else {
        let found: Vec<usize> = (0..names.len()).filter(|index| names[*index] == place).collect();
        match found[..] {
            [index] => index + 1,
            [] => {
                let points = materialization_points(recipe, false).legal;
                let legal = points.iter().filter(|point| point.form == Form::Prepared);
                let legal = legal.map(Point::to_string).collect();
                return Err(CutError::Unknown { cut: cut.to_owned(), legal });
            }
            _ => {
                let cuts = found.into_iter().map(cut_after).collect();
                return Err(CutError::Ambiguous { name: place.to_owned(), cuts });
            }
        }
    };
    let operation = names[operations - 1].to_owned();
    if let Some(because) = recipe.refusal_of_cut(operations) {
        return Err(CutError::Refused { operations, operation, because });
    }
    if is_jpeg && !crate::enumerate::gives_picture(recipe.operations(), operations) {
        return Err(CutError::NotPictures { operations, operation });
    }
    let form = if is_jpeg { Form::Jpeg } else { Form::Prepared };
    Ok(Point { form, operations, operation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_format::recipe::CutRefusal;

    fn find(cut: &str, is_jpeg: bool) -> Result<Point, CutError> {
        let text: String = [
            "name = \"decode\"",
            "name = \"resize\"\nsize = 20",
            "name = \"resize\"\nsize = 10",
            "name = \"to_dtype\"\ndtype = \"float32\"",
            "name = \"random_erasing\"",
        ]
        .map(|keys| format!("[[operation]]\n{keys}\n"))
        .concat();
        find_cut(&Recipe::from_toml(&text).unwrap(), cut, is_jpeg)
    }

    #[test]
    fn a_cut_is_a_number_a_name_or_a_point() {
        let point = |form, operations, operation: &str| Point {
            form,
            operations,
            operation: operation.to_owned(),
        };
        assert_eq!(find("1", false), Ok(point(Form::Prepared, 1, "decode")));
        assert_eq!(find("decode", false), Ok(point(Form::Prepared, 1, "decode")));
        assert_eq!(find("3-resize", false), Ok(point(Form::Prepared, 3, "resize")));
        assert_eq!(find("3-resize-jpeg", true), Ok(point(Form::Jpeg, 3, "resize")));
        assert_eq!(find("3", true), Ok(point(Form::Jpeg, 3, "resize")));
    }

    #[test]
    fn invalid_cuts_are_refused_with_the_reason() {
        let because = CutRefusal::Random { by: "random_erasing", position: 5 };
        let operation = "random_erasing".to_owned();
        assert_eq!(find("5", false), Err(CutError::Refused { operations: 5, operation, because }));
        assert!(matches!(find("resize", false), Err(CutError::Ambiguous { .. })));
        assert!(matches!(find("rotate", false), Err(CutError::Unknown { .. })));
        assert_eq!(find("6", false), Err(CutError::Outside { cut: 6, operations: 5 }));
        assert!(matches!(find("packed", false), Err(CutError::Packed { .. })));
        assert!(matches!(find("2-resize-jpeg", false), Err(CutError::Lossy { .. })));
        assert!(matches!(find("4", true), Err(CutError::NotPictures { .. })));
    }
}
