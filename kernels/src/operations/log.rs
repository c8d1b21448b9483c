//! `log`.

use crate::Cpu;
use crate::audio::Logarithm;
use crate::series::{SeriesChange, SeriesOperation};
use meetpoint_format::recipe::Log;

impl SeriesOperation for Log {
    fn start(&self, _sample_rate: Option<u32>, cpu: Cpu) -> Box<dyn SeriesChange> {
        Box::new(Logarithm::new(self, cpu))
    }
}
