//! The executable operations for a picture, and the random numbers that they draw.

use super::SampleId;
use crate::Cpu;
use crate::operations::{Step, add_steps, grey_before, names};
use crate::tensor::{ElementTable, TensorWriter};
use meetpoint_format::random::{DrawKey, Draws};
use meetpoint_format::recipe::{Operation, SampleType};

/// The random numbers of one picture of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub(super) id: SampleId,
    /// Index of the picture among all views, for operations from `own` on.
    pub(super) view: u16,
    pub(super) own: usize,
}

impl From<SampleId> for Streams {
    /// The random numbers of a recipe without views.
    fn from(id: SampleId) -> Self {
        Self { id, view: 0, own: 0 }
    }
}

impl Streams {
    /// The stream of random numbers of an operation, by its number.
    pub(crate) fn draws(self, operation: usize) -> Draws {
        let view = if operation < self.own { 0 } else { self.view };
        let operation = u32::try_from(operation).expect("a recipe has at most 255 operations");
        let SampleId { seed, epoch, sample } = self.id;
        Draws::of_view(DrawKey { seed, epoch, sample, operation }, view)
    }
}

/// The executable operations for one picture.
#[derive(Debug)]
pub(super) struct Program {
    /// The operations by their numbers: each precedes the operations that it contains.
    pub(super) steps: Vec<Step>,
    /// Their names.
    pub(super) names: Vec<&'static str>,
    /// For each operation, whether its input is a picture of one channel, see [`grey_before`].
    pub(super) grey: Vec<bool>,
    /// Type of a prepared sample.
    pub(super) result: SampleType,
    pub(super) writer: TensorWriter,
}

impl Program {
    /// The program of operations on samples with the result type `result`. If an operation creates
    /// several pictures, the program computes the one with the index `picture`.
    pub(super) fn new(
        operations: &[Operation],
        result: SampleType,
        picture: u32,
        cpu: Cpu,
    ) -> Self {
        let mut steps = Vec::new();
        add_steps(operations, picture, &mut steps);
        let table = folded(&steps);
        let is_wide = |step: &Step| match step {
            Step::Decode(it) => it.mode.is_wide(),
            Step::DecodeSeries(_) | Step::DecodeText(_) => true,
            _ => false,
        };
        Self {
            writer: match steps.iter().any(is_wide) {
                // Elements that a table of 256 values cannot represent.
                true => TensorWriter::new(&ElementTable::default(), 3, cpu),
                false => TensorWriter::new(&table, result.channels, cpu),
            },
            grey: grey_before(operations),
            names: names(operations),
            steps,
            result,
        }
    }
}

/// The elements for the bytes of pictures after a recipe's operations on elements.
pub fn element_table(operations: &[Operation]) -> ElementTable {
    let mut steps = Vec::new();
    add_steps(operations, 0, &mut steps);
    folded(&steps)
}

fn folded(steps: &[Step]) -> ElementTable {
    let mut table = ElementTable::default();
    for step in steps {
        if let Step::Elements(operation) = step {
            operation.fold(&mut table);
        }
    }
    table
}
