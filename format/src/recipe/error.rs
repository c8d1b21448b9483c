//! Why a recipe is refused, where, and what would be right.

use meetpoint_diagnose::{Diagnose, Remedy};
use std::fmt;

/// A recipe that cannot be executed. Line and column count from 1 and are absent for recipes that
/// were not read from text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{}",
    .place.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default(),
    self.located()
)]
pub struct RecipeError {
    /// Line and column of the offending key or value.
    pub place: Option<(usize, usize)>,
    /// The operation that it is about; `None`: the recipe as a whole.
    pub operation: Option<OperationPlace>,
    /// What is wrong, naming the key.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

/// Where an operation is in a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationPlace {
    /// Its index, from 0, in the recipe, or that of the one that contains it; then the index in
    /// that one, and so on. At least one.
    pub path: Vec<usize>,
    /// Its name, then that of the one that contains it, and so on.
    pub names: Vec<String>,
}

impl fmt::Display for OperationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: Vec<String> = self.path.iter().map(|index| (index + 1).to_string()).collect();
        write!(f, "operation {} ({})", path.join("."), self.names.join(" in "))
    }
}

impl RecipeError {
    /// The problem with the operation that it is about.
    pub fn located(&self) -> String {
        match &self.operation {
            Some(operation) => format!("{operation}: {}", self.problem),
            None => self.problem.clone(),
        }
    }
}

impl Diagnose for RecipeError {
    fn cause(&self) -> &'static str {
        "recipe"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(self.remedy.clone().into())
    }
}

/// What is wrong with an operation, found by that operation itself.
#[derive(Debug)]
pub(super) struct Fault {
    /// Key whose value is wrong; `None` for the operation as a whole.
    pub(super) key: Option<&'static str>,
    problem: String,
    remedy: String,
}

impl Fault {
    /// A fault of the operation as a whole.
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { key: None, problem: problem.into(), remedy: remedy.into() }
    }

    /// A fault of the value of one key.
    pub(super) fn of_value(
        key: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let problem = format!("`{key}` {}", problem.into());
        Self { key: Some(key), ..Self::new(problem, remedy) }
    }

    /// The fault of the operation at `index` of a recipe or of the operation that contains it.
    pub(super) fn of_operation(self, index: usize, name: &str) -> Problem {
        let Self { key, problem, remedy } = self;
        Problem { path: vec![index], names: vec![name.to_owned()], key, problem, remedy }
    }
}

/// What is wrong with a recipe, before its position in a text is known.
#[derive(Debug)]
pub(super) struct Problem {
    /// Index in the recipe of the operation, or of the one that contains it; then the index in
    /// that one, and so on. Empty for the recipe as a whole.
    pub(super) path: Vec<usize>,
    /// Name of the operation, then that of the one that contains it, and so on.
    names: Vec<String>,
    /// Key whose value is wrong; `None` for the operation as a whole.
    pub(super) key: Option<&'static str>,
    /// What is wrong, naming the key.
    problem: String,
    /// What would be right.
    remedy: String,
}

impl Problem {
    /// A fault of the recipe as a whole.
    pub(super) fn of_recipe(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (problem, remedy) = (problem.into(), remedy.into());
        Self { path: vec![], names: vec![], key: None, problem, remedy }
    }

    /// The same inside of an operation that contains others.
    pub(super) fn inside(mut self, index: usize, name: &str) -> Self {
        self.path.insert(0, index);
        self.names.push(name.to_owned());
        self
    }

    /// The error at a position: line and column.
    pub(super) fn at(self, place: Option<(usize, usize)>) -> RecipeError {
        let Self { path, names, problem, remedy, .. } = self;
        let operation = (!path.is_empty()).then_some(OperationPlace { path, names });
        RecipeError { place, operation, problem, remedy }
    }
}
