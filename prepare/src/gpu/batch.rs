//! The pictures of one batch on a GPU: from encoded files to tensors in its memory.

use super::memory::GpuMemory;
use super::program::{ConvertedProgram, tensor_format};
use crate::Tensors;
use meetpoint_format::recipe::{Images, Recipe};
use meetpoint_gpu::buffer::{self, Buffer};
use meetpoint_gpu::jpeg::{JpegBatch, JpegError, JpegLimits};
use meetpoint_gpu::pictures::{PictureBatch, TensorLocation};
use meetpoint_gpu::resident::{ResidentColumn, ResidentTensors, TensorMemory, TensorPool};
use meetpoint_gpu::{Compute, DeviceMemory, Error as GpuError};
use meetpoint_kernels::jpeg::{DecodeOptions, DecodePlan, OnDamage, PlanError, Planner, precision};
use meetpoint_kernels::{
    Cpu, Encoded, Error as KernelError, Interrupt, NotExported, PictureProgram, SampleId,
    SamplePreparer,
};
use std::sync::Arc;
use std::time::Duration;

/// How long the GPU may take for a batch.
const HANG_LIMIT: Duration = Duration::from_secs(20);

/// The tensors of each column begin at a multiple of this many bytes.
const TENSOR_ALIGNMENT: usize = 16;

/// How long dropping a batch waits for its work. Memory of unfinished work is not freed.
const END_LIMIT: Duration = Duration::from_millis(50);

/// Why a GPU does not prepare a sample, or any sample of a recipe.
#[derive(Debug, thiserror::Error)]
pub enum GpuRefusal {
    /// The recipe has something that no GPU executes.
    #[error(transparent)]
    Recipe(#[from] NotExported),
    /// The tensors of samples have different sizes.
    #[error("pictures may have different sizes")]
    VariableSize,
    /// It is not a JPEG, or one that no GPU decodes.
    #[error(transparent)]
    Jpeg(#[from] PlanError),
    /// It is a JPEG that does not have 8 bits a sample; the CPU refuses it too.
    #[error("the JPEG has {bits} bits a sample")]
    Precision {
        /// Bits of a sample.
        bits: u8,
    },
    /// It does not fit the batch.
    #[error(transparent)]
    Batch(JpegError),
    /// The batch would exceed its memory limit.
    #[error("the batch would need more than {limit} bytes of GPU memory, or an eighth page-locked")]
    Memory {
        /// The limit in bytes on the GPU.
        limit: u64,
    },
    /// Its headers or the recipe's parameters are wrong, which the CPU reports.
    #[error(transparent)]
    Sample(#[from] KernelError),
}

/// Whether an offered sample was taken.
#[derive(Debug)]
pub enum OfferOutcome {
    /// It is in the batch.
    Yes,
    /// The CPU has to prepare it.
    No(GpuRefusal),
}

/// The pictures of one batch on a GPU, one batch after another, reusing memory: after the first few
/// batches, none is allocated. It never exceeds its memory limit.
pub struct GpuBatch {
    compute: Box<dyn Compute>,
    preparer: SamplePreparer,
    /// The columns of the batch, in order.
    columns: Vec<Column>,
    planner: Planner,
    plan: DecodePlan,
    jpeg: JpegBatch,
    pictures: PictureBatch,
    /// The operations on the current sample, for each of its pictures. Their memory is reused for
    /// later samples.
    programs: Vec<PictureProgram>,
    converted: ConvertedProgram,
    /// Positions of the samples and of their tensors in the batch.
    positions: Vec<usize>,
    /// Number of positions, up to the last one in use.
    end: usize,
    /// Tensors that are copied to the host.
    out: Buffer,
    /// Memory for tensors that stay on the GPU; `None`: none stays.
    pool: Option<Arc<TensorPool>>,
    /// Memory of the tensors of this batch, if they stay.
    staying: Option<TensorMemory>,
    memory: GpuMemory,
    interrupt: Interrupt,
    most: MemoryUse,
    is_started: bool,
}

/// A column of pictures.
#[derive(Debug, Clone, Copy)]
struct Column {
    /// Bytes of the tensor of a picture.
    picture_bytes: usize,
    /// Bytes of all pictures of a sample.
    sample_bytes: usize,
}

impl Column {
    fn of(images: &Images) -> Result<Self, GpuRefusal> {
        let spec = images.spec().ok_or(GpuRefusal::VariableSize)?;
        Ok(Self { picture_bytes: spec.bytes(), sample_bytes: images.bytes(&spec) })
    }
}

/// Number of device buffers: those of JPEGs, those of programs, and tensors.
const BUFFERS: usize = 9;

/// Memory that a [`GpuBatch`] has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryUse {
    /// Peak bytes on the GPU.
    pub device_bytes_max: u64,
    /// Peak bytes of page-locked memory.
    pub pinned_bytes_max: u64,
    /// Number of allocations of device and page-locked memory.
    pub allocations: u64,
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
    /// Creates a batch for a recipe whose tensors each have a fixed size, with a memory limit.
    /// `columns` are the prepared columns of the recipe, by their indices in [`Recipe::images`], in
    /// the order of the batch.
    pub fn new(
        compute: Box<dyn Compute>,
        recipe: &Recipe,
        columns: &[usize],
        memory: GpuMemory,
    ) -> Result<Self, GpuRefusal> {
        let mut preparer = SamplePreparer::new(recipe, Cpu::detect());
        preparer.set_columns(columns.to_vec());
        let formats: Vec<_> = preparer.export_tensors()?.iter().map(tensor_format).collect();
        let columns = columns.iter().map(|index| Column::of(&recipe.images()[*index]));
        let columns: Vec<Column> = columns.collect::<Result<_, _>>()?;
        let mut batch = Self {
            compute,
            preparer,
            columns,
            planner: Planner::default(),
            plan: DecodePlan::default(),
            jpeg: JpegBatch::new(JpegLimits::default()),
            pictures: PictureBatch::new(&formats),
            programs: Vec::new(),
            converted: ConvertedProgram::default(),
            positions: Vec::new(),
            end: 0,
            out: Buffer::default(),
            pool: None,
            staying: None,
            memory,
            interrupt: Interrupt::default(),
            most: MemoryUse::default(),
            is_started: false,
        };
        batch.set_memory(memory);
        Ok(batch)
    }

    /// Lets tensors stay on the GPU, in memory of a pool, if the caller of [`Self::start`] allows
    /// it.
    pub fn set_pool(&mut self, pool: Arc<TensorPool>) {
        self.pool = Some(pool);
    }

    /// Sets the memory limit of later batches.
    pub fn set_memory(&mut self, memory: GpuMemory) {
        self.memory = memory;
        self.jpeg.set_limits(JpegLimits {
            staging_bytes_max: memory.files_bytes(),
            device_bytes_max: memory.device_bytes,
            ..JpegLimits::default()
        });
        self.pictures.set_host_limit(memory.programs_bytes());
    }

    /// The memory limit.
    pub fn memory(&self) -> GpuMemory {
        self.memory
    }

    /// The memory used so far.
    pub fn memory_use(&self) -> MemoryUse {
        let host = self.jpeg.host_allocations() + self.pictures.host_allocations();
        MemoryUse { allocations: self.most.allocations + host, ..self.most }
    }

    /// Sets an interrupt that ends waits when it is raised.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Frees all memory and empties the batch, except for its positions. No work of the batch may
    /// be in progress.
    pub fn release(&mut self) {
        self.return_memory();
        self.jpeg.release();
        self.pictures.release();
        self.out.release();
    }

    /// What it runs on.
    pub fn name(&self) -> &str {
        self.compute.name()
    }

    /// Bytes of device memory that are allocated.
    pub fn device_bytes(&self) -> usize {
        self.jpeg.bytes().device
            + self.pictures.buffer_bytes().into_iter().sum::<usize>()
            + self.out.bytes()
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

    /// Begins a batch. Waits for unfinished work of the previous one.
    pub fn begin(&mut self) -> Result<(), GpuError> {
        if std::mem::take(&mut self.is_started) {
            self.wait_for_work().inspect_err(|_| self.is_started = true)?;
        }
        self.return_memory();
        self.jpeg.clear();
        self.pictures.clear();
        self.positions.clear();
        self.end = 0;
        Ok(())
    }

    /// Returns the memory of tensors that stayed but were not requested.
    fn return_memory(&mut self) {
        let Some(memory) = self.staying.take() else { return };
        if self.is_started {
            // Without a fence, the memory is never reused.
            drop(memory.written_by(&mut *self.compute));
        }
    }

    /// Removes the samples of the batch after a failure.
    pub(super) fn forget(&mut self) {
        self.positions.clear();
    }

    /// Takes a sample, whose tensors go to a position of the batch: all of them, or none.
    pub fn take(
        &mut self,
        position: usize,
        encoded: Encoded<'_>,
        id: SampleId,
    ) -> Result<OfferOutcome, GpuError> {
        match self.try_take(position, encoded, id) {
            Ok(()) => Ok(OfferOutcome::Yes),
            Err(GpuRefusal::Batch(JpegError::Device(error))) => Err(error),
            Err(refused @ (GpuRefusal::Sample(_) | GpuRefusal::Jpeg(PlanError::Refused(_)))) => {
                let bits = precision(encoded.bytes).filter(|bits| *bits != 8);
                Ok(OfferOutcome::No(bits.map_or(refused, |bits| GpuRefusal::Precision { bits })))
            }
            Err(refused) => Ok(OfferOutcome::No(refused)),
        }
    }

    fn try_take(
        &mut self,
        position: usize,
        encoded: Encoded<'_>,
        id: SampleId,
    ) -> Result<(), GpuRefusal> {
        let Self { preparer, programs, .. } = self;
        // All pictures begin with parts of this part, which is decoded once.
        let region = preparer.export(encoded, id, programs)??;
        let options = DecodeOptions { colour: programs[0].colour, ..DecodeOptions::default() };
        self.planner.open(encoded, OnDamage::Fail)?;
        self.planner.plan_opened(encoded, region, &options, &mut self.plan)?;
        let decoded = self.jpeg.next_picture(&self.plan);
        self.pictures.begin_sample();
        for program in &self.programs {
            let PictureProgram { column, index, source, .. } = *program;
            let from = (source.x - region.x, source.y - region.y);
            let part = decoded.part(from, (source.width, source.height));
            let Column { picture_bytes, sample_bytes } = self.columns[column];
            let offset = (position * sample_bytes + index * picture_bytes) as u64;
            let place = TensorLocation { column, offset };
            self.pictures.add(&part, &self.converted.convert(program), place);
        }
        let end = self.end.max(position + 1);
        let added = match self.fits(end) {
            false => Err(GpuRefusal::Memory { limit: self.memory.device_bytes }),
            true => self
                .jpeg
                .add(&mut *self.compute, &self.plan, encoded.bytes)
                .map_err(GpuRefusal::Batch),
        };
        self.note_memory();
        if let Err(refused) = added {
            self.pictures.undo();
            return Err(refused);
        }
        self.end = end;
        self.positions.push(position);
        Ok(())
    }

    /// Whether the batch, including the sample whose pictures were just added, fits its limit.
    fn fits(&self, end: usize) -> bool {
        let needs = self.needs(end, Some(&self.plan));
        let device: u64 = needs.iter().map(|bytes| *bytes as u64).sum();
        device <= self.memory.device_bytes
            && self.pictures.host_needs() <= self.memory.programs_bytes()
    }

    /// Bytes that each device buffer needs, with `more` if given.
    fn needs(&self, end: usize, more: Option<&DecodePlan>) -> [usize; BUFFERS] {
        let [a, b, c, d, e] = self.jpeg.needs(more);
        let [f, g, h] = self.pictures.needs();
        [a, b, c, d, e, f, g, h, buffer::needed(self.tensors_bytes(end))]
    }

    /// Bytes of the tensors of each column up to a position, with those up to the next column.
    fn column_bytes(&self, end: usize) -> impl Iterator<Item = usize> {
        let bytes = move |column: &Column| end.saturating_mul(column.sample_bytes);
        let aligned = |bytes: usize| bytes.checked_next_multiple_of(TENSOR_ALIGNMENT);
        self.columns.iter().map(move |column| aligned(bytes(column)).unwrap_or(usize::MAX))
    }

    /// Bytes of the tensors of all columns up to a position.
    fn tensors_bytes(&self, end: usize) -> usize {
        self.column_bytes(end).fold(0, usize::saturating_add)
    }

    /// Where the tensors of each column begin in their memory.
    fn column_offsets(&self) -> Vec<usize> {
        let mut end = 0;
        let offset = |bytes| {
            end += bytes;
            end - bytes
        };
        self.column_bytes(self.end).map(offset).collect()
    }

    /// Allocates the memory for the batch before any of its work is started.
    fn reserve(&mut self) -> Result<(), GpuError> {
        let copied = if self.staying.is_some() { 0 } else { self.end };
        let needs = self.needs(copied, None);
        let [a, b, c, d, e] = self.jpeg.buffer_bytes();
        let [f, g, h] = self.pictures.buffer_bytes();
        let have = [a, b, c, d, e, f, g, h, self.out.bytes()];
        let sizes = buffer::sizes(&needs, &have, self.memory.device_bytes);
        // `fits` has checked the sum of the needs for every picture.
        let sizes = sizes.unwrap_or(needs);
        let [a, b, c, d, e] = self.jpeg.buffers_mut();
        let [f, g, h] = self.pictures.buffers_mut();
        let buffers = [a, b, c, d, e, f, g, h, &mut self.out];
        self.most.allocations += buffer::resize(buffers, &sizes, &mut *self.compute)?;
        self.pictures.reserve_host(&mut *self.compute)
    }

    fn note_memory(&mut self) {
        let pinned = (self.jpeg.bytes().host + self.pictures.host_bytes()) as u64;
        let device = self.device_bytes() as u64;
        let most = &mut self.most;
        most.pinned_bytes_max = most.pinned_bytes_max.max(pinned);
        most.device_bytes_max = most.device_bytes_max.max(device);
    }

    /// Starts the work on all samples taken. If it fails for lack of memory
    /// ([`GpuError::is_out_of_memory`]), no work was started. With `may_stay`, the tensors stay on
    /// the GPU if the pool has memory for them: [`Self::resident`].
    pub fn start(&mut self, may_stay: bool) -> Result<(), GpuError> {
        let bytes = self.tensors_bytes(self.end);
        self.staying = match self.pool.as_ref().filter(|_| may_stay) {
            Some(pool) => match pool.take(bytes, &mut *self.compute) {
                // The memory for tensors that are copied may already exist.
                Err(error) if error.is_out_of_memory() => None,
                taken => taken?,
            },
            None => None,
        };
        self.reserve()?;
        self.note_memory();
        self.is_started = true;
        self.jpeg.run(&mut *self.compute)?;
        let sources = self.jpeg.pixels_address();
        let tensors = self.tensors().expect("memory was reserved").address();
        let tensors: Vec<u64> =
            self.column_offsets().into_iter().map(|offset| tensors + offset as u64).collect();
        self.pictures.run(&mut *self.compute, sources, &tensors)
    }

    fn wait_for_work(&mut self) -> Result<(), GpuError> {
        let interrupt = &self.interrupt;
        self.compute.wait_unless(HANG_LIMIT, &|| interrupt.is_raised())
    }

    /// Whether the batch is done, without waiting for it if the device can tell.
    pub fn is_done(&mut self) -> Result<bool, GpuError> {
        self.compute.is_done()
    }

    /// Waits until the batch is done; returns the positions whose data are not sound, which the CPU
    /// has to prepare.
    pub fn wait(&mut self) -> Result<Vec<usize>, GpuError> {
        self.wait_for_work()?;
        let status = self.jpeg.status(&mut *self.compute)?;
        let unsound = self.positions.iter().zip(status).filter(|(_, status)| !status.is_sound());
        let mut positions: Vec<usize> = unsound.map(|(position, _)| *position).collect();
        positions.sort_unstable();
        Ok(positions)
    }

    /// The tensors. Only those at the positions of samples that were taken are written.
    pub fn tensors(&self) -> Option<&DeviceMemory> {
        self.staying.as_ref().map(TensorMemory::memory).or(self.out.get())
    }

    /// Whether the tensors could stay on the GPU, but the pool has no memory for them.
    pub fn is_beyond_pool(&self, may_stay: bool) -> bool {
        may_stay && self.pool.is_some() && self.staying.is_none()
    }

    /// The tensors of a batch that is done, except for those at the positions `unsound`, if they
    /// are in memory where they can stay.
    pub fn resident(&mut self, unsound: &[usize]) -> Result<Option<ResidentTensors>, GpuError> {
        let Some(memory) = &self.staying else { return Ok(None) };
        let ready = memory.written_by(&mut *self.compute)?;
        let mut positions = self.positions();
        positions.retain(|position| !unsound.contains(position));
        let memory = self.staying.take().expect("as above");
        let columns = self.column_offsets().into_iter().zip(&self.columns);
        let columns = columns.map(|(offset, Column { sample_bytes, .. })| ResidentColumn {
            offset,
            sample_bytes: *sample_bytes,
        });
        Ok(Some(ResidentTensors::new(memory, ready, columns.collect(), positions)))
    }

    /// Copies the tensors of samples that were taken to their positions in each column. Positions
    /// next to each other are one copy.
    pub fn download(&mut self, columns: &mut [Tensors<'_>]) -> Result<(), GpuError> {
        let Some(out) = self.out.get() else { return Ok(()) };
        let positions = self.positions();
        assert_eq!(columns.len(), self.columns.len(), "memory for each column");
        for (offset, tensors) in self.column_offsets().into_iter().zip(columns) {
            for run in positions.chunk_by(|before, after| before + 1 == *after) {
                let (first, end) = (run[0], run[run.len() - 1] + 1);
                let bytes = first * tensors.each..end * tensors.each;
                let start = offset + bytes.start;
                self.compute.download(out, start, &mut tensors.bytes[bytes])?;
            }
        }
        Ok(())
    }
}

impl Drop for GpuBatch {
    fn drop(&mut self) {
        if self.is_started {
            // Memory is freed only after the work that uses it, and never if that is still running.
            drop(self.compute.wait(END_LIMIT));
            self.return_memory();
        }
    }
}
