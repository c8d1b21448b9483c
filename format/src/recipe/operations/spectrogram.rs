//! `spectrogram`: sound to a spectrogram of equally spaced frequencies.

use super::{Data, Stft};
use crate::recipe::SampleType;
use crate::recipe::declaration::{
    Declaration, InputType, Needs, OnTargets, OutputType, Phase, Property, ValueKind,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};

/// The magnitudes of `librosa.stft`, or their squares: float32 for each channel, frequency and
/// frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spectrogram {
    /// Frames, window and power.
    pub stft: Stft,
}

impl Data for Spectrogram {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "spectrogram",
        about: "computes the magnitude or power of each frequency over time",
        phase: Phase::Series,
        targets: OnTargets::Refuses,
        takes: &[InputType::AUDIO],
        gives: OutputType {
            kind: ValueKind::Spectrogram,
            size: Property::Key("n_fft"),
            ..OutputType::SERIES
        },
        needs: Needs::All,
        random: &[],
        keys: &[
            Stft::N_FFT,
            Stft::WIN_LENGTH,
            Stft::HOP_LENGTH,
            Stft::POWER,
            Stft::CENTER,
            Stft::PAD_MODE,
        ],
    };

    fn read(values: &Values) -> Self {
        Self { stft: Stft::read(values) }
    }

    fn values(&self) -> Vec<Value> {
        [self.stft.first_values(), self.stft.last_values()].concat()
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        self.stft.follow(self.stft.frequencies(), sample)
    }
}
