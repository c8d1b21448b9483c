//! `spectrogram`.

use crate::Cpu;
use crate::audio::Transform;
use crate::series::{SeriesChange, SeriesOperation};
use meetpoint_format::recipe::Spectrogram;

impl SeriesOperation for Spectrogram {
    fn start(&self, _sample_rate: Option<u32>, cpu: Cpu) -> Box<dyn SeriesChange> {
        Box::new(Transform::every_bin(self.stft, cpu))
    }
}
