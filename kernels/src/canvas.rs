//! The target of a stage's rows: the tensor, or the picture for the next stage, filled with a
//! colour around the rows if the canvas is larger.

use crate::Cpu;
use crate::colour::RowChange;
use crate::planes::{Planes, ROW_SLACK, Row};
use crate::stage::Stage;
use crate::tensor::{RowPosition, TensorWriter};

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
    changed: &'a mut Vec<u8>,
    changes: &'a [RowChange],
}

impl Canvas {
    /// Starts a canvas and writes the filled rows at the top.
    pub(crate) fn begin<'a>(
        &'a mut self,
        cpu: Cpu,
        stage: &'a Stage,
        target: Target<'a>,
    ) -> Filling<'a> {
        self.padded.clear();
        if stage.is_padded() {
            let bytes = (stage.canvas.width as usize).next_multiple_of(ROW_SLACK);
            for value in &stage.fill[..3] {
                self.padded.resize(self.padded.len() + bytes, *value);
            }
        }
        stage.changes.prepare(&mut self.changes);
        let (padded, changed) = (&mut self.padded[..], &mut self.changed);
        let changes = &self.changes[..];
        let mut filling = Filling { stage, target, cpu, padded, changed, changes };
        if let Target::Picture(picture) = &mut filling.target {
            picture.set_size(stage.canvas.width as usize, stage.canvas.height as usize);
        }
        for y in 0..stage.at.1 as usize {
            filling.put_padded(y);
        }
        filling
    }
}

impl Filling<'_> {
    /// Writes a row of the window.
    pub(crate) fn put(&mut self, y: usize, row: Row<'_>) {
        let y = self.stage.at.1 as usize + y;
        if !self.stage.is_padded() {
            return self.put_whole(y, row);
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
            self.put_padded(y);
        }
    }

    /// Writes the padded row.
    fn put_padded(&mut self, y: usize) {
        let padded = std::mem::take(&mut self.padded);
        let bytes = padded.len() / 3;
        let planes = [0, 1, 2].map(|plane| &padded[plane * bytes..][..bytes]);
        self.put_whole(y, Row { planes, width: self.stage.canvas.width as usize });
        self.padded = padded;
    }

    /// Changes the colours of a row as wide as the canvas, and writes it.
    fn put_whole(&mut self, y: usize, row: Row<'_>) {
        if self.changes.is_empty() {
            return self.write(y, row);
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
        let planes = [0, 1, 2].map(|plane| &changed[plane * bytes..][..bytes]);
        self.write(y, Row { planes, width: row.width });
        *self.changed = changed;
    }

    /// Writes a row as wide as the canvas.
    fn write(&mut self, y: usize, row: Row<'_>) {
        let canvas = self.stage.canvas;
        let height = canvas.height as usize;
        let y = if canvas.flipped { height - 1 - y } else { y };
        match &mut self.target {
            Target::Tensor(writer, out) => {
                let place = RowPosition { y, height, mirrored: canvas.mirrored };
                writer.write_row(row, place, out);
            }
            Target::Picture(picture) => {
                let is_mirrored = canvas.mirrored && !self.stage.result().mirrored;
                for (plane, from) in row.planes.iter().enumerate() {
                    let out = picture.row_mut(plane, y);
                    out.copy_from_slice(&from[..row.width]);
                    if is_mirrored {
                        out.reverse();
                    }
                }
            }
        }
    }
}
