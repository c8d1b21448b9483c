//! `mel_spectrogram`: sound to a spectrogram of mel bands.

use super::{Data, Stft};
use crate::recipe::declaration::{
    Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
    ValueKind,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{MelNorm, MelScale, SampleType};

/// `librosa.feature.melspectrogram`, whose defaults it has; with `mel_scale = "htk"`,
/// `norm = "none"` and `pad_mode = "reflect"`, `torchaudio.transforms.MelSpectrogram`.
///
/// A band is a sum of the values of the short-time Fourier transform, weighted by a triangle. The
/// corners of the triangles are `n_mels + 2` frequencies that are equally spaced in mel from
/// `f_min` to `f_max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MelSpectrogram {
    /// Frames, window and power.
    pub stft: Stft,
    /// Bands.
    pub n_mels: u32,
    /// Lowest frequency, in Hz.
    pub f_min: f64,
    /// Highest frequency, in Hz; `None`: half the sample rate.
    pub f_max: Option<f64>,
    /// How frequency becomes mel.
    pub mel_scale: MelScale,
    /// Weights of a band.
    pub norm: MelNorm,
}

/// Most bands.
const MELS_MAX: u32 = 4096;

impl MelSpectrogram {
    /// The highest frequency in Hz, at a sample rate.
    pub fn highest(&self, sample_rate: u32) -> f64 {
        self.f_max.unwrap_or(f64::from(sample_rate) / 2.0)
    }
}

impl Data for MelSpectrogram {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "mel_spectrogram",
        about: "computes the magnitude or power of mel bands over time",
        phase: Phase::Series,
        targets: OnTargets::Refuses,
        takes: &[InputType::AUDIO],
        gives: OutputType {
            kind: ValueKind::Spectrogram,
            size: Property::Key("n_mels"),
            ..OutputType::SERIES
        },
        needs: Needs::All,
        random: &[],
        keys: &[
            Stft::N_FFT,
            Stft::WIN_LENGTH,
            Stft::HOP_LENGTH,
            Stft::POWER,
            Key::optional(
                "n_mels",
                KeyType::WholeIn { least: 1, most: MELS_MAX },
                Value::Whole(80),
                "mel bands",
            ),
            Key::optional(
                "f_min",
                KeyType::Number(Bounds::NOT_NEGATIVE),
                Value::Number(0.0),
                "the lowest frequency in Hz",
            ),
            Key::absent(
                "f_max",
                KeyType::Number(Bounds::POSITIVE),
                "the highest frequency in Hz; none: half the sample rate",
            ),
            Key::optional(
                "mel_scale",
                KeyType::Word { choices: MelScale::NAMES },
                Value::Word(MelScale::Slaney.name()),
                "how frequency becomes mel",
            ),
            Key::optional(
                "norm",
                KeyType::Word { choices: MelNorm::NAMES },
                Value::Word(MelNorm::Slaney.name()),
                "whether bands have an area of 1 (slaney) or a peak of 1",
            ),
            Stft::CENTER,
            Stft::PAD_MODE,
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            stft: Stft::read(values),
            n_mels: values.whole("n_mels"),
            f_min: values.number("f_min"),
            f_max: values.optional_number("f_max"),
            mel_scale: values.named("mel_scale", MelScale::from_name),
            norm: values.named("norm", MelNorm::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { stft, n_mels, f_min, f_max, mel_scale, norm } = self;
        let own = vec![
            Value::Whole(*n_mels),
            Value::Number(*f_min),
            f_max.map_or(Value::Absent, Value::Number),
            Value::Word(mel_scale.name()),
            Value::Word(norm.name()),
        ];
        [stft.first_values(), own, stft.last_values()].concat()
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let rate = sample.expect_series().sample_rate.expect("sound has a sample rate");
        let (highest, half) = (self.highest(rate), f64::from(rate) / 2.0);
        if highest > half {
            let problem = format!("is {highest:?}, above half the sample rate of {rate}");
            return Err(Fault::of_value("f_max", problem, format!("at most {half:?}")));
        }
        if self.f_min >= highest {
            let problem = format!("is {:?}, not below the highest frequency", self.f_min);
            return Err(Fault::of_value("f_min", problem, format!("less than {highest:?}")));
        }
        self.stft.follow(self.n_mels, sample)
    }
}
