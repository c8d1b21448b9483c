//! `mel_spectrogram`.

use crate::Cpu;
use crate::audio::{Mel, Transform};
use crate::series::{SeriesChange, SeriesOperation};
use meetpoint_format::recipe::MelSpectrogram;

impl SeriesOperation for MelSpectrogram {
    fn start(&self, sample_rate: Option<u32>, cpu: Cpu) -> Box<dyn SeriesChange> {
        let rate = sample_rate.expect("the recipe was checked: it is of sound");
        Box::new(Transform::new(self.stft, Mel::new(self, rate), cpu))
    }
}
