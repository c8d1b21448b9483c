//! Samples of a batch mixed with one another.

use super::limits::OPEN_AFTER;
use crate::{Argument, Compute, DeviceMemory, Error, KernelName, Launch};

/// The partner with which each sample is mixed, in its state before the mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partner {
    /// The previous sample; the last one for the first.
    Previous,
    /// The sample at the same distance from the other end. The middle one does not change.
    Mirrored,
}

/// How a sample is mixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampleMix {
    /// It does not change.
    Keep,
    /// The sum of itself and its partner, weighted.
    Blend {
        /// Its own weight.
        own: f32,
        /// That of its partner.
        partner: f32,
    },
    /// Itself with a rectangle of its partner.
    Paste {
        /// First row.
        top: u32,
        /// One past the last row.
        bottom: u32,
        /// First column.
        left: u32,
        /// One past the last column.
        right: u32,
    },
}

/// Bytes of a `Mix` of `finish.cu`.
const MIX_BYTES: usize = 32;

impl SampleMix {
    /// Bytes that [`Self::bytes`] gives for each sample.
    pub const BYTES: usize = MIX_BYTES;

    /// In the format of the kernel.
    pub fn bytes(self) -> impl Iterator<Item = u8> {
        let words: [u32; MIX_BYTES / 4] = match self {
            Self::Keep => [0; _],
            Self::Blend { own, partner } => [1, own.to_bits(), partner.to_bits(), 0, 0, 0, 0, 0],
            Self::Paste { top, bottom, left, right } => [2, 0, 0, top, bottom, left, right, 0],
        };
        words.into_iter().flat_map(u32::to_le_bytes)
    }
}

/// The format of a tensor that is mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MixedFormat {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// Channels.
    pub channels: u32,
    /// Bytes of an element: 1 (uint8), 2 (float16) or 4 (float32).
    pub element_bytes: u32,
    /// Whether the channels of a pixel are adjacent (channels last).
    pub is_interleaved: bool,
}

impl MixedFormat {
    /// The row of a label: an element of float32 for each class.
    pub fn row(classes: u32) -> Self {
        Self { height: 1, width: classes, channels: 1, element_bytes: 4, is_interleaved: false }
    }
}

/// A mix of all samples of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchMix {
    /// The partner of each sample.
    pub partner: Partner,
    /// Offset in the batch's memory of the [`SampleMix::bytes`] of all samples; a multiple of 4.
    pub mixes: usize,
}

/// The mixes of the tensors of a piece, in order.
#[derive(Debug, Clone, Copy)]
pub struct Mixing<'a> {
    /// The format of the tensors.
    pub format: MixedFormat,
    /// Their number.
    pub samples: u32,
    /// The mixes.
    pub steps: &'a [BatchMix],
}

const MIX: KernelName = KernelName { module: "finish", name: "mix_samples" };
/// Threads of a block, as in `finish.cu`.
const THREADS: u32 = 256;

impl Mixing<'_> {
    /// Mixes two elements and waits for the result, so that a kernel that cannot be compiled or run
    /// is an error before the first batch.
    pub fn probe(
        compute: &mut (impl Compute + ?Sized),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let (elements, samples) = (8, 2);
        let bytes = elements + samples as usize * MIX_BYTES;
        let memory = compute.allocate(bytes)?;
        compute.fill(&memory, 0, bytes, 0)?;
        let steps = &[BatchMix { partner: Partner::Previous, mixes: elements }];
        let mixing = Mixing { format: MixedFormat::row(1), samples, steps };
        mixing.launch(compute, (&memory, 0), &memory)?;
        compute.wait_before_free(OPEN_AFTER, is_stopped)
    }

    /// Starts mixing the tensors from an offset of `tensors` on, a multiple of 4. `batch` is the
    /// batch's memory.
    ///
    /// # Panics
    ///
    /// If the tensors or the mixes do not lie in their memory.
    pub fn launch(
        &self,
        compute: &mut (impl Compute + ?Sized),
        (tensors, offset): (&DeviceMemory, usize),
        batch: &DeviceMemory,
    ) -> Result<(), Error> {
        let Self { format, samples, steps } = *self;
        let MixedFormat { height, width, channels, element_bytes, is_interleaved } = format;
        let sample_bytes = height * width * channels * element_bytes;
        if samples < 2 || sample_bytes == 0 {
            return Ok(());
        }
        let count = samples as usize;
        let tensors = tensors.place(offset, count * sample_bytes as usize);
        let group_bytes = if sample_bytes.is_multiple_of(4) { 4 } else { element_bytes };
        for BatchMix { partner, mixes } in steps {
            let addresses = [tensors, batch.place(*mixes, count * MIX_BYTES)];
            let is_mirrored = *partner == Partner::Mirrored;
            let numbers = [
                samples,
                sample_bytes,
                width,
                height,
                channels,
                element_bytes,
                u32::from(is_interleaved),
                u32::from(is_mirrored),
            ];
            let arguments =
                [&addresses.map(Argument::Address)[..], &numbers.map(Argument::Word)].concat();
            compute.launch(&Launch {
                kernel: MIX,
                grid: [(sample_bytes / group_bytes).div_ceil(THREADS), 1, 1],
                block: [THREADS, 1, 1],
                shared_bytes: 0,
                arguments: &arguments,
            })?;
        }
        Ok(())
    }
}
