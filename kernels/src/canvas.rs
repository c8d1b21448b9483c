//! The target of a stage's rows: the tensor, or the picture for the next stage, filled with a
//! colour around the rows if the canvas is larger.

use crate::Cpu;
use crate::colour::RowChange;
use crate::planes::{Planes, ROW_SLACK, Row};
use crate::stage::Stage;
use crate::tensor::{Bits, RowPart, RowPosition, TensorWriter};

/// Maximum bytes per step of a change of a row.
const STEP: usize = 64;

/// The target to fill.
#[derive(Debug)]
pub(crate) enum Target<'a> {
    /// The tensor, in which a mirrored canvas is written mirrored.
    Tensor(&'a mut TensorWriter, &'a mut [u8]),
    /// A picture. It is written mirrored left to right only if operations on whole pictures follow;
    /// otherwise [`Stage::result`] leaves that to the next stage.
    Picture(&'a mut Planes),
}

/// Row buffers, reused for the next sample.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    /// A row of the fill colour with the current row inside it; only for a padded canvas.
    padded: Vec<u8>,
    /// The tensor of a row of the fill colour.
    filled: Vec<u8>,
    /// A row buffer for changes of colours, and the changes.
    changed: Vec<u8>,
    changes: Vec<RowChange>,
}

/// A canvas being filled.
#[derive(Debug)]
pub(crate) struct Filling<'a> {
    stage: &'a Stage,
    target: Target<'a>,
    cpu: Cpu,
    padded: &'a mut [u8],
    filled: &'a [u8],
    changed: &'a mut Vec<u8>,
    changes: &'a [RowChange],
}

impl Canvas {
    /// Starts a canvas and writes the filled rows at the top.
    pub(crate) fn begin<'a>(
        &'a mut self,
        cpu: Cpu,
        stage: &'a Stage,
        mut target: Target<'a>,
    ) -> Filling<'a> {
        let width = stage.canvas.width as usize;
        stage.changes.prepare(&mut self.changes);
        self.padded.clear();
        if stage.is_padded() {
            let bytes = width.next_multiple_of(ROW_SLACK);
            for value in &stage.fill[..3] {
                self.padded.resize(self.padded.len() + bytes, *value);
            }
        }
        match &mut target {
            Target::Picture(picture) => picture.set_size(width, stage.canvas.height as usize),
            // Changes also apply to the fill, so that rows are then padded before they are changed.
            Target::Tensor(writer, _) if stage.is_padded() && self.changes.is_empty() => {
                self.filled.resize(writer.row_bytes(width), 0);
                let place = RowPosition { y: 0, height: 1, mirrored: false };
                writer.write_row(row_of(&self.padded, width), place, &mut self.filled);
            }
            Target::Tensor(..) => (),
        }
        let Self { padded, filled, changed, changes } = self;
        let mut filling = Filling { stage, target, cpu, padded, filled, changed, changes };
        for y in 0..stage.at.1 as usize {
            filling.put_filled(y);
        }
        filling
    }
}

/// The row in three planes, which are stored one after the other.
fn row_of(planes: &[u8], width: usize) -> Row<'_> {
    let bytes = planes.len() / 3;
    Row { planes: [0, 1, 2].map(|plane| &planes[plane * bytes..][..bytes]), width }
}

impl Filling<'_> {
    /// Writes a row of the window.
    pub(crate) fn put(&mut self, y: usize, row: Row<'_>) {
        let y = self.stage.at.1 as usize + y;
        if !self.stage.is_padded() {
            return self.put_whole(y, row);
        }
        if self.changes.is_empty() {
            return self.put_window(y, row);
        }
        let bytes = self.padded.len() / 3;
        for (out, plane) in self.padded.chunks_exact_mut(bytes).zip(row.planes) {
            out[self.stage.at.0 as usize..][..row.width].copy_from_slice(&plane[..row.width]);
        }
        self.put_padded(y);
    }

    /// Writes the filled rows at the bottom, after all rows of the window.
    pub(crate) fn finish(mut self) {
        let bytes = self.padded.len() / 3;
        for (plane, value) in self.padded.chunks_exact_mut(bytes.max(1)).zip(self.stage.fill) {
            plane.fill(value);
        }
        let window = self.stage.window_height() as usize;
        for y in self.stage.at.1 as usize + window..self.stage.canvas.height as usize {
            self.put_filled(y);
        }
    }

    /// Writes a row of the window between columns of the fill colour.
    fn put_window(&mut self, y: usize, row: Row<'_>) {
        let canvas = self.stage.canvas;
        let (columns, place) = (canvas.width as usize, self.place(y));
        let left = self.stage.at.0 as usize;
        match &mut self.target {
            Target::Tensor(writer, out) => {
                let right = columns - left - row.width;
                let (before, after) = if canvas.mirrored { (right, left) } else { (left, right) };
                let part = |x| RowPart { place, x, columns };
                writer.copy_part(self.filled, part(0), before, out);
                writer.write_part(row, part(before), Bits::NONE, out);
                writer.copy_part(self.filled, part(before + row.width), after, out);
            }
            Target::Picture(picture) => {
                let is_mirrored = canvas.mirrored && !self.stage.result().mirrored;
                for ((plane, from), fill) in row.planes.iter().enumerate().zip(self.stage.fill) {
                    let out = picture.row_mut(plane, place.y);
                    out[..left].fill(fill);
                    out[left..left + row.width].copy_from_slice(&from[..row.width]);
                    out[left + row.width..].fill(fill);
                    if is_mirrored {
                        out.reverse();
                    }
                }
            }
        }
    }

    /// Writes a row of the fill colour; nothing was put into the padded row since it was filled.
    fn put_filled(&mut self, y: usize) {
        let place = self.place(y);
        match &mut self.target {
            Target::Tensor(writer, out) if self.changes.is_empty() => {
                let columns = self.stage.canvas.width as usize;
                writer.copy_part(self.filled, RowPart { place, x: 0, columns }, columns, out);
            }
            Target::Tensor(..) | Target::Picture(_) => self.put_padded(y),
        }
    }

    /// Writes the padded row.
    fn put_padded(&mut self, y: usize) {
        let padded = std::mem::take(&mut self.padded);
        self.put_whole(y, row_of(padded, self.stage.canvas.width as usize));
        self.padded = padded;
    }

    /// Changes the colours of a row as wide as the canvas, and writes it.
    fn put_whole(&mut self, y: usize, row: Row<'_>) {
        if self.changes.is_empty() {
            return self.write(y, row, Bits::NONE);
        }
        if let ([RowChange::Bits(bits)], Target::Tensor(writer, _)) = (self.changes, &self.target)
            && writer.changes_bits()
        {
            return self.write(y, row, *bits);
        }
        let mut changed = std::mem::take(self.changed);
        // Bytes beyond the width are changed as well, so that the end of a row needs no special
        // case.
        let bytes = row.width.next_multiple_of(STEP);
        changed.resize(3 * bytes, 0);
        for (out, plane) in changed.chunks_exact_mut(bytes).zip(row.planes) {
            out[..row.width].copy_from_slice(&plane[..row.width]);
        }
        for change in self.changes {
            let (red, rest) = changed.split_at_mut(bytes);
            let (green, blue) = rest.split_at_mut(bytes);
            change.apply(self.cpu, [red, green, blue]);
        }
        self.write(y, row_of(&changed, row.width), Bits::NONE);
        *self.changed = changed;
    }

    /// The position of a row of the canvas in its target.
    fn place(&self, y: usize) -> RowPosition {
        let canvas = self.stage.canvas;
        let height = canvas.height as usize;
        let y = if canvas.flipped { height - 1 - y } else { y };
        RowPosition { y, height, mirrored: canvas.mirrored }
    }

    /// Writes a row as wide as the canvas, after a change of its bits if the target is a tensor.
    fn write(&mut self, y: usize, row: Row<'_>, bits: Bits) {
        let (canvas, place) = (self.stage.canvas, self.place(y));
        match &mut self.target {
            Target::Tensor(writer, out) => {
                writer.write_part(row, RowPart { place, x: 0, columns: row.width }, bits, out);
            }
            Target::Picture(picture) => {
                let is_mirrored = canvas.mirrored && !self.stage.result().mirrored;
                for (plane, from) in row.planes.iter().enumerate() {
                    let out = picture.row_mut(plane, place.y);
                    out.copy_from_slice(&from[..row.width]);
                    if is_mirrored {
                        out.reverse();
                    }
                }
            }
        }
    }
}
