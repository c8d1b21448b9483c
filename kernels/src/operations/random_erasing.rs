//! Executes `random_erasing`.

use super::TensorOperation;
use crate::Error;
use crate::finished::{FinishedTensor, Rectangle};
use crate::picture_program::ErasedValues;
use crate::random::{Field, normal, normals};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{ErasingMode, RandomErasing};

/// Attempts to find a rectangle that fits.
const TRIES: usize = 10;

/// Draws a rectangle of a tensor of this height and width; `None` if no attempt fits.
fn rectangle(
    erasing: &RandomErasing,
    count: u32,
    (height, width): (u32, u32),
    draws: &mut Draws,
) -> Option<Rectangle> {
    let RandomErasing { scale, ratio, .. } = *erasing;
    let whole = f64::from(height) * f64::from(width);
    for _ in 0..TRIES {
        let area = whole * draws.uniform_in(scale.0, scale.1) / f64::from(count);
        let aspect = libm::exp(draws.uniform_in(libm::log(ratio.0), libm::log(ratio.1)));
        let side = |square: f64| square.sqrt().round_ties_even();
        let (rows, columns) = (side(area * aspect), side(area / aspect));
        if rows < f64::from(height) && columns < f64::from(width) {
            let (rows, columns) = (rows as u32, columns as u32);
            let top = draws.up_to(height - rows);
            let left = draws.up_to(width - columns);
            let [top, left, height, width] = [top, left, rows, columns].map(|side| side as usize);
            return Some(Rectangle { top, left, height, width });
        }
    }
    None
}

impl TensorOperation for RandomErasing {
    fn apply(&self, draws: &mut Draws, tensor: &mut FinishedTensor<'_>) -> Result<(), Error> {
        if !draws.chance(self.p) {
            return Ok(());
        }
        let Self { min_count, max_count, .. } = *self;
        let more = if max_count > min_count { draws.up_to(max_count - min_count) } else { 0 };
        let count = min_count + more;
        let spec = tensor.spec();
        for _ in 0..count {
            if let Some(found) = rectangle(self, count, (spec.height, spec.width), draws) {
                erase(self, found, draws, tensor)?;
            }
        }
        Ok(())
    }
}

/// Replaces the elements of a rectangle.
fn erase(
    erasing: &RandomErasing,
    found: Rectangle,
    draws: &mut Draws,
    tensor: &mut FinishedTensor<'_>,
) -> Result<(), Error> {
    let Rectangle { top, left, height, width } = found;
    let channels = tensor.spec().channels as usize;
    let columns = left..left + width;
    match erasing.mode {
        ErasingMode::Constant | ErasingMode::Rand => {
            let mut value = |channel| match erasing.mode {
                ErasingMode::Rand => normal(draws.next_u32()),
                ErasingMode::Constant | ErasingMode::Pixel => erasing.value.channel(channel),
            };
            let values: Vec<f32> = (0..channels).map(|channel| value(channel) as f32).collect();
            tensor.fill(found, &values)?;
        }
        ErasingMode::Pixel => {
            let field = Field::drawn(draws);
            if let Some(recording) = tensor.recording() {
                recording.erase(found.erased(ErasedValues::Noise { key: field.key() }));
                return Ok(());
            }
            let (mut words, mut numbers) = (vec![0; width], vec![0.0; width]);
            for channel in 0..channels {
                for y in 0..height {
                    field.row(tensor.cpu(), channel, y, &mut words);
                    normals(tensor.cpu(), &words, &mut numbers);
                    tensor.set(channel, top + y, columns.clone(), |x| numbers[x] as f32)?;
                }
            }
        }
    }
    Ok(())
}
