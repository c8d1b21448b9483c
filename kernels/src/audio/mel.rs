//! Mel bands: weighted sums of frequencies.

use super::fft::{LANES, Lanes};
use super::stft::Bins;
use meetpoint_format::recipe::{MelNorm, MelScale, MelSpectrogram};

/// The weights of all bands.
#[derive(Debug)]
pub(crate) struct Mel {
    /// For each band its first frequency and the weights from there on.
    bands: Vec<(usize, Vec<f32>)>,
}

impl Mel {
    /// The bands of an operation, for sound with a sample rate.
    pub(crate) fn new(operation: &MelSpectrogram, sample_rate: u32) -> Self {
        let MelSpectrogram { stft, n_mels, f_min, mel_scale, norm, .. } = *operation;
        let step = f64::from(sample_rate) / f64::from(stft.n_fft);
        let (low, high) =
            (to_mel(mel_scale, f_min), to_mel(mel_scale, operation.highest(sample_rate)));
        let corner = |index: u32| {
            let share = f64::from(index) / f64::from(n_mels + 1);
            to_hertz(mel_scale, low + (high - low) * share)
        };
        let corners: Vec<f64> = (0..n_mels + 2).map(corner).collect();
        let bands = corners.windows(3).map(|corners| {
            let [left, middle, right] = corners else { unreachable!("windows of three") };
            let factor = match norm {
                MelNorm::Slaney => 2.0 / (right - left),
                MelNorm::None => 1.0,
            };
            let weight = |index: u32| {
                let frequency = step * f64::from(index);
                let rise = (frequency - left) / (middle - left);
                let fall = (right - frequency) / (right - middle);
                (factor * rise.min(fall).max(0.0)) as f32
            };
            let weights: Vec<f32> = (0..stft.frequencies()).map(weight).collect();
            let first = weights.iter().position(|weight| *weight > 0.0).unwrap_or(0);
            let end = weights.iter().rposition(|weight| *weight > 0.0).map_or(0, |last| last + 1);
            (first, weights[first..end.max(first)].to_vec())
        });
        Self { bands: bands.collect() }
    }
}

impl Bins for Mel {
    fn rows(&self) -> usize {
        self.bands.len()
    }

    #[inline(always)]
    fn fold(&self, frequencies: &[Lanes], rows: &mut [Lanes]) {
        for ((first, weights), row) in self.bands.iter().zip(rows) {
            let mut sum = [0.0; LANES];
            for (weight, values) in weights.iter().zip(&frequencies[*first..]) {
                for lane in 0..LANES {
                    sum[lane] += weight * values[lane];
                }
            }
            *row = sum;
        }
    }
}

/// Hz per mel below the corner of Slaney's scale, that corner in Hz, and the logarithm of the
/// factor of each mel above.
const SLANEY_STEP: f64 = 200.0 / 3.0;
const SLANEY_CORNER: f64 = 1000.0;
const SLANEY_FACTOR: f64 = 6.4;
const SLANEY_MELS: f64 = 27.0;

fn to_mel(scale: MelScale, hertz: f64) -> f64 {
    match scale {
        MelScale::Htk => 2595.0 * libm::log10(1.0 + hertz / 700.0),
        MelScale::Slaney if hertz < SLANEY_CORNER => hertz / SLANEY_STEP,
        MelScale::Slaney => {
            let above = libm::log(hertz / SLANEY_CORNER) / libm::log(SLANEY_FACTOR);
            SLANEY_CORNER / SLANEY_STEP + SLANEY_MELS * above
        }
    }
}

fn to_hertz(scale: MelScale, mel: f64) -> f64 {
    let corner = SLANEY_CORNER / SLANEY_STEP;
    match scale {
        MelScale::Htk => 700.0 * (libm::pow(10.0, mel / 2595.0) - 1.0),
        MelScale::Slaney if mel < corner => SLANEY_STEP * mel,
        MelScale::Slaney => {
            let above = libm::log(SLANEY_FACTOR) * (mel - corner) / SLANEY_MELS;
            SLANEY_CORNER * libm::exp(above)
        }
    }
}
