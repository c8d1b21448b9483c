//! The pictures of a batch: one upload, and a few launches for each round.

use super::jobs::{
    Address, BLOCK, BLUR_BYTES, Bases, Blur, CHANGE_BYTES, ERASE_BYTES, NEIGHBOURS_BYTES,
    NOISE_BYTES, Neighbours, NoiseJob, PASS_BYTES, Pass, QUADS_PER_THREAD, STATISTIC_BYTES,
    Statistic, WARP_BYTES, WarpJob, Writer,
};
use super::program::Program;
use super::steps::{ALIGNMENT, Round, Rounds, align};
use crate::{
    Argument, Compute, DeviceMemory, Error, HostMemory, KernelName, Launch, PictureDescriptor,
};

/// Format of the tensors of a batch.
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
    format: TensorFormat,
    rounds: Rounds,
    staging: Option<HostMemory>,
    uploaded: Option<DeviceMemory>,
    between: Option<DeviceMemory>,
    counts: Option<DeviceMemory>,
    launches: Vec<PlannedLaunch>,
}

/// A launch of jobs, which lie at byte offsets of what is uploaded.
#[derive(Debug, Clone, Copy)]
struct PlannedLaunch {
    kernel: KernelName,
    blocks: u32,
    jobs: usize,
    /// Which job each block works on; `None`: the block of its number.
    jobs_of_blocks: Option<usize>,
}

const FIRST_PASS: KernelName = KernelName { module: "stages", name: "first_pass" };
const LAST_PASS: KernelName = KernelName { module: "stages", name: "last_pass" };
const COUNT_VALUES: KernelName = KernelName { module: "colour", name: "count_values" };
const MAKE_TABLES: KernelName = KernelName { module: "colour", name: "make_tables" };
const BLUR: KernelName = KernelName { module: "blur", name: "blur_once" };
const WARP: KernelName = KernelName { module: "warp", name: "warp_pixels" };
const NOISE: KernelName = KernelName { module: "finish", name: "add_noise" };
const ERASE: KernelName = KernelName { module: "finish", name: "erase" };
const SHARPEN: KernelName = KernelName { module: "colour", name: "sharpen" };

impl PictureBatch {
    /// An empty batch for tensors of this format.
    pub fn new(format: TensorFormat) -> Self {
        assert!(matches!(format.element_bytes, 1 | 2 | 4), "an element has 1, 2 or 4 bytes");
        assert!(matches!(format.channels, 1 | 3), "a tensor has 1 or 3 channels");
        let elements = 256 * format.channels * format.element_bytes;
        assert_eq!(format.elements.len(), elements as usize, "an element for each value");
        Self {
            format,
            rounds: Rounds::default(),
            staging: None,
            uploaded: None,
            between: None,
            counts: None,
            launches: Vec::new(),
        }
    }

    /// Removes all pictures. Their work must have completed.
    pub fn clear(&mut self) {
        self.rounds.clear();
    }

    /// Adds a picture: `source` is the region that the first stage of its program reads. `tensor`
    /// is the address of its tensor in the memory of the device, aligned to its elements.
    pub fn add(&mut self, source: &PictureDescriptor, program: &Program<'_>, tensor: u64) {
        self.rounds.add(source, program, tensor);
    }

    /// Allocated bytes of device memory.
    pub fn device_bytes(&self) -> usize {
        let memories = [&self.uploaded, &self.between, &self.counts];
        memories.into_iter().flatten().map(DeviceMemory::bytes).sum()
    }

    /// Bytes of device memory for intermediate results of the pictures added so far.
    pub fn between_bytes(&self) -> usize {
        self.rounds.between_bytes()
    }

    /// Starts the work on all pictures. Until it completes, do not clear the batch, add to it, or
    /// run it again.
    pub fn run(&mut self, compute: &mut dyn Compute) -> Result<(), Error> {
        let bytes = self.uploaded_bytes();
        let uploaded = grow(&mut self.uploaded, bytes, compute)?.address();
        let between = grow(&mut self.between, self.rounds.between_bytes(), compute)?.address();
        let counts = grow(&mut self.counts, self.rounds.counts_bytes, compute)?.address();
        self.write_jobs(Bases { uploaded, between, counts });
        let data = &self.rounds.data;
        assert!(data.len() <= bytes, "what is uploaded has the size that was computed");
        if self.staging.as_ref().is_none_or(|staging| staging.len() < data.len()) {
            self.staging = None;
            self.staging = Some(compute.allocate_host(data.len().next_power_of_two())?);
        }
        let staging = self.staging.as_mut().expect("it was allocated");
        staging[..data.len()].copy_from_slice(data);
        let target = self.uploaded.as_ref().expect("it was allocated");
        compute.upload(&staging[..data.len()], target, 0)?;
        if self.rounds.counts_bytes > 0 {
            let counts = self.counts.as_ref().expect("it was allocated");
            compute.fill(counts, 0, self.rounds.counts_bytes, 0)?;
        }
        let elements = Argument::Address(uploaded + self.rounds.elements_at as u64);
        for launch in &self.launches {
            let mut arguments = vec![Argument::Address(uploaded + launch.jobs as u64)];
            let map = launch.jobs_of_blocks.map(|map| Argument::Address(uploaded + map as u64));
            arguments.extend(map);
            if launch.kernel == LAST_PASS {
                let TensorFormat { element_bytes, is_interleaved, channels, .. } = self.format;
                arguments.push(elements);
                let words = [element_bytes, channels, u32::from(is_interleaved), QUADS_PER_THREAD];
                arguments.extend(words.map(Argument::Word));
            }
            if launch.kernel == ERASE {
                let TensorFormat { element_bytes, is_interleaved, channels, .. } = self.format;
                let words = [element_bytes, channels, u32::from(is_interleaved)];
                arguments.extend(words.map(Argument::Word));
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

    /// Bound of what is uploaded.
    fn uploaded_bytes(&self) -> usize {
        fn of<J>(jobs: &[J], bytes: usize, blocks: impl Fn(&J) -> u32) -> usize {
            let blocks: usize = jobs.iter().map(|job| blocks(job) as usize).sum();
            jobs.len() * bytes + 4 * blocks + 2 * ALIGNMENT
        }
        let of_round = |round: &Round| {
            let Round { first_passes, last_passes, statistics, sharpened, blurs, warps, noises } =
                round;
            of(first_passes, PASS_BYTES, Pass::first_blocks)
                + of(last_passes, PASS_BYTES, Pass::last_blocks)
                + of(statistics, STATISTIC_BYTES, Statistic::blocks)
                + of(sharpened, NEIGHBOURS_BYTES, Neighbours::blocks)
                + of(blurs, BLUR_BYTES, Blur::blocks)
                + of(warps, WARP_BYTES, WarpJob::blocks)
                + of(noises, NOISE_BYTES, NoiseJob::blocks)
        };
        let rounds: usize = self.rounds.rounds().iter().map(of_round).sum();
        let elements = self.format.elements.len() + ALIGNMENT;
        let changes = CHANGE_BYTES * self.rounds.changes.len() + ALIGNMENT;
        let erased = ERASE_BYTES * self.rounds.erased.len() + ALIGNMENT;
        self.rounds.data.len() + rounds + elements + changes + erased
    }

    /// Appends changes, elements and jobs to what is uploaded, and plans the launches.
    fn write_jobs(&mut self, bases: Bases) {
        self.launches.clear();
        let mut data = std::mem::take(&mut self.rounds.data);
        align(&mut data);
        let changes = Address::Uploaded(data.len());
        let mut writer = Writer { bytes: &mut data, bases };
        self.rounds.changes.iter().for_each(|change| change.write(&mut writer));
        align(&mut data);
        self.rounds.elements_at = data.len();
        data.extend_from_slice(&self.format.elements);
        for round in self.rounds.rounds() {
            let Round { first_passes, last_passes, statistics, sharpened, blurs, warps, noises } =
                round;
            let mut planner = Planner { data: &mut data, bases, launches: &mut self.launches };
            planner.plan(FIRST_PASS, first_passes, Pass::first_blocks, |job, block, to| {
                job.write(block, changes, to);
            });
            planner.plan(LAST_PASS, last_passes, Pass::last_blocks, |job, block, to| {
                job.write(block, changes, to);
            });
            let counted =
                planner.plan(COUNT_VALUES, statistics, Statistic::blocks, Statistic::write);
            planner.launches.extend(counted.map(|jobs| PlannedLaunch {
                kernel: MAKE_TABLES,
                blocks: statistics.len() as u32,
                jobs,
                jobs_of_blocks: None,
            }));
            planner.plan(SHARPEN, sharpened, Neighbours::blocks, Neighbours::write);
            planner.plan(BLUR, blurs, Blur::blocks, Blur::write);
            planner.plan(WARP, warps, WarpJob::blocks, WarpJob::write);
            planner.plan(NOISE, noises, NoiseJob::blocks, NoiseJob::write);
        }
        if !self.rounds.erased.is_empty() {
            align(&mut data);
            let jobs = data.len();
            let writer = &mut Writer { bytes: &mut data, bases };
            self.rounds.erased.iter().for_each(|job| job.write(writer));
            let blocks = self.rounds.erased.len() as u32;
            self.launches.push(PlannedLaunch { kernel: ERASE, blocks, jobs, jobs_of_blocks: None });
        }
        self.rounds.data = data;
    }
}

/// Appends jobs to what is uploaded.
struct Planner<'a> {
    data: &'a mut Vec<u8>,
    bases: Bases,
    launches: &'a mut Vec<PlannedLaunch>,
}

impl Planner<'_> {
    /// Appends jobs, and the number of the job of each block. Returns where the jobs lie; `None`
    /// without jobs.
    fn plan<J>(
        &mut self,
        kernel: KernelName,
        jobs: &[J],
        blocks: impl Fn(&J) -> u32,
        write: impl Fn(&J, u32, &mut Writer<'_>),
    ) -> Option<usize> {
        if jobs.is_empty() {
            return None;
        }
        align(self.data);
        let (at, mut all_blocks) = (self.data.len(), 0);
        for job in jobs {
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
        self.launches.push(PlannedLaunch { kernel, blocks: all_blocks, jobs: at, jobs_of_blocks });
        Some(at)
    }
}

/// Memory with room for as many bytes.
fn grow<'a>(
    memory: &'a mut Option<DeviceMemory>,
    bytes: usize,
    compute: &mut dyn Compute,
) -> Result<&'a DeviceMemory, Error> {
    if memory.as_ref().is_none_or(|memory| memory.bytes() < bytes) {
        // What is too small is freed first.
        *memory = None;
        *memory = Some(compute.allocate(bytes.max(1).next_power_of_two())?);
    }
    Ok(memory.as_ref().expect("it was allocated"))
}
