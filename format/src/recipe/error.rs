//! Why a recipe was refused, where, and what would be right.

/// A recipe that cannot be followed. Line and column count from 1 and are absent for recipes that
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

/// A recipe's fault before it is known where in a text it stands.
#[derive(Debug)]
pub(super) struct Problem {
    /// Index of the operation; `None` for the recipe as a whole.
    pub(super) operation: Option<usize>,
    /// Key whose value is wrong; `None` for the operation as a whole.
    pub(super) key: Option<&'static str>,
    /// What is wrong, naming operation and key.
    pub(super) problem: String,
    /// What would be right.
    pub(super) remedy: String,
}

impl Problem {
    /// A fault of the recipe as a whole.
    pub(super) fn of_recipe(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { operation: None, key: None, problem: problem.into(), remedy: remedy.into() }
    }

    /// The fault with its place.
    pub(super) fn at(self, place: Option<(usize, usize)>) -> RecipeError {
        RecipeError { place, problem: self.problem, remedy: self.remedy }
    }
}
