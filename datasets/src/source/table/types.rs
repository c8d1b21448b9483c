//! Types of the columns of a table.
//!
//! Fields of CSV are text; a column contains integers, floats or booleans if each non-empty field
//! can be parsed as one without loss (`007` remains text). An empty field is null.

use super::row::TableRow;
use crate::message::Message;
use crate::source::columns::{Cell, Shape};
use crate::source::json::{has_fraction, non_finite};
use serde_json::Value;

/// Maximum number of columns of a table.
const COLUMNS_MAX: usize = 4096;

/// The types that a column's fields may still have.
#[derive(Debug, Clone, Copy)]
struct PossibleTypes {
    has_any: bool,
    may_be_bool: bool,
    may_be_int: bool,
    may_be_float: bool,
}

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    guess: PossibleTypes,
    shape: Shape,
    /// Whether a number in it has a fraction.
    has_fraction: bool,
}

impl Column {
    fn new(name: &str) -> Self {
        let guess = PossibleTypes {
            has_any: false,
            may_be_bool: true,
            may_be_int: true,
            may_be_float: true,
        };
        Self { name: name.to_owned(), guess, shape: Shape::Null, has_fraction: false }
    }

    /// Its type, inferred from its fields.
    pub(super) fn shape(&self) -> Shape {
        match self.guess {
            _ if self.shape != Shape::Null => self.shape.clone(),
            PossibleTypes { has_any: false, .. } => Shape::Null,
            PossibleTypes { may_be_bool: true, .. } => Shape::Bool,
            PossibleTypes { may_be_int: true, .. } => Shape::Int,
            PossibleTypes { may_be_float: true, .. } => Shape::Float,
            _ => Shape::Text,
        }
    }

    /// Whether its values are class labels: names, or integers, including those written as `1.0`.
    pub(super) fn is_label(&self) -> bool {
        match self.shape() {
            Shape::Int | Shape::Text => true,
            Shape::Float => !self.has_fraction,
            Shape::Null
            | Shape::Bool
            | Shape::Unsigned
            | Shape::Binary(_)
            | Shape::List(..)
            | Shape::Struct(_) => false,
        }
    }

    fn absorb_field(&mut self, field: &str) {
        if field.is_empty() {
            return;
        }
        let guess = &mut self.guess;
        guess.has_any = true;
        guess.may_be_bool &= truth(field).is_some();
        guess.may_be_int &= integer(field).is_some();
        let number = number(field);
        guess.may_be_float &= number.is_some();
        self.has_fraction |= number.is_some_and(|number| number.fract() != 0.0);
    }
}

/// The columns of a table, with the types inferred so far.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) all: Vec<Column>,
}

impl Columns {
    /// Columns with the names in the header of a table; the error is a message.
    pub(super) fn named(names: &[String]) -> Result<Self, Message> {
        let mut columns = Self::default();
        for name in names {
            if columns.index(name).is_some() {
                let problem = Message::from(format!("two columns are named {name}"));
                return Err(problem.remedy("rename one"));
            }
            columns.add(name)?;
        }
        Ok(columns)
    }

    /// Index of the column with this name.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|column| column.name == name)
    }

    fn add(&mut self, name: &str) -> Result<usize, String> {
        if self.all.len() == COLUMNS_MAX {
            return Err(format!("more than {COLUMNS_MAX} columns"));
        }
        self.all.push(Column::new(name));
        Ok(self.all.len() - 1)
    }

    /// Widens the types to include a row; the error is a message.
    pub(super) fn absorb(&mut self, row: &TableRow) -> Result<(), Message> {
        match row {
            TableRow::Fields(fields) => {
                self.all.iter_mut().zip(fields).for_each(|(column, field)| {
                    column.absorb_field(field);
                });
                Ok(())
            }
            TableRow::Object(object) => object.iter().try_for_each(|(name, value)| {
                let index = match self.index(name) {
                    Some(index) => index,
                    None => self.add(name)?,
                };
                let column = &mut self.all[index];
                column.has_fraction |= has_fraction(value);
                let absorbed = column.shape.absorb(value);
                absorbed.map_err(|problem| {
                    Message::from(format!("{name}: {problem}"))
                        .remedy("give all values of the column one type")
                })
            }),
        }
    }
}

/// The value in a column of a row.
pub(super) fn cell(row: &TableRow, index: usize, name: &str, shape: &Shape) -> Cell {
    let field = match row {
        TableRow::Object(object) => {
            return match object.get(name) {
                None | Some(Value::Null) => Cell::Null,
                Some(value) => Cell::Json(value.clone()),
            };
        }
        TableRow::Fields(fields) => fields.get(index).unwrap_or_default(),
    };
    let as_text = || Cell::Json(Value::String(field.to_owned()));
    match shape {
        _ if field.is_empty() => Cell::Null,
        Shape::Bool => truth(field).map_or_else(as_text, |value| Cell::Json(value.into())),
        Shape::Int => integer(field).map_or_else(as_text, |value| Cell::Json(value.into())),
        Shape::Float => number(field).map_or_else(as_text, Cell::Float),
        _ => as_text(),
    }
}

/// The value in a column of a row, as text.
pub(super) fn text(row: &TableRow, index: usize, name: &str) -> Option<String> {
    match row {
        TableRow::Fields(fields) => {
            fields.get(index).filter(|text| !text.is_empty()).map(str::to_owned)
        }
        TableRow::Object(object) => match (object.get(name)?, non_finite(object.get(name)?)) {
            (Value::Null, _) => None,
            (_, Some(number)) => Some(number.to_string()),
            (Value::String(text), None) => Some(text.clone()),
            (value, None) => Some(value.to_string()),
        },
    }
}

fn truth(field: &str) -> Option<bool> {
    match field {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// An integer in canonical notation.
fn integer(field: &str) -> Option<i64> {
    field.parse().ok().filter(|value: &i64| value.to_string() == field)
}

/// A number with a point or an exponent, or an integer; without leading zeros, and with no more
/// digits than an integer can have.
fn number(field: &str) -> Option<f64> {
    let digits = field.strip_prefix('-').unwrap_or(field);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Not every integer above 2^53 is a float.
        let value = integer(field).filter(|value| value.unsigned_abs() <= 1 << 53)?;
        return Some(value as f64);
    }
    let is_padded = digits.starts_with('0') && !digits.starts_with("0.") && !digits[1..].is_empty();
    let is_padded = is_padded && !digits[1..].starts_with(['e', 'E']);
    if is_padded || field.starts_with('+') {
        return None;
    }
    field.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(fields: &[&str]) -> Shape {
        let mut column = Column::new("a");
        fields.iter().for_each(|field| column.absorb_field(field));
        column.shape()
    }

    #[test]
    fn a_column_has_the_narrowest_type_that_loses_nothing() {
        assert_eq!(shape_of(&["1", "", "-20"]), Shape::Int);
        assert_eq!(shape_of(&["1", "2.5", "1e-3", "nan"]), Shape::Float);
        assert_eq!(shape_of(&["True", "false"]), Shape::Bool);
        assert_eq!(shape_of(&["007", "1"]), Shape::Text);
        assert_eq!(shape_of(&["12345678901234567890"]), Shape::Text);
        assert_eq!(shape_of(&["9007199254740993", "0.5"]), Shape::Text);
        assert_eq!(shape_of(&["1", "true"]), Shape::Text);
        assert_eq!(shape_of(&["-0"]), Shape::Text);
        assert_eq!(shape_of(&["0", "0.5", "0e1"]), Shape::Float);
        assert_eq!(shape_of(&["+1"]), Shape::Text);
        assert_eq!(shape_of(&["", ""]), Shape::Null);
    }
}
