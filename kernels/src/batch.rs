//! The operations on batches of a recipe, applied to the samples of a batch in memory.

use crate::mixing::MixedBatch;
use crate::operations::{Step, add_steps};
use crate::picture_program::BatchProgram;
use crate::sample::{SampleId, Streams, choose};
use crate::{Cpu, Error, Interrupt};
use meetpoint_format::recipe::{Recipe, SoftLabels, TensorSpec};

/// Identifies a batch for its random parameters: equal ids give equal batches for equal samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchId {
    /// Seed of the job.
    pub seed: u64,
    /// Epoch, from 0.
    pub epoch: u32,
    /// Index of the batch among those of all ranks and devices.
    pub batch: u64,
}

/// The tensors that an operation on batches changes.
#[derive(Debug)]
pub struct BatchTensors<'a> {
    /// Number of samples in the batch.
    pub samples: usize,
    /// Their concatenated tensors; empty if batches have no tensors.
    pub images: &'a mut [u8],
    /// Their rows of labels, see [`BatchMixer::write_label`]; empty if batches have no labels, or
    /// if the operations do not change labels.
    pub labels: &'a mut [u8],
}

/// Applies the operations on batches of one recipe, with a reused buffer of one sample.
#[derive(Debug)]
pub struct BatchMixer {
    cpu: Cpu,
    /// The operations by their numbers: each precedes the operations that it contains.
    steps: Vec<Step>,
    /// Number of the first operation on batches.
    first: usize,
    /// Numbers of the operations executed on the current batch.
    chosen: Vec<usize>,
    spec: TensorSpec,
    labels: Option<SoftLabels>,
    scratch: Vec<u8>,
    interrupt: Interrupt,
}

impl BatchMixer {
    /// A mixer for samples of `spec`; `None` if the recipe has no operations on batches.
    pub fn new(recipe: &Recipe, spec: TensorSpec) -> Option<Self> {
        let labels = recipe.labels();
        let (on_samples, on_batches) = recipe.split();
        if on_batches.is_empty() {
            return None;
        }
        let mut steps = Vec::new();
        add_steps(on_samples, 0, &mut steps);
        let first = steps.len();
        add_steps(on_batches, 0, &mut steps);
        let (chosen, scratch, interrupt) = Default::default();
        let cpu = Cpu::detect();
        Some(Self { cpu, steps, first, chosen, spec, labels, scratch, interrupt })
    }

    /// Selects an instruction set other than the best one. Panics if this machine lacks it.
    pub fn set_cpu(&mut self, cpu: Cpu) {
        assert!(cpu.is_available(), "this machine has no {}", cpu.name());
        self.cpu = cpu;
    }

    /// Stops mixing with [`Error::Interrupted`] when `interrupt` is raised.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// The conversion of labels, if the operations change labels.
    pub fn labels(&self) -> Option<SoftLabels> {
        self.labels
    }

    /// Writes the row of a label: float32, little-endian. Panics if the label is not below the
    /// number of classes, which is the number of elements of the row.
    pub fn write_label(labels: SoftLabels, label: u32, row: &mut [u8]) {
        let (elements, _) = row.as_chunks_mut::<4>();
        elements.fill(labels.off().to_le_bytes());
        elements[label as usize] = labels.on().to_le_bytes();
    }

    /// Applies the operations to a batch in place. `pause` is called between samples. After an
    /// error, the content of the batch is unspecified.
    ///
    /// # Panics
    ///
    /// If images or labels are not empty and do not have one entry per sample.
    pub fn mix(
        &mut self,
        id: BatchId,
        tensors: BatchTensors<'_>,
        pause: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        self.apply(id, tensors, None, pause)
    }

    /// Appends the programs of the operations on a batch of `samples` samples to `programs`, in
    /// order, without executing them.
    pub fn export(
        &mut self,
        id: BatchId,
        samples: usize,
        programs: &mut Vec<BatchProgram>,
    ) -> Result<(), Error> {
        let tensors = BatchTensors { samples, images: &mut [], labels: &mut [] };
        self.apply(id, tensors, Some(programs), &mut || ())
    }

    fn apply(
        &mut self,
        BatchId { seed, epoch, batch }: BatchId,
        BatchTensors { samples, images, labels }: BatchTensors<'_>,
        recording: Option<&mut Vec<BatchProgram>>,
        pause: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let label_bytes = self.labels.map_or(0, |labels| 4 * labels.classes as usize);
        for (bytes, of_one) in [(images.len(), self.spec.bytes()), (labels.len(), label_bytes)] {
            assert!(bytes == 0 || bytes == samples * of_one, "each sample has its bytes");
        }
        // The batch takes the place of the sample: no operation draws for both.
        let id = Streams::from(SampleId { seed, epoch, sample: batch });
        self.chosen.clear();
        choose(&self.steps, self.first, self.steps.len(), id, &mut self.chosen);
        let (cpu, spec, interrupt) = (self.cpu, self.spec, &self.interrupt);
        let scratch = &mut self.scratch;
        let mut batch =
            MixedBatch { cpu, spec, samples, images, labels, scratch, interrupt, pause, recording };
        for number in &self.chosen {
            if let Step::Batch(operation) = &self.steps[*number] {
                operation.apply(&mut id.draws(*number), &mut batch)?;
            }
        }
        Ok(())
    }
}
