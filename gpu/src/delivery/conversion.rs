//! Conversion of the bytes of pictures to elements, and the kernels that execute it.

use super::limits::OPEN_AFTER;
use crate::{Argument, Compute, DeviceMemory, Error, KernelName, Launch};

/// Maximum number of elements of a launch, so that a kernel can count in 32 bits.
const ELEMENTS_MAX: u64 = 1 << 31;
/// Threads of a block, as in `cuda/delivery.cu`.
const THREADS: u32 = 192;
/// Vectors of 16 bytes that a block stores in a segment, as there.
const VECTORS_OF_BLOCK: u32 = 8 * THREADS;
/// Maximum size of a grid along y.
const SEGMENTS_MAX: u32 = 65535;
/// More blocks would load tables more often without occupying more of a GPU.
const BLOCKS_MAX: u32 = 8192;

/// The order of the axes of a picture before and after the conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Channels first, before and after; also for pictures of one channel.
    Planes,
    /// Channels last, before and after; three channels.
    Pixels,
    /// From channels last to channels first; three channels.
    PixelsToPlanes,
}

/// The layout of vectors of elements, as in `cuda/delivery.cu`.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// In segments of one channel that consist of whole vectors; the end of a single segment may be
    /// a part of a vector.
    Planes = 0,
    /// In a single segment of pixels.
    Pixels = 1,
    /// Planes that begin in the middle of vectors.
    AnyPlanes = 2,
    /// From pixels to any planes.
    PixelsToPlanes = 3,
}

/// `(byte * scale - mean) / std` of each channel, each step rounded to float32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arithmetic {
    /// Factor, or divisor.
    pub scale: f32,
    /// Whether `scale` is a divisor.
    pub divides: bool,
    /// Mean to subtract, per channel.
    pub mean: [f32; 3],
    /// Divisor, per channel.
    pub std: [f32; 3],
}

impl Arithmetic {
    /// The element for a byte of a channel.
    pub fn element(&self, channel: usize, byte: u8) -> f32 {
        let value = f32::from(byte);
        let scaled = if self.divides { value / self.scale } else { value * self.scale };
        (scaled - self.mean[channel]) / self.std[channel]
    }

    /// Factors that replace its divisions; `None` if any of the results would differ.
    pub(super) fn without_division(&self) -> Option<Factors> {
        let Self { scale, divides, mean, std } = *self;
        let factor = if divides { 1.0 / scale } else { scale };
        let reciprocal = std.map(|std| 1.0 / std);
        // As in `cuda/delivery.cu`: fused operations make the quotients exact.
        let element = |channel: usize, byte: u8| {
            let shifted = 8_388_608.0 + f32::from(byte);
            let mut value = shifted.mul_add(factor, factor * -8_388_608.0);
            if divides {
                let rest = (-value).mul_add(scale, shifted - 8_388_608.0);
                value = rest.mul_add(factor, value);
            }
            value -= mean[channel];
            let quotient = value * reciprocal[channel];
            (-quotient).mul_add(std[channel], value).mul_add(reciprocal[channel], quotient)
        };
        let is_same = |channel, byte| {
            element(channel, byte).to_bits() == self.element(channel, byte).to_bits()
        };
        let are_same = (0..3).all(|channel| (0..=255).all(|byte| is_same(channel, byte)));
        are_same.then_some(Factors { factor, reciprocal })
    }
}

/// Factors that replace the divisions of an [`Arithmetic`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Factors {
    factor: f32,
    reciprocal: [f32; 3],
}

/// The type of computed elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Float {
    /// 32 bits.
    Float32,
    /// The upper 16 bits of float32, rounded to nearest, ties to even.
    Bfloat16,
}

/// How bytes are converted to elements.
#[derive(Debug, Clone, PartialEq)]
pub enum ElementBytes {
    /// 32 bits for each value of each channel: 3 times 256.
    Table32(Box<[u32; 768]>),
    /// 16 bits for each value of each channel: 3 times 256.
    Table16(Box<[u16; 768]>),
    /// Arithmetic with the same results as a table, bit for bit.
    Arithmetic(Arithmetic, Float),
}

/// The bits of the bfloat16 nearest to a number.
pub fn bfloat16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

impl ElementBytes {
    /// The same elements as bfloat16; `None` if they are not float32.
    pub fn to_bfloat16(&self) -> Option<Self> {
        match self {
            Self::Table32(bits) => {
                let round = |at: usize| bfloat16_bits(f32::from_bits(bits[at]));
                Some(Self::Table16(Box::new(std::array::from_fn(round))))
            }
            Self::Arithmetic(it, Float::Float32) => Some(Self::Arithmetic(*it, Float::Bfloat16)),
            Self::Table16(_) | Self::Arithmetic(_, Float::Bfloat16) => None,
        }
    }

    /// Bytes of an element.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Table32(_) | Self::Arithmetic(_, Float::Float32) => 4,
            Self::Table16(_) | Self::Arithmetic(_, Float::Bfloat16) => 2,
        }
    }

    /// The same elements as a table.
    fn to_table(&self) -> Self {
        match self {
            Self::Table32(_) | Self::Table16(_) => self.clone(),
            Self::Arithmetic(it, float) => {
                let value = |at: usize| it.element(at / 256, (at % 256) as u8);
                match float {
                    Float::Float32 => {
                        Self::Table32(Box::new(std::array::from_fn(|at| value(at).to_bits())))
                    }
                    Float::Bfloat16 => {
                        Self::Table16(Box::new(std::array::from_fn(|at| bfloat16_bits(value(at)))))
                    }
                }
            }
        }
    }

    /// The table in the GPU's format; empty if none is needed.
    fn table(&self) -> Vec<u8> {
        match self {
            Self::Table32(values) => values.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
            Self::Table16(values) => values.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
            Self::Arithmetic(..) => Vec::new(),
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
    /// Number of channels, 1 or 3.
    pub channels: u32,
}

/// A conversion whose table is on the GPU.
#[derive(Debug)]
pub(super) struct Loaded {
    conversion: Conversion,
    table: Option<DeviceMemory>,
    factors: Option<Factors>,
}

/// The pictures of a batch, and where their elements are written.
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
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let is_known = matches!(conversion.channels, 1 | 3);
        assert!(is_known, "pictures that are converted have 1 or 3 channels");
        let mut conversion = conversion.clone();
        if conversion.channels == 1 {
            // One channel is one plane, whatever the order of the axes.
            conversion.order = Order::Planes;
        }
        let mut factors = None;
        if let ElementBytes::Arithmetic(arithmetic, _) = &conversion.elements {
            factors = arithmetic.without_division();
            if factors.is_none() {
                conversion.elements = conversion.elements.to_table();
            }
        }
        let bytes = conversion.elements.table();
        let mut table = None;
        if !bytes.is_empty() {
            let memory = compute.allocate(bytes.len())?;
            compute.upload(&bytes, &memory, 0)?;
            // The bytes are dropped here, so the copy must be done.
            compute.wait_before_free(OPEN_AFTER, is_stopped)?;
            table = Some(memory);
        }
        let loaded = Self { conversion, table, factors };
        // Convert one pixel, so that a kernel that cannot be compiled or run is an error here and
        // not in the first batch.
        let (from, to) = (compute.allocate(16)?, compute.allocate(16)?);
        compute.fill(&from, 0, 16, 0)?;
        let pixel =
            Pixels { from: &from, from_offset: 0, to: &to, to_offset: 0, plane: 1, samples: 1 };
        loaded.launch(compute, &pixel)?;
        compute.wait_before_free(OPEN_AFTER, is_stopped)?;
        Ok(loaded)
    }

    pub(super) fn channels(&self) -> u32 {
        self.conversion.channels
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
            let grid = Grid::of(*order, plane, *channels, count, elements.bytes());
            let mut arguments = vec![
                Argument::Address(from),
                Argument::Address(to),
                Argument::Word(grid.shape as u32),
                Argument::Word(grid.segment),
                Argument::Word(*channels),
                Argument::Word(count),
            ];
            let name = match elements {
                ElementBytes::Table32(_) => "delivery_table_32",
                ElementBytes::Table16(_) => "delivery_table_16",
                ElementBytes::Arithmetic(Arithmetic { scale, divides, mean, std }, float) => {
                    let factors = self.factors.as_ref();
                    let Factors { factor, reciprocal } = factors.expect("others have a table");
                    arguments.push(Argument::Word(u32::from(*divides)));
                    let numbers = [scale, factor].into_iter().chain(mean).chain(std);
                    let numbers = numbers.chain(reciprocal);
                    arguments.extend(numbers.map(|number| Argument::Word(number.to_bits())));
                    match float {
                        Float::Float32 => "delivery_arithmetic_float32",
                        Float::Bfloat16 => "delivery_arithmetic_bfloat16",
                    }
                }
            };
            arguments.extend(self.table.as_ref().map(Argument::from));
            compute.launch(&Launch {
                kernel: KernelName { module: "delivery", name },
                grid: [grid.blocks, grid.segments, 1],
                block: [THREADS, 1, 1],
                shared_bytes: 0,
                arguments: &arguments,
            })?;
            begin += part;
        }
        Ok(())
    }
}

/// Starts rounding `count` elements of float32 to bfloat16; both memories have them from an offset
/// on, a multiple of 16.
pub(super) fn round_to_bfloat16(
    compute: &mut (impl Compute + ?Sized),
    (from, from_offset): (&DeviceMemory, usize),
    (to, to_offset): (&DeviceMemory, usize),
    count: usize,
) -> Result<(), Error> {
    let (from, to) = (from.place(from_offset, 4 * count), to.place(to_offset, 2 * count));
    let mut begin = 0;
    while begin < count as u64 {
        let part = ELEMENTS_MAX.min(count as u64 - begin) as u32;
        compute.launch(&Launch {
            kernel: KernelName { module: "delivery", name: "delivery_round_bfloat16" },
            grid: [part.div_ceil(8 * THREADS).min(BLOCKS_MAX), 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: 0,
            arguments: &[
                Argument::Address(from + 4 * begin),
                Argument::Address(to + 2 * begin),
                Argument::Word(part),
            ],
        })?;
        begin += u64::from(part);
    }
    Ok(())
}

/// How the elements of a launch are divided between blocks.
struct Grid {
    shape: Shape,
    /// Bytes of a segment; of a plane, if planes begin in the middle of vectors.
    segment: u32,
    blocks: u32,
    segments: u32,
}

impl Grid {
    fn of(order: Order, plane: u32, channels: u32, count: u32, element_bytes: usize) -> Self {
        let each = 16 / element_bytes as u32;
        let (shape, segment) = match order {
            Order::Planes if channels == 1 => (Shape::Planes, count),
            Order::Planes if plane.is_multiple_of(each) => (Shape::Planes, plane),
            Order::Planes => (Shape::AnyPlanes, plane),
            Order::Pixels => (Shape::Pixels, count),
            Order::PixelsToPlanes => (Shape::PixelsToPlanes, plane),
        };
        match shape {
            Shape::Planes | Shape::Pixels => {
                let blocks = (segment / each).div_ceil(VECTORS_OF_BLOCK).max(1);
                let segments = (count / segment).min(SEGMENTS_MAX);
                Self { shape, segment, blocks, segments }
            }
            Shape::AnyPlanes | Shape::PixelsToPlanes => {
                let blocks = (count / 3).div_ceil(THREADS).clamp(1, BLOCKS_MAX);
                Self { shape, segment, blocks, segments: 1 }
            }
        }
    }
}
