//! What the bytes of pictures become, and the kernels that compute it.

use crate::{Argument, Compute, DeviceMemory, Error, KernelName, Launch};

/// Most elements of one launch, so that a kernel counts in 32 bits.
const ELEMENTS_MAX: u64 = 1 << 31;
/// Threads of a block, and vectors of 16 bytes that each of them stores per round.
const THREADS: u32 = 256;
const AHEAD: u32 = 4;
/// Blocks beyond these would load tables more often, for no further thread that fits a GPU.
const BLOCKS_MAX: u32 = 4096;

/// The order of the axes of a picture, before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Planes of channels stay planes; also pictures of one channel.
    Planes,
    /// Pixels of three channels stay pixels.
    Pixels,
    /// Pixels of three channels become three planes.
    PixelsToPlanes,
}

impl Order {
    /// As in `cuda/delivery.cu`.
    fn number(self) -> u32 {
        match self {
            Self::Planes => 0,
            Self::Pixels => 1,
            Self::PixelsToPlanes => 2,
        }
    }
}

/// `(byte * scale - mean) / std` of each channel, each step rounded to float32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arithmetic {
    /// Multiplied by, or divided by.
    pub scale: f32,
    /// Whether it is `byte / scale`.
    pub divides: bool,
    /// Subtracted, per channel.
    pub mean: [f32; 3],
    /// Divided by, per channel.
    pub std: [f32; 3],
}

/// The elements that bytes become.
#[derive(Debug, Clone, PartialEq)]
pub enum ElementBytes {
    /// Bits of float32 for each value of each channel: 3 times 256.
    Float32(Box<[u32; 768]>),
    /// Bits of float16 for each value of each channel: 3 times 256.
    Float16(Box<[u16; 768]>),
    /// Float32 by arithmetic, which gives the bits of the table that it stands for.
    Arithmetic(Arithmetic),
}

impl ElementBytes {
    /// Bytes of an element.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Float32(_) | Self::Arithmetic(_) => 4,
            Self::Float16(_) => 2,
        }
    }

    /// The table as the GPU reads it; empty where none is needed.
    fn table(&self) -> Vec<u8> {
        match self {
            Self::Float32(values) => values.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
            Self::Float16(values) => values.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
            Self::Arithmetic(_) => Vec::new(),
        }
    }
}

/// How the bytes of pictures become elements of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The elements.
    pub elements: ElementBytes,
    /// The order of the axes.
    pub order: Order,
    /// 1 or 3.
    pub channels: u32,
}

/// A conversion whose table is on the GPU.
#[derive(Debug)]
pub(super) struct Loaded {
    conversion: Conversion,
    table: Option<DeviceMemory>,
}

/// Bytes of a batch of pictures and where they go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pixels<'a> {
    pub(super) from: &'a DeviceMemory,
    pub(super) from_offset: usize,
    pub(super) to: &'a DeviceMemory,
    pub(super) to_offset: usize,
    /// Pixels of a sample.
    pub(super) plane: u32,
    pub(super) samples: u32,
}

impl Loaded {
    pub(super) fn new(
        conversion: &Conversion,
        compute: &mut (impl Compute + ?Sized),
    ) -> Result<Self, Error> {
        let is_known = matches!(conversion.channels, 1 | 3);
        assert!(is_known, "pictures that are converted have 1 or 3 channels");
        let mut conversion = conversion.clone();
        if conversion.channels == 1 {
            // One channel is one plane, whatever the order of the axes.
            conversion.order = Order::Planes;
        }
        let bytes = conversion.elements.table();
        let mut table = None;
        if !bytes.is_empty() {
            let memory = compute.allocate(bytes.len())?;
            compute.upload(&bytes, &memory, 0)?;
            // The bytes are dropped here, so the copy must be done.
            compute.wait(super::limits::HUNG_AFTER)?;
            table = Some(memory);
        }
        let loaded = Self { conversion, table };
        // One pixel: a kernel that cannot be compiled or run is an error now, not in the first
        // batch.
        let (from, to) = (compute.allocate(16)?, compute.allocate(16)?);
        compute.fill(&from, 0, 16, 0)?;
        let pixel =
            Pixels { from: &from, from_offset: 0, to: &to, to_offset: 0, plane: 1, samples: 1 };
        loaded.launch(compute, &pixel)?;
        compute.wait(super::limits::HUNG_AFTER)?;
        Ok(loaded)
    }

    pub(super) fn channels(&self) -> u32 {
        self.conversion.channels
    }

    pub(super) fn element_bytes(&self) -> usize {
        self.conversion.elements.bytes()
    }

    /// Starts the conversion of a batch.
    pub(super) fn launch(
        &self,
        compute: &mut (impl Compute + ?Sized),
        pixels: &Pixels<'_>,
    ) -> Result<(), Error> {
        let Pixels { from, from_offset, to, to_offset, plane, samples } = *pixels;
        let Conversion { elements, order, channels } = &self.conversion;
        let each = u64::from(plane) * u64::from(*channels);
        if each == 0 {
            return Ok(());
        }
        let bytes =
            |offset: usize, elements: u64, size: usize| offset as u64 + elements * size as u64;
        let all = each * u64::from(samples);
        assert!(bytes(from_offset, all, 1) <= from.bytes() as u64, "pixels lie in their memory");
        let end = bytes(to_offset, all, elements.bytes());
        assert!(end <= to.bytes() as u64, "elements lie in their memory");
        // Parts begin at vectors: 16 samples of whole bytes are a multiple of 16 bytes.
        let samples_max = (ELEMENTS_MAX / each).max(1);
        let samples_max = if samples_max >= 16 { samples_max / 16 * 16 } else { samples_max };
        let mut begin = 0;
        while begin < u64::from(samples) {
            let part = samples_max.min(u64::from(samples) - begin);
            let from = bytes(from.address() as usize + from_offset, begin * each, 1);
            let to = bytes(to.address() as usize + to_offset, begin * each, elements.bytes());
            let count = u32::try_from(part * each).expect("a launch counts in 32 bits");
            let mut arguments = vec![
                Argument::Address(from),
                Argument::Address(to),
                Argument::Word(order.number()),
                Argument::Word(plane),
                Argument::Word(*channels),
                Argument::Word(count),
            ];
            let name = match elements {
                ElementBytes::Float32(_) => "delivery_table_float32",
                ElementBytes::Float16(_) => "delivery_table_float16",
                ElementBytes::Arithmetic(Arithmetic { scale, divides, mean, std }) => {
                    arguments.push(Argument::Word(u32::from(*divides)));
                    let numbers = [scale].into_iter().chain(mean).chain(std);
                    arguments.extend(numbers.map(|number| Argument::Word(number.to_bits())));
                    "delivery_arithmetic_float32"
                }
            };
            arguments.extend(self.table.as_ref().map(Argument::from));
            let vectors = count.div_ceil(16 / elements.bytes() as u32);
            let blocks = vectors.div_ceil(THREADS * AHEAD).clamp(1, BLOCKS_MAX);
            compute.launch(&Launch {
                kernel: KernelName { module: "delivery", name },
                grid: [blocks, 1, 1],
                block: [THREADS, 1, 1],
                shared_bytes: 0,
                arguments: &arguments,
            })?;
            begin += part;
        }
        Ok(())
    }
}
