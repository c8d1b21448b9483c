//! Checks the types of an expression against the columns of a dataset.

use super::super::column_type::ColumnType;
use super::super::error::SamplerError;
use super::{Arithmetic, Comparison, Expression, Node, Term};

impl Expression {
    /// Refuses unknown columns, and operators on types that they do not accept.
    pub fn check(&self, columns: &[(String, ColumnType)]) -> Result<(), SamplerError> {
        let check = Check { expression: self, columns };
        match check.type_of(&self.root)? {
            ColumnType::Flag => Ok(()),
            found => Err(check.fault(&self.root, &found, "a comparison")),
        }
    }
}

struct Check<'e> {
    expression: &'e Expression,
    columns: &'e [(String, ColumnType)],
}

impl Check<'_> {
    fn fault(&self, node: &Node, found: &ColumnType, wanted: &str) -> SamplerError {
        let problem = format!("this gives {}", found.words());
        self.expression.fault(node.at, problem, format!("write {wanted} there"))
    }

    fn type_of(&self, node: &Node) -> Result<ColumnType, SamplerError> {
        Ok(match &node.term {
            Term::Column(name) => self.column(node, name)?,
            Term::Whole(_) => ColumnType::Whole,
            Term::Number(_) => ColumnType::Number,
            Term::Text(_) => ColumnType::Text,
            Term::Flag(_) => ColumnType::Flag,
            Term::Not(inside) => self.flag(inside)?,
            Term::And(left, right) | Term::Or(left, right) => {
                self.flag(left)?;
                self.flag(right)?
            }
            Term::Negate(inside) => self.number(inside)?,
            Term::Compare(how, left, right) => {
                let (found, right_type) = (self.type_of(left)?, self.type_of(right)?);
                self.same(node, [left, right], [&found, &right_type])?;
                self.is_ordered(*how, left, &found)?;
                ColumnType::Flag
            }
            Term::In(left, values) => {
                let found = self.type_of(left)?;
                for value in values {
                    self.same(value, [left, value], [&found, &self.type_of(value)?])?;
                }
                ColumnType::Flag
            }
            Term::IsNull(inside) => {
                self.type_of(inside)?;
                ColumnType::Flag
            }
            Term::Arithmetic(how, left, right) => {
                let types = (self.number(left)?, self.number(right)?);
                match (how, types) {
                    (Arithmetic::Divide, _) => ColumnType::Number,
                    (_, (ColumnType::Whole, ColumnType::Whole)) => ColumnType::Whole,
                    (Arithmetic::Remainder, (found, _)) => {
                        return Err(self.fault(node, &found, "whole numbers on both sides of %"));
                    }
                    (Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply, _) => {
                        ColumnType::Number
                    }
                }
            }
        })
    }

    fn column(&self, node: &Node, name: &str) -> Result<ColumnType, SamplerError> {
        match self.columns.iter().find(|(known, _)| known == name) {
            Some((_, ColumnType::Other(words))) => {
                let problem = format!("column {name:?} holds {words}");
                let remedy = "name a column of numbers, texts, or true and false".to_owned();
                Err(self.expression.fault(node.at, problem, remedy))
            }
            Some((_, found)) => Ok(found.clone()),
            None => Err(SamplerError::UnknownColumn {
                option: "where",
                column: name.to_owned(),
                at: Some(node.at),
                known: self.columns.iter().map(|(name, _)| name.clone()).collect(),
            }),
        }
    }

    fn flag(&self, node: &Node) -> Result<ColumnType, SamplerError> {
        match self.type_of(node)? {
            ColumnType::Flag => Ok(ColumnType::Flag),
            found => Err(self.fault(node, &found, "a comparison, or a column of true and false")),
        }
    }

    fn number(&self, node: &Node) -> Result<ColumnType, SamplerError> {
        match self.type_of(node)? {
            found @ (ColumnType::Whole | ColumnType::Number) => Ok(found),
            found @ (ColumnType::Text | ColumnType::Flag | ColumnType::Other(_)) => {
                Err(self.fault(node, &found, "a number"))
            }
        }
    }

    /// Checks that both sides of a comparison are numbers, texts or booleans.
    fn same(
        &self,
        node: &Node,
        sides: [&Node; 2],
        [left, right]: [&ColumnType; 2],
    ) -> Result<(), SamplerError> {
        let is_number = |it: &ColumnType| matches!(it, ColumnType::Whole | ColumnType::Number);
        if left == right || (is_number(left) && is_number(right)) {
            return Ok(());
        }
        let problem = format!("this compares {} with {}", left.words(), right.words());
        let names = sides.into_iter().find_map(|side| self.names_of(side));
        let remedy = match names {
            Some(names) if [left, right].contains(&&ColumnType::Text) => {
                format!("compare `{names}`, which holds texts, or a number without quotes")
            }
            _ if [left, right].contains(&&ColumnType::Text) => {
                "write texts in quotes, and numbers without".to_owned()
            }
            _ => "compare values of one type".to_owned(),
        };
        Err(self.expression.fault(node.at, problem, remedy))
    }

    /// The column with the names for the numbers of another: `label_name` for `label`.
    fn names_of(&self, node: &Node) -> Option<&str> {
        let Term::Column(column) = &node.term else { return None };
        let is_names = |(name, found): &&(String, ColumnType)| {
            *found == ColumnType::Text && name.strip_suffix("_name") == Some(column)
        };
        self.columns.iter().find(is_names).map(|(name, _)| name.as_str())
    }

    /// Refuses to order booleans.
    fn is_ordered(
        &self,
        how: Comparison,
        left: &Node,
        found: &ColumnType,
    ) -> Result<(), SamplerError> {
        let needs_order = match how {
            Comparison::Equal | Comparison::NotEqual => false,
            Comparison::Less
            | Comparison::LessOrEqual
            | Comparison::Greater
            | Comparison::GreaterOrEqual => true,
        };
        if needs_order && *found == ColumnType::Flag {
            let wanted = "numbers or texts; true and false have no order";
            return Err(self.fault(left, found, wanted));
        }
        Ok(())
    }
}
