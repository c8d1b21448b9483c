//! The pictures of one batch on a GPU: from encoded files to tensors in its memory.

use super::program::{ConvertedProgram, tensor_format};
use meetpoint_format::recipe::Recipe;
use meetpoint_gpu::jpeg::{JpegBatch, JpegError, JpegLimits};
use meetpoint_gpu::pictures::PictureBatch;
use meetpoint_gpu::{Compute, DeviceMemory, Error as GpuError};
use meetpoint_kernels::jpeg::{DecodeOptions, DecodePlan, OnDamage, PlanError, Planner};
use meetpoint_kernels::{
    Cpu, Encoded, Error as KernelError, NotExported, PictureProgram, SampleId, SamplePreparer,
};
use std::time::Duration;

/// How long the GPU may take for a batch.
const HANG_LIMIT: Duration = Duration::from_secs(20);

/// Alignment of tensors in the memory of the GPU.
const TENSOR_ALIGNMENT: usize = 16;

/// Why a GPU does not prepare a sample, or any sample of a recipe.
#[derive(Debug, thiserror::Error)]
pub enum GpuRefused {
    /// The recipe has something that no GPU executes.
    #[error(transparent)]
    Recipe(#[from] NotExported),
    /// The tensors of samples have different sizes.
    #[error("pictures may have different sizes")]
    VariableSize,
    /// It is not a JPEG, or one that no GPU decodes.
    #[error(transparent)]
    Jpeg(#[from] PlanError),
    /// It does not fit the batch.
    #[error(transparent)]
    Batch(JpegError),
    /// Its headers or the recipe's parameters are wrong, which the CPU reports.
    #[error(transparent)]
    Sample(#[from] KernelError),
}

/// Whether an offered sample was taken.
#[derive(Debug)]
pub enum Taken {
    /// It is in the batch.
    Yes,
    /// The CPU has to prepare it.
    No(GpuRefused),
}

/// The pictures of one batch on a GPU, one batch after another, reusing memory: after the first few
/// batches, none is allocated.
pub struct GpuBatch {
    compute: Box<dyn Compute>,
    preparer: SamplePreparer,
    tensor_bytes: usize,
    planner: Planner,
    plan: DecodePlan,
    jpeg: JpegBatch,
    pictures: PictureBatch,
    /// What is done to each sample of the batch, and the position of its tensor. The programs
    /// behind `taken` are memory for later samples.
    programs: Vec<PictureProgram>,
    converted: ConvertedProgram,
    positions: Vec<usize>,
    out: Option<DeviceMemory>,
    is_started: bool,
}

impl std::fmt::Debug for GpuBatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GpuBatch")
            .field("compute", &self.compute.name())
            .field("positions", &self.positions)
            .finish_non_exhaustive()
    }
}

impl GpuBatch {
    /// For the pictures of a recipe, each of which is one tensor of a fixed size.
    pub fn new(compute: Box<dyn Compute>, recipe: &Recipe) -> Result<Self, GpuRefused> {
        let preparer = SamplePreparer::new(recipe, Cpu::detect());
        let format = tensor_format(&preparer.export_tensor()?);
        let spec = recipe.output().ok_or(GpuRefused::VariableSize)?;
        Ok(Self {
            compute,
            preparer,
            tensor_bytes: spec.bytes(),
            planner: Planner::default(),
            plan: DecodePlan::default(),
            jpeg: JpegBatch::new(JpegLimits::default()),
            pictures: PictureBatch::new(format),
            programs: Vec::new(),
            converted: ConvertedProgram::default(),
            positions: Vec::new(),
            out: None,
            is_started: false,
        })
    }

    /// What it runs on.
    pub fn name(&self) -> &str {
        self.compute.name()
    }

    /// Bytes of a tensor.
    pub fn tensor_bytes(&self) -> usize {
        self.tensor_bytes
    }

    /// Bytes of the GPU's memory that it has.
    pub fn device_bytes(&self) -> usize {
        let out = self.out.as_ref().map_or(0, DeviceMemory::bytes);
        self.jpeg.bytes().device + self.pictures.device_bytes() + out
    }

    /// Number of samples taken.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether no sample was taken.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The positions of the samples taken, in ascending order.
    pub fn positions(&self) -> Vec<usize> {
        let mut positions = self.positions.clone();
        positions.sort_unstable();
        positions
    }

    /// Begins a batch; waits for what is still being done for the last one.
    pub fn begin(&mut self) -> Result<(), GpuError> {
        if std::mem::take(&mut self.is_started) {
            self.compute.wait(HANG_LIMIT)?;
        }
        self.jpeg.clear();
        self.pictures.clear();
        self.positions.clear();
        Ok(())
    }

    /// Takes a sample, whose tensor goes to a position of the batch.
    pub fn take(
        &mut self,
        position: usize,
        encoded: Encoded<'_>,
        id: SampleId,
    ) -> Result<Taken, GpuError> {
        match self.try_take(position, encoded, id) {
            Ok(()) => Ok(Taken::Yes),
            Err(GpuRefused::Batch(JpegError::Device(error))) => Err(error),
            Err(refused) => Ok(Taken::No(refused)),
        }
    }

    fn try_take(
        &mut self,
        position: usize,
        encoded: Encoded<'_>,
        id: SampleId,
    ) -> Result<(), GpuRefused> {
        let index = self.positions.len();
        if self.programs.len() == index {
            self.programs.push(PictureProgram::default());
        }
        let program = &mut self.programs[index];
        self.preparer.export(encoded, id, program)??;
        let region = program.stages.first().ok_or(NotExported::NotPictures)?.region;
        let options = DecodeOptions { colour: program.colour, ..DecodeOptions::default() };
        self.planner.open(encoded, OnDamage::Fail)?;
        self.planner.plan_opened(encoded, region, &options, &mut self.plan)?;
        let added = self.jpeg.add(&mut *self.compute, &self.plan, encoded.bytes);
        added.map_err(GpuRefused::Batch)?;
        self.positions.push(position);
        Ok(())
    }

    /// Starts the work on all samples taken, for a batch with room for `samples` tensors.
    pub fn start(&mut self, samples: usize) -> Result<(), GpuError> {
        let bytes = samples * self.tensor_bytes + TENSOR_ALIGNMENT;
        if self.out.as_ref().is_none_or(|out| out.bytes() < bytes) {
            self.out = None;
            self.out = Some(self.compute.allocate(bytes)?);
        }
        let out = self.out.as_ref().expect("it was allocated").address();
        self.is_started = true;
        self.jpeg.run(&mut *self.compute)?;
        for ((position, program), picture) in
            self.positions.iter().zip(&self.programs).zip(self.jpeg.pictures())
        {
            let tensor = out + (position * self.tensor_bytes) as u64;
            self.pictures.add(picture, &self.converted.convert(program), tensor);
        }
        self.pictures.run(&mut *self.compute)
    }

    /// Whether the batch is done, without waiting for it where that can be asked.
    pub fn is_done(&mut self) -> Result<bool, GpuError> {
        self.compute.is_done()
    }

    /// Waits until the batch is done; returns the positions whose data are not sound, which the CPU
    /// has to prepare.
    pub fn wait(&mut self) -> Result<Vec<usize>, GpuError> {
        self.compute.wait(HANG_LIMIT)?;
        let status = self.jpeg.status(&mut *self.compute)?;
        let unsound = self.positions.iter().zip(status).filter(|(_, status)| !status.is_sound());
        let mut positions: Vec<usize> = unsound.map(|(position, _)| *position).collect();
        positions.sort_unstable();
        Ok(positions)
    }

    /// The tensors, of which those of the positions that were taken are written.
    pub fn tensors(&self) -> Option<&DeviceMemory> {
        self.out.as_ref()
    }

    /// Copies the tensors of samples that were taken to their positions among `tensors`. Positions
    /// next to each other are one copy.
    pub fn download(&mut self, tensors: &mut [u8]) -> Result<(), GpuError> {
        let Some(out) = &self.out else { return Ok(()) };
        for run in self.positions().chunk_by(|before, after| before + 1 == *after) {
            let (first, end) = (run[0], run[run.len() - 1] + 1);
            let bytes = first * self.tensor_bytes..end * self.tensor_bytes;
            let start = bytes.start;
            self.compute.download(out, start, &mut tensors[bytes])?;
        }
        Ok(())
    }
}
