//! Why a recipe is refused, where, and what would be right.

/// A recipe that cannot be executed. Line and column count from 1 and are absent for recipes that
/// were not read from text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{problem} ({remedy})",
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

    /// The fault of the operation at `index`.
    pub(super) fn of_operation(self, index: usize, name: &str) -> Problem {
        let problem = format!("operation {} ({name}): {}", index + 1, self.problem);
        Problem { operation: Some(index), key: self.key, problem, remedy: self.remedy }
    }
}

/// What is wrong with a recipe, before its position in a text is known.
#[derive(Debug)]
pub(super) struct Problem {
    /// Index of the operation; `None` for the recipe as a whole.
    pub(super) operation: Option<usize>,
    /// Key whose value is wrong; `None` for the operation as a whole.
    pub(super) key: Option<&'static str>,
    /// What is wrong, naming operation and key.
    problem: String,
    /// What would be right.
    remedy: String,
}

impl Problem {
    /// A fault of the recipe as a whole.
    pub(super) fn of_recipe(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { operation: None, key: None, problem: problem.into(), remedy: remedy.into() }
    }

    /// The error at a position: line and column.
    pub(super) fn at(self, place: Option<(usize, usize)>) -> RecipeError {
        RecipeError { place, problem: self.problem, remedy: self.remedy }
    }
}
