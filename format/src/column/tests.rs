//! Selection of columns by name, layouts, and values of Arrow arrays.

use super::*;
use crate::recipe::{Dtype, Layout, TensorSpec};
use proptest::prelude::*;

const SPEC: TensorSpec =
    TensorSpec { height: 5, width: 7, channels: 3, dtype: Dtype::Uint8, layout: Layout::Nhwc };

fn further(name: &str, index: usize, kind: ColumnKind) -> Column {
    Column { name: name.to_owned(), kind, source: ColumnSource::Further(index) }
}

#[test]
fn codes_and_names_of_element_types_are_unique() {
    let codes: std::collections::HashSet<u16> =
        ElementType::ALL.iter().map(|element| element.code()).collect();
    let names: std::collections::HashSet<&str> =
        ElementType::ALL.iter().map(|element| element.name()).collect();
    assert_eq!((codes.len(), names.len()), (ElementType::ALL.len(), ElementType::ALL.len()));
}

#[test]
fn the_image_comes_first_and_columns_of_variable_length_last() {
    let columns = BatchColumns::new(vec![
        Column::key(),
        Column::label(),
        Column::image(&SPEC),
        further("area", 0, ColumnKind::Tensor { element: ElementType::Float32, shape: vec![] }),
    ])
    .unwrap();
    let layout = BatchLayout::new(&columns, 2, |_| 9).unwrap();
    let offsets: Vec<u64> = layout.extents().iter().map(|extent| extent.offset).collect();
    assert_eq!(offsets, [384, 256, 0, 320]);
    assert_eq!(layout.extent(0), Extent { offset: 384, bytes: 24 + 9, rows: 9 });
    assert_eq!(layout.bytes(), 384 + 24 + 9);
    assert_eq!(BatchLayout::bytes_max(&columns, 2, &[9, 0, 0, 0]), 384 + 24 + 18);
    assert_eq!(BatchLayout::bytes_max(&columns, 2, &[u64::MAX, 0, 0, 0]), u64::MAX);
    assert_eq!(BatchLayout::new(&columns, 2, |_| u64::MAX), None);
}

#[test]
fn a_column_that_is_there_twice_and_none_at_all_are_refused() {
    let twice = BatchColumns::new(vec![Column::label(), Column::key(), Column::label()]);
    assert_eq!(twice, Err(ColumnError::Twice { name: "label".to_owned() }));
    assert_eq!(BatchColumns::new(vec![]), Err(ColumnError::Empty { available: vec![] }));
    let many = (0..=COLUMNS_MAX).map(|at| further(&at.to_string(), at, ColumnKind::Bytes));
    let many = BatchColumns::new(many.collect());
    assert_eq!(many, Err(ColumnError::TooMany { count: COLUMNS_MAX + 1 }));
}

proptest! {
    #[test]
    fn extents_are_aligned_and_apart(
        kinds in proptest::collection::vec(0..4_u32, 1..9), samples in 0..9_u32, rows in 0..99_u64,
    ) {
        let columns = kinds.iter().enumerate().map(|(index, kind)| {
            let kind = match kind {
                0 => ColumnKind::Bytes,
                1 => ColumnKind::Text,
                2 => ColumnKind::Ragged { element: ElementType::Int16, inner: vec![3] },
                _ => ColumnKind::Tensor { element: ElementType::Float64, shape: vec![2, 3] },
            };
            further(&index.to_string(), index, kind)
        });
        let columns = BatchColumns::new(columns.collect()).unwrap();
        let layout = BatchLayout::new(&columns, samples, |_| rows).unwrap();
        let mut extents = layout.extents().to_vec();
        extents.sort_by_key(|extent| (extent.offset, extent.bytes));
        let mut end = 0;
        for extent in extents {
            prop_assert_eq!(extent.offset % COLUMN_ALIGNMENT, 0);
            prop_assert!(extent.offset >= end);
            end = extent.offset + extent.bytes;
        }
        prop_assert_eq!(end, layout.bytes());
        let longest: Vec<u64> =
            columns.as_slice().iter().map(|it| rows * it.kind.row_bytes().unwrap()).collect();
        prop_assert!(samples == 0 || BatchLayout::bytes_max(&columns, samples, &longest) >= end);
    }
}

#[cfg(feature = "dataset")]
mod of_datasets {
    use super::*;
    use crate::dataset::Columns;
    use crate::recipe::{Decode, Recipe};
    use arrow_array::types::{Float32Type, Int64Type};
    use arrow_array::{
        ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, Int16Array, LargeStringArray,
        ListArray,
    };
    use arrow_schema::{DataType as T, Field, Schema, TimeUnit};
    use std::sync::Arc;

    fn item(data_type: T) -> Arc<Field> {
        Arc::new(Field::new("item", data_type, true))
    }

    fn dataset(fields: Vec<Field>) -> Columns {
        Columns { extra: Arc::new(Schema::new(fields)), ..Columns::images() }
    }

    fn select(names: &[&str], dataset: &Columns) -> Result<BatchColumns, ColumnError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let recipe = Recipe::new(vec![Decode::EXACT.into()]).unwrap();
        BatchColumns::select(&names, dataset, (&recipe, &SPEC), Collate::Stack)
    }

    fn list(of: T) -> T {
        T::List(item(of))
    }

    fn fixed(of: T, length: i32) -> T {
        T::FixedSizeList(item(of), length)
    }

    /// The columns of a batch of a dataset with all of these, of a recipe with targets.
    fn select_targets(
        fields: &[(&str, T)],
        targets: &str,
        names: &[&str],
    ) -> Result<BatchColumns, ColumnError> {
        let fields = fields.iter().map(|(name, it)| Field::new(*name, it.clone(), true));
        let text = format!("[[operation]]\nname = 'decode'\n{targets}");
        let recipe = Recipe::from_toml(&text).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        BatchColumns::select(&names, &dataset(fields.collect()), (&recipe, &SPEC), Collate::Stack)
    }

    const MASK: &str = "[targets.x]\nkind = 'mask'\nfill = 200\n";
    const SALIENCY: &str = "[targets.x]\nkind = 'saliency'\n";
    const BOXES: &str = "[targets.x]\nkind = 'boxes'\nformat = 'xyxy'\n";
    const SANITIZED: &str = "[targets.x]\nkind = 'boxes'\nformat = 'xyxy'\nmin_size = 1\n";
    const POINTS: &str = "[targets.x]\nkind = 'keypoints'\nswap = [[0, 2]]\n";

    #[test]
    fn targets_have_the_form_that_the_recipe_gives_them() {
        use ElementType as E;
        let tensor = |element, shape: &[u32]| ColumnKind::Tensor { element, shape: shape.to_vec() };
        let ragged = |element, inner: &[u32]| ColumnKind::Ragged { element, inner: inner.to_vec() };
        let wide = "[targets.x]\nkind = 'mask'\ndtype = 'uint16'\n";
        let cases = [
            (MASK, T::Binary, tensor(E::Uint8, &[5, 7])),
            (wide, T::LargeBinary, tensor(E::Uint16, &[5, 7])),
            (MASK, fixed(fixed(T::Int32, 20), 30), tensor(E::Int32, &[5, 7])),
            (MASK, list(fixed(fixed(T::UInt8, 20), 30)), ragged(E::Uint8, &[5, 7])),
            (SALIENCY, fixed(fixed(T::UInt8, 20), 30), tensor(E::Uint8, &[5, 7])),
            (BOXES, list(fixed(T::Float64, 4)), ragged(E::Float32, &[4])),
            (SANITIZED, list(fixed(T::Int16, 4)), ragged(E::Float32, &[4])),
            (BOXES, fixed(fixed(T::Float32, 4), 3), tensor(E::Float32, &[3, 4])),
            (POINTS, list(fixed(fixed(T::Float32, 3), 17)), ragged(E::Float32, &[17, 3])),
            (POINTS, list(fixed(T::Int64, 2)), ragged(E::Float32, &[2])),
            (POINTS, fixed(fixed(T::Float64, 2), 3), tensor(E::Float32, &[3, 2])),
        ];
        for (targets, stored, expected) in cases {
            let columns = select_targets(&[("x", stored.clone())], targets, &["image", "x"]);
            let columns = columns.unwrap_or_else(|error| panic!("{targets} {stored}: {error}"));
            assert_eq!(columns.as_slice()[1].kind, expected, "{targets} {stored}");
            assert_eq!(columns.as_slice()[1].source, ColumnSource::Target(0));
        }
    }

    #[test]
    fn columns_of_other_types_are_no_targets() {
        let cases = [
            (MASK, T::Utf8),
            (MASK, fixed(T::UInt8, 30)),
            (MASK, fixed(fixed(T::Int8, 20), 30)),
            (SALIENCY, fixed(fixed(T::Float32, 20), 30)),
            (BOXES, T::Binary),
            (BOXES, list(T::Float32)),
            (BOXES, list(fixed(T::Float32, 5))),
            (BOXES, list(fixed(T::Boolean, 4))),
            (SANITIZED, fixed(fixed(T::Float32, 4), 3)),
            (POINTS, T::Float32),
            (POINTS, fixed(T::Float32, 2)),
            (POINTS, fixed(fixed(T::Float32, 2), 2)),
            (POINTS, list(fixed(T::Float32, 4))),
        ];
        for (targets, stored) in cases {
            match select_targets(&[("x", stored.clone())], targets, &["image", "x"]) {
                Err(ColumnError::Target { name, .. }) => assert_eq!(name, "x"),
                other => panic!("{targets} {stored}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_filtered_with_boxes_has_a_row_for_each_and_comes_with_images() {
        let boxes = ("x", list(fixed(T::Float32, 4)));
        let targets = format!("{SANITIZED}filters = ['labels', 'masks']\n");
        let select = |labels: T, names: &[&str]| {
            select_targets(&[boxes.clone(), ("labels", labels)], &targets, names)
        };
        select(list(T::Int64), &["image", "labels"]).unwrap();
        select(T::Int64, &["image", "x"]).unwrap();
        select(T::Int64, &["key"]).unwrap();
        match select(T::Int64, &["image", "labels"]) {
            Err(ColumnError::NotFiltered { name, boxes, .. }) => {
                assert_eq!((&name[..], &boxes[..]), ("labels", "x"));
            }
            other => panic!("{other:?}"),
        }
        let without = |name: &str| Err(ColumnError::WithoutImage { name: name.to_owned() });
        assert_eq!(select(list(T::Int64), &["x", "key"]), without("x"));
        assert_eq!(select(list(T::Int64), &["key", "labels"]), without("labels"));
        let missing = select_targets(&[("labels", list(T::Int64))], &targets, &["image", "labels"]);
        match missing {
            Err(ColumnError::Unknown { name, .. }) => assert_eq!(name, "x"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_type_that_fits_has_its_form() {
        let boxes = T::List(item(T::FixedSizeList(item(T::Float32), 4)));
        let tensor = |element, shape: &[u32]| ColumnKind::Tensor { element, shape: shape.to_vec() };
        let ragged = |element, inner: &[u32]| ColumnKind::Ragged { element, inner: inner.to_vec() };
        let mut cases = vec![
            (T::Boolean, tensor(ElementType::Bool, &[])),
            (T::Float16, tensor(ElementType::Float16, &[])),
            (T::UInt64, tensor(ElementType::Uint64, &[])),
            (T::FixedSizeBinary(16), tensor(ElementType::Uint8, &[16])),
            (T::FixedSizeList(item(T::Int16), 3), tensor(ElementType::Int16, &[3])),
            (
                T::FixedSizeList(item(T::FixedSizeList(item(T::Float64), 3)), 2),
                tensor(ElementType::Float64, &[2, 3]),
            ),
            (T::List(item(T::Int64)), ragged(ElementType::Int64, &[])),
            (T::LargeList(item(T::Boolean)), ragged(ElementType::Bool, &[])),
            (boxes, ragged(ElementType::Float32, &[4])),
        ];
        cases.extend([T::Utf8, T::LargeUtf8].map(|it| (it, ColumnKind::Text)));
        cases.extend([T::Binary, T::LargeBinary].map(|it| (it, ColumnKind::Bytes)));
        for (data_type, kind) in cases {
            let dataset = dataset(vec![Field::new("x", data_type.clone(), true)]);
            let columns = select(&["x", "image"], &dataset).unwrap();
            assert_eq!(columns.as_slice()[0], further("x", 0, kind), "{data_type}");
        }
    }

    #[test]
    fn a_type_that_does_not_fit_is_refused_by_name_and_type() {
        let refused = [
            T::Timestamp(TimeUnit::Second, None),
            T::Decimal128(10, 2),
            T::Null,
            T::Struct(vec![Field::new("a", T::Int8, false)].into()),
            T::List(item(T::Utf8)),
            T::List(item(T::List(item(T::Int8)))),
            T::FixedSizeList(item(T::List(item(T::Int8))), 2),
            T::FixedSizeList(item(T::Int8), 0),
            T::FixedSizeBinary(0),
        ];
        for data_type in refused {
            let dataset = dataset(vec![Field::new("x", data_type.clone(), true)]);
            match select(&["image", "x"], &dataset) {
                Err(ColumnError::Type { name, found, .. }) => {
                    assert_eq!((&*name, found), ("x", data_type.to_string()));
                }
                other => panic!("{data_type}: {other:?}"),
            }
        }
    }

    #[test]
    fn an_unknown_column_is_refused_with_the_nearest_and_all_that_there_are() {
        let dataset = dataset(vec![Field::new("boxes", T::Int8, false)]);
        let known = ["image", "label", "key", "sample", "boxes"].map(str::to_owned).to_vec();
        let unknown = |name: &str, nearest: Option<&str>| ColumnError::Unknown {
            name: name.to_owned(),
            nearest: nearest.map(str::to_owned),
            available: known.clone(),
        };
        assert_eq!(select(&["boxess"], &dataset), Err(unknown("boxess", Some("boxes"))));
        assert_eq!(select(&["zzzzzzzz"], &dataset), Err(unknown("zzzzzzzz", None)));
        assert_eq!(select(&[], &dataset), Err(ColumnError::Empty { available: known.clone() }));
        let twice = Err(ColumnError::Twice { name: "boxes".to_owned() });
        assert_eq!(select(&["boxes", "image", "boxes"], &dataset), twice);
    }

    #[test]
    fn a_column_of_the_dataset_is_never_taken_for_the_sample_numbers() {
        let dataset = dataset(vec![Field::new("sample", T::Int8, false)]);
        let ambiguous = Err(ColumnError::Ambiguous { name: "sample".to_owned() });
        assert_eq!(select(&["sample"], &dataset), ambiguous);
        assert!(select(&["image"], &dataset).is_ok());
    }

    #[test]
    fn the_content_has_the_name_that_its_dataset_gives_it_too() {
        let dataset = Columns { name: "jpg".to_owned(), ..Columns::images() };
        let columns = select(&["jpg"], &dataset).unwrap();
        assert_eq!(columns.as_slice()[0].source, ColumnSource::Image);
        assert_eq!(columns.position("jpg"), Some(0));
        let twice = Err(ColumnError::Twice { name: "image".to_owned() });
        assert_eq!(select(&["jpg", "image"], &dataset), twice);
    }

    fn bytes_of(column: &Column, array: &ArrayRef, row: usize) -> Result<Vec<u8>, NullValue> {
        let mut bytes = Vec::new();
        append_value(column, array, row, &mut bytes).map(|()| bytes)
    }

    #[test]
    fn values_are_appended_in_little_endian_order_and_nulls_refused() {
        let numbers: ArrayRef = Arc::new(Int16Array::from(vec![Some(258), None]));
        let kind = ColumnKind::Tensor { element: ElementType::Int16, shape: vec![] };
        let column = further("x", 0, kind);
        assert_eq!(bytes_of(&column, &numbers, 0), Ok(vec![2, 1]));
        assert_eq!(bytes_of(&column, &numbers, 1), Err(NullValue));
        assert_eq!(value_bytes_max(&column, &numbers), 2);

        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
        let kind = ColumnKind::Tensor { element: ElementType::Bool, shape: vec![] };
        assert_eq!(bytes_of(&further("x", 0, kind), &flags, 0), Ok(vec![1]));

        let texts: ArrayRef = Arc::new(LargeStringArray::from(vec!["", "größe"]));
        let column = further("x", 0, ColumnKind::Text);
        assert_eq!(bytes_of(&column, &texts, 1), Ok("größe".as_bytes().to_vec()));
        assert_eq!(value_bytes_max(&column, &texts), 7);

        let binary: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\0\xff"[..], b""]));
        let column = further("x", 0, ColumnKind::Bytes);
        assert_eq!(bytes_of(&column, &binary, 0), Ok(vec![0, 255]));
    }

    #[test]
    fn lists_of_fixed_size_lists_are_rows_of_inner_axes() {
        let inner = [[0.5, 1.0], [2.0, 4.0], [8.0, 16.0]].map(|pair| Some(pair.map(Some)));
        let inner = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(inner, 2);
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([1, 0, 2]);
        let field = item(inner_type());
        let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, Arc::new(inner), None));
        let kind = ColumnKind::Ragged { element: ElementType::Float32, inner: vec![2] };
        let column = further("boxes", 0, kind);
        let floats = |values: &[f32]| -> Vec<u8> {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        assert_eq!(bytes_of(&column, &lists, 0), Ok(floats(&[0.5, 1.0])));
        assert_eq!(bytes_of(&column, &lists, 1), Ok(vec![]));
        assert_eq!(bytes_of(&column, &lists, 2), Ok(floats(&[2.0, 4.0, 8.0, 16.0])));
        assert_eq!(value_bytes_max(&column, &lists), 16);
    }

    fn inner_type() -> T {
        T::FixedSizeList(item(T::Float32), 2)
    }

    #[test]
    fn a_null_inside_a_list_is_refused_and_one_in_another_row_is_not() {
        let rows = vec![Some(vec![Some(1), None]), Some(vec![Some(2)]), None];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows));
        let kind = ColumnKind::Ragged { element: ElementType::Int64, inner: vec![] };
        let column = further("x", 0, kind);
        assert_eq!(bytes_of(&column, &lists, 0), Err(NullValue));
        assert_eq!(bytes_of(&column, &lists, 1), Ok(2_i64.to_le_bytes().to_vec()));
        assert_eq!(bytes_of(&column, &lists, 2), Err(NullValue));
    }
}

#[test]
fn the_most_bytes_of_a_batch_hold_what_is_padded_to_the_largest_picture() {
    let kinds = [
        ColumnKind::Padded { element: ElementType::Float32, axes: vec![3, VARIES, VARIES] },
        ColumnKind::PaddedRagged { element: ElementType::Uint8, inner: vec![VARIES; 2] },
        ColumnKind::Shaped { element: ElementType::Uint16, axes: vec![VARIES; 2] },
    ];
    let columns = (0..).zip(kinds).map(|(at, kind)| further(&at.to_string(), at, kind)).collect();
    let columns = BatchColumns::new(columns).unwrap();
    // Pictures of at most 20 x 30 pixels, with at most 4 objects.
    let most = BatchLayout::bytes_max(&columns, 5, &[3 * 600 * 4, 4 * 600, 600 * 2]);
    let axes = |index: usize| match index {
        0 => [3, 20, 30, 0, 0, 0],
        _ => [20, 30, 0, 0, 0, 0],
    };
    let rows = |index: usize| [0, 4 * 5, 600 * 5][index];
    let layout = BatchLayout::with_axes(&columns, 5, rows, axes).unwrap();
    assert!(layout.bytes() <= most && most <= layout.bytes() + 64, "{} {most}", layout.bytes());
    assert_eq!(columns.as_slice()[0].kind.to_string(), "padded tensor of float32 [3, *, *]");
}
