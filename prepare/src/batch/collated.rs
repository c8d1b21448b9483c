//! Pictures of different sizes in a batch, and their masks: collects their sizes and builds the
//! columns.

use meetpoint_format::column::{AXES_MAX, BatchColumns, Collate, Column, ColumnSource, VARIES};
use meetpoint_format::recipe::{Recipe, TargetKind, TensorSpec};
use meetpoint_kernels::element_bytes;

/// What the columns of a batch become where pictures may have different sizes.
#[derive(Debug)]
pub(super) struct Collated {
    collate: Collate,
    /// The columns with pictures, in the order of the columns of the batch.
    pictures: Vec<Pictures>,
    /// For each column, the index in `pictures` of those whose sizes it has.
    of_column: Vec<usize>,
    /// The element that each column is padded with; empty if it is not.
    fills: Vec<Vec<u8>>,
}

/// The pictures of a column.
#[derive(Debug)]
struct Pictures {
    /// Index of their column in the recipe.
    images: usize,
    /// Of a picture whose height and width are open.
    spec: TensorSpec,
    /// The axes of several pictures of a sample.
    outer: Vec<u32>,
    /// Pictures of a sample.
    count: usize,
    /// Height and width of each picture at each position.
    sizes: Vec<(u32, u32)>,
}

impl Pictures {
    /// The sizes of the pictures at a position.
    fn at(&self, position: usize) -> &[(u32, u32)] {
        &self.sizes[position * self.count..][..self.count]
    }
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
        (collate, recipe): (Collate, &Recipe),
    ) -> Self {
        let of_pictures = match collate {
            Collate::Pad(pad) => pad.fill,
            Collate::Stack | Collate::List(_) => 0.0,
        };
        let fill = |column: &Column| {
            let number = match column.source {
                ColumnSource::Image | ColumnSource::View(_) => of_pictures,
                ColumnSource::Target(_) => {
                    let target = targets.iter().find(|(name, _)| *name == column.name);
                    target.map_or(0.0, |(_, kind)| match kind {
                        TargetKind::Mask(mask) => mask.fill,
                        TargetKind::Saliency(saliency) => f64::from(saliency.fill),
                        TargetKind::Boxes(_) | TargetKind::Keypoints(_) => 0.0,
                    })
                }
                ColumnSource::PaddingMask(_) => 1.0,
                ColumnSource::Label
                | ColumnSource::Key
                | ColumnSource::Sample
                | ColumnSource::Further(_)
                | ColumnSource::ImageSize(_) => return Vec::new(),
            };
            element_bytes(column.kind.element(), number)
        };
        // Targets are those of the only picture.
        let images_of = |column: &Column| match column.source {
            ColumnSource::View(index)
            | ColumnSource::ImageSize(index)
            | ColumnSource::PaddingMask(index) => index,
            ColumnSource::Image
            | ColumnSource::Target(_)
            | ColumnSource::Label
            | ColumnSource::Key
            | ColumnSource::Sample
            | ColumnSource::Further(_) => 0,
        };
        let of_column = |column: &Column| {
            let images = &recipe.images()[images_of(column)];
            Pictures {
                images: images_of(column),
                spec: images.result.tensor((VARIES, VARIES)),
                outer: images.outer_axes(),
                count: images.pictures(),
                sizes: Vec::new(),
            }
        };
        let pictures: Vec<Pictures> =
            columns.pictures().map(|index| of_column(&columns.as_slice()[index])).collect();
        let position = |column: &Column| {
            pictures.iter().position(|it| it.images == images_of(column)).unwrap_or(0)
        };
        let of_column = columns.as_slice().iter().map(position).collect();
        let fills = columns.as_slice().iter().map(fill).collect();
        Self { collate, pictures, of_column, fills }
    }

    /// Begins a batch with a given number of positions.
    pub(super) fn begin(&mut self, positions: usize) {
        for pictures in &mut self.pictures {
            pictures.sizes.clear();
            pictures.sizes.resize(positions * pictures.count, (0, 0));
        }
    }

    /// The pictures at a position have these shapes, by column with pictures.
    pub(super) fn set(&mut self, position: usize, specs: &[Vec<TensorSpec>]) {
        for (pictures, specs) in self.pictures.iter_mut().zip(specs) {
            let sizes = &mut pictures.sizes[position * pictures.count..];
            for (size, spec) in sizes.iter_mut().zip(specs) {
                *size = (spec.height, spec.width);
            }
        }
    }

    /// Height and width of a batch with the pictures at these positions, for each column with
    /// pictures.
    pub(super) fn batch_sizes(&self, positions: &[usize]) -> Vec<(u32, u32)> {
        let of_batch = |pictures: &Pictures| {
            let sizes = positions.iter().flat_map(|position| pictures.at(*position));
            let largest = sizes.fold((0, 0), |most, own| (most.0.max(own.0), most.1.max(own.1)));
            self.collate.rounded(largest)
        };
        self.pictures.iter().map(of_batch).collect()
    }

    fn pictures(&self, index: usize) -> &Pictures {
        &self.pictures[self.of_column[index]]
    }

    /// The axes of one picture of a column, or of one object, where pictures have this size.
    fn axes(&self, (index, column): (usize, &Column), (height, width): (u32, u32)) -> Vec<u32> {
        let is_of_pictures = column.kind.is_padded() || column.kind.rank_of_shapes() > 0;
        match column.source {
            ColumnSource::Image | ColumnSource::View(_) => {
                TensorSpec { height, width, ..self.pictures(index).spec }.axes()
            }
            ColumnSource::Target(_) | ColumnSource::PaddingMask(_) if is_of_pictures => {
                vec![height, width]
            }
            ColumnSource::Target(_)
            | ColumnSource::PaddingMask(_)
            | ColumnSource::Label
            | ColumnSource::Key
            | ColumnSource::Sample
            | ColumnSource::Further(_)
            | ColumnSource::ImageSize(_) => column.kind.axes().to_vec(),
        }
    }

    /// Whether a column has one value for each picture of a sample.
    fn is_per_picture(column: &Column) -> bool {
        match column.source {
            ColumnSource::Image | ColumnSource::View(_) | ColumnSource::PaddingMask(_) => true,
            ColumnSource::Target(_)
            | ColumnSource::Label
            | ColumnSource::Key
            | ColumnSource::Sample
            | ColumnSource::Further(_)
            | ColumnSource::ImageSize(_) => false,
        }
    }

    /// The lengths of the axes of a column in a batch of these heights and widths.
    pub(super) fn lengths(
        &self,
        (index, column): (usize, &Column),
        sizes: &[(u32, u32)],
    ) -> [u32; AXES_MAX] {
        // Batches without pictures have no sizes, and no columns that depend on them.
        let size = sizes.get(self.of_column[index]).copied().unwrap_or((0, 0));
        let own = self.axes((index, column), size);
        let axes = match Self::is_per_picture(column) {
            true => [&self.pictures(index).outer[..], &own].concat(),
            false => own,
        };
        std::array::from_fn(|axis| axes.get(axis).copied().unwrap_or(0))
    }

    /// Bytes of a row of a column at a position: of the whole value, or of one object's.
    pub(super) fn row_bytes(&self, column: (usize, &Column), position: usize) -> usize {
        let sizes = self.pictures(column.0).at(position);
        let of = |size: &(u32, u32)| {
            bytes_of(&self.axes(column, *size), column.1.kind.element().bytes())
        };
        match Self::is_per_picture(column.1) {
            true => sizes.iter().map(of).sum(),
            false => of(&sizes[0]),
        }
    }

    /// The shape of the value at a position, from its number of bytes.
    pub(super) fn shape(
        &self,
        column: (usize, &Column),
        position: usize,
        bytes: usize,
    ) -> Vec<u32> {
        let axes = self.axes(column, self.pictures(column.0).at(position)[0]);
        let kind = &column.1.kind;
        if kind.rank_of_shapes() == axes.len() {
            return axes;
        }
        let rows = bytes / bytes_of(&axes, kind.element().bytes()).max(1);
        let rows = u32::try_from(rows).expect("a sample has less than 2^32 objects");
        [&[rows], &axes[..]].concat()
    }

    /// Writes the value of a sample, or of several pictures or objects of it, into memory of the
    /// batch's shape.
    pub(super) fn pad(
        &self,
        column: (usize, &Column),
        position: usize,
        sizes: &[(u32, u32)],
        (value, into): (&[u8], &mut [u8]),
    ) {
        let (mut value, element) = (value, column.1.kind.element().bytes());
        let to = self.axes(column, sizes[self.of_column[column.0]]);
        let own = self.pictures(column.0).at(position);
        let is_per_picture = Self::is_per_picture(column.1);
        for (at, into) in into.chunks_exact_mut(bytes_of(&to, element).max(1)).enumerate() {
            let from = self.axes(column, own[if is_per_picture { at } else { 0 }]);
            let (first, rest) = value.split_at(bytes_of(&from, element));
            pad(first, into, Padding { from: &from, to: &to, fill: &self.fills[column.0] });
            value = rest;
        }
    }

    /// Bytes of a padded value, or of several pictures' or objects', of which this number is its
    /// own.
    pub(super) fn padded_bytes(
        &self,
        column: (usize, &Column),
        position: usize,
        sizes: &[(u32, u32)],
        bytes: usize,
    ) -> usize {
        let axes = self.axes(column, sizes[self.of_column[column.0]]);
        let padded = bytes_of(&axes, column.1.kind.element().bytes());
        match Self::is_per_picture(column.1) {
            true => self.pictures(column.0).count * padded,
            false => bytes / self.row_bytes(column, position).max(1) * padded,
        }
    }

    /// Writes which pixels of a sample's padded pictures are padding: 1 for those.
    pub(super) fn mark_padding(
        &self,
        index: usize,
        position: usize,
        sizes: &[(u32, u32)],
        into: &mut [u8],
    ) {
        let (height, width) = sizes[self.of_column[index]];
        let pixels = (height as usize * width as usize).max(1);
        let own = self.pictures(index).at(position);
        for ((rows, columns), into) in own.iter().zip(into.chunks_exact_mut(pixels)) {
            into.fill(1);
            let rows = into.chunks_exact_mut((width as usize).max(1)).take(*rows as usize);
            rows.for_each(|row| row[..*columns as usize].fill(0));
        }
    }

    /// Pictures of a sample in the column that a column belongs to.
    pub(super) fn count(&self, index: usize) -> usize {
        self.pictures(index).count
    }

    /// Writes height and width of each picture at the position.
    pub(super) fn write_sizes(&self, index: usize, position: usize, into: &mut [u8]) {
        let sides = self.pictures(index).at(position).iter().flat_map(|(h, w)| [*h, *w]);
        for (into, side) in into.chunks_exact_mut(8).zip(sides) {
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
