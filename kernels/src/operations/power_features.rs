//! `power_features`.

use crate::Cpu;
use crate::series::{SeriesChange, SeriesOperation};
use crate::signal::Power;
use meetpoint_format::recipe::PowerFeatures;

impl SeriesOperation for PowerFeatures {
    fn start(&self, _sample_rate: Option<u32>, cpu: Cpu) -> Box<dyn SeriesChange> {
        Box::new(Power::new(*self, cpu))
    }
}
