//! Columns from values, and values from columns.

use super::array::column;
use super::cell::Datum;
use super::shape::Shape;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, types};
use arrow_schema::DataType;
use proptest::prelude::*;
use serde_json::{Value, json};

fn shape_of(values: &[Value]) -> Result<Shape, String> {
    let mut shape = Shape::Null;
    values.iter().try_for_each(|value| shape.absorb(value))?;
    Ok(shape)
}

fn array_of(values: &[Value]) -> Result<ArrayRef, String> {
    let cells: Vec<_> = values.iter().map(Datum::of).collect();
    column(&shape_of(values)?, &cells)
}

/// The value from which a row was built; fields that a struct lacked are null.
fn value(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int64 => json!(array.as_primitive::<types::Int64Type>().value(row)),
        DataType::UInt64 => json!(array.as_primitive::<types::UInt64Type>().value(row)),
        DataType::Float64 => json!(array.as_primitive::<types::Float64Type>().value(row)),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|index| value(&items, index)).collect()
        }
        DataType::Struct(fields) => fields
            .iter()
            .zip(array.as_struct().columns())
            .map(|(field, column)| (field.name().clone(), value(column, row)))
            .collect(),
        other => panic!("{other} is not expected"),
    }
}

#[test]
fn types_widen_only_where_nothing_is_lost() {
    assert_eq!(shape_of(&[json!(1), Value::Null, json!(0.5)]).unwrap(), Shape::Float);
    assert_eq!(shape_of(&[json!(1), json!(u64::MAX)]).unwrap(), Shape::Unsigned);
    for bad in [
        [json!(1), json!("1")],
        [json!(true), json!(1)],
        [json!([1]), json!(1)],
        [json!({"a": 1}), json!([])],
        [json!({"a": {"b": [1]}}), json!({"a": {"b": ["x"]}})],
    ] {
        assert!(shape_of(&bad).is_err(), "{bad:?}");
    }
    let problem = array_of(&[json!(9_007_199_254_740_993_i64), json!(0.5)]).unwrap_err();
    assert!(problem.contains("without loss"), "{problem}");
    assert!(array_of(&[json!(-1), json!(u64::MAX)]).is_err());
    let mut deep = json!(1);
    for _ in 0..20 {
        deep = json!([deep]);
    }
    assert!(shape_of(&[deep]).unwrap_err().contains("deep"));
}

#[test]
fn a_field_that_a_row_lacks_is_null() {
    let rows = [json!({"a": [1, null]}), Value::Null, json!({"b": "x"}), json!({"a": []})];
    let array = array_of(&rows).unwrap();
    let found: Vec<Value> = (0..4).map(|row| value(&array, row)).collect();
    assert_eq!(found[0], json!({"a": [1, null], "b": null}));
    assert_eq!(found[1], Value::Null);
    assert_eq!(found[2], json!({"a": null, "b": "x"}));
    assert_eq!(found[3], json!({"a": [], "b": null}));
}

#[test]
fn inner_lists_of_numbers_that_are_all_of_one_length_have_a_form_in_a_batch() {
    let type_of = |rows: &[Value]| array_of(rows).unwrap().data_type().to_string();
    let boxes = [json!([[0.5, 1, 2, 3], [4, 5, 6, 7]]), json!([]), Value::Null];
    assert_eq!(type_of(&boxes), "List(FixedSizeList(4 x Float64))");
    let lists = array_of(&boxes).unwrap();
    let first = lists.as_list::<i32>().value(0);
    let second = first.as_fixed_size_list().value(1);
    assert_eq!(second.as_primitive::<types::Float64Type>().values(), &[4.0, 5.0, 6.0, 7.0]);
    assert!(lists.as_list::<i32>().value(1).is_empty() && lists.is_null(2));
    let matrices = [json!([[[1, 2]], [[3, 4]]])];
    assert_eq!(type_of(&matrices), "List(FixedSizeList(1 x FixedSizeList(2 x Int64)))");
    // Polygons, empty lists and text remain lists of lists.
    assert_eq!(type_of(&[json!([[1, 2], [3]])]), "List(List(Int64))");
    assert_eq!(type_of(&[json!([[1, 2]]), json!([[]])]), "List(List(Int64))");
    assert_eq!(type_of(&[json!([["a", "b"]])]), "List(List(Utf8))");
    assert_eq!(type_of(&[json!([1, 2]), json!([3, 4])]), "List(Int64)");
    let later = [json!([[1, 2]]), json!([[3]])];
    let cells: Vec<_> = later.iter().map(Datum::of).collect();
    let problem = column(&shape_of(&later[..1]).unwrap(), &cells).unwrap_err();
    assert!(problem.contains("a list of 1 values, where others have 2"), "{problem}");
}

/// Rows of one random type.
fn rows() -> impl Strategy<Value = Vec<Value>> {
    let leaf = |kind: u8| match kind {
        0 => any::<i64>().prop_map(|number| json!(number)).boxed(),
        1 => any::<f64>().prop_map(|number| json!(number)).boxed(),
        2 => any::<bool>().prop_map(|truth| json!(truth)).boxed(),
        _ => ".{0,6}".prop_map(|text| json!(text)).boxed(),
    };
    (0_u8..4, 0_u8..4).prop_flat_map(move |(item, field)| {
        let field = prop_oneof![1 => Just(Value::Null), 4 => leaf(field)];
        let items = proptest::collection::vec(leaf(item), 0..4);
        let row = (items, field).prop_map(|(items, field)| json!({"list": items, "field": field}));
        proptest::collection::vec(row, 1..20)
    })
}

proptest! {
    #[test]
    fn rows_of_one_type_come_back_as_they_were(rows in rows()) {
        let array = array_of(&rows).unwrap();
        for (row, expected) in rows.iter().enumerate() {
            prop_assert_eq!(&value(&array, row), expected);
        }
    }
}
