//! Keys and checks that operations on frames of sound share.

use crate::recipe::declaration::{Key, KeyType};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Layout, PadMode, SampleType, Series};

/// Maximum number of samples of a frame.
pub(super) const N_FFT_MAX: u32 = 1 << 16;

/// A short-time Fourier transform: how sound is cut into frames, and how each is transformed.
///
/// Frame t begins at t * `hop_length`; with `center`, the sound is first padded by `n_fft / 2` at
/// both ends. A frame is multiplied by a periodic Hann window of `win_length`, centred in it:
/// `0.5 - 0.5 cos(2 pi n / win_length)`, and transformed. The value of frequency k, from 0 to
/// `n_fft / 2`, is its magnitude to the power of `power`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stft {
    /// Samples of a frame: even, without prime factors above 5.
    pub n_fft: u32,
    /// Samples of the window; none: `n_fft`.
    pub win_length: Option<u32>,
    /// Samples from one frame to the next.
    pub hop_length: u32,
    /// 1: magnitude, 2: power.
    pub power: u32,
    /// Whether frame t is centred at t * `hop_length`.
    pub center: bool,
    /// How the ends are padded if `center` is set.
    pub pad_mode: PadMode,
}

impl Stft {
    pub(super) const N_FFT: Key = Key::required(
        "n_fft",
        KeyType::WholeIn { least: 4, most: N_FFT_MAX },
        Value::Whole(400),
        "samples of a frame, an even number without prime factors above 5",
    );
    pub(super) const WIN_LENGTH: Key = Key::absent(
        "win_length",
        KeyType::WholeIn { least: 1, most: N_FFT_MAX },
        "samples of the window; none: `n_fft`",
    );
    pub(super) const HOP_LENGTH: Key = Key::required(
        "hop_length",
        KeyType::WholeIn { least: 1, most: N_FFT_MAX },
        Value::Whole(160),
        "samples from one frame to the next",
    );
    pub(super) const POWER: Key = Key::optional(
        "power",
        KeyType::Whole { choices: &[1, 2] },
        Value::Whole(2),
        "1: magnitude, 2: power",
    );
    pub(super) const CENTER: Key = Key::optional(
        "center",
        KeyType::Switch,
        Value::Switch(true),
        "whether frames are centred at multiples of `hop_length`, with padded ends",
    );
    pub(super) const PAD_MODE: Key = Key::optional(
        "pad_mode",
        KeyType::Word { choices: PadMode::NAMES },
        Value::Word(PadMode::Constant.name()),
        "the padding of the ends: zeros, as in librosa, or the mirrored sound, as in torch",
    );

    pub(super) fn read(values: &Values) -> Self {
        Self {
            n_fft: values.whole("n_fft"),
            win_length: values.optional_whole("win_length"),
            hop_length: values.whole("hop_length"),
            power: values.whole("power"),
            center: values.switch("center"),
            pad_mode: values.named("pad_mode", PadMode::from_name),
        }
    }

    /// The values of `n_fft`, `win_length`, `hop_length` and `power`.
    pub(super) fn first_values(&self) -> Vec<Value> {
        vec![
            Value::Whole(self.n_fft),
            self.win_length.map_or(Value::Absent, Value::Whole),
            Value::Whole(self.hop_length),
            Value::Whole(self.power),
        ]
    }

    /// The values of `center` and `pad_mode`.
    pub(super) fn last_values(&self) -> Vec<Value> {
        vec![Value::Switch(self.center), Value::Word(self.pad_mode.name())]
    }

    /// Frequencies of a frame.
    pub fn frequencies(&self) -> u32 {
        self.n_fft / 2 + 1
    }

    /// Samples of padding at each end.
    pub fn padding(&self) -> u32 {
        if self.center { self.n_fft / 2 } else { 0 }
    }

    /// Number of frames in `length` samples; `None` if there are too few for one frame.
    pub fn frames(&self, length: u32) -> Option<u32> {
        let padded = u64::from(length) + 2 * u64::from(self.padding());
        let rest = padded.checked_sub(u64::from(self.n_fft))?;
        let is_mirrored = self.center && self.pad_mode == PadMode::Reflect;
        if length == 0 || is_mirrored && length <= self.padding() {
            return None;
        }
        u32::try_from(rest / u64::from(self.hop_length) + 1).ok()
    }

    /// Checks the keys, and sets the sample's type to a spectrogram of `rows`.
    pub(super) fn follow(&self, rows: u32, sample: &mut SampleType) -> Result<(), Fault> {
        let mut rest = self.n_fft;
        for factor in [2, 3, 5] {
            while rest.is_multiple_of(factor) {
                rest /= factor;
            }
        }
        if rest != 1 || !self.n_fft.is_multiple_of(2) {
            let problem = format!("holds {}", self.n_fft);
            let remedy = "an even number without prime factors above 5, such as 400 or 512";
            return Err(Fault::of_value("n_fft", problem, remedy));
        }
        if let Some(window) = self.win_length.filter(|window| *window > self.n_fft) {
            let problem = format!("holds {window}, more than `n_fft`");
            return Err(Fault::of_value("win_length", problem, format!("at most {}", self.n_fft)));
        }
        let series = sample.expect_series();
        let length = match series.length {
            Some(length) => match self.frames(length) {
                Some(frames) => Some(frames),
                None => {
                    let problem = format!("is longer than the {length} available samples");
                    return Err(Fault::of_value("n_fft", problem, "a shorter frame"));
                }
            },
            None => None,
        };
        sample.set_series(Series { rows, length, ..series }, Layout::Nchw);
        Ok(())
    }
}
