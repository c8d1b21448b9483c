//! The expression of a filter on one record batch, with Arrow's kernels.
//!
//! Whole numbers have 64 bits with a sign, other numbers are float64, and a comparison of both is
//! one of float64. Missing values propagate, and `and`, `or` and `not` treat them as unknown.

use crate::Error;
use arrow_arith::boolean::{and_kleene, is_null, not, or_kleene};
use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Datum, Float64Array, Int64Array, LargeStringArray,
};
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType};
use meetpoint_format::sampler::{Arithmetic, Comparison, Expression, Node, Term};
use std::sync::Arc;

/// A record batch, and a checked expression over its columns.
pub(crate) struct Batch<'b> {
    pub(crate) expression: &'b Expression,
    pub(crate) rows: usize,
    /// Reads a column as int64, float64, large texts, or true and false.
    pub(crate) read: &'b dyn Fn(&str) -> Result<ArrayRef, Error>,
}

/// The value of a part of the expression.
struct Evaluated {
    array: ArrayRef,
    /// One value for all rows.
    is_scalar: bool,
}

impl Datum for Evaluated {
    fn get(&self) -> (&dyn Array, bool) {
        (&*self.array, self.is_scalar)
    }
}

/// For each row whether the expression is true; null where that is unknown.
pub(crate) fn select(batch: &Batch<'_>) -> Result<BooleanArray, Error> {
    batch.flags(batch.expression.root())
}

impl Batch<'_> {
    fn evaluate(&self, node: &Node) -> Result<Evaluated, Error> {
        let scalar = |array: ArrayRef| Ok(Evaluated { array, is_scalar: true });
        match &node.term {
            Term::Column(name) => Ok(Evaluated { array: (self.read)(name)?, is_scalar: false }),
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
                Ok(Evaluated { array: Arc::new(found), is_scalar })
            }
            Term::Compare(how, left, right) => {
                let (left, right) = self.alike(left, right)?;
                self.compared(node, *how, &left, &right)
            }
            Term::In(left, values) => {
                let mut found = BooleanArray::from(vec![false; self.rows]);
                for value in values {
                    let (left, right) = self.alike(left, value)?;
                    let equal = self.compared(value, Comparison::Equal, &left, &right)?;
                    let either = or_kleene(&found, &self.expand(&equal));
                    found = either.map_err(|error| self.failed(value, &error))?;
                }
                Ok(Evaluated { array: Arc::new(found), is_scalar: false })
            }
            Term::Negate(inside) => {
                let inside = self.evaluate(inside)?;
                let array = numeric::neg(&inside.array);
                let array = array.map_err(|error| self.failed(node, &error))?;
                Ok(Evaluated { array, ..inside })
            }
            Term::Arithmetic(how, left, right) => self.calculated(node, *how, left, right),
        }
    }

    fn calculated(
        &self,
        node: &Node,
        how: Arithmetic,
        left: &Node,
        right: &Node,
    ) -> Result<Evaluated, Error> {
        let (mut left, mut right) = self.alike(left, right)?;
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
        Ok(Evaluated { array, is_scalar })
    }

    /// Both sides in one type.
    fn alike(&self, left: &Node, right: &Node) -> Result<(Evaluated, Evaluated), Error> {
        let (a, b) = (self.evaluate(left)?, self.evaluate(right)?);
        match a.array.data_type() == b.array.data_type() {
            true => Ok((a, b)),
            // The check of the expression leaves whole and other numbers only.
            false => Ok((self.float(left, &a)?, self.float(right, &b)?)),
        }
    }

    fn float(&self, node: &Node, value: &Evaluated) -> Result<Evaluated, Error> {
        let array = cast(&value.array, &DataType::Float64);
        Ok(Evaluated {
            array: array.map_err(|error| self.failed(node, &error))?,
            is_scalar: value.is_scalar,
        })
    }

    fn compared(
        &self,
        node: &Node,
        how: Comparison,
        left: &Evaluated,
        right: &Evaluated,
    ) -> Result<Evaluated, Error> {
        let found = match how {
            Comparison::Equal => cmp::eq(left, right),
            Comparison::NotEqual => cmp::neq(left, right),
            Comparison::Less => cmp::lt(left, right),
            Comparison::LessOrEqual => cmp::lt_eq(left, right),
            Comparison::Greater => cmp::gt(left, right),
            Comparison::GreaterOrEqual => cmp::gt_eq(left, right),
        };
        let array = Arc::new(found.map_err(|error| self.failed(node, &error))?);
        Ok(Evaluated { array, is_scalar: left.is_scalar && right.is_scalar })
    }

    /// The value of a part that is true or false, for each row.
    fn flags(&self, node: &Node) -> Result<BooleanArray, Error> {
        Ok(self.expand(&self.evaluate(node)?))
    }

    fn expand(&self, value: &Evaluated) -> BooleanArray {
        let array = value.array.as_boolean();
        match value.is_scalar {
            true => {
                let one = (!array.is_null(0)).then(|| array.value(0));
                BooleanArray::from(vec![one; self.rows])
            }
            false => array.clone(),
        }
    }

    fn row_by_row(
        &self,
        node: &Node,
        found: Result<BooleanArray, ArrowError>,
    ) -> Result<Evaluated, Error> {
        let array = Arc::new(found.map_err(|error| self.failed(node, &error))?);
        Ok(Evaluated { array, is_scalar: false })
    }

    /// What a kernel refuses: an overflow, or a division by zero.
    fn failed(&self, node: &Node, error: &ArrowError) -> Error {
        let remedy =
            "change the expression so that every sample has a result of 64 bits".to_owned();
        self.expression.fault(node.at, error.to_string(), remedy).into()
    }
}
