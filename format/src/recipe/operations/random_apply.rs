//! `random_apply`: a sequence of operations, or none.

use super::{Data, Operation};
use crate::recipe::declaration::{
    APPLIED, Declaration, InputType, Key, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomApply`: the operations, in their order, when `uniform() < p`;
/// one uniform is drawn in any case. With `p` of 1 it is a sequence, such as an element of
/// [`super::RandomChoice`].
#[derive(Debug, Clone, PartialEq)]
pub struct RandomApply {
    /// The operations, each from an image to an image.
    pub operations: Vec<Operation>,
    /// Probability.
    pub p: f64,
}

impl Data for RandomApply {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_apply",
        about: "applies all of `operations` with probability `p`",
        phase: Phase::Choice,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("operations"), ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[APPLIED],
        keys: &[Key::operations(), Key::probability(0.5)],
    };

    fn read(values: &Values) -> Self {
        let operations = values.operations("operations").iter().map(Operation::of).collect();
        Self { operations, p: values.number("p") }
    }

    fn values(&self) -> Vec<Value> {
        let operations = self.operations.iter().map(Operation::describe).collect();
        vec![Value::Operations(operations), Value::Number(self.p)]
    }

    fn content(&self) -> &[Operation] {
        &self.operations
    }

    /// That of the result if the operations are always applied; otherwise the size of the input if
    /// they preserve it.
    fn sizes(&self, input: SizeRange) -> SizeRange {
        let output = self.operations.iter().fold(input, |sizes, inner| inner.sizes(sizes));
        if self.p >= 1.0 { output } else { input.or(output) }
    }

    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        let output = self.operations.iter().fold(input, |size, inner| inner.size(size));
        match self.p >= 1.0 {
            true => output,
            false => input.filter(|_| output == input),
        }
    }
}
