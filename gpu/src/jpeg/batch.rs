//! A batch of JPEGs and what decodes it.

use super::area::{Buffer, Staging};
use super::layout::{
    GROUP_BLOCKS, GROUP_ITEMS, ITEM_PIXELS, PictureRecord, STREAM_WORDS, TABLES_MAX, UNITS_MAX,
    push_component, push_segment,
};
use super::stuffing::copy_without_stuffing;
use super::tables::TableCache;
use crate::{Argument, Compute, Error, KernelName, Launch, PictureDescriptor};
use meetpoint_jpeg::DecodePlan;

/// Bytes behind the data of a picture that the reader of bits loads.
const READ_AHEAD: usize = 16;

/// Longest data of a picture: the offset of a bit has 32 bits.
const DATA_BYTES_MAX: usize = 1 << 28;

/// Blocks of threads that keep a large GPU busy while each decodes a few segments.
const GROUPS_WANTED: usize = 1024;

/// Fewest and most segments that a block of threads decodes.
const GROUP_SEGMENTS: [usize; 2] = [4, 32];

/// Alignment of pictures.
const PICTURE_ALIGNMENT: u64 = 256;

/// Bounds of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JpegLimits {
    /// Most bytes of the staging area, and of its copy on the device; below 2^31.
    pub staging_bytes_max: usize,
    /// Most bytes of coefficients, samples and pixels on the device.
    pub device_bytes_max: u64,
    /// Longest segment, in bytes: one thread decodes it, while all others may have finished.
    pub segment_bytes_max: usize,
}

impl Default for JpegLimits {
    fn default() -> Self {
        Self { staging_bytes_max: 1 << 30, device_bytes_max: 8 << 30, segment_bytes_max: 1 << 18 }
    }
}

/// Why a picture is not added to a batch: the CPU decodes it.
#[derive(Debug, thiserror::Error)]
pub enum JpegError {
    /// A segment is too long for one thread.
    #[error("a segment of {bytes} bytes, more than {limit}; add entry points to the dataset")]
    LongSegment {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The staging area would be too large.
    #[error("the data of the batch have more than {limit} bytes")]
    Staging {
        /// The limit.
        limit: usize,
    },
    /// The memory of the device would be too large.
    #[error("the batch needs more than {limit} bytes on the device")]
    DeviceBytes {
        /// The limit.
        limit: u64,
    },
    /// A plan that contradicts itself or the file.
    #[error("the plan does not fit the file")]
    Plan,
    /// The device failed.
    #[error(transparent)]
    Device(#[from] Error),
}

/// What was wrong with the data of a picture; only with none of it are its pixels those of the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PictureStatus(u32);

impl PictureStatus {
    /// Bits that match no Huffman code.
    pub const NO_CODE: Self = Self(1);
    /// A block with more than 64 coefficients.
    pub const TOO_MANY: Self = Self(2);
    /// Data that end too early.
    pub const OVERRUN: Self = Self(4);
    /// A segment that does not end where the next one begins.
    pub const WRONG_END: Self = Self(8);

    /// Whether the pixels are right.
    pub fn is_sound(self) -> bool {
        self == Self::default()
    }

    /// Whether one of the problems of another status is among those of this one.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Memory of a [`JpegBatch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchBytes {
    /// Page-locked memory of the host.
    pub host: usize,
    /// Memory of the device.
    pub device: usize,
}

/// Decodes batches one after another, reusing its memory: after the first few it allocates nothing.
///
/// For each batch: [`JpegBatch::clear`], [`JpegBatch::add`] for each picture, [`JpegBatch::run`],
/// then kernels that read the pictures, then [`JpegBatch::status`]. Before the next `clear`, the
/// work must be done.
#[derive(Debug, Default)]
pub struct JpegBatch {
    limits: JpegLimits,
    staging: Staging,
    tables: TableCache,
    words: Words,
    totals: Totals,
    pictures: Vec<PictureDescriptor>,
    status: Vec<PictureStatus>,
    status_bytes: Vec<u8>,
    /// Offsets in the area of the descriptors and of the status words.
    offsets: Offsets,
    area: Buffer,
    coefficients: Buffer,
    samples: Buffer,
    pixels: Buffer,
}

/// Descriptions of the pictures of the batch.
#[derive(Debug, Default)]
struct Words {
    pictures: Vec<u32>,
    components: Vec<u32>,
    tables: Vec<u32>,
    segments: Vec<u32>,
    /// First segment and number of segments of each picture.
    ranges: Vec<(usize, usize)>,
    groups: Vec<u32>,
    streams: Vec<u32>,
    descriptors: Vec<u32>,
    status: Vec<u32>,
}

/// What the pictures of the batch take together.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    components: u64,
    segments: usize,
    blocks: u64,
    block_groups: u64,
    pixel_groups: u64,
    pixel_bytes: u64,
}

/// Offsets in the area.
#[derive(Debug, Clone, Copy, Default)]
struct Offsets {
    descriptors: usize,
    status: usize,
}

impl JpegBatch {
    /// An empty batch.
    pub fn new(limits: JpegLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Empties the batch.
    pub fn clear(&mut self) {
        let Self { staging, tables, words, totals, pictures, status, .. } = self;
        staging.clear();
        tables.clear();
        *totals = Totals::default();
        pictures.clear();
        status.clear();
        words.clear();
    }

    /// Number of pictures.
    pub fn len(&self) -> usize {
        self.pictures.len()
    }

    /// Whether there is no picture.
    pub fn is_empty(&self) -> bool {
        self.pictures.is_empty()
    }

    /// Adds a picture and returns its index. After an error the batch is as before.
    pub fn add(
        &mut self,
        compute: &mut dyn Compute,
        plan: &DecodePlan,
        file: &[u8],
    ) -> Result<usize, JpegError> {
        let totals = self.check(plan)?;
        let data = file.get(plan.data.clone()).ok_or(JpegError::Plan)?;
        if data.len() > DATA_BYTES_MAX {
            return Err(JpegError::Plan);
        }
        let room = data.len().saturating_add(READ_AHEAD);
        let limit = self.limits.staging_bytes_max.min(i32::MAX as usize);
        if room > limit.saturating_sub(self.staging.used() + 16) {
            return Err(JpegError::Staging { limit });
        }
        let (offset, to) = self.staging.extend(compute, room)?;
        let data_bytes = if plan.is_unsegmented {
            copy_without_stuffing(data, to)
        } else {
            to[..data.len()].copy_from_slice(data);
            data.len()
        };
        to[data_bytes..].fill(0);

        let mut indices = [0; TABLES_MAX];
        for (index, spec) in indices.iter_mut().zip(&plan.huffman) {
            *index = self.tables.index(spec, &mut self.words.tables);
        }
        let record = PictureRecord {
            data_offset: offset as u32,
            data_bytes: data_bytes as u32,
            first_component: self.totals.components as u32,
            tables: &indices[..plan.huffman.len()],
            first_pixel_group: self.totals.pixel_groups as u32,
        };
        record.push(plan, &mut self.words.pictures);
        let (mut group, mut block) = (self.totals.block_groups, self.totals.blocks);
        for component in &plan.components {
            let (first_group, first_block) = (group as u32, block as u32);
            push_component(component, first_group, first_block, &mut self.words.components);
            let blocks = blocks_of(component);
            (group, block) = (group + blocks.div_ceil(GROUP_BLOCKS), block + blocks);
        }
        let segments = if plan.is_unsegmented {
            let mcu_end = plan.segments.last().map_or(0, |segment| segment.mcu_end);
            let (index, blocks) = (self.pictures.len() as u32, plan.units.len() as u32);
            self.words.streams.extend([index, data_bytes as u32 * 8, mcu_end * blocks]);
            &[]
        } else {
            &plan.segments[..]
        };
        for segment in segments {
            push_segment(segment, plan.data.start, &mut self.words.segments);
        }
        self.words.ranges.push((self.totals.segments, segments.len()));
        let (width, height) = plan.region;
        let row_stride = width.next_multiple_of(16);
        // Relative to the first picture until the memory is allocated.
        let address = self.totals.pixel_bytes;
        let plane_stride = row_stride * height;
        self.pictures.push(PictureDescriptor { address, row_stride, plane_stride, width, height });
        self.totals = totals;
        Ok(self.pictures.len() - 1)
    }

    /// What the batch takes with one more picture, if that is within the limits.
    fn check(&self, plan: &DecodePlan) -> Result<Totals, JpegError> {
        let limits = self.limits;
        let longest = plan.segments.iter().map(|it| it.offset_end.saturating_sub(it.offset)).max();
        let bytes = longest.unwrap_or(0);
        if bytes > limits.segment_bytes_max && !plan.is_unsegmented {
            return Err(JpegError::LongSegment { bytes, limit: limits.segment_bytes_max });
        }
        let (width, height) = plan.region;
        let is_possible = matches!(plan.components.len(), 1 | 3)
            && (1..=TABLES_MAX).contains(&plan.huffman.len())
            && (1..=UNITS_MAX).contains(&plan.units.len())
            && plan.mcus.0 > 0
            && width > 0
            && height > 0;
        if !is_possible {
            return Err(JpegError::Plan);
        }
        let mut totals = self.totals;
        for component in &plan.components {
            let blocks = blocks_of(component);
            totals.block_groups += blocks.div_ceil(GROUP_BLOCKS);
            totals.blocks += blocks;
        }
        totals.components += plan.components.len() as u64;
        totals.segments += if plan.is_unsegmented { 0 } else { plan.segments.len() };
        let items = u64::from(width).div_ceil(ITEM_PIXELS) * u64::from(height);
        totals.pixel_groups += items.div_ceil(GROUP_ITEMS);
        let plane = u64::from(width.next_multiple_of(16)) * u64::from(height);
        totals.pixel_bytes += (3 * plane).next_multiple_of(PICTURE_ALIGNMENT);
        let limit = limits.device_bytes_max;
        let needed = totals.blocks * (128 + 64) + totals.pixel_bytes;
        // Indices of blocks and planes have 32 bits.
        if needed > limit || totals.blocks >= 1 << 31 || plane >= 1 << 32 {
            return Err(JpegError::DeviceBytes { limit });
        }
        Ok(totals)
    }

    /// Uploads the batch and starts its kernels.
    pub fn run(&mut self, compute: &mut dyn Compute) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let totals = self.totals;
        let pixels = self.pixels.grown(compute, totals.pixel_bytes as usize)?.address();
        self.words.descriptors.clear();
        for picture in &mut self.pictures {
            picture.address += pixels;
            self.words.descriptors.extend(picture.words());
        }
        let groups = self.words.group(totals.segments);
        let count = self.pictures.len();
        self.words.status.clear();
        self.words.status.resize(count, 0);
        let words = &self.words;
        let mut append = |words: &[u32]| self.staging.append(compute, words);
        let sections = [
            &words.pictures,
            &words.components,
            &words.tables,
            &words.segments,
            &words.groups,
            &words.streams,
        ];
        let mut starts = [0; 6];
        for (start, words) in starts.iter_mut().zip(sections) {
            *start = append(words)?;
        }
        self.offsets.descriptors = append(&self.words.descriptors)?;
        self.offsets.status = append(&self.words.status)?;
        let area = self.area.grown(compute, self.staging.used())?;
        self.staging.upload(compute, area)?;
        let at = |offset: usize| Argument::Address(area.address() + offset as u64);
        let [pictures, components, tables, segments, group_list, streams] = starts.map(at);
        let status = at(self.offsets.status);

        let coefficient_bytes = totals.blocks as usize * 128;
        let coefficients = self.coefficients.grown(compute, coefficient_bytes)?;
        let samples = self.samples.grown(compute, totals.blocks as usize * 64)?;
        compute.fill(coefficients, 0, coefficient_bytes, 0)?;
        let coefficients = Argument::from(coefficients);
        let samples = Argument::from(samples);
        let mut launch = |module, name, blocks: u64, threads, arguments: &[Argument]| {
            compute.launch(&Launch {
                kernel: KernelName { module, name },
                grid: [blocks as u32, 1, 1],
                block: [threads, 1, 1],
                shared_bytes: 0,
                arguments,
            })
        };
        let entropy =
            [at(0), pictures, components, tables, segments, group_list, coefficients, status];
        launch("jpeg_entropy", "jpeg_decode_segments", groups as u64, 32, &entropy)?;
        let stream_count = words.streams.len() / STREAM_WORDS;
        let entropy = [at(0), pictures, components, tables, streams, coefficients, status];
        launch("jpeg_streams", "jpeg_decode_streams", stream_count as u64, 256, &entropy)?;
        let component_count = Argument::Word(totals.components as u32);
        let transform = [components, component_count, coefficients, samples];
        launch("jpeg_samples", "jpeg_transform", totals.block_groups, 256, &transform)?;
        let descriptors = at(self.offsets.descriptors);
        let pixels = [pictures, Argument::Word(count as u32), components, samples, descriptors];
        launch("jpeg_pixels", "jpeg_make_pixels", totals.pixel_groups, 256, &pixels)
    }

    /// The pictures in the order in which they were added; valid after [`JpegBatch::run`].
    pub fn pictures(&self) -> &[PictureDescriptor] {
        &self.pictures
    }

    /// Address of the same descriptors in the memory of the device, as an array.
    pub fn descriptors(&self) -> Option<u64> {
        Some(self.area.get()?.address() + self.offsets.descriptors as u64)
    }

    /// Address of the status words in the memory of the device: 0 for a sound picture.
    pub fn status_words(&self) -> Option<u64> {
        Some(self.area.get()?.address() + self.offsets.status as u64)
    }

    /// Waits until the batch is decoded; returns the status of each picture.
    pub fn status(&mut self, compute: &mut dyn Compute) -> Result<&[PictureStatus], Error> {
        self.status.clear();
        if let Some(area) = self.area.get()
            && !self.pictures.is_empty()
        {
            self.status_bytes.resize(self.pictures.len() * 4, 0);
            compute.download(area, self.offsets.status, &mut self.status_bytes)?;
            let words = self.status_bytes.as_chunks::<4>().0.iter();
            self.status.extend(words.map(|word| PictureStatus(u32::from_le_bytes(*word))));
        }
        Ok(&self.status)
    }

    /// Memory in use, which later batches reuse.
    pub fn bytes(&self) -> BatchBytes {
        let buffers = [&self.area, &self.coefficients, &self.samples, &self.pixels];
        BatchBytes {
            host: self.staging.bytes(),
            device: buffers.iter().map(|buffer| buffer.bytes()).sum(),
        }
    }

    /// Copies the pixels of a picture to the host, as rows of red, green and blue; for tests and
    /// for callers whose next step runs on the CPU.
    pub fn download(
        &self,
        compute: &mut dyn Compute,
        index: usize,
        pixels: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (picture, memory) = (&self.pictures[index], self.pixels.get());
        let memory = memory.expect("the batch has run");
        let offset = (picture.address - memory.address()) as usize;
        let mut planes = vec![0; 3 * picture.plane_stride as usize];
        compute.download(memory, offset, &mut planes)?;
        pixels.clear();
        for y in 0..picture.height as usize {
            for x in 0..picture.width as usize {
                let at = y * picture.row_stride as usize + x;
                pixels.extend(
                    [0, 1, 2].map(|plane| planes[plane * picture.plane_stride as usize + at]),
                );
            }
        }
        Ok(())
    }
}

impl Words {
    fn clear(&mut self) {
        let Self { pictures, components, tables, segments, ranges, streams, .. } = self;
        for words in [pictures, components, tables, segments, streams] {
            words.clear();
        }
        ranges.clear();
    }

    /// Divides the segments among blocks of threads, and returns how many there are.
    fn group(&mut self, segments: usize) -> usize {
        let [fewest, most] = GROUP_SEGMENTS;
        let each = segments.div_ceil(GROUPS_WANTED).next_power_of_two().clamp(fewest, most);
        self.groups.clear();
        for (picture, (first, count)) in (0..).zip(&self.ranges) {
            for start in (0..*count).step_by(each) {
                let size = each.min(count - start);
                self.groups.extend([picture, (first + start) as u32, size as u32]);
            }
        }
        self.groups.len() / super::layout::GROUP_WORDS
    }
}

fn blocks_of(component: &meetpoint_jpeg::PlannedComponent) -> u64 {
    let (columns, rows) = (component.block_columns(), component.block_rows());
    u64::from(columns.end - columns.start) * u64::from(rows.end - rows.start)
}
