//! `decode_audio`: an encoded recording to sound.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, ValueKind,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Layout, SampleType, Series};

/// A WAV, FLAC or MP3 file to float32 for each channel and step in time, at one sample rate. Always
/// first, and nowhere else.
///
/// Integers of b bits are divided by 2^(b - 1). `num_channels` and `sample_rate` are then applied
/// in this order: the mean of all channels has to be resampled only once. The resampling is
/// `torchaudio.transforms.Resample` with its defaults: a sinc of 6 zero crossings on each side,
/// windowed by Hann, with a rolloff of 0.99. A file with this `sample_rate` is not resampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecodeAudio {
    /// Samples per second of the result.
    pub sample_rate: u32,
    /// Channels of the result: 1 is the mean of all; otherwise the file must have this number, or
    /// one channel, which is repeated.
    pub num_channels: u32,
}

impl DecodeAudio {
    /// Highest sample rate, of a file and of the result.
    pub const SAMPLE_RATE_MAX: u32 = 384_000;

    /// Maximum number of channels of a result.
    pub const CHANNELS_MAX: u32 = 8;
}

impl Data for DecodeAudio {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "decode_audio",
        about: "decodes a WAV, FLAC or MP3 file, mixes its channels and resamples it",
        phase: Phase::Decode,
        targets: OnTargets::Refuses,
        takes: &[InputType::ENCODED],
        gives: OutputType {
            kind: ValueKind::Audio,
            dtype: Property::Is("float32"),
            size: Property::Variable,
            channels: Property::Key("num_channels"),
        },
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required(
                "sample_rate",
                KeyType::WholeIn { least: 1, most: Self::SAMPLE_RATE_MAX },
                Value::Whole(16_000),
                "samples per second; files at another rate are resampled",
            ),
            Key::optional(
                "num_channels",
                KeyType::WholeIn { least: 1, most: Self::CHANNELS_MAX },
                Value::Whole(1),
                "channels; 1: the mean of all",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let [sample_rate, num_channels] =
            ["sample_rate", "num_channels"].map(|key| values.whole(key));
        Self { sample_rate, num_channels }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Whole(self.sample_rate), Value::Whole(self.num_channels)]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        sample.channels = self.num_channels;
        let series = Series { sample_rate: Some(self.sample_rate), rows: 1, length: None };
        sample.set_series(series, Layout::Nct);
        Ok(())
    }
}
