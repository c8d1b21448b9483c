//! Why a recipe is refused, where, and what would be right.

use meetpoint_diagnose::{Diagnose, Remedy};

/// A recipe that cannot be executed. Line and column count from 1 and are absent for recipes that
/// were not read from text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{problem}",
    .place.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default()
)]
pub struct RecipeError {
    /// Line and column of the offending key or value.
    pub place: Option<(usize, usize)>,
    /// What is wrong, naming the key.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
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
        let problem = if path.is_empty() {
            problem
        } else {
            let path: Vec<String> = path.iter().map(|index| (index + 1).to_string()).collect();
            format!("operation {} ({}): {problem}", path.join("."), names.join(" in "))
        };
        RecipeError { place, problem, remedy }
    }
}
