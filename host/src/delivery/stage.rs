//! Delivers batches of a loader to a GPU.

use super::split::{GpuElement, Split, SplitConversion, SplitMixing};
use crate::Batch;
use crate::page_locks::{LockBudget, Unlocked};
use meetpoint_format::column::{Column, ColumnKind, ColumnSource};
use meetpoint_format::recipe::{Layout, Operation, SoftLabels, TensorSpec};
use meetpoint_gpu::Error;
use meetpoint_gpu::delivery::{
    BatchMix, Delivered, Delivery, DeliveryError, DeliveryLimits, DeviceBatch, MixedFormat, Mixing,
    Piece, SampleMix, Streams, Target,
};
use meetpoint_kernels::{BatchMixer, BatchProgram};
use meetpoint_prepare::gpu::{mix_partner, sample_mix};

/// What columns begin at a multiple of: enough for every kernel, and for tensors of cuBLAS.
const ALIGNMENT: usize = 256;

/// A column in the memory of a batch on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuColumn {
    /// Its first byte.
    pub offset: usize,
    /// Element type of its values.
    pub element: GpuElement,
}

/// A batch on a GPU.
#[derive(Debug)]
pub struct GpuBatch<S: Streams> {
    /// Its memory.
    pub memory: DeviceBatch<S>,
    /// The columns of the batch in order, laid out as on the host; `None` for text and bytes, which
    /// stay there.
    pub columns: Vec<Option<GpuColumn>>,
    /// Labels as int64 and as int32, if every sample has one.
    pub labels: Option<[usize; 2]>,
    /// Numbers of the samples as int64 and, if they fit, as int32.
    pub samples: (usize, Option<usize>),
}

/// Delivers batches to a GPU, one after another.
#[derive(Debug)]
pub struct DeliveryStage<S: Streams> {
    delivery: Delivery<S>,
    /// The conversion of each column of pictures, with its index in the delivery.
    conversions: Vec<Option<(usize, SplitConversion)>>,
    mixer: Option<Mixer>,
    /// Bytes of the largest batch so far.
    bytes_max: usize,
    /// For the memory that batches are copied from.
    locks: LockBudget,
    /// Why a batch was not copied from where it was, if one was not.
    staged: Option<Unlocked>,
}

/// The operations on batches that the GPU executes.
#[derive(Debug)]
struct Mixer {
    mixer: BatchMixer,
    /// Of a picture.
    format: MixedFormat,
    /// Maximum number of programs of a batch.
    programs_max: usize,
    /// Of the current batch.
    programs: Vec<BatchProgram>,
    /// Of each program: the mixes of pictures, and of rows of labels.
    pictures: Vec<BatchMix>,
    labels: Vec<BatchMix>,
}

impl Mixer {
    fn new(SplitMixing { recipe, spec }: &SplitMixing) -> Self {
        let TensorSpec { height, width, channels, dtype, layout } = *spec;
        let is_interleaved = match layout {
            Layout::Nhwc | Layout::Nt | Layout::Ntc => true,
            Layout::Nchw | Layout::Nct => false,
        };
        let element_bytes = dtype.bytes() as u32;
        Self {
            mixer: BatchMixer::new(recipe, *spec).expect("the recipe has operations on batches"),
            format: MixedFormat { height, width, channels, element_bytes, is_interleaved },
            programs_max: recipe.split().1.iter().map(innermost).sum(),
            programs: Vec::new(),
            pictures: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Maximum bytes of the mixes of a batch.
    fn bytes_max(&self, samples: usize) -> usize {
        2 * self.programs_max * (SampleMix::BYTES * samples + ALIGNMENT)
    }

    /// Determines the mixes of a batch, and adds them to the arrays that are copied to the GPU.
    fn prepare(&mut self, batch: &Batch, small: &mut Small) {
        let Self { mixer, programs, pictures, labels, .. } = self;
        programs.clear();
        let exported = mixer.export(batch.id(), batch.samples().len(), programs);
        exported.expect("nothing interrupts it");
        pictures.clear();
        labels.clear();
        for BatchProgram { partner, mixes, label_mixes } in programs {
            let partner = mix_partner(*partner);
            for (mixes, steps) in [(mixes, &mut *pictures), (label_mixes, &mut *labels)] {
                let mixes = small.add(mixes.iter().flat_map(|mix| sample_mix(*mix).bytes()));
                steps.push(BatchMix { partner, mixes });
            }
        }
    }

    /// The mixes of a column of the batch, if it is mixed.
    fn mixing(&self, column: &Column, samples: u32) -> Option<Mixing<'_>> {
        let is_row = column.source == ColumnSource::Label;
        match self.mixer.labels().filter(|_| is_row) {
            Some(SoftLabels { classes, .. }) => {
                Some(Mixing { format: MixedFormat::row(classes), samples, steps: &self.labels })
            }
            None if column.source.is_picture() => {
                Some(Mixing { format: self.format, samples, steps: &self.pictures })
            }
            None => None,
        }
    }
}

/// Number of operations that an operation contains and that contain none, or 1.
fn innermost(operation: &Operation) -> usize {
    operation.content().iter().map(innermost).sum::<usize>().max(1)
}

impl<S: Streams> DeliveryStage<S> {
    /// A stage for batches of the head of a divided recipe.
    pub fn new(streams: S, split: &Split, limits: DeliveryLimits) -> Result<Self, Error> {
        Self::new_unless(streams, split, limits, &|| false)
    }

    /// Like [`Self::new`], but a request to stop ends its waits with [`Error::Stopped`].
    pub fn new_unless(
        streams: S,
        split: &Split,
        limits: DeliveryLimits,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let mut loaded = Vec::new();
        let mut load = |it: &SplitConversion| {
            loaded.push(it.conversion.clone());
            (loaded.len() - 1, it.clone())
        };
        let conversions = split.conversions.iter().flatten();
        let conversions = conversions.map(|it| it.as_ref().map(&mut load)).collect();
        let mut delivery = Delivery::new_unless(streams, &loaded, limits, is_stopped)?;
        let mixer = split.mixing.as_ref().map(Mixer::new);
        if mixer.is_some() {
            Mixing::probe(delivery.streams(), is_stopped)?;
        }
        let locks = LockBudget::new(limits.locked_bytes);
        Ok(Self { delivery, conversions, mixer, bytes_max: 0, locks, staged: None })
    }

    /// Starts to deliver a batch to the GPU. The batch may be dropped when this returns.
    pub fn deliver(
        &mut self,
        batch: &Batch,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<GpuBatch<S>, DeliveryError> {
        let locked = batch.memory.lock_pages(self.delivery.streams(), &mut self.locks);
        let is_locked = locked.is_ok();
        self.staged = locked.err().or(self.staged.take());
        let table = &batch.table;
        let payload = batch.memory.payload(table.bytes());
        let count = batch.samples().len();
        let samples = u32::try_from(count).expect("batches have 32 bits");
        // One copy for what is not in the payload.
        let mut small = Small::default();
        let labels: Option<Vec<i32>> = batch.labels().iter().copied().collect();
        let labels = labels.filter(|labels| labels.len() == count).map(|labels| {
            let wide = labels.iter().flat_map(|label| i64::from(*label).to_le_bytes());
            let narrow = labels.iter().flat_map(|label| label.to_le_bytes());
            [small.add(wide), small.add(narrow)]
        });
        let indices = batch.samples();
        let narrow: Option<Vec<i32>> = indices.iter().map(|it| i32::try_from(*it).ok()).collect();
        let indices = (
            small.add(indices.iter().flat_map(|sample| sample.to_le_bytes())),
            narrow.map(|it| small.add(it.iter().flat_map(|sample| sample.to_le_bytes()))),
        );
        self.mixer.iter_mut().for_each(|mixer| mixer.prepare(batch, &mut small));
        let mut pieces = vec![Piece::new(&small.bytes, Target::Copied { offset: 0 })];
        // The same for all batches of a size, so that their memory is reused.
        let mixes_max = self.mixer.as_ref().map_or(0, |mixer| mixer.bytes_max(count));
        let mut end = 24 * count + 4 * ALIGNMENT + mixes_max;
        let mut reserve = |bytes: usize| {
            let begin = end.next_multiple_of(ALIGNMENT);
            end = begin + bytes;
            begin
        };
        let (mut columns, mut pictures_before) = (Vec::new(), 0);
        for (index, column) in batch.columns().iter().enumerate() {
            if matches!(column.kind, ColumnKind::Text | ColumnKind::Bytes) {
                columns.push(None);
                continue;
            }
            let bytes = &payload[table.range(index)];
            let is_picture = column.source.is_picture();
            let conversion = column.source.images().and_then(|index| self.conversions.get(index));
            let (element, target) = match conversion.and_then(Option::as_ref) {
                Some((conversion, SplitConversion { pictures, element, is_rounded, .. })) => {
                    let offset = reserve(element.bytes() * bytes.len());
                    let channels = self.delivery.channels(*conversion) as usize;
                    let samples = count * pictures;
                    let plane = bytes.len().checked_div(samples * channels).unwrap_or(0);
                    let plane = u32::try_from(plane).expect("a picture has fewer pixels");
                    let samples = u32::try_from(samples).expect("batches have 32 bits");
                    let (conversion, is_rounded) = (*conversion, *is_rounded);
                    let target =
                        Target::Converted { offset, conversion, plane, samples, is_rounded };
                    (*element, target)
                }
                None => {
                    let target = Target::Copied { offset: reserve(bytes.len()) };
                    (column.kind.element().into(), target)
                }
            };
            let resident = batch.resident().filter(|_| is_picture);
            let resident = resident.map(|tensors| tensors.column(pictures_before));
            pictures_before += usize::from(is_picture);
            let mixing = self.mixer.as_ref().and_then(|mixer| mixer.mixing(column, samples));
            pieces.push(Piece { resident, is_locked, mixing, ..Piece::new(bytes, target) });
            columns.push(Some(GpuColumn { offset: target.offset(), element }));
        }
        self.bytes_max = self.bytes_max.max(end);
        let memory = self.delivery.deliver(&pieces, end, is_stopped)?;
        Ok(GpuBatch { memory, columns, labels, samples: indices })
    }

    /// Waits until the content of a batch is complete. A request to stop ends the wait at once.
    pub fn wait_for(
        &mut self,
        batch: &DeviceBatch<S>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), DeliveryError> {
        self.delivery.wait_for(batch, is_stopped)
    }

    /// Whether a batch as large as the largest so far can be delivered without waiting for a
    /// consumer.
    pub fn has_room(&self) -> bool {
        self.delivery.has_room(self.bytes_max)
    }

    /// What the delivery amounts to so far.
    pub fn delivered(&mut self) -> Result<Delivered, Error> {
        let delivered = self.delivery.delivered()?;
        let pinned_bytes = delivered.pinned_bytes + self.locks.locked_bytes();
        Ok(Delivered { pinned_bytes, ..delivered })
    }

    /// The consumer asks for a batch.
    pub fn note_asked(&self) {
        self.delivery.note_asked();
    }

    /// The consumer gets the batch that it asked for.
    pub fn note_handed(&self, batch: &DeviceBatch<S>) {
        self.delivery.note_handed(batch);
    }

    /// Why batches were copied through page-locked memory, not from where they were; `None`: none
    /// was.
    pub fn staged(&self) -> Option<&Unlocked> {
        self.staged.as_ref()
    }

    /// What runs it.
    pub fn streams(&mut self) -> &mut S {
        self.delivery.streams()
    }
}

/// Small arrays one after another, at the beginning of the memory of a batch.
#[derive(Debug, Default)]
struct Small {
    bytes: Vec<u8>,
}

impl Small {
    /// Adds an array; its offset in the memory of the batch.
    fn add(&mut self, array: impl Iterator<Item = u8>) -> usize {
        let offset = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(offset, 0);
        self.bytes.extend(array);
        offset
    }
}
