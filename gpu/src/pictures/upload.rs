//! Axes and changes of pixels with the addresses of their words and tables.

use super::jobs::{Address, AxisJob, PixelChange};
use super::program::{Axis, Change, ColourSpace};

/// Offsets of the words and tables of a program in the uploaded data.
#[derive(Debug, Clone, Copy)]
pub(super) struct UploadOffsets {
    pub(super) words: usize,
    pub(super) tables: usize,
}

impl UploadOffsets {
    pub(super) fn words(self, index: usize) -> Address {
        Address::Uploaded(self.words + 4 * index)
    }

    pub(super) fn axis(self, axis: Axis) -> AxisJob {
        match axis {
            Axis::Shift => AxisJob::Shift,
            Axis::Pick { words } => AxisJob::Pick(self.words(words)),
            Axis::Weigh { words, .. } => AxisJob::Weigh(self.words(words)),
        }
    }

    /// A change of each pixel by itself; `None` if the change needs other pixels.
    pub(super) fn change(self, change: Change) -> Option<PixelChange> {
        let table = |index: usize| Address::Uploaded(self.tables + 256 * index);
        let of = |change, number| PixelChange { change, number, table: Address::Null };
        Some(match change {
            Change::Table { table: index } => PixelChange { table: table(index), ..of(0, 0) },
            Change::Tables { first } => PixelChange { table: table(first), ..of(TABLES, 0) },
            Change::Saturation(factor) => of(2, factor.to_bits()),
            Change::Hue(shift) => of(3, u32::from(shift)),
            Change::Grey => of(4, 0),
            Change::Channels([red, green, blue]) => {
                of(5, u32::from_le_bytes([red, green, blue, 0]))
            }
            Change::Space(ColourSpace::Hsv) => of(SPACE, 0),
            Change::Space(ColourSpace::Hls) => of(SPACE, 1),
            Change::Space(ColourSpace::Lab { words }) => {
                PixelChange { table: self.words(words), ..of(SPACE, 2) }
            }
            Change::Space(ColourSpace::Ycrcb) => of(SPACE, 3),
            Change::Contrast(_)
            | Change::Autocontrast
            | Change::Equalize
            | Change::Sharpness(_)
            | Change::Frame { .. }
            | Change::Warp { .. }
            | Change::Elastic { .. }
            | Change::BoxBlur { .. }
            | Change::SumBegin { .. }
            | Change::SumAdd { .. }
            | Change::Noise { .. }
            | Change::SensorNoise { .. }
            | Change::KernelBlur { .. } => return None,
        })
    }
}

/// The number of [`Change::Tables`] in the kernels.
pub(super) const TABLES: u32 = 1;
/// The number of [`Change::Space`] in the kernels.
const SPACE: u32 = 6;
