//! `select_channels`.

use crate::series::{Pause, Series, SeriesChange, SeriesOperation, SeriesShape};
use crate::{Cpu, Error};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::SelectChannels;

impl SeriesOperation for SelectChannels {
    fn start(&self, _sample_rate: Option<u32>, _cpu: Cpu) -> Box<dyn SeriesChange> {
        Box::new(Selection(self.channels.iter().map(|channel| *channel as usize).collect()))
    }
}

/// Indices of the retained channels.
#[derive(Debug)]
struct Selection(Vec<usize>);

impl SeriesChange for Selection {
    fn shape(&self, input: SeriesShape) -> Result<SeriesShape, Error> {
        Ok(SeriesShape { channels: self.0.len(), ..input })
    }

    fn apply(
        &mut self,
        _draws: &mut Draws,
        values: &mut Series,
        next: &mut Series,
        pause: Pause<'_>,
    ) -> Result<(), Error> {
        next.shape = self.shape(values.shape)?;
        next.values.clear();
        let channel_values = values.shape.rows * values.shape.length;
        for channel in &self.0 {
            let start = channel * channel_values;
            next.values.extend_from_slice(&values.values[start..start + channel_values]);
            pause()?;
        }
        std::mem::swap(values, next);
        Ok(())
    }
}
