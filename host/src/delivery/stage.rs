//! Brings batches of a loader to a GPU.

use super::split::{GpuElement, Split};
use crate::Batch;
use crate::page_locks::{LockBudget, Unlocked};
use meetpoint_format::column::ColumnKind;
use meetpoint_gpu::Error;
use meetpoint_gpu::delivery::{
    Delivered, Delivery, DeliveryError, DeliveryLimits, DeviceBatch, Piece, Streams, Target,
};

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

/// Brings batches to a GPU, one after another.
#[derive(Debug)]
pub struct DeliveryStage<S: Streams> {
    delivery: Delivery<S>,
    /// Element type of converted pictures.
    converted: Option<GpuElement>,
    /// Bytes of the largest batch so far.
    bytes_max: usize,
    /// For the memory that batches are copied from.
    locks: LockBudget,
    /// Why a batch was not copied from where it was, if one was not.
    staged: Option<Unlocked>,
}

impl<S: Streams> DeliveryStage<S> {
    /// A stage for batches of the head of a divided recipe, or for batches as they are.
    pub fn new(streams: S, split: Option<&Split>, limits: DeliveryLimits) -> Result<Self, Error> {
        Self::new_unless(streams, split, limits, &|| false)
    }

    /// Like [`Self::new`], but a request to stop ends its waits with [`Error::Stopped`].
    pub fn new_unless(
        streams: S,
        split: Option<&Split>,
        limits: DeliveryLimits,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let conversions: Vec<_> = split.iter().map(|split| split.conversion.clone()).collect();
        let delivery = Delivery::new_unless(streams, &conversions, limits, is_stopped)?;
        let converted = split.map(|split| split.element);
        let locks = LockBudget::new(limits.locked_bytes);
        Ok(Self { delivery, converted, bytes_max: 0, locks, staged: None })
    }

    /// Starts to bring a batch to the GPU. The batch may be dropped when this returns.
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
        let mut end = 0;
        let mut reserve = |bytes: usize| {
            let begin = end;
            end = (begin + bytes).next_multiple_of(ALIGNMENT);
            begin
        };
        let mut pieces = Vec::new();
        let mut columns = Vec::new();
        for (index, column) in batch.columns().iter().enumerate() {
            if matches!(column.kind, ColumnKind::Text | ColumnKind::Bytes) {
                columns.push(None);
                continue;
            }
            let bytes = &payload[table.range(index)];
            let resident = batch.resident().filter(|_| column.source.is_picture());
            let place = match self.converted.filter(|_| column.source.is_picture()) {
                Some(element) => {
                    let offset = reserve(self.delivery.element_bytes(0) * bytes.len());
                    let channels = self.delivery.channels(0) as usize;
                    let plane = bytes.len().checked_div(count * channels).unwrap_or(0);
                    let target = Target::Converted {
                        offset,
                        conversion: 0,
                        plane: u32::try_from(plane).expect("a picture has fewer pixels"),
                        samples: u32::try_from(count).expect("batches have 32 bits"),
                    };
                    pieces.push(Piece { bytes, resident, is_locked, target });
                    GpuColumn { offset, element }
                }
                None => {
                    let offset = reserve(bytes.len());
                    let target = Target::Copied { offset };
                    pieces.push(Piece { bytes, resident, is_locked, target });
                    GpuColumn { offset, element: column.kind.element().into() }
                }
            };
            columns.push(Some(place));
        }
        // One copy for what is not in the payload.
        let mut small = Small { begin: reserve(24 * count + 4 * ALIGNMENT), bytes: Vec::new() };
        let labels: Option<Vec<i32>> = batch.labels().iter().copied().collect();
        let labels = labels.filter(|labels| labels.len() == count).map(|labels| {
            let wide = labels.iter().flat_map(|label| i64::from(*label).to_le_bytes());
            let narrow = labels.iter().flat_map(|label| label.to_le_bytes());
            [small.add(wide), small.add(narrow)]
        });
        let samples = batch.samples();
        let narrow: Option<Vec<i32>> = samples.iter().map(|it| i32::try_from(*it).ok()).collect();
        let samples = (
            small.add(samples.iter().flat_map(|sample| sample.to_le_bytes())),
            narrow.map(|it| small.add(it.iter().flat_map(|sample| sample.to_le_bytes()))),
        );
        let target = Target::Copied { offset: small.begin };
        pieces.push(Piece { bytes: &small.bytes, resident: None, is_locked: false, target });
        self.bytes_max = self.bytes_max.max(end);
        let memory = self.delivery.deliver(&pieces, end, is_stopped)?;
        Ok(GpuBatch { memory, columns, labels, samples })
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

/// Small arrays one after another.
struct Small {
    begin: usize,
    bytes: Vec<u8>,
}

impl Small {
    /// Adds an array; its offset in the memory of the batch.
    fn add(&mut self, array: impl Iterator<Item = u8>) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        let offset = self.begin + self.bytes.len();
        self.bytes.extend(array);
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::DeliveryStage;
    use crate::delivery::{Split, Unlocked};
    use crate::{Loader, LoaderConfig};
    use meetpoint_format::column::Collate;
    use meetpoint_format::recipe::Recipe;
    use meetpoint_gpu::Shim;
    use meetpoint_gpu::delivery::DeliveryLimits;
    use std::sync::Arc;

    const DATASET: &str = "../datasets/tests/golden/version-3";

    fn shim() -> Shim {
        // Of this copy of the sources; others have other kernels.
        let sources = env!("CARGO_MANIFEST_DIR").replace('/', "-");
        Shim::start(&std::env::temp_dir().join(format!("meetpoint-shim{sources}"))).unwrap()
    }

    /// Images and labels of every batch, as the host prepares them and through the device.
    fn compare(recipe: &str, is_divided: bool) {
        let copied_directly = compare_within(recipe, is_divided, DeliveryLimits::default());
        assert_eq!(copied_directly, None);
    }

    /// The same with limits; why batches were not copied from where they were.
    fn compare_within(recipe: &str, is_divided: bool, limits: DeliveryLimits) -> Option<Unlocked> {
        let recipe = Recipe::from_toml(&format!("operation = [{recipe}]")).unwrap();
        let split = Split::of(&recipe, &Collate::Stack);
        assert_eq!(split.is_ok(), is_divided, "{split:?}");
        let head = split.as_ref().map_or(&recipe, |split| &split.head).clone();
        let open = |recipe: Recipe| {
            let config = LoaderConfig {
                seed: 5,
                workers: 1,
                ..LoaderConfig::new(DATASET, Arc::new(recipe), 4)
            };
            Loader::open(config).unwrap()
        };
        let (mut whole, mut divided) = (open(recipe.clone()), open(head));
        let limits = DeliveryLimits { device_bytes: 2 << 20, ..limits };
        let mut stage = DeliveryStage::new(shim(), split.as_ref().ok(), limits).unwrap();
        let (mut expected, mut found) =
            (whole.start_epoch(1).unwrap(), divided.start_epoch(1).unwrap());
        let mut batches = 0;
        while let Some(host) = expected.next_batch().unwrap() {
            let batch = found.next_batch().unwrap().unwrap();
            let gpu = stage.deliver(&batch, &|| false).unwrap();
            drop(batch);
            for (column, place) in host.columns().iter().zip(&gpu.columns) {
                let place = place.expect("numbers are on the device");
                assert_eq!(place.element, column.kind.element().into(), "{}", column.name);
                let index = host.table.columns.position(&column.name).unwrap();
                let bytes = &host.memory.payload(host.table.bytes())[host.table.range(index)];
                let mut read = vec![0; bytes.len()];
                gpu.memory.read(stage.streams(), place.offset, &mut read).unwrap();
                assert!(read == bytes, "{} of batch {batches}", column.name);
            }
            let labels: Vec<u8> = host
                .labels()
                .iter()
                .flat_map(|label| i64::from(label.unwrap()).to_le_bytes())
                .collect();
            let mut read = vec![0; labels.len()];
            gpu.memory.read(stage.streams(), gpu.labels.unwrap()[0], &mut read).unwrap();
            assert_eq!(read, labels);
            let numbers: Vec<u8> =
                host.samples().iter().flat_map(|it| (*it as u32).to_le_bytes()).collect();
            let mut read = vec![0; numbers.len()];
            gpu.memory.read(stage.streams(), gpu.samples.1.unwrap(), &mut read).unwrap();
            assert_eq!(read, numbers);
            batches += 1;
        }
        let delivered = stage.delivered().unwrap();
        assert_eq!((delivered.batches, delivered.allocations), (batches, 1));
        // Arrays that are not columns are in no slot.
        let is_direct = delivered.direct_bytes > 0 && delivered.direct_bytes < delivered.bytes;
        assert_eq!(is_direct, stage.staged().is_none());
        stage.staged().cloned()
    }

    const HEAD: &str = "{name = 'decode'}, {name = 'random_resized_crop', size = [7, 9]},
        {name = 'random_horizontal_flip'}";
    const NORMALIZE: &str =
        "{name = 'normalize', mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225]}";

    #[test]
    fn batches_have_the_bits_of_the_host() {
        for dtype in ["float32", "float16"] {
            for scale in ["true", "'divide'"] {
                for layout in ["NHWC", "NCHW"] {
                    let recipe = format!(
                        "{HEAD}, {{name = 'to_dtype', dtype = '{dtype}', scale = {scale}}},
                        {NORMALIZE}, {{name = 'layout', layout = '{layout}'}}"
                    );
                    compare(&recipe, true);
                }
            }
        }
    }

    #[test]
    fn memory_beyond_the_limit_is_copied_first_and_the_reason_is_reported() {
        let limits = DeliveryLimits { locked_bytes: (2 << 20) - 1, ..DeliveryLimits::default() };
        let staged = compare_within(HEAD, false, limits).unwrap();
        assert_eq!(staged, Unlocked::Limit { limit_bytes: (2 << 20) - 1 });
    }

    #[test]
    fn batches_of_other_recipes_are_brought_as_they_are() {
        compare(HEAD, false);
        let float = "{name = 'to_dtype', dtype = 'float32', scale = true}";
        compare(&format!("{HEAD}, {float}, {{name = 'random_erasing'}}"), false);
        let grey = "{name = 'grayscale'}";
        compare(&format!("{HEAD}, {grey}, {float}"), true);
    }
}
