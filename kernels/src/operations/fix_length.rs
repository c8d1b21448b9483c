//! `fix_length` and `random_time_crop`: select a part of fixed length in time.

use crate::series::{Pause, Series, SeriesChange, SeriesOperation, SeriesShape};
use crate::{Cpu, Error};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{FixLength, RandomTimeCrop};

/// A part of fixed length in time, from the beginning or from a random time step on.
#[derive(Debug, Clone, Copy)]
struct Part {
    length: usize,
    value: f32,
    is_random: bool,
}

impl SeriesOperation for FixLength {
    fn start(&self, _sample_rate: Option<u32>, _cpu: Cpu) -> Box<dyn SeriesChange> {
        let (length, value) = (self.length as usize, self.value as f32);
        Box::new(Part { length, value, is_random: false })
    }
}

impl SeriesOperation for RandomTimeCrop {
    fn start(&self, _sample_rate: Option<u32>, _cpu: Cpu) -> Box<dyn SeriesChange> {
        let (length, value) = (self.length as usize, self.value as f32);
        Box::new(Part { length, value, is_random: true })
    }
}

impl SeriesChange for Part {
    fn shape(&self, input: SeriesShape) -> Result<SeriesShape, Error> {
        Ok(SeriesShape { length: self.length, ..input })
    }

    fn apply(
        &mut self,
        draws: &mut Draws,
        values: &mut Series,
        next: &mut Series,
        pause: Pause<'_>,
    ) -> Result<(), Error> {
        let Self { length, value, is_random } = *self;
        let found = values.shape.length;
        let start = match found.checked_sub(length) {
            Some(rest) if rest > 0 && is_random => {
                draws.up_to(u32::try_from(rest).expect("at most LENGTH_MAX")) as usize
            }
            _ => 0,
        };
        let kept = length.min(found);
        next.shape = self.shape(values.shape)?;
        next.values.clear();
        next.values.reserve(next.shape.values());
        for row in values.values.chunks_exact(found) {
            next.values.extend_from_slice(&row[start..start + kept]);
            next.values.resize(next.values.len() + length - kept, value);
        }
        pause()?;
        std::mem::swap(values, next);
        Ok(())
    }
}
