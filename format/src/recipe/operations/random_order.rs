//! `random_order`: operations in random order.

use super::{Data, Operation};
use crate::recipe::declaration::{
    Declaration, InputType, Key, Needs, OnTargets, OutputType, Phase, Property, RandomParameter,
};
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomOrder`: all of the operations. In their list, the element at i
/// is swapped with that at `up_to(i)`, for i from the last to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomOrder {
    /// The operations, each from an image to an image.
    pub operations: Vec<Operation>,
}

impl Data for RandomOrder {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_order",
        about: "applies all of `operations` in a random order",
        phase: Phase::Choice,
        targets: OnTargets::Moves,
        takes: &[InputType::ANY_IMAGE],
        gives: OutputType { size: Property::Key("operations"), ..OutputType::IMAGE },
        needs: Needs::All,
        random: &[RandomParameter {
            name: "order",
            distribution: "a permutation of `operations`, uniform",
        }],
        keys: &[Key::operations()],
    };

    fn read(values: &Values) -> Self {
        let operations = values.operations("operations").iter().map(Operation::of).collect();
        Self { operations }
    }

    fn values(&self) -> Vec<Value> {
        let operations = self.operations.iter().map(Operation::describe).collect();
        vec![Value::Operations(operations)]
    }

    fn content(&self) -> &[Operation] {
        &self.operations
    }

    /// The size of the input if every operation preserves it; otherwise any size, since the order
    /// is random.
    fn sizes(&self, input: SizeRange) -> SizeRange {
        let changes = |inner: &Operation| inner.sizes(input) != input;
        if self.operations.iter().any(changes) { SizeRange::ANY } else { input }
    }

    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        input.filter(|_| self.operations.iter().all(|inner| inner.size(input) == input))
    }
}
