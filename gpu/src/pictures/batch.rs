//! The pictures of a batch: one upload, and a few launches for each round.

use super::jobs::{
    Address, BLOCK, Bases, Blur, Neighbours, NoiseJob, Pass, QUADS_PER_THREAD, Statistic, SumJob,
    WarpJob, Writer,
};
use super::memory::{ALIGNMENT, align};
use super::program::{Program, TensorLocation};
use super::round::Round;
use super::steps::Rounds;
use crate::buffer::{Buffer, needed};
use crate::{Argument, Compute, Error, HostMemory, KernelName, Launch, PictureDescriptor};

/// Format of the tensors of a column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorFormat {
    /// Bytes of an element: 1, 2 or 4.
    pub element_bytes: u32,
    /// Whether the channels of a pixel are adjacent (channels last).
    pub is_interleaved: bool,
    /// Number of channels: 3, or 1 for red only.
    pub channels: u32,
    /// The elements for the 256 values of each channel, channel by channel. Elements of one byte
    /// equal the values.
    pub elements: Vec<u8>,
}

/// Executes the programs of the pictures of a batch, one batch after another. Its memory, on the
/// host and on the device, grows as needed and is reused.
#[derive(Debug)]
pub struct PictureBatch {
    /// The different formats.
    formats: Vec<TensorFormat>,
    /// For each column, the index of its format.
    format_of: Vec<usize>,
    /// Where the elements of each format are in what is uploaded.
    elements_at: Vec<usize>,
    rounds: Rounds,
    staging: Option<HostMemory>,
    /// Maximum bytes of `staging`, unless its content needs more.
    staging_bytes_max: usize,
    staging_allocations: u64,
    uploaded: Buffer,
    between: Buffer,
    counts: Buffer,
    launches: Vec<PlannedLaunch>,
}

/// Device buffers: uploaded data, results between two steps, counts.
const BUFFERS: usize = 3;

/// A launch of jobs, given by byte offsets in the uploaded data.
#[derive(Debug, Clone, Copy)]
struct PlannedLaunch {
    kernel: KernelName,
    blocks: u32,
    jobs: usize,
    /// Offset of the index of the job of each block; `None` if block b executes job b.
    jobs_of_blocks: Option<usize>,
    /// Index of the format of its tensors; `None` if the kernel writes none.
    format: Option<usize>,
}

const FIRST_PASS: KernelName = KernelName { module: "stages", name: "first_pass" };
const LAST_PASS: KernelName = KernelName { module: "stages", name: "last_pass" };
const COUNT_VALUES: KernelName = KernelName { module: "colour", name: "count_values" };
const MAKE_TABLES: KernelName = KernelName { module: "colour", name: "make_tables" };
const BLUR: KernelName = KernelName { module: "blur", name: "blur_once" };
const WARP: KernelName = KernelName { module: "warp", name: "warp_pixels" };
const NOISE: KernelName = KernelName { module: "finish", name: "add_noise" };
const SUM: KernelName = KernelName { module: "colour", name: "add_weighted" };
const ERASE: KernelName = KernelName { module: "finish", name: "erase" };
const SHARPEN: KernelName = KernelName { module: "colour", name: "sharpen" };

impl PictureBatch {
    /// An empty batch for columns of tensors of these formats.
    pub fn new(columns: &[TensorFormat]) -> Self {
        let mut formats: Vec<TensorFormat> = Vec::new();
        let index = |format: &TensorFormat| {
            assert!(matches!(format.element_bytes, 1 | 2 | 4), "an element has 1, 2 or 4 bytes");
            assert!(matches!(format.channels, 1 | 3), "a tensor has 1 or 3 channels");
            let elements = 256 * format.channels * format.element_bytes;
            assert_eq!(format.elements.len(), elements as usize, "an element for each value");
            formats.iter().position(|it| it == format).unwrap_or_else(|| {
                formats.push(format.clone());
                formats.len() - 1
            })
        };
        let format_of = columns.iter().map(index).collect();
        Self {
            formats,
            format_of,
            elements_at: Vec::new(),
            rounds: Rounds::default(),
            staging: None,
            staging_bytes_max: usize::MAX,
            staging_allocations: 0,
            uploaded: Buffer::default(),
            between: Buffer::default(),
            counts: Buffer::default(),
            launches: Vec::new(),
        }
    }

    /// Removes all pictures. Their work must have completed.
    pub fn clear(&mut self) {
        self.rounds.clear();
    }

    /// Adds a picture: the region that the first stage of its program takes. Its address is an
    /// offset in the memory of pictures, and `tensor` the location of its tensor in the memory of
    /// its column; [`PictureBatch::run`] gets the addresses of both memories.
    pub fn add(
        &mut self,
        source: &PictureDescriptor,
        program: &Program<'_>,
        tensor: TensorLocation,
    ) {
        assert!(tensor.column < self.format_of.len(), "a column of the batch");
        self.rounds.add(source, program, tensor);
    }

    /// Begins a sample, whose pictures are added next: [`Self::undo`] removes them.
    pub fn begin_sample(&mut self) {
        self.rounds.set_mark();
    }

    /// Removes the pictures added since [`Self::begin_sample`]. Can be called once after each.
    pub fn undo(&mut self) {
        self.rounds.undo();
    }

    /// Bytes of page-locked memory that the pictures added so far need. The data that are copied
    /// there take as many bytes of ordinary memory.
    pub fn host_needs(&self) -> usize {
        self.uploaded_bytes()
    }

    /// Limits the page-locked memory. The caller must not add pictures that need more.
    pub fn set_host_limit(&mut self, bytes: usize) {
        self.staging_bytes_max = bytes;
    }

    /// Bytes that each device buffer needs for the pictures added so far.
    pub fn needs(&self) -> [usize; BUFFERS] {
        [self.uploaded_bytes(), self.rounds.between_bytes(), self.rounds.counts_bytes].map(needed)
    }

    /// The device buffers, to size them before [`PictureBatch::run`], which otherwise grows them
    /// as needed.
    pub fn buffers_mut(&mut self) -> [&mut Buffer; BUFFERS] {
        [&mut self.uploaded, &mut self.between, &mut self.counts]
    }

    /// Bytes of each buffer.
    pub fn buffer_bytes(&self) -> [usize; BUFFERS] {
        [&self.uploaded, &self.between, &self.counts].map(Buffer::bytes)
    }

    /// Bytes of page-locked memory that are allocated.
    pub fn host_bytes(&self) -> usize {
        self.staging.as_ref().map_or(0, |staging| staging.len())
    }

    /// Number of allocations of page-locked memory so far.
    pub fn host_allocations(&self) -> u64 {
        self.staging_allocations
    }

    /// Removes all pictures and frees all device and page-locked memory. No work on the pictures
    /// may be in progress.
    pub fn release(&mut self) {
        self.clear();
        self.staging = None;
        self.buffers_mut().into_iter().for_each(Buffer::release);
    }

    /// Allocates enough page-locked memory for the pictures added so far.
    pub fn reserve_host(&mut self, compute: &mut dyn Compute) -> Result<(), Error> {
        let needed = self.uploaded_bytes();
        let have = self.host_bytes();
        if have < needed {
            self.staging = None;
            let wanted = (needed / 4 * 5).min(self.staging_bytes_max).max(needed);
            self.staging = Some(compute.allocate_host(wanted)?);
            self.staging_allocations += 1;
        }
        Ok(())
    }

    /// Bytes of device memory for intermediate results of the pictures added so far.
    pub fn between_bytes(&self) -> usize {
        self.rounds.between_bytes()
    }

    /// Starts the work on all pictures, which lie at offsets from the address `sources`; the
    /// tensors of each column lie at offsets from its address in `tensors`. Before it is done, the
    /// batch must neither be cleared, nor added to, nor run again.
    pub fn run(
        &mut self,
        compute: &mut dyn Compute,
        sources: u64,
        tensors: &[u64],
    ) -> Result<(), Error> {
        assert_eq!(tensors.len(), self.format_of.len(), "an address for each column");
        let [bytes, between, counts] = self.needs();
        self.reserve_host(compute)?;
        let uploaded = self.uploaded.grown(compute, bytes)?.address();
        let between = self.between.grown(compute, between)?.address();
        let counts = self.counts.grown(compute, counts)?.address();
        self.write_jobs(Bases { sources, tensors, uploaded, between, counts });
        let data = &self.rounds.data;
        assert!(data.len() <= bytes, "what is uploaded has the size that was computed");
        let staging = self.staging.as_mut().expect("it was allocated");
        staging[..data.len()].copy_from_slice(data);
        let target = self.uploaded.get().expect("it was allocated");
        compute.upload(&staging[..data.len()], target, 0)?;
        if self.rounds.counts_bytes > 0 {
            let counts = self.counts.get().expect("it was allocated");
            compute.fill(counts, 0, self.rounds.counts_bytes, 0)?;
        }
        for launch in &self.launches {
            let mut arguments = vec![Argument::Address(uploaded + launch.jobs as u64)];
            let map = launch.jobs_of_blocks.map(|map| Argument::Address(uploaded + map as u64));
            arguments.extend(map);
            if let Some(index) = launch.format {
                let TensorFormat { element_bytes, is_interleaved, channels, .. } =
                    self.formats[index];
                let words = [element_bytes, channels, u32::from(is_interleaved)];
                if launch.kernel == LAST_PASS {
                    let elements = uploaded + self.elements_at[index] as u64;
                    arguments.push(Argument::Address(elements));
                }
                arguments.extend(words.map(Argument::Word));
                if launch.kernel == LAST_PASS {
                    arguments.push(Argument::Word(QUADS_PER_THREAD));
                }
            }
            compute.launch(&Launch {
                kernel: launch.kernel,
                grid: [launch.blocks, 1, 1],
                block: [BLOCK, 1, 1],
                shared_bytes: 0,
                arguments: &arguments,
            })?;
        }
        Ok(())
    }

    /// Maximum bytes of the uploaded data.
    fn uploaded_bytes(&self) -> usize {
        let elements = self.formats.iter().map(|it| it.elements.len() + ALIGNMENT).sum::<usize>();
        self.rounds.uploaded_bytes(self.formats.len()) + elements + ALIGNMENT
    }

    /// Appends changes, elements and jobs to the uploaded data, and plans the launches.
    fn write_jobs(&mut self, bases: Bases<'_>) {
        self.launches.clear();
        let mut data = std::mem::take(&mut self.rounds.data);
        align(&mut data);
        let changes = Address::Uploaded(data.len());
        let mut writer = Writer { bytes: &mut data, bases };
        self.rounds.changes.iter().for_each(|change| change.write(&mut writer));
        self.elements_at.clear();
        for format in &self.formats {
            align(&mut data);
            self.elements_at.push(data.len());
            data.extend_from_slice(&format.elements);
        }
        // Pictures that are not tensors are written with any format.
        let format_of = |target: Address| match target {
            Address::Tensor { column, .. } => self.format_of[column],
            Address::Null
            | Address::Source(_)
            | Address::Uploaded(_)
            | Address::Between(_)
            | Address::Counts(_) => 0,
        };
        for round in self.rounds.rounds() {
            let Round {
                first_passes,
                last_passes,
                statistics,
                sharpened,
                blurs,
                warps,
                noises,
                sums,
            } = round;
            let mut planner = Planner { data: &mut data, bases, launches: &mut self.launches };
            planner.plan(FIRST_PASS, first_passes, Pass::first_blocks, |job, block, to| {
                job.write(block, changes, to);
            });
            for format in 0..self.formats.len() {
                let jobs = last_passes.iter().filter(|job| format_of(job.target.address) == format);
                let launches = planner.launches.len();
                planner.plan(LAST_PASS, jobs, Pass::last_blocks, |job, block, to| {
                    job.write(block, changes, to);
                });
                let launched = planner.launches[launches..].iter_mut();
                launched.for_each(|launch| launch.format = Some(format));
            }
            let counted =
                planner.plan(COUNT_VALUES, statistics, Statistic::blocks, Statistic::write);
            planner.launches.extend(counted.map(|jobs| PlannedLaunch {
                kernel: MAKE_TABLES,
                blocks: statistics.len() as u32,
                jobs,
                jobs_of_blocks: None,
                format: None,
            }));
            planner.plan(SHARPEN, sharpened, Neighbours::blocks, Neighbours::write);
            planner.plan(BLUR, blurs, Blur::blocks, Blur::write);
            planner.plan(WARP, warps, WarpJob::blocks, WarpJob::write);
            planner.plan(NOISE, noises, NoiseJob::blocks, NoiseJob::write);
            planner.plan(SUM, sums, SumJob::blocks, SumJob::write);
        }
        for format in 0..self.formats.len() {
            let erased = self.rounds.erased.iter().filter(|job| format_of(job.tensor) == format);
            let blocks = erased.clone().count() as u32;
            if blocks == 0 {
                continue;
            }
            align(&mut data);
            let jobs = data.len();
            let writer = &mut Writer { bytes: &mut data, bases };
            erased.for_each(|job| job.write(writer));
            let (kernel, jobs_of_blocks, format) = (ERASE, None, Some(format));
            self.launches.push(PlannedLaunch { kernel, blocks, jobs, jobs_of_blocks, format });
        }
        self.rounds.data = data;
    }
}

/// Appends jobs to the uploaded data.
struct Planner<'a> {
    data: &'a mut Vec<u8>,
    bases: Bases<'a>,
    launches: &'a mut Vec<PlannedLaunch>,
}

impl Planner<'_> {
    /// Appends jobs, and the index of the job of each block, and plans their launch. Returns the
    /// offset of the jobs; `None` without jobs.
    fn plan<'j, J: 'j>(
        &mut self,
        kernel: KernelName,
        jobs: impl IntoIterator<Item = &'j J, IntoIter: Clone>,
        blocks: impl Fn(&J) -> u32,
        write: impl Fn(&J, u32, &mut Writer<'_>),
    ) -> Option<usize> {
        let jobs = jobs.into_iter();
        jobs.clone().next()?;
        align(self.data);
        let (at, mut all_blocks) = (self.data.len(), 0);
        for job in jobs.clone() {
            write(job, all_blocks, &mut Writer { bytes: self.data, bases: self.bases });
            all_blocks += blocks(job);
        }
        align(self.data);
        let jobs_of_blocks = Some(self.data.len());
        for (number, job) in (0u32..).zip(jobs) {
            for _ in 0..blocks(job) {
                self.data.extend(number.to_le_bytes());
            }
        }
        let (blocks, jobs, format) = (all_blocks, at, None);
        self.launches.push(PlannedLaunch { kernel, blocks, jobs, jobs_of_blocks, format });
        Some(at)
    }
}
