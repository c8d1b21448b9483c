//! Builds typed columns from the loosely typed values of JSON and CSV.
//!
//! Types are inferred from all values ([`Shape::absorb`]). Values are never converted to another
//! type, except integers to floats without loss.

use super::json::non_finite;
use super::{ContentKind, Entry, Item, UnusedLabel};
use arrow_array::builder::BinaryBuilder;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float64Array, Int64Array, ListArray, NullArray,
    RecordBatch, StringArray, StructArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use meetpoint_format::dataset::schema::{KIND_KEY, LABELS_KEY};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum nesting depth of lists and objects; readers of Arrow files have limits too.
const DEPTH_MAX: usize = 16;
/// Maximum number of fields of an object.
const FIELDS_MAX: usize = 1024;
/// Maximum number of samples in a record batch.
const BATCH_SAMPLES: usize = 256;
/// Bytes after which a record batch is closed.
const BATCH_BYTES: usize = 8 << 20;

/// The type of a column, inferred from its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// No value so far.
    Null,
    Bool,
    Int,
    /// Integers, none negative, at least one above 2^63 - 1.
    Unsigned,
    Float,
    Text,
    Binary(ContentKind),
    List(Box<Shape>, Length),
    /// Fields in order of first appearance.
    Struct(Vec<(String, Shape)>),
}

/// The number of items of the lists of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// No list so far.
    Unknown,
    /// All lists have this number of items.
    Same(usize),
    Different,
}

/// A cell of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Bytes(Vec<u8>),
    Float(f64),
    Json(Value),
}

impl Cell {
    /// Approximate memory in bytes.
    fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Float(_) => 8,
            Self::Bytes(bytes) => bytes.len(),
            Self::Json(value) => value_bytes(value),
        }
    }

    fn datum(&self) -> Datum<'_> {
        match self {
            Self::Null => Datum::Null,
            Self::Bytes(bytes) => Datum::Bytes(bytes),
            Self::Float(float) => Datum::Float(*float),
            Self::Json(value) => Datum::of(value),
        }
    }
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(items) => 32 + items.iter().map(value_bytes).sum::<usize>(),
        Value::Object(fields) => {
            32 + fields.iter().map(|(name, value)| name.len() + value_bytes(value)).sum::<usize>()
        }
        _ => 32,
    }
}

#[derive(Clone, Copy)]
enum Datum<'a> {
    Null,
    Bytes(&'a [u8]),
    Float(f64),
    Json(&'a Value),
}

impl<'a> Datum<'a> {
    fn of(value: &'a Value) -> Self {
        if value.is_null() { Self::Null } else { Self::Json(value) }
    }
}

impl Shape {
    /// Widens the type to include `value`; the error is why it cannot.
    pub(super) fn absorb(&mut self, value: &Value) -> Result<(), String> {
        self.absorb_at(value, 0)
    }

    fn absorb_at(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("values are nested more than {DEPTH_MAX} deep"));
        }
        let found = match value {
            Value::Null => return Ok(()),
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_i64() => Self::Int,
            Value::Number(number) if number.is_u64() => Self::Unsigned,
            Value::Number(_) => Self::Float,
            Value::String(_) if non_finite(value).is_some() => Self::Float,
            Value::String(_) => Self::Text,
            Value::Array(items) => return self.absorb_list(items, depth),
            Value::Object(fields) => return self.absorb_fields(fields, depth),
        };
        *self = match (&*self, found) {
            (Self::Null, found) => found,
            (shape, found) if *shape == found => return Ok(()),
            (Self::Int, Self::Unsigned) | (Self::Unsigned, Self::Int) => Self::Unsigned,
            (Self::Int | Self::Unsigned, Self::Float)
            | (Self::Float, Self::Int | Self::Unsigned) => Self::Float,
            (shape, found) => return Err(differs(shape, &found)),
        };
        Ok(())
    }

    fn absorb_list(&mut self, items: &[Value], depth: usize) -> Result<(), String> {
        if *self == Self::Null {
            *self = Self::a_list();
        }
        let Self::List(item, length) = self else {
            return Err(differs(self, &Self::a_list()));
        };
        *length = match *length {
            Length::Unknown => Length::Same(items.len()),
            Length::Same(same) if same == items.len() => Length::Same(same),
            Length::Same(_) | Length::Different => Length::Different,
        };
        items.iter().try_for_each(|value| {
            item.absorb_at(value, depth + 1).map_err(|problem| format!("in a list: {problem}"))
        })
    }

    fn absorb_fields(
        &mut self,
        fields: &serde_json::Map<String, Value>,
        depth: usize,
    ) -> Result<(), String> {
        if *self == Self::Null {
            *self = Self::Struct(Vec::new());
        }
        let Self::Struct(known) = self else {
            return Err(differs(self, &Self::Struct(Vec::new())));
        };
        for (name, value) in fields {
            let index = known.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                known.push((name.clone(), Self::Null));
                known.len() - 1
            });
            if known.len() > FIELDS_MAX {
                return Err(format!("objects have more than {FIELDS_MAX} different fields"));
            }
            let shape = &mut known[index].1;
            shape
                .absorb_at(value, depth + 1)
                .map_err(|problem| format!("field {name}: {problem}"))?;
        }
        Ok(())
    }

    /// The type as text.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a truth value",
            Self::Int => "an integer",
            Self::Unsigned => "an integer over 2^63 - 1",
            Self::Float => "a number",
            Self::Text => "a text",
            Self::Binary(_) => "bytes",
            Self::List(..) => "a list",
            Self::Struct(_) => "an object",
        }
    }

    fn a_list() -> Self {
        Self::List(Box::new(Self::Null), Length::Unknown)
    }

    /// The common number of items if this is a list of lists of numbers of one length, such as
    /// boxes, which have a fixed shape in a batch.
    fn row_length(&self) -> Option<i32> {
        let Self::List(item, Length::Same(length @ 1..)) = self else { return None };
        let is_number = matches!(**item, Self::Bool | Self::Int | Self::Unsigned | Self::Float);
        let is_row = is_number || item.row_length().is_some();
        i32::try_from(*length).ok().filter(|_| is_row)
    }

    /// Its Arrow type as a list item.
    fn item_type(&self) -> DataType {
        match (self, self.row_length()) {
            (Self::List(item, _), Some(length)) => {
                DataType::FixedSizeList(item_field(item), length)
            }
            _ => self.data_type(),
        }
    }

    /// Its Arrow type. A column or item without a value has the type text.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Null | Self::Text => DataType::Utf8,
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::Binary(_) => DataType::Binary,
            Self::List(item, _) => DataType::List(item_field(item)),
            Self::Struct(fields) if fields.is_empty() => DataType::Null,
            Self::Struct(fields) => DataType::Struct(struct_fields(fields)),
        }
    }

    /// This column as an unused label; a column without a value has no type.
    pub(super) fn unused_label(&self, column: &str, class_label: Option<String>) -> UnusedLabel {
        let data_type = match self {
            Self::Null => DataType::Null,
            shape => shape.data_type(),
        };
        UnusedLabel::new(column, &data_type, class_label)
    }

    /// A field of that type, with the kind of its bytes.
    pub(super) fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.data_type(), true);
        match self {
            Self::Binary(kind @ (ContentKind::Image | ContentKind::Audio)) => {
                let name = if *kind == ContentKind::Image { "image" } else { "audio" };
                let kind = (KIND_KEY.to_owned(), name.to_owned());
                field.with_metadata(HashMap::from([kind]))
            }
            _ => field,
        }
    }
}

fn differs(expected: &Shape, found: &Shape) -> String {
    format!("{}, where others have {}", found.name(), expected.name())
}

fn item_field(item: &Shape) -> Arc<Field> {
    Arc::new(Field::new("item", item.item_type(), true))
}

fn struct_fields(fields: &[(String, Shape)]) -> Fields {
    fields.iter().map(|(name, shape)| Field::new(name, shape.data_type(), true)).collect()
}

/// A column of that type; the error is text and names a value of another type.
fn column(shape: &Shape, cells: &[Datum<'_>]) -> Result<ArrayRef, String> {
    Ok(match shape {
        Shape::Null | Shape::Text => Arc::new(typed::<_, StringArray>(cells, shape, text)?),
        Shape::Bool => Arc::new(typed::<_, BooleanArray>(cells, shape, |datum| match datum {
            Datum::Json(value) => value.as_bool(),
            _ => None,
        })?),
        Shape::Int => Arc::new(typed::<_, Int64Array>(cells, shape, |datum| match datum {
            Datum::Json(value) => value.as_i64(),
            _ => None,
        })?),
        Shape::Unsigned => Arc::new(typed::<_, UInt64Array>(cells, shape, |datum| match datum {
            Datum::Json(value) => value.as_u64(),
            _ => None,
        })?),
        Shape::Float => Arc::new(typed::<_, Float64Array>(cells, shape, float)?),
        Shape::Binary(_) => {
            let mut builder = BinaryBuilder::new();
            for cell in cells {
                match cell {
                    Datum::Bytes(bytes) => builder.append_value(bytes),
                    Datum::Null => builder.append_null(),
                    _ => return Err(differs(shape, &Shape::Text)),
                }
            }
            Arc::new(builder.finish())
        }
        Shape::List(item, _) => Arc::new(lists(item, cells, shape)?),
        Shape::Struct(fields) if fields.is_empty() => Arc::new(NullArray::new(cells.len())),
        Shape::Struct(fields) => Arc::new(structs(fields, cells, shape)?),
    })
}

fn typed<'a, T, A: FromIterator<Option<T>>>(
    cells: &[Datum<'a>],
    shape: &Shape,
    convert: impl Fn(Datum<'a>) -> Option<T>,
) -> Result<A, String> {
    let cells = cells.iter().map(|&cell| match cell {
        Datum::Null => Ok(None),
        datum => match convert(datum) {
            Some(value) => Ok(Some(value)),
            None => {
                Err(format!("a value that cannot be converted to {} without loss", shape.name()))
            }
        },
    });
    cells.collect()
}

fn text(datum: Datum<'_>) -> Option<&str> {
    match datum {
        Datum::Json(value) => value.as_str(),
        Datum::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// A number as a float; `None` for an integer that no float equals.
fn float(datum: Datum<'_>) -> Option<f64> {
    let value = match datum {
        Datum::Float(float) => return Some(float),
        Datum::Json(value) => value,
        _ => return None,
    };
    let float = value.as_f64().or_else(|| non_finite(value))?;
    let is_same = match (value.as_i64(), value.as_u64()) {
        (Some(integer), _) => float as i128 == i128::from(integer),
        (None, Some(integer)) => float as i128 == i128::from(integer),
        (None, None) => true,
    };
    is_same.then_some(float)
}

fn lists(item: &Shape, cells: &[Datum<'_>], shape: &Shape) -> Result<ListArray, String> {
    let (mut items, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        let values = match cell {
            Datum::Null => &[][..],
            Datum::Json(Value::Array(values)) => values,
            _ => return Err(differs(shape, &Shape::Text)),
        };
        items.extend(values.iter().map(Datum::of));
        lengths.push(values.len());
        valid.push(!matches!(cell, Datum::Null));
    }
    let items = items_of(item, &items)?;
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(lengths);
    let valid = Some(arrow_buffer::NullBuffer::from(valid));
    ListArray::try_new(item_field(item), offsets, items, valid).map_err(|error| error.to_string())
}

/// The items of lists as a column.
fn items_of(item: &Shape, cells: &[Datum<'_>]) -> Result<ArrayRef, String> {
    match (item, item.row_length()) {
        (Shape::List(inner, _), Some(length)) => {
            Ok(Arc::new(rows_of_one_length(inner, length, cells, item)?))
        }
        _ => column(item, cells),
    }
}

fn rows_of_one_length(
    item: &Shape,
    length: i32,
    cells: &[Datum<'_>],
    shape: &Shape,
) -> Result<FixedSizeListArray, String> {
    let count = usize::try_from(length).expect("a length is not negative");
    let (mut items, mut valid) = (Vec::new(), Vec::new());
    for cell in cells {
        match cell {
            Datum::Null => items.extend(std::iter::repeat_n(Datum::Null, count)),
            Datum::Json(Value::Array(values)) if values.len() == count => {
                items.extend(values.iter().map(Datum::of));
            }
            Datum::Json(Value::Array(values)) => {
                let found = values.len();
                return Err(format!("a list of {found} values, where others have {count}"));
            }
            _ => return Err(differs(shape, &Shape::Text)),
        }
        valid.push(!matches!(cell, Datum::Null));
    }
    let items = items_of(item, &items)?;
    let valid = Some(arrow_buffer::NullBuffer::from(valid));
    FixedSizeListArray::try_new(item_field(item), length, items, valid)
        .map_err(|error| error.to_string())
}

fn structs(
    fields: &[(String, Shape)],
    cells: &[Datum<'_>],
    shape: &Shape,
) -> Result<StructArray, String> {
    let mut columns = Vec::with_capacity(fields.len());
    for (name, field) in fields {
        let mut values = Vec::with_capacity(cells.len());
        for cell in cells {
            values.push(match cell {
                Datum::Null => Datum::Null,
                Datum::Json(Value::Object(object)) => {
                    object.get(name).map_or(Datum::Null, Datum::of)
                }
                _ => return Err(differs(shape, &Shape::Text)),
            });
        }
        columns.push(column(field, &values)?);
    }
    let valid: Vec<bool> = cells.iter().map(|cell| !matches!(cell, Datum::Null)).collect();
    let valid = Some(arrow_buffer::NullBuffer::from(valid));
    StructArray::try_new(struct_fields(fields), columns, valid).map_err(|error| error.to_string())
}

/// Gathers samples into record batches of their further columns.
pub(super) struct Gather {
    schema: SchemaRef,
    shapes: Vec<Shape>,
    pending: Vec<(Box<Item>, Vec<Cell>)>,
    pending_bytes: usize,
    ready: VecDeque<Entry>,
}

impl Gather {
    /// For columns of these names and types.
    pub(super) fn new(columns: &[(String, Shape)]) -> Self {
        let fields: Fields = columns.iter().map(|(name, shape)| shape.field(name)).collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            shapes: columns.iter().map(|(_, shape)| shape.clone()).collect(),
            pending: Vec::new(),
            pending_bytes: 0,
            ready: VecDeque::new(),
        }
    }

    /// Sets names for the integers of a column.
    pub(super) fn name_integers(&mut self, column: &str, names: &[String]) {
        let names = serde_json::to_string(names).expect("texts are written as JSON");
        let named = |field: &Arc<Field>| match field.name() == column {
            true => {
                let names = (LABELS_KEY.to_owned(), names.clone());
                Arc::new(field.as_ref().clone().with_metadata(HashMap::from([names])))
            }
            false => field.clone(),
        };
        let fields: Fields = self.schema.fields().iter().map(named).collect();
        self.schema = Arc::new(Schema::new(fields));
    }

    /// The columns as an Arrow schema.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds a sample with a cell for each column.
    pub(super) fn push(&mut self, item: Item, cells: Vec<Cell>) -> Result<(), String> {
        if self.shapes.is_empty() {
            self.ready.push_back(Entry::Sample(Box::new(item)));
            return Ok(());
        }
        self.pending_bytes += cells.iter().map(Cell::bytes).sum::<usize>();
        if let super::Content::Bytes(bytes) = &item.content {
            self.pending_bytes += bytes.len();
        }
        self.pending.push((Box::new(item), cells));
        if self.pending.len() >= BATCH_SAMPLES || self.pending_bytes >= BATCH_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Adds an entry that is not a sample.
    pub(super) fn note(&mut self, entry: Entry) {
        self.ready.push_back(entry);
    }

    /// Completes a record batch of the samples so far.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        if pending.is_empty() {
            return Ok(());
        }
        let columns = self.shapes.iter().enumerate().map(|(index, shape)| {
            let cells: Vec<_> = pending.iter().map(|(_, cells)| cells[index].datum()).collect();
            let name = self.schema.field(index).name();
            column(shape, &cells).map_err(|problem| format!("column {name}: {problem}"))
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        let batch = Arc::new(batch.map_err(|error| error.to_string())?);
        for (row, (mut item, _)) in pending.into_iter().enumerate() {
            item.extra = Some((batch.clone(), row));
            self.ready.push_back(Entry::Sample(item));
        }
        Ok(())
    }

    /// The next completed entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::{Array, types};
    use proptest::prelude::*;
    use serde_json::json;

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
            let row =
                (items, field).prop_map(|(items, field)| json!({"list": items, "field": field}));
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
}
