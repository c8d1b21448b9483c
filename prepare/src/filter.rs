//! Evaluates the expression of a filter on one record batch, with Arrow's kernels.
//!
//! Whole numbers are int64 and other numbers float64; they are compared as float64. Missing values
//! propagate, and `and`, `or` and `not` treat them as unknown. Numbers compare according to IEEE
//! 754: NaN differs from every number, including itself, and -0 equals 0.

use crate::Error;
use arrow_arith::boolean::{and_kleene, is_null, not, or_kleene};
use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Datum, Float64Array, Int64Array, LargeStringArray,
};
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType};
use meetpoint_format::sampler::{Arithmetic, Comparison, Expression, Node, Term};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// A record batch, and a checked expression over its columns.
pub(crate) struct Batch<'b> {
    pub(crate) expression: &'b Expression,
    pub(crate) rows: usize,
    /// Reads a column as int64, float64, large strings or booleans. Called once for each column
    /// that the expression names.
    pub(crate) read: &'b dyn Fn(&str) -> Result<ArrayRef, Error>,
}

/// A record batch with the columns that have been read.
struct Evaluation<'b> {
    batch: &'b Batch<'b>,
    columns: RefCell<HashMap<&'b str, ArrayRef>>,
}

/// The value of a part of the expression.
#[derive(Clone)]
struct TermValue {
    array: ArrayRef,
    /// One value for all rows.
    is_scalar: bool,
}

impl Datum for TermValue {
    fn get(&self) -> (&dyn Array, bool) {
        (&*self.array, self.is_scalar)
    }
}

/// For each row, whether the expression is true; null if unknown.
pub(crate) fn select(batch: &Batch<'_>) -> Result<BooleanArray, Error> {
    let evaluation = Evaluation { batch, columns: RefCell::default() };
    evaluation.flags(batch.expression.root())
}

impl<'b> Evaluation<'b> {
    fn column(&self, name: &'b str) -> Result<ArrayRef, Error> {
        if let Some(column) = self.columns.borrow().get(name) {
            return Ok(Arc::clone(column));
        }
        let column = (self.batch.read)(name)?;
        self.columns.borrow_mut().insert(name, Arc::clone(&column));
        Ok(column)
    }

    fn evaluate(&self, node: &'b Node) -> Result<TermValue, Error> {
        let scalar = |array: ArrayRef| Ok(TermValue { array, is_scalar: true });
        match &node.term {
            Term::Column(name) => Ok(TermValue { array: self.column(name)?, is_scalar: false }),
            Term::Whole(number) => scalar(Arc::new(Int64Array::from(vec![*number]))),
            Term::Number(number) => scalar(Arc::new(Float64Array::from(vec![*number]))),
            Term::Text(text) => scalar(Arc::new(LargeStringArray::from(vec![text.as_str()]))),
            Term::Flag(flag) => scalar(Arc::new(BooleanArray::from(vec![*flag]))),
            Term::Not(inside) => self.row_by_row(node, not(&self.flags(inside)?)),
            Term::And(left, right) => {
                self.row_by_row(node, and_kleene(&self.flags(left)?, &self.flags(right)?))
            }
            Term::Or(left, right) => {
                self.row_by_row(node, or_kleene(&self.flags(left)?, &self.flags(right)?))
            }
            Term::IsNull(inside) => {
                let inside = self.evaluate(inside)?;
                let is_scalar = inside.is_scalar;
                let found = is_null(&inside.array).map_err(|error| self.failed(node, &error))?;
                Ok(TermValue { array: Arc::new(found), is_scalar })
            }
            Term::Compare(how, left, right) => {
                let (left, right) = self.both(left, right)?;
                self.compared(node, *how, &left, &right)
            }
            Term::In(left, values) => {
                let of_left = self.evaluate(left)?;
                let mut found = BooleanArray::from(vec![false; self.batch.rows]);
                for value in values {
                    let of_value = self.evaluate(value)?;
                    let (left, right) = self.alike(left, of_left.clone(), value, of_value)?;
                    let equal = self.compared(value, Comparison::Equal, &left, &right)?;
                    let either = or_kleene(&found, &self.expand(&equal));
                    found = either.map_err(|error| self.failed(value, &error))?;
                }
                Ok(TermValue { array: Arc::new(found), is_scalar: false })
            }
            Term::Negate(inside) => {
                let inside = self.evaluate(inside)?;
                let array = numeric::neg(&inside.array);
                let array = array.map_err(|error| self.failed(node, &error))?;
                Ok(TermValue { array, ..inside })
            }
            Term::Arithmetic(how, left, right) => self.calculated(node, *how, left, right),
        }
    }

    fn calculated(
        &self,
        node: &Node,
        how: Arithmetic,
        left: &'b Node,
        right: &'b Node,
    ) -> Result<TermValue, Error> {
        let (mut left, mut right) = self.both(left, right)?;
        let is_scalar = left.is_scalar && right.is_scalar;
        let array = match how {
            Arithmetic::Add => numeric::add(&left, &right),
            Arithmetic::Subtract => numeric::sub(&left, &right),
            Arithmetic::Multiply => numeric::mul(&left, &right),
            Arithmetic::Divide => {
                (left, right) = (self.float(node, &left)?, self.float(node, &right)?);
                numeric::div(&left, &right)
            }
            Arithmetic::Remainder => numeric::rem(&left, &right),
        };
        let array = array.map_err(|error| self.failed(node, &error))?;
        Ok(TermValue { array, is_scalar })
    }

    /// The values of both sides, converted to one type.
    fn both(&self, left: &'b Node, right: &'b Node) -> Result<(TermValue, TermValue), Error> {
        let (a, b) = (self.evaluate(left)?, self.evaluate(right)?);
        self.alike(left, a, right, b)
    }

    /// Both sides, converted to one type.
    fn alike(
        &self,
        left: &Node,
        a: TermValue,
        right: &Node,
        b: TermValue,
    ) -> Result<(TermValue, TermValue), Error> {
        match a.array.data_type() == b.array.data_type() {
            true => Ok((a, b)),
            // The check of the expression leaves only whole and other numbers.
            false => Ok((self.float(left, &a)?, self.float(right, &b)?)),
        }
    }

    fn float(&self, node: &Node, value: &TermValue) -> Result<TermValue, Error> {
        let array = cast(&value.array, &DataType::Float64);
        Ok(TermValue {
            array: array.map_err(|error| self.failed(node, &error))?,
            is_scalar: value.is_scalar,
        })
    }

    fn compared(
        &self,
        node: &Node,
        how: Comparison,
        left: &TermValue,
        right: &TermValue,
    ) -> Result<TermValue, Error> {
        let is_scalar = left.is_scalar && right.is_scalar;
        // Arrow's kernels order floats totally: NaN above all numbers, and -0 below 0.
        let found = match left.array.data_type() {
            DataType::Float64 => {
                Ok(compare_floats(how, left, right, if is_scalar { 1 } else { self.batch.rows }))
            }
            _ => match how {
                Comparison::Equal => cmp::eq(left, right),
                Comparison::NotEqual => cmp::neq(left, right),
                Comparison::Less => cmp::lt(left, right),
                Comparison::LessOrEqual => cmp::lt_eq(left, right),
                Comparison::Greater => cmp::gt(left, right),
                Comparison::GreaterOrEqual => cmp::gt_eq(left, right),
            },
        };
        let array = Arc::new(found.map_err(|error| self.failed(node, &error))?);
        Ok(TermValue { array, is_scalar })
    }

    /// The boolean value of a part, for each row.
    fn flags(&self, node: &'b Node) -> Result<BooleanArray, Error> {
        Ok(self.expand(&self.evaluate(node)?))
    }

    fn expand(&self, value: &TermValue) -> BooleanArray {
        let array = value.array.as_boolean();
        match value.is_scalar {
            true => {
                let one = (!array.is_null(0)).then(|| array.value(0));
                BooleanArray::from(vec![one; self.batch.rows])
            }
            false => array.clone(),
        }
    }

    fn row_by_row(
        &self,
        node: &Node,
        found: Result<BooleanArray, ArrowError>,
    ) -> Result<TermValue, Error> {
        let array = Arc::new(found.map_err(|error| self.failed(node, &error))?);
        Ok(TermValue { array, is_scalar: false })
    }

    /// The error for an overflow or a division by zero in a kernel.
    fn failed(&self, node: &Node, error: &ArrowError) -> Error {
        self.batch.expression.overflow(node.at, error.to_string()).into()
    }
}

/// Compares float64 row by row according to IEEE 754: with NaN only `!=` is true, and -0 equals 0.
fn compare_floats(
    how: Comparison,
    left: &TermValue,
    right: &TermValue,
    rows: usize,
) -> BooleanArray {
    fn at(value: &TermValue) -> impl Fn(usize) -> Option<f64> {
        let array = value.array.as_primitive::<Float64Type>();
        let is_scalar = value.is_scalar;
        move |row| {
            let row = if is_scalar { 0 } else { row };
            array.is_valid(row).then(|| array.value(row))
        }
    }
    let compare = match how {
        Comparison::Equal => |a: &f64, b: &f64| a == b,
        Comparison::NotEqual => |a: &f64, b: &f64| a != b,
        Comparison::Less => |a: &f64, b: &f64| a < b,
        Comparison::LessOrEqual => |a: &f64, b: &f64| a <= b,
        Comparison::Greater => |a: &f64, b: &f64| a > b,
        Comparison::GreaterOrEqual => |a: &f64, b: &f64| a >= b,
    };
    let (left, right) = (at(left), at(right));
    (0..rows).map(|row| Some(compare(&left(row)?, &right(row)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Batch, select};
    use arrow_array::{ArrayRef, Float64Array, Int64Array};
    use meetpoint_format::sampler::Expression;
    use std::cell::RefCell;
    use std::sync::Arc;

    /// The result for each row of columns `x` (float64) and `n` (int64), and the columns read.
    fn selected(text: &str) -> (Vec<Option<bool>>, Vec<String>) {
        let expression = Expression::parse(text).unwrap();
        let numbers = [Some(f64::NAN), Some(-f64::NAN), Some(-0.0), Some(0.0), Some(1.0), None];
        let x: ArrayRef = Arc::new(Float64Array::from(numbers.to_vec()));
        let n: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, 0, 0, 2, 3]));
        let reads = RefCell::new(Vec::new());
        let read = |name: &str| {
            reads.borrow_mut().push(name.to_owned());
            Ok(Arc::clone(if name == "x" { &x } else { &n }))
        };
        let found = select(&Batch { expression: &expression, rows: 6, read: &read }).unwrap();
        (found.iter().collect(), reads.into_inner())
    }

    fn rows(text: &str) -> Vec<usize> {
        let (found, _) = selected(text);
        assert_eq!(found.len(), 6, "{text}");
        (0..6).filter(|row| found[*row] == Some(true)).collect()
    }

    #[test]
    fn with_nan_only_a_comparison_for_inequality_is_true() {
        assert_eq!(rows("x == x"), [2, 3, 4]);
        assert_eq!(rows("x != x"), [0, 1]);
        assert_eq!(rows("x > 0.5"), [4]);
        assert_eq!(rows("0.5 < x"), [4]);
        assert_eq!(rows("x >= x"), [2, 3, 4]);
        assert_eq!(rows("x <= 1.0"), [2, 3, 4]);
        assert_eq!(rows("x != 1.0"), [0, 1, 2, 3]);
        assert_eq!(rows("not x <= 1.0"), [0, 1]);
        assert_eq!(rows("x in (x)"), [2, 3, 4]);
        assert_eq!(rows("x > n or x < n"), [4]);
        assert_eq!(selected("x < 5.0").0[5], None);
    }

    #[test]
    fn negative_zero_equals_zero() {
        assert_eq!(rows("x == 0.0"), [2, 3]);
        assert_eq!(rows("x == -0.0"), [2, 3]);
        assert_eq!(rows("x < 0.0 or x > -0.0"), [4]);
        assert_eq!(rows("x in (0.0, 7.0)"), [2, 3]);
        assert_eq!(rows("x == 0"), [2, 3]);
        assert_eq!(rows("x == n"), [2, 3]);
        assert_eq!(rows("n == -0.0"), [0, 2, 3]);
        assert_eq!(rows("0.0 == -0.0"), [0, 1, 2, 3, 4, 5]);
    }

    /// With the left side evaluated for each of two values, 60 levels would take 2^60 steps.
    #[test]
    fn a_column_is_read_once_and_the_left_side_of_in_is_evaluated_once() {
        assert_eq!(selected("n in (0, 1, 2) and n + n > 0").1, ["n"]);
        let nested = format!("{}n == 2{}", "(".repeat(60), ") in (true, true)".repeat(60));
        let (found, reads) = selected(&nested);
        assert_eq!(found[3..5], [Some(false), Some(true)]);
        assert_eq!(reads, ["n"]);
    }
}
