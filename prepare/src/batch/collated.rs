//! Pictures of different sizes in a batch, and the masks that move with them: their sizes as they
//! arrive, and the columns that they become.

use meetpoint_format::column::{AXES_MAX, BatchColumns, Collate, Column, ColumnSource};
use meetpoint_format::recipe::{TargetKind, TensorSpec};
use meetpoint_kernels::element_bytes;

/// What the columns of a batch become where pictures may have different sizes.
#[derive(Debug)]
pub(super) struct Collated {
    collate: Collate,
    /// Of a picture whose height and width are open.
    spec: TensorSpec,
    /// The element that each column is padded with; empty where it is not.
    fills: Vec<Vec<u8>>,
    /// Height and width of the picture at each position.
    sizes: Vec<(u32, u32)>,
}

/// One value of a batch that is padded: its bytes, and its axes before and after.
#[derive(Debug, Clone, Copy)]
struct Padding<'a> {
    from: &'a [u32],
    to: &'a [u32],
    fill: &'a [u8],
}

impl Collated {
    /// For these columns, some of which are these targets by their names.
    pub(super) fn new(
        columns: &BatchColumns,
        targets: &[(String, TargetKind)],
        (collate, spec): (Collate, TensorSpec),
    ) -> Self {
        let of_pictures = match collate {
            Collate::Pad(pad) => pad.fill,
            Collate::Stack | Collate::List(_) => 0.0,
        };
        let fill = |column: &Column| {
            let number = match column.source {
                ColumnSource::Image => of_pictures,
                ColumnSource::Target(_) => {
                    let target = targets.iter().find(|(name, _)| *name == column.name);
                    target.map_or(0.0, |(_, kind)| match kind {
                        TargetKind::Mask(mask) => mask.fill,
                        TargetKind::Saliency(saliency) => f64::from(saliency.fill),
                        TargetKind::Boxes(_) | TargetKind::Keypoints(_) => 0.0,
                    })
                }
                ColumnSource::PaddingMask => 1.0,
                ColumnSource::View(_)
                | ColumnSource::Label
                | ColumnSource::Key
                | ColumnSource::Sample
                | ColumnSource::Further(_)
                | ColumnSource::ImageSize => return Vec::new(),
            };
            element_bytes(column.kind.element(), number)
        };
        let fills = columns.as_slice().iter().map(fill).collect();
        Self { collate, spec, fills, sizes: Vec::new() }
    }

    /// Begins a batch with so many positions.
    pub(super) fn begin(&mut self, positions: usize) {
        self.sizes.clear();
        self.sizes.resize(positions, (0, 0));
    }

    /// The picture at a position has this shape.
    pub(super) fn set(&mut self, position: usize, spec: TensorSpec) {
        self.sizes[position] = (spec.height, spec.width);
    }

    /// Height and width of a batch with the pictures at these positions.
    pub(super) fn batch_size(&self, positions: impl Iterator<Item = usize>) -> (u32, u32) {
        let largest = positions.map(|position| self.sizes[position]);
        let largest = largest.fold((0, 0), |most, own| (most.0.max(own.0), most.1.max(own.1)));
        self.collate.rounded(largest)
    }

    /// The axes of a column, behind one of variable length, for a picture of this size.
    pub(super) fn axes(&self, column: &Column, (height, width): (u32, u32)) -> Vec<u32> {
        let is_of_pictures = column.kind.is_padded() || column.kind.rank_of_shapes() > 0;
        match column.source {
            ColumnSource::Image => TensorSpec { height, width, ..self.spec }.axes(),
            ColumnSource::Target(_) | ColumnSource::PaddingMask if is_of_pictures => {
                vec![height, width]
            }
            ColumnSource::Target(_)
            | ColumnSource::PaddingMask
            | ColumnSource::View(_)
            | ColumnSource::Label
            | ColumnSource::Key
            | ColumnSource::Sample
            | ColumnSource::Further(_)
            | ColumnSource::ImageSize => column.kind.axes().to_vec(),
        }
    }

    /// The lengths of the axes of a column in a batch of this height and width.
    pub(super) fn lengths(&self, column: &Column, size: (u32, u32)) -> [u32; AXES_MAX] {
        let axes = self.axes(column, size);
        std::array::from_fn(|axis| axes.get(axis).copied().unwrap_or(0))
    }

    /// Bytes of a row of a column at a position: of the whole value, or of one object's.
    pub(super) fn row_bytes(&self, column: &Column, position: usize) -> usize {
        bytes_of(&self.axes(column, self.sizes[position]), column.kind.element().bytes())
    }

    /// The shape of a value of so many bytes at a position.
    pub(super) fn shape(&self, column: &Column, position: usize, bytes: usize) -> Vec<u32> {
        let axes = self.axes(column, self.sizes[position]);
        if column.kind.rank_of_shapes() == axes.len() {
            return axes;
        }
        let rows = bytes / bytes_of(&axes, column.kind.element().bytes()).max(1);
        let rows = u32::try_from(rows).expect("a sample has less than 2^32 objects");
        [&[rows], &axes[..]].concat()
    }

    /// Writes the value of a sample, or of several objects of it, into memory of the batch's shape.
    pub(super) fn pad(
        &self,
        (index, column): (usize, &Column),
        position: usize,
        (height, width): (u32, u32),
        (value, into): (&[u8], &mut [u8]),
    ) {
        let from = self.axes(column, self.sizes[position]);
        let to = self.axes(column, (height, width));
        let padding = Padding { from: &from, to: &to, fill: &self.fills[index] };
        let element = column.kind.element().bytes();
        let (own, padded) = (bytes_of(&from, element), bytes_of(&to, element));
        for (value, into) in value.chunks_exact(own.max(1)).zip(into.chunks_exact_mut(padded)) {
            pad(value, into, padding);
        }
    }

    /// Bytes of a padded value, or of several objects', that has so many bytes of its own.
    pub(super) fn padded_bytes(
        &self,
        column: &Column,
        position: usize,
        size: (u32, u32),
        bytes: usize,
    ) -> usize {
        let padded = bytes_of(&self.axes(column, size), column.kind.element().bytes());
        bytes / self.row_bytes(column, position).max(1) * padded
    }

    /// Writes which pixels of a sample's padded picture are padding: 1 for those.
    pub(super) fn mark_padding(&self, position: usize, (_, width): (u32, u32), into: &mut [u8]) {
        let (rows, columns) = self.sizes[position];
        into.fill(1);
        let own = into.chunks_exact_mut((width as usize).max(1)).take(rows as usize);
        own.for_each(|row| row[..columns as usize].fill(0));
    }

    /// Writes height and width of the picture at a position.
    pub(super) fn write_size(&self, position: usize, into: &mut [u8]) {
        let (height, width) = self.sizes[position];
        for (into, side) in into.chunks_exact_mut(8).zip([height, width]) {
            into.copy_from_slice(&i64::from(side).to_le_bytes());
        }
    }
}

/// Bytes of a tensor with these axes.
fn bytes_of(axes: &[u32], element: u64) -> usize {
    let elements: u64 = axes.iter().map(|length| u64::from(*length)).product();
    usize::try_from(elements * element).expect("it is in memory")
}

/// Copies a tensor to the beginning of each axis of a larger one, and fills the rest of that.
fn pad(value: &[u8], into: &mut [u8], padding: Padding<'_>) {
    let Padding { from, to, fill } = padding;
    if from == to {
        return into.copy_from_slice(value);
    }
    let ([length, from @ ..], [_, to @ ..]) = (from, to) else { return };
    let element = fill.len() as u64;
    let (own, padded) = (bytes_of(from, element), bytes_of(to, element));
    let (kept, rest) = into.split_at_mut(*length as usize * padded);
    if from == to {
        kept.copy_from_slice(value);
    } else {
        let inner = Padding { from, to, fill };
        let rows = value.chunks_exact(own).zip(kept.chunks_exact_mut(padded));
        rows.for_each(|(value, into)| pad(value, into, inner));
    }
    match fill {
        fill if fill.iter().all(|byte| *byte == 0) => rest.fill(0),
        [byte] => rest.fill(*byte),
        fill => rest.chunks_exact_mut(fill.len()).for_each(|it| it.copy_from_slice(fill)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_is_padded_at_the_end_of_each_axis() {
        let padding = Padding { from: &[2, 1, 2], to: &[2, 2, 3], fill: &[9] };
        let mut into = [0; 12];
        pad(&[1, 2, 3, 4], &mut into, padding);
        assert_eq!(into, [1, 2, 9, 9, 9, 9, 3, 4, 9, 9, 9, 9]);
        let padding = Padding { from: &[1, 2], to: &[2, 2], fill: &[7, 8] };
        let mut into = [0; 8];
        pad(&[1, 0, 2, 0], &mut into, padding);
        assert_eq!(into, [1, 0, 2, 0, 7, 8, 7, 8]);
    }

    #[test]
    fn what_has_the_shape_already_is_copied() {
        let mut into = [0; 4];
        pad(&[1, 2, 3, 4], &mut into, Padding { from: &[2, 2], to: &[2, 2], fill: &[9] });
        assert_eq!(into, [1, 2, 3, 4]);
    }
}
