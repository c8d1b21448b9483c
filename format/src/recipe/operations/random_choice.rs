//! `random_choice`: one of several operations.

use super::{Data, Operation};
use crate::recipe::SampleType;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    RandomParameter, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomChoice`: one of the operations. One uniform is drawn. The
/// result is the first operation for which uniform * (sum of all weights) < the sum of the weights
/// up to and including its own, both summed in order in float64, or, if rounding leaves none, the
/// last one with a weight above 0.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomChoice {
    /// The operations, each from an image to an image.
    pub operations: Vec<Operation>,
    /// Weights, one for each operation; empty: all are equal.
    pub p: Vec<f64>,
}

impl Data for RandomChoice {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_choice",
        about: "applies one of `operations`, chosen with the weights `p`",
        phase: Phase::Choice,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("operations"), ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[RandomParameter {
            name: "chosen",
            distribution: "an operation, with the weights `p`",
        }],
        keys: &[
            Key::operations(),
            Key::optional(
                "p",
                KeyType::Weights,
                numbers(&[]),
                "the weights of the operations; none: all are equal",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let operations = values.operations("operations").iter().map(Operation::of).collect();
        Self { operations, p: values.numbers("p").to_vec() }
    }

    fn values(&self) -> Vec<Value> {
        let operations = self.operations.iter().map(Operation::describe).collect();
        vec![Value::Operations(operations), Value::Numbers(self.p.clone().into())]
    }

    fn content(&self) -> &[Operation] {
        &self.operations
    }

    /// Checks that the number of weights is 0 or the number of operations.
    fn follow(&self, _sample: &mut SampleType) -> Result<(), Fault> {
        let (weights, operations) = (self.p.len(), self.operations.len());
        if weights == 0 || weights == operations {
            return Ok(());
        }
        let problem = format!("has {weights} weights, but `operations` has {operations}");
        Err(Fault::of_value("p", problem, "one weight for each operation, or none"))
    }

    /// The size, if all operations give the same.
    fn sizes(&self, input: SizeRange) -> SizeRange {
        let sizes = self.operations.iter().map(|inner| inner.sizes(input));
        sizes.reduce(SizeRange::or).unwrap_or(input)
    }

    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        let mut sizes = self.operations.iter().map(|inner| inner.size(input));
        let first = sizes.next()?;
        first.filter(|_| sizes.all(|size| size == first))
    }
}
