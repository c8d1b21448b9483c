//! Expressions over the columns of a dataset, for filters.
//!
//! In reading order: this file (the tree), `token` (characters to tokens), `parse` (tokens to a
//! tree), `check` (types against the columns of a dataset).

mod check;
mod parse;
mod token;

use super::error::SamplerError;

/// Longest expression, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// How numbers are written.
const WHOLE: &str = "write a signed integer of at most 64 bits, or a number such as 0.5 or 1e-3";

/// An expression that is true or false for each sample.
///
/// Comparisons (`==`, `!=`, `<`, `<=`, `>`, `>=`), `and`, `or`, `not`, `in (…)`, `is null`,
/// parentheses and `+ - * / %` over columns, numbers, texts in quotes, `true` and `false`. A
/// comparison with a missing value is neither true nor false, and such a sample is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its first character, counted from 1.
    pub at: usize,
    /// What it is.
    pub term: Term,
}

/// What a part of an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// The value of a column.
    Column(String),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Number(f64),
    /// A text.
    Text(String),
    /// True or false.
    Flag(bool),
    /// Whether it is false.
    Not(Box<Node>),
    /// Its negative.
    Negate(Box<Node>),
    /// Whether both are true.
    And(Box<Node>, Box<Node>),
    /// Whether either is true.
    Or(Box<Node>, Box<Node>),
    /// Whether the comparison of both holds.
    Compare(Comparison, Box<Node>, Box<Node>),
    /// The result of a calculation with both.
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    /// Whether it equals one of several values.
    In(Box<Node>, Vec<Node>),
    /// Whether the value is missing.
    IsNull(Box<Node>),
}

/// How two values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==` or `=`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

/// A calculation with two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`, whose result is not whole.
    Divide,
    /// `%`, of whole numbers.
    Remainder,
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, SamplerError> {
        let fault = |fault: Fault| SamplerError::Expression {
            text: text.to_owned(),
            at: fault.at,
            problem: fault.problem,
            remedy: fault.remedy,
        };
        if text.len() > TEXT_BYTES_MAX {
            let problem = format!("the expression has {} bytes", text.len());
            let remedy = format!("use at most {TEXT_BYTES_MAX}, or the sampler \"indices\"");
            return Err(fault(Fault { at: TEXT_BYTES_MAX, problem, remedy }));
        }
        let tokens = token::tokens(text).map_err(fault)?;
        let root = parse::parse(&tokens).map_err(fault)?;
        Ok(Self { text: text.to_owned(), root })
    }

    /// The text as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The root of the tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The error for a calculation, at the given character, that has no result for some sample.
    pub fn overflow(&self, at: usize, problem: String) -> SamplerError {
        SamplerError::Overflow { text: self.text.clone(), at, problem }
    }

    /// The error for a problem at the given character.
    fn fault(&self, at: usize, problem: String, remedy: String) -> SamplerError {
        SamplerError::Expression { text: self.text.clone(), at, problem, remedy }
    }
}

/// What is wrong at a character, counted from 1.
#[derive(Debug)]
struct Fault {
    at: usize,
    problem: String,
    remedy: String,
}
