//! Jobs as kernels read them: the structs of the modules, byte by byte.

use super::program::{ErasedValues, Erasure, NoiseRange, PositionMap, TensorLocation, WarpForm};

/// An address as an offset in a memory region, whose base is known when a batch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Address {
    /// None.
    Null,
    /// In the memory of decoded pictures.
    Source(u64),
    /// In the memory of the tensors of a column.
    Tensor { column: usize, offset: u64 },
    /// In the uploaded data.
    Uploaded(usize),
    /// In the memory for results between two steps.
    Between(usize),
    /// In the memory of counts, which are initially 0.
    Counts(usize),
}

/// Base addresses of the memory regions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bases<'a> {
    pub(super) sources: u64,
    /// Of each column.
    pub(super) tensors: &'a [u64],
    pub(super) uploaded: u64,
    pub(super) between: u64,
    pub(super) counts: u64,
}

impl Address {
    pub(super) fn of(TensorLocation { column, offset }: TensorLocation) -> Self {
        Self::Tensor { column, offset }
    }

    fn at(self, bases: Bases<'_>) -> u64 {
        match self {
            Self::Null => 0,
            Self::Source(offset) => bases.sources + offset,
            Self::Tensor { column, offset } => bases.tensors[column] + offset,
            Self::Uploaded(offset) => bases.uploaded + offset as u64,
            Self::Between(offset) => bases.between + offset as u64,
            Self::Counts(offset) => bases.counts + offset as u64,
        }
    }
}

/// A picture that a step reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planes {
    pub(super) address: Address,
    pub(super) row_bytes: u32,
    pub(super) plane_bytes: u32,
}

impl Planes {
    /// The planes from `plane` on.
    pub(super) fn at(self, plane: u32) -> Self {
        let offset = plane as usize * self.plane_bytes as usize;
        let address = match self.address {
            Address::Null => Address::Null,
            Address::Source(at) => Address::Source(at + offset as u64),
            Address::Tensor { column, offset: at } => {
                Address::Tensor { column, offset: at + offset as u64 }
            }
            Address::Uploaded(at) => Address::Uploaded(at + offset),
            Address::Between(at) => Address::Between(at + offset),
            Address::Counts(at) => Address::Counts(at + offset),
        };
        Self { address, ..self }
    }
}

/// How a pass reads an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AxisJob {
    Shift,
    Pick(Address),
    Weigh(Address),
}

impl AxisJob {
    fn number(self) -> u32 {
        match self {
            Self::Shift => 0,
            Self::Pick(_) => 1,
            Self::Weigh(_) => 2,
        }
    }

    fn words(self) -> Address {
        match self {
            Self::Shift => Address::Null,
            Self::Pick(words) | Self::Weigh(words) => words,
        }
    }
}

/// Bytes of a [`Pass`].
pub(super) const PASS_BYTES: usize = 112;

/// `Pass` of `stages.cu`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass {
    pub(super) source: Planes,
    /// Bytes from the source's address to its first pixel, and from a pixel to the next column and
    /// to the next row.
    pub(super) first: u64,
    pub(super) column_step: i32,
    pub(super) row_step: i32,
    pub(super) target: Planes,
    pub(super) across: AxisJob,
    pub(super) down: AxisJob,
    pub(super) size: (u32, u32),
    pub(super) canvas: (u32, u32),
    pub(super) at: (u32, u32),
    pub(super) fill: [u8; 3],
    pub(super) outside: [u8; 3],
    pub(super) mirrored: bool,
    pub(super) flipped: bool,
    pub(super) is_tensor: bool,
    /// Index of the first change of pixels among those of the batch, and the number of changes.
    pub(super) changes: (usize, usize),
}

/// Appends numbers as a device reads them.
pub(super) struct Writer<'a> {
    pub(super) bytes: &'a mut Vec<u8>,
    pub(super) bases: Bases<'a>,
}

impl Writer<'_> {
    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_le_bytes());
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.word(*word));
    }

    fn number(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn address(&mut self, address: Address) {
        self.number(address.at(self.bases));
    }
}

/// Groups of four pixels of the rows of a picture.
fn quads((width, height): (u32, u32)) -> u64 {
    u64::from(width.div_ceil(4)) * u64::from(height)
}

fn colour([red, green, blue]: [u8; 3]) -> u32 {
    u32::from_le_bytes([red, green, blue, 0])
}

/// Bytes of a change of pixels.
pub(super) const CHANGE_BYTES: usize = 16;

/// `ChangeOfPixels` of `stages.cu`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PixelChange {
    pub(super) change: u32,
    pub(super) number: u32,
    pub(super) table: Address,
}

impl PixelChange {
    pub(super) fn write(&self, to: &mut Writer<'_>) {
        to.words(&[self.change, self.number]);
        to.address(self.table);
    }
}

impl Pass {
    /// Writes it with the number of its first block; `changes` is where those of the batch lie.
    pub(super) fn write(&self, first_block: u32, changes: Address, to: &mut Writer<'_>) {
        let flags = u32::from(self.mirrored)
            | u32::from(self.flipped) << 1
            | u32::from(self.is_tensor) << 2;
        let of_changes = changes.at(to.bases) + (self.changes.0 * CHANGE_BYTES) as u64;
        to.number(self.source.address.at(to.bases) + self.first);
        to.address(self.target.address);
        to.address(self.across.words());
        to.address(self.down.words());
        to.number(of_changes);
        to.words(&[
            self.row_step.cast_unsigned(),
            self.source.plane_bytes,
            self.target.row_bytes,
            self.target.plane_bytes,
            self.column_step.cast_unsigned(),
            self.across.number(),
            self.down.number(),
            self.size.0,
            self.size.1,
            self.canvas.0,
            self.canvas.1,
            self.at.0,
            self.at.1,
            colour(self.fill),
            colour(self.outside),
            flags,
            self.changes.1 as u32,
            first_block,
        ]);
    }

    /// Number of blocks of `first_pass`.
    pub(super) fn first_blocks(&self) -> u32 {
        let (width, height) = self.size;
        match self.across {
            AxisJob::Weigh(_) => width.div_ceil(32) * height.div_ceil(32),
            AxisJob::Shift | AxisJob::Pick(_) => width.div_ceil(128) * height.div_ceil(8),
        }
    }

    /// Number of blocks of `last_pass`.
    pub(super) fn last_blocks(&self) -> u32 {
        quads(self.canvas).div_ceil(u64::from(BLOCK * QUADS_PER_THREAD)) as u32
    }
}

/// Bytes of a [`Statistic`], and of what it counts: 256 values of three channels, and the luma.
pub(super) const STATISTIC_BYTES: usize = 56;
pub(super) const COUNTS_BYTES: usize = 3 * 256 * 4 + 16;

/// Groups of four pixels that a block of `count_values` counts.
const COUNTED_QUADS: u64 = 1 << 12;

/// `Statistic` of `colour.cu`: three tables made of the values of a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statistic {
    pub(super) picture: Planes,
    pub(super) size: (u32, u32),
    pub(super) counts: Address,
    pub(super) tables: Address,
    /// The number of the kind of change, and its parameter.
    pub(super) change: u32,
    pub(super) number: u32,
}

impl Statistic {
    pub(super) fn write(&self, first_block: u32, to: &mut Writer<'_>) {
        let Planes { address, row_bytes, plane_bytes } = self.picture;
        to.address(address);
        to.address(self.counts);
        to.address(self.tables);
        let (width, height) = self.size;
        to.words(&[row_bytes, plane_bytes, width, height]);
        to.words(&[self.change, self.number, first_block, 0]);
    }

    /// Number of blocks of `count_values`.
    pub(super) fn blocks(&self) -> u32 {
        quads(self.size).div_ceil(COUNTED_QUADS) as u32
    }
}

/// Bytes of a [`Neighbours`].
pub(super) const NEIGHBOURS_BYTES: usize = 48;

/// `Neighbours` of `colour.cu`: each pixel of a result from some around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neighbours {
    pub(super) source: Planes,
    pub(super) target: Planes,
    pub(super) size: (u32, u32),
    pub(super) number: u32,
}

impl Neighbours {
    pub(super) fn write(&self, first_block: u32, to: &mut Writer<'_>) {
        to.address(self.source.address);
        to.address(self.target.address);
        for planes in [self.source, self.target] {
            to.words(&[planes.row_bytes, planes.plane_bytes]);
        }
        to.words(&[self.size.0, self.size.1, self.number, first_block]);
    }

    /// Number of blocks of `sharpen`.
    pub(super) fn blocks(&self) -> u32 {
        quads(self.size).div_ceil(u64::from(BLOCK)) as u32
    }
}

/// Bytes of a [`Blur`].
pub(super) const BLUR_BYTES: usize = 72;

/// How a picture is blurred along one axis.
#[derive(Debug, Clone, Copy)]
pub(super) enum BlurForm {
    /// Radius, and the weights of a box.
    Box(u32, [u32; 2]),
    /// Weights of a kernel, and their number. The result of the first axis is float32.
    Kernel(Address, u32),
    /// The same for one plane, all in float32.
    Field(Address, u32),
}

/// `Blur` of `blur.cu`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blur {
    pub(super) source: Planes,
    pub(super) target: Planes,
    pub(super) size: (u32, u32),
    pub(super) form: BlurForm,
    pub(super) is_down: bool,
}

impl Blur {
    pub(super) fn write(&self, first_block: u32, to: &mut Writer<'_>) {
        let (form, weights, count, [inner, outer], planes) = match self.form {
            BlurForm::Box(radius, weights) => (0, Address::Null, radius, weights, 3),
            BlurForm::Kernel(weights, count) => (2, weights, count, [0; 2], 3),
            BlurForm::Field(weights, count) => (4, weights, count, [0; 2], 1),
        };
        to.address(self.source.address);
        to.address(self.target.address);
        to.address(weights);
        for Planes { row_bytes, plane_bytes, .. } in [self.source, self.target] {
            to.words(&[row_bytes, plane_bytes]);
        }
        to.words(&[self.size.0, self.size.1, form + u32::from(self.is_down), count]);
        to.words(&[inner, outer, first_block, planes]);
    }

    /// Number of blocks of `blur_once`.
    pub(super) fn blocks(&self) -> u32 {
        quads(self.size).div_ceil(u64::from(BLOCK)) as u32
    }
}

/// Bytes of a [`WarpJob`].
pub(super) const WARP_BYTES: usize = 176;

/// The source positions of a warp.
#[derive(Debug, Clone, Copy)]
pub(super) enum Positions {
    /// Computed by a map.
    Map(WarpForm),
    /// Each pixel is moved along rows and along columns by the values of the two float32 planes
    /// `by`, each times half of its number of `alpha`.
    Moved { by: Planes, alpha: [f64; 2], is_nearest: bool },
}

/// `Warp` of `warp.cu`.
#[derive(Debug, Clone, Copy)]
pub(super) struct WarpJob {
    pub(super) source: Planes,
    pub(super) source_size: (u32, u32),
    pub(super) target: Planes,
    pub(super) size: (u32, u32),
    pub(super) positions: Positions,
    pub(super) samples: u32,
    pub(super) fill: [u8; 3],
}

impl WarpJob {
    pub(super) fn write(&self, first_block: u32, to: &mut Writer<'_>) {
        let none = PositionMap { coefficients: [0.0; 8], is_perspective: false };
        let mut field = Planes { address: Address::Null, row_bytes: 0, plane_bytes: 0 };
        let (form, map, steps) = match self.positions {
            Positions::Map(WarpForm::Fixed { begin, across, down }) => {
                (0, none, [begin, across, down])
            }
            Positions::Map(WarpForm::Nearest(map)) => (1, map, [[0; 2]; 3]),
            Positions::Map(WarpForm::Bilinear(map)) => (2, map, [[0; 2]; 3]),
            Positions::Map(WarpForm::Bicubic(map)) => (3, map, [[0; 2]; 3]),
            Positions::Moved { by, alpha: [across, down], is_nearest } => {
                field = by;
                let coefficients = [across, down, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
                let map = PositionMap { coefficients, ..none };
                (if is_nearest { 4 } else { 5 }, map, [[0; 2]; 3])
            }
        };
        to.address(self.source.address);
        to.address(self.target.address);
        to.address(field.address);
        map.coefficients.iter().for_each(|number| to.number(number.to_bits()));
        for planes in [self.source, self.target] {
            to.words(&[planes.row_bytes, planes.plane_bytes]);
        }
        to.words(&[self.source_size.0, self.source_size.1, self.size.0, self.size.1]);
        to.words(&steps.as_flattened().iter().map(|it| it.cast_unsigned()).collect::<Vec<_>>());
        to.words(&[form, u32::from(map.is_perspective), self.samples, colour(self.fill)]);
        to.words(&[first_block, field.row_bytes, field.plane_bytes, 0]);
    }

    /// Number of blocks of `warp_pixels`.
    pub(super) fn blocks(&self) -> u32 {
        let pixels = u64::from(self.size.0) * u64::from(self.size.1);
        pixels.div_ceil(u64::from(BLOCK)) as u32
    }
}

/// Bytes of a [`NoiseJob`].
pub(super) const NOISE_BYTES: usize = 80;

/// The noise that is added to a picture, or written to it.
#[derive(Debug, Clone, Copy)]
pub(super) enum NoiseForm {
    /// Normally distributed numbers.
    Gaussian { mean: f64, sigma: f64, is_clipped: bool },
    /// Integers: `coarse` for red and blue, `fine` for green.
    Sensor { coarse: NoiseRange, fine: NoiseRange },
    /// Two planes of float32 are set to uniformly distributed numbers from -1 to 1.
    Field,
}

/// `Noisy` of `finish.cu`.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoiseJob {
    pub(super) picture: Planes,
    pub(super) size: (u32, u32),
    pub(super) key: [u32; 2],
    pub(super) form: NoiseForm,
    pub(super) is_grey: bool,
}

impl NoiseJob {
    pub(super) fn write(&self, first_block: u32, to: &mut Writer<'_>) {
        let Planes { address, row_bytes, plane_bytes } = self.picture;
        let none = NoiseRange { low: 0, count: 0 };
        let (form, [mean, sigma], is_clipped, ranges) = match self.form {
            NoiseForm::Gaussian { mean, sigma, is_clipped } => {
                (0, [mean, sigma], is_clipped, [none; 2])
            }
            NoiseForm::Sensor { coarse, fine } => (1, [0.0; 2], true, [coarse, fine]),
            NoiseForm::Field => (2, [0.0; 2], false, [none; 2]),
        };
        to.address(address);
        to.number(mean.to_bits());
        to.number(sigma.to_bits());
        to.words(&[row_bytes, plane_bytes, self.size.0, self.size.1, self.key[0], self.key[1]]);
        for NoiseRange { low, count } in ranges {
            to.words(&[low.cast_unsigned(), count]);
        }
        to.words(&[form, u32::from(is_clipped), u32::from(self.is_grey), first_block]);
    }

    /// Number of blocks of `add_noise`.
    pub(super) fn blocks(&self) -> u32 {
        let pixels = u64::from(self.size.0) * u64::from(self.size.1);
        pixels.div_ceil(u64::from(BLOCK)) as u32
    }
}

/// Bytes of a [`SumJob`].
pub(super) const SUM_BYTES: usize = 72;

/// A step of a weighted sum.
#[derive(Debug, Clone, Copy)]
pub(super) enum SumForm {
    /// Sets the sum to the weighted original, and copies the original to the picture.
    Begin,
    /// Adds the picture to the sum, and sets it to the original again.
    Add,
    /// Adds the picture to the sum, and sets it to the sum.
    End,
}

/// `Weighted` of `colour.cu`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SumJob {
    pub(super) picture: Planes,
    pub(super) original: Planes,
    pub(super) sum: Planes,
    pub(super) size: (u32, u32),
    pub(super) weight: f32,
    pub(super) form: SumForm,
}

impl SumJob {
    pub(super) fn write(&self, first_block: u32, to: &mut Writer<'_>) {
        let all = [self.picture, self.original, self.sum];
        all.iter().for_each(|planes| to.address(planes.address));
        all.iter().for_each(|planes| to.words(&[planes.row_bytes, planes.plane_bytes]));
        to.words(&[self.size.0, self.size.1, self.weight.to_bits(), self.form as u32]);
        to.words(&[first_block, 0]);
    }

    /// Number of blocks of `add_weighted`.
    pub(super) fn blocks(&self) -> u32 {
        let pixels = u64::from(self.size.0) * u64::from(self.size.1);
        pixels.div_ceil(u64::from(BLOCK)) as u32
    }
}

/// Bytes of an erasure, and of an [`EraseJob`].
pub(super) const ERASURE_BYTES: usize = 32;
pub(super) const ERASE_BYTES: usize = 32;

/// `Erased` of `finish.cu`.
#[derive(Debug, Clone, Copy)]
pub(super) struct EraseJob {
    pub(super) tensor: Address,
    pub(super) erasures: Address,
    pub(super) count: u32,
    pub(super) size: (u32, u32),
}

impl EraseJob {
    pub(super) fn write(&self, to: &mut Writer<'_>) {
        to.address(self.tensor);
        to.address(self.erasures);
        to.words(&[self.count, self.size.0, self.size.1, 0]);
    }
}

/// The words of an `Erasure` of `finish.cu`.
pub(super) fn erasure_words(erasure: &Erasure) -> [u32; ERASURE_BYTES / 4] {
    let &Erasure { top, left, height, width, values } = erasure;
    let (is_noise, [first, second, third]) = match values {
        ErasedValues::Channels(bits) => (0, bits),
        ErasedValues::Noise { key: [first, second] } => (1, [first, second, 0]),
    };
    [top, left, height, width, is_noise, first, second, third]
}

/// Threads of a block.
pub(super) const BLOCK: u32 = 256;

/// Groups of four pixels that a thread of `last_pass` makes.
pub(super) const QUADS_PER_THREAD: u32 = 4;
