//! A batch of JPEGs and its decoder.

use super::area::Staging;
use super::form::{self, BankWords, FORM_WORDS, FormStarts};
use super::layout::{
    GROUP_BLOCKS, PictureRecord, TABLES_MAX, UNITS_MAX, push_component, push_segment,
};
use super::limits::{BatchBytes, JpegError, JpegLimits, PictureStatus};
use super::stuffing::{copy_bytes_max, copy_segment};
use super::tables::TableCache;
use super::words::{SegmentDecoder, SegmentRange, Totals, Words, blocks_of};
use crate::buffer::{Buffer, needed};
use crate::{Argument, Compute, Error, KernelName, Launch, PictureDescriptor};
use meetpoint_jpeg::{DecodePlan, PlannedForm};

/// Bytes after the data of a picture that the bit reader may load.
const READ_AHEAD: usize = 32;

/// Maximum bytes of the staging area, whatever the limits: offsets in it have 32 bits, and so have
/// those of bits in a picture, whose data take an eighth of it at most.
const STAGING_BYTES_MAX: usize = 1 << 31;

/// Decodes batches one after another and reuses its memory: after the first few batches, it
/// allocates nothing.
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
    /// Offsets of the pictures in the memory of pixels.
    pixel_offsets: Vec<u64>,
    /// Bytes of the staging area that the data of the pictures take.
    data_bytes: usize,
    status: Vec<PictureStatus>,
    status_bytes: Vec<u8>,
    /// Offsets in the area of the descriptors and of the status words.
    offsets: Offsets,
    area: Buffer,
    coefficients: Buffer,
    samples: Buffer,
    pixels: Buffer,
    /// Rows of compact forms, decoded to the fast form.
    scratch: Buffer,
    /// The codes of the compact form; built when first needed.
    bank: Option<BankWords>,
}

/// Buffers of the device: the staging area's copy, coefficients, samples, pixels, rows of forms.
const BUFFERS: usize = 5;

/// The picture of a plan; its address is known once the memory is allocated.
fn descriptor(plan: &DecodePlan) -> PictureDescriptor {
    let (width, height) = plan.region;
    let row_stride = width.next_multiple_of(16);
    let plane_stride = row_stride * height;
    PictureDescriptor { address: 0, row_stride, plane_stride, width, height }
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
        self.data_bytes = 0;
        self.pixel_offsets.clear();
        staging.truncate(0);
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

    /// Whether it has no pictures.
    pub fn is_empty(&self) -> bool {
        self.pictures.is_empty()
    }

    /// Adds a picture and returns its index. An error does not change the batch.
    pub fn add(
        &mut self,
        compute: &mut dyn Compute,
        plan: &DecodePlan,
        file: &[u8],
    ) -> Result<usize, JpegError> {
        if file.len() < plan.data.end {
            return Err(JpegError::Plan);
        }
        if let Some(form) = &plan.form {
            return self.add_form(compute, plan, form, file);
        }
        let team = self.team(plan);
        let lengths = plan.segments.iter().map(copy_bytes_max);
        let data_bytes = lengths.fold(0, usize::saturating_add);
        let totals = self.check(plan, team, data_bytes)?;
        self.staging.truncate(self.data_bytes);
        let limit = self.staging_limit();
        let (offset, to) = self.staging.extend(compute, data_bytes + READ_AHEAD, limit)?;
        let (mut written, first) = (0, self.totals.segments);
        let blocks_per_mcu = plan.units.len() as u32;
        for segment in &plan.segments {
            let copied = copy_segment(file, segment, to, &mut written);
            push_segment(segment, &copied, blocks_per_mcu, &mut self.words.segments);
        }
        to[written..written + READ_AHEAD].fill(0);
        self.staging.truncate(offset + written + READ_AHEAD);
        self.data_bytes = self.staging.used();
        self.words.ranges.push(SegmentRange { team, first, count: plan.segments.len() });

        let mut indices = [0; TABLES_MAX];
        for (index, spec) in indices.iter_mut().zip(&plan.huffman) {
            *index = self.tables.index(spec, &mut self.words.tables);
        }
        self.push_picture(plan, totals, offset as u32, &indices[..plan.huffman.len()]);
        Ok(self.pictures.len() - 1)
    }

    /// Adds a coefficient form.
    fn add_form(
        &mut self,
        compute: &mut dyn Compute,
        plan: &DecodePlan,
        form: &PlannedForm,
        file: &[u8],
    ) -> Result<usize, JpegError> {
        let data = file.get(plan.data.clone()).ok_or(JpegError::Plan)?;
        let totals = self.check_form(plan, form)?;
        self.staging.truncate(self.data_bytes);
        let limit = self.staging_limit();
        let (offset, to) = self.staging.extend(compute, data.len() + READ_AHEAD, limit)?;
        to[..data.len()].copy_from_slice(data);
        to[data.len()..].fill(0);
        self.data_bytes = self.staging.used();
        let words = &mut self.words;
        if form.lanes > 0 && words.lookups.is_empty() {
            let bank = self.bank.get_or_insert_with(BankWords::new);
            words.lookups.extend_from_slice(&bank.lookups);
            words.maps.extend_from_slice(&bank.maps);
        }
        let starts = FormStarts {
            picture: self.pictures.len() as u32,
            first_component: self.totals.components as u32,
            form: (words.forms.len() / FORM_WORDS) as u32,
            copied_from: plan.data.start,
            copied_to: offset as u32,
            scratch: self.totals.scratch_bytes,
        };
        form::push(plan, form, starts, &mut words.forms, &mut words.form_rows);
        self.push_picture(plan, totals, offset as u32, &[]);
        Ok(self.pictures.len() - 1)
    }

    /// Appends the parts of a picture that do not depend on its encoding.
    fn push_picture(
        &mut self,
        plan: &DecodePlan,
        totals: Totals,
        data_offset: u32,
        tables: &[u32],
    ) {
        let record = PictureRecord {
            data_offset,
            first_component: self.totals.components as u32,
            tables,
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
        self.pictures.push(descriptor(plan));
        self.pixel_offsets.push(self.totals.pixel_bytes);
        self.totals = totals;
    }

    /// What decodes each segment.
    fn team(&self, plan: &DecodePlan) -> SegmentDecoder {
        let limits = self.limits;
        let mean = plan.data.len() / plan.segments.len().max(1);
        if !plan.is_unsegmented && mean < limits.segment_bytes_long {
            return SegmentDecoder::Thread;
        }
        let longest = plan.segments.iter().map(copy_bytes_max).max().unwrap_or(0);
        if longest < limits.segment_bytes_huge {
            SegmentDecoder::Warp
        } else {
            SegmentDecoder::Block
        }
    }

    /// The totals of the batch with one more picture, if they are within the limits.
    fn check(
        &self,
        plan: &DecodePlan,
        team: SegmentDecoder,
        data_bytes: usize,
    ) -> Result<Totals, JpegError> {
        let limits = self.limits;
        let bytes = plan.segments.iter().map(copy_bytes_max).max().unwrap_or(0);
        let limit = limits.segment_bytes_max;
        if team == SegmentDecoder::Thread && bytes > limit {
            return Err(JpegError::LongSegment { bytes, limit });
        }
        let limit = limits.stream_bytes_max;
        if team != SegmentDecoder::Thread && bytes > limit {
            return Err(JpegError::LongStream { bytes, limit });
        }
        self.check_work(plan, data_bytes)?;
        let tables = plan.huffman.len();
        let is_possible = (1..=TABLES_MAX).contains(&tables)
            && (1..=UNITS_MAX).contains(&plan.units.len())
            && plan.units.iter().all(|unit| {
                usize::from(unit.component) < plan.components.len()
                    && usize::from(unit.dc.max(unit.ac)) < tables
            })
            && !plan.segments.is_empty();
        if !is_possible {
            return Err(JpegError::Plan);
        }
        self.check_room(plan, data_bytes)
    }

    /// Like [`Self::check`], for a coefficient form.
    fn check_form(&self, plan: &DecodePlan, form: &PlannedForm) -> Result<Totals, JpegError> {
        self.check_work(plan, plan.data.len())?;
        let rows = plan.mcu_rows.len();
        let is_possible = matches!(form.lanes, 0 | 1 | 6)
            && (form.lanes == 0 || form.codes.len() == plan.components.len().min(2))
            && form.rows.len() == rows
            && form.rows.iter().all(|row| {
                row.start >= plan.data.start && row.end <= plan.data.end && row.start <= row.end
            });
        if !is_possible {
            return Err(JpegError::Plan);
        }
        self.check_room(plan, plan.data.len())
    }

    /// Rejects pictures that would take too long to decode in one launch.
    fn check_work(&self, plan: &DecodePlan, data_bytes: usize) -> Result<(), JpegError> {
        let limit = self.limits.picture_bytes_max;
        if data_bytes > limit {
            return Err(JpegError::LongPicture { bytes: data_bytes, limit });
        }
        let mcus = u64::from(plan.mcus.0) * u64::from(plan.mcus.1);
        let limit = self.limits.picture_mcus_max;
        if mcus > limit {
            return Err(JpegError::ManyMcus { mcus, limit });
        }
        Ok(())
    }

    /// The totals of the batch with one more picture of any encoding, if they are within the
    /// limits.
    fn check_room(&self, plan: &DecodePlan, data_bytes: usize) -> Result<Totals, JpegError> {
        let limits = self.limits;
        let is_possible = matches!(plan.components.len(), 1 | 3)
            && plan.mcus.0 > 0
            && plan.region.0 > 0
            && plan.region.1 > 0;
        if !is_possible {
            return Err(JpegError::Plan);
        }
        let limit = self.staging_limit();
        let used = self.data_bytes + self.words.bytes_bound();
        let more = self.staging_bytes_of(plan);
        if more > limit.saturating_sub(used) || data_bytes > STAGING_BYTES_MAX / 8 {
            return Err(JpegError::Staging { limit });
        }
        let totals = self.totals.with(plan);
        let limit = limits.device_bytes_max;
        // Indices of blocks have 32 bits.
        if totals.device_bytes() > limit || totals.blocks >= 1 << 31 {
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
        self.staging.truncate(self.data_bytes);
        for (picture, offset) in self.pictures.iter_mut().zip(&self.pixel_offsets) {
            picture.address = pixels + offset;
            self.words.descriptors.extend(picture.words());
        }
        self.words.group();
        let count = self.pictures.len();
        self.words.status.clear();
        self.words.status.resize(count, 0);
        let words = &self.words;
        let limit = self.staging_limit();
        let mut append = |words: &[u32]| self.staging.append(compute, words, limit);
        let sections = [
            &words.pictures,
            &words.components,
            &words.tables,
            &words.segments,
            &words.forms,
            &words.form_rows,
            &words.lookups,
            &words.maps,
            &words.groups[0],
            &words.groups[1],
            &words.groups[2],
        ];
        let mut starts = [0; 11];
        for (start, words) in starts.iter_mut().zip(sections) {
            *start = append(words)?;
        }
        self.offsets.descriptors = append(&self.words.descriptors)?;
        self.offsets.status = append(&self.words.status)?;
        let area = self.area.grown(compute, self.staging.used())?;
        self.staging.upload(compute, area)?;
        let at = |offset: usize| Argument::Address(area.address() + offset as u64);
        let [pictures, components, tables, segments, forms, form_rows, lookups, maps, groups @ ..] =
            starts.map(at);
        let status = at(self.offsets.status);

        let coefficient_bytes = totals.blocks as usize * 128;
        let coefficients = self.coefficients.grown(compute, coefficient_bytes)?;
        let samples = self.samples.grown(compute, totals.blocks as usize * 64)?;
        let scratch = Argument::from(self.scratch.grown(compute, totals.scratch_bytes as usize)?);
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
        for (team, groups) in SegmentDecoder::ALL.into_iter().zip(groups) {
            let (module, name, threads) = match team {
                SegmentDecoder::Thread => ("jpeg_entropy", "jpeg_decode_segments", 32),
                SegmentDecoder::Warp => ("jpeg_streams", "jpeg_decode_by_warps", 256),
                SegmentDecoder::Block => ("jpeg_streams", "jpeg_decode_by_blocks", 512),
            };
            let arguments =
                [at(0), pictures, components, tables, segments, groups, coefficients, status];
            launch(module, name, words.group_count(team), threads, &arguments)?;
        }
        let rows = [at(0), components, forms, form_rows, lookups, maps];
        let arguments: Vec<_> = rows.into_iter().chain([scratch, coefficients, status]).collect();
        launch("jpeg_form", "jpeg_decode_forms", totals.form_rows, 32, &arguments)?;
        let component_count = Argument::Word(totals.components as u32);
        let transform = [components, component_count, coefficients, samples];
        launch("jpeg_samples", "jpeg_transform", totals.block_groups, 256, &transform)?;
        let descriptors = at(self.offsets.descriptors);
        let pixels = [pictures, Argument::Word(count as u32), components, samples, descriptors];
        launch("jpeg_pixels", "jpeg_make_pixels", totals.pixel_groups, 256, &pixels)
    }

    /// Address of the memory of all pictures; valid after [`JpegBatch::run`].
    pub fn pixels_address(&self) -> u64 {
        self.pixels.get().map_or(0, crate::DeviceMemory::address)
    }

    /// The pictures in the order in which they were added; valid after [`JpegBatch::run`].
    pub fn pictures(&self) -> &[PictureDescriptor] {
        &self.pictures
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

    /// The location of the picture if it were added next. Its address is an offset in the memory
    /// of all pictures.
    pub fn next_picture(&self, plan: &DecodePlan) -> PictureDescriptor {
        PictureDescriptor { address: self.totals.pixel_bytes, ..descriptor(plan) }
    }

    /// Bytes that each device buffer needs for the pictures of the batch, and for `more` if given.
    pub fn needs(&self, more: Option<&DecodePlan>) -> [usize; BUFFERS] {
        let totals = more.map_or(self.totals, |plan| self.totals.with(plan));
        let area = self.data_bytes
            + self.words.bytes_bound()
            + more.map_or(0, |plan| self.staging_bytes_of(plan));
        let blocks = totals.blocks as usize;
        let (pixels, scratch) = (totals.pixel_bytes as usize, totals.scratch_bytes as usize);
        [area, blocks * 128, blocks * 64, pixels, scratch].map(needed)
    }

    /// The device buffers, to size them before [`JpegBatch::run`], which otherwise grows them as
    /// needed.
    pub fn buffers_mut(&mut self) -> [&mut Buffer; BUFFERS] {
        let Self { area, coefficients, samples, pixels, scratch, .. } = self;
        [area, coefficients, samples, pixels, scratch]
    }

    /// Bytes of each buffer.
    pub fn buffer_bytes(&self) -> [usize; BUFFERS] {
        let Self { area, coefficients, samples, pixels, scratch, .. } = self;
        [area, coefficients, samples, pixels, scratch].map(Buffer::bytes)
    }

    /// Empties the batch and frees all host and device memory. No work of the batch may be in
    /// progress.
    pub fn release(&mut self) {
        self.clear();
        self.staging.release();
        self.buffers_mut().into_iter().for_each(Buffer::release);
    }

    /// Sets the limits for pictures that are added later.
    pub fn set_limits(&mut self, limits: JpegLimits) {
        self.limits = limits;
    }

    /// Number of allocations of page-locked memory so far.
    pub fn host_allocations(&self) -> u64 {
        self.staging.allocations()
    }

    fn staging_limit(&self) -> usize {
        self.limits.staging_bytes_max.min(STAGING_BYTES_MAX)
    }

    /// Maximum bytes that a picture adds to the staging area.
    fn staging_bytes_of(&self, plan: &DecodePlan) -> usize {
        let lengths = plan.segments.iter().map(copy_bytes_max);
        let data_bytes = match plan.form {
            Some(_) => plan.data.len(),
            None => lengths.fold(0, usize::saturating_add),
        };
        data_bytes.saturating_add(READ_AHEAD + 16 + Words::bytes_max(plan))
    }

    /// Memory in use, which later batches reuse.
    pub fn bytes(&self) -> BatchBytes {
        BatchBytes { host: self.staging.bytes(), device: self.buffer_bytes().into_iter().sum() }
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
