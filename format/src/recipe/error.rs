//! Why a recipe is refused, where, and what is expected.

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
    /// The subject.
    pub subject: Subject,
    /// The problem, with the key.
    pub problem: String,
    /// The expected value.
    pub remedy: String,
}

/// The subject of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The recipe as a whole.
    Recipe,
    /// An operation.
    Operation(Box<OperationPosition>),
    /// A view.
    View {
        /// Its index, from 0, in the recipe.
        index: usize,
        /// Its column.
        column: Box<str>,
    },
    /// A target.
    Target {
        /// Its column.
        column: Box<str>,
        /// Its kind.
        kind: Box<str>,
    },
}

/// Where an operation is in a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationPosition {
    /// Its index, from 0, in the recipe, or that of the one that contains it; then the index in
    /// that one, and so on. At least one.
    pub path: Vec<usize>,
    /// Its name, then that of the operation that contains it, and so on.
    pub names: Vec<String>,
    /// Index, from 0, and column of the view that contains the operation; `None` for a common one.
    pub view: Option<(usize, Box<str>)>,
}

impl fmt::Display for OperationPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: Vec<String> = self.path.iter().map(|index| (index + 1).to_string()).collect();
        if let Some((_, column)) = &self.view {
            write!(f, "view {column:?}, ")?;
        }
        write!(f, "operation {} ({})", path.join("."), self.names.join(" in "))
    }
}

impl RecipeError {
    /// The problem, preceded by its subject.
    pub fn located(&self) -> String {
        let problem = &self.problem;
        match &self.subject {
            Subject::Recipe => problem.clone(),
            Subject::Operation(operation) => format!("{operation}: {problem}"),
            Subject::View { column, .. } => format!("view {column:?}: {problem}"),
            Subject::Target { column, kind } => format!("target {column:?} ({kind}): {problem}"),
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

/// What is wrong with an operation, as the operation itself detects it.
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
        let (path, names) = (vec![index], vec![name.to_owned()]);
        self.of(Subject::Operation(OperationPosition { path, names, view: None }.into()))
    }

    /// The fault of the target of a column.
    pub(super) fn of_target(self, column: &str, kind: &str) -> Problem {
        self.of(Subject::Target { column: column.into(), kind: kind.into() })
    }

    /// The fault of a view.
    pub(super) fn of_view(self, index: usize, column: &str) -> Problem {
        self.of(Subject::View { index, column: column.into() })
    }

    fn of(self, subject: Subject) -> Problem {
        let Self { key, problem, remedy } = self;
        Problem { subject, key, problem, remedy }
    }
}

/// What is wrong with a recipe, before its position in a text is known.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) subject: Subject,
    /// Key whose value is wrong; `None` for the subject as a whole.
    pub(super) key: Option<&'static str>,
    /// The problem, with the key.
    problem: String,
    /// The expected value.
    remedy: String,
}

impl Problem {
    /// A fault of the recipe as a whole.
    pub(super) fn of_recipe(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Fault::new(problem, remedy).of(Subject::Recipe)
    }

    /// The same, inside of an operation that contains others.
    pub(super) fn inside(mut self, index: usize, name: &str) -> Self {
        if let Subject::Operation(place) = &mut self.subject {
            place.path.insert(0, index);
            place.names.push(name.to_owned());
        }
        self
    }

    /// The same, for a recipe that consists of `common` operations and those of a view.
    pub(super) fn in_view(mut self, common: usize, index: usize, column: &str) -> Self {
        if let Subject::Operation(place) = &mut self.subject
            && place.path[0] >= common
        {
            place.path[0] -= common;
            place.view = Some((index, column.into()));
        }
        self
    }

    /// The error at a position: line and column.
    pub(super) fn at(self, place: Option<(usize, usize)>) -> RecipeError {
        let Self { subject, problem, remedy, .. } = self;
        RecipeError { place, subject, problem, remedy }
    }
}
