//! Where a recipe can be cut, so that the results of its first operations are computed once and
//! stored.

use super::{Declaration, Needs, OnTargets, Operation, Phase, Property, Recipe};
use serde::Serialize;
use std::fmt;

/// Why a recipe cannot be cut after an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum CutRefusal {
    /// An operation up to here has random parameters, which differ in each epoch.
    Random {
        /// Its name.
        by: &'static str,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
    /// An operation up to here works on batches, and no single sample holds its result.
    OnBatches {
        /// Its name.
        by: &'static str,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
    /// The result of an operation up to here depends on a crop or resize after the cut.
    LooksAhead {
        /// Its name.
        by: &'static str,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
    /// The recipe produces several pictures per sample, each from the decoded one.
    SeveralPictures,
    /// An operation up to here transforms targets of the recipe, which are stored unchanged.
    Targets {
        /// Its name.
        by: &'static str,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
}

impl fmt::Display for CutRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random { by, position } => {
                write!(f, "operation {position}, `{by}`, has random parameters")
            }
            Self::OnBatches { by, position } => {
                write!(f, "operation {position}, `{by}`, operates on batches")
            }
            Self::LooksAhead { by, position } => {
                write!(f, "operation {position}, `{by}`, depends on a crop or resize after the cut")
            }
            Self::SeveralPictures => f.write_str("the recipe makes several pictures of a sample"),
            Self::Targets { by, position } => {
                write!(
                    f,
                    "operation {position}, `{by}`, transforms targets, which are stored unchanged"
                )
            }
        }
    }
}

impl Recipe {
    /// Why it cannot be cut after its first `count` operations, so that their result is the same in
    /// every epoch and the remaining operations can be applied to it; `None` if it can.
    ///
    /// All facts come from the declarations of the operations.
    ///
    /// # Panics
    ///
    /// If the recipe has fewer operations.
    pub fn refusal_of_cut(&self, count: usize) -> Option<CutRefusal> {
        if !self.gives_one_picture() {
            return Some(CutRefusal::SeveralPictures);
        }
        let operations = self.operations();
        let before = &operations[..count];
        if let Some(index) = before.iter().position(Operation::is_random) {
            let by = before[index].name();
            return Some(CutRefusal::Random { by, position: index + 1 });
        }
        let moves = |it: &Operation| it.declaration().targets == OnTargets::Moves;
        if !self.targets().is_empty()
            && let Some(index) = before.iter().position(moves)
        {
            let by = before[index].name();
            return Some(CutRefusal::Targets { by, position: index + 1 });
        }
        if let Some(index) = before.iter().position(Operation::is_on_batches) {
            return Some(CutRefusal::OnBatches { by: before[index].name(), position: index + 1 });
        }
        let index = before.iter().position(Operation::looks_ahead)?;
        let by = before[index].name();
        let is_between = count <= seen_to(operations, index)?;
        is_between.then_some(CutRefusal::LooksAhead { by, position: index + 1 })
    }

    /// The recipe that consists of its first `count` operations, without targets.
    ///
    /// # Panics
    ///
    /// If `count` is 0, or the recipe has fewer operations.
    pub fn beginning(&self, count: usize) -> Self {
        let operations = self.operations()[..count].to_vec();
        Self::new(operations).expect("the beginning of a recipe is one")
    }

    /// The position, counted from 1, of the first operation that differs from `beginning`; `None`
    /// if the recipe starts with all operations of `beginning`.
    pub fn differs_from(&self, beginning: &Self) -> Option<usize> {
        let own = self.operations();
        let differs = |(index, operation): (usize, &Operation)| own.get(index) != Some(operation);
        let at = beginning.operations().iter().enumerate().position(differs)?;
        Some(at + 1)
    }
}

/// How far an operation that looks ahead sees: up to the first one that always resizes, or else up
/// to the last one that may crop or resize.
fn seen_to(operations: &[Operation], from: usize) -> Option<usize> {
    let resizes = |operation: &Operation| {
        let Declaration { phase, needs, gives, .. } = operation.declaration();
        let is_resize = *needs == Needs::All && gives.size != Property::Same;
        *phase == Phase::Geometry && is_resize && !operation.is_random()
    };
    let may_crop = |operation: &Operation| match operation.declaration().phase {
        Phase::Geometry | Phase::Picture | Phase::Choice => true,
        Phase::Decode
        | Phase::Pixels
        | Phase::Series
        | Phase::Text
        | Phase::Elements
        | Phase::Tensor
        | Phase::Batch => false,
    };
    let after = || operations.iter().enumerate().skip(from + 1);
    let first = after().find(|(_, operation)| resizes(operation));
    let last = || after().rfind(|(_, operation)| may_crop(operation));
    first.or_else(last).map(|(index, _)| index)
}
