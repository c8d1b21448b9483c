//! The short-time Fourier transform: computes the magnitude or power of each frequency of sound.

use super::fft::{LANES, Lanes, RealFft};
use crate::series::{Kernel, Pause, Series, SeriesChange, SeriesShape, execute};
use crate::{Cpu, Error};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{PadMode, Stft};

/// A function of the frequencies of 8 frames.
pub(crate) trait Bins: std::fmt::Debug + Send + Sync {
    /// Rows of a channel of the result.
    fn rows(&self) -> usize;

    /// Computes the rows of 8 frames from their frequencies.
    fn fold(&self, frequencies: &[Lanes], rows: &mut [Lanes]);
}

/// The transform, and the function of its frequencies.
#[derive(Debug)]
pub(crate) struct Transform<B> {
    stft: Stft,
    /// The window, as long as a frame.
    window: Vec<f32>,
    fft: RealFft,
    bins: B,
    cpu: Cpu,
    padded: Vec<f32>,
    frequencies: Vec<Lanes>,
    rows: Vec<Lanes>,
}

/// All frequencies unchanged.
#[derive(Debug)]
pub(crate) struct EveryBin(pub(crate) usize);

impl Bins for EveryBin {
    fn rows(&self) -> usize {
        self.0
    }

    #[inline(always)]
    fn fold(&self, frequencies: &[Lanes], rows: &mut [Lanes]) {
        rows.copy_from_slice(frequencies);
    }
}

impl Transform<EveryBin> {
    pub(crate) fn every_bin(stft: Stft, cpu: Cpu) -> Self {
        Self::new(stft, EveryBin(stft.frequencies() as usize), cpu)
    }
}

impl<B: Bins> Transform<B> {
    pub(crate) fn new(stft: Stft, bins: B, cpu: Cpu) -> Self {
        let length = stft.n_fft as usize;
        let fft = RealFft::new(length);
        Self {
            window: window(stft, length),
            frequencies: vec![[0.0; LANES]; fft.frequencies()],
            rows: vec![[0.0; LANES]; bins.rows()],
            fft,
            bins,
            cpu,
            padded: Vec::new(),
            stft,
        }
    }

    /// The samples of a channel with their padding.
    fn pad(&mut self, samples: &[f32]) {
        let padding = self.stft.padding() as usize;
        let (padded, last) = (&mut self.padded, samples.len() - 1);
        padded.clear();
        match self.stft.pad_mode {
            PadMode::Constant => padded.resize(padding, 0.0),
            PadMode::Reflect => padded.extend((0..padding).map(|at| samples[padding - at])),
        }
        padded.extend_from_slice(samples);
        match self.stft.pad_mode {
            PadMode::Constant => padded.resize(samples.len() + 2 * padding, 0.0),
            PadMode::Reflect => padded.extend((0..padding).map(|at| samples[last - 1 - at])),
        }
    }

    /// Transforms 8 frames starting at `first`; the last frame is repeated beyond the end.
    #[inline(always)]
    fn transform(&mut self, first: usize, frames: usize) {
        let (length, hop) = (self.window.len(), self.stft.hop_length as usize);
        for lane in 0..LANES {
            let start = hop * (first + lane).min(frames - 1);
            let frame = &self.padded[start..start + length];
            self.fft.load(lane, frame, &self.window);
        }
        let (frequencies, is_power) = (&mut self.frequencies, self.stft.power == 2);
        self.fft.squares(|index, squares| {
            let to = &mut frequencies[index];
            *to = *squares;
            if !is_power {
                to.iter_mut().for_each(|value| *value = value.sqrt());
            }
        });
        self.bins.fold(&self.frequencies, &mut self.rows);
    }
}

/// 8 frames to transform.
struct Block<'a, B> {
    transform: &'a mut Transform<B>,
    first: usize,
    frames: usize,
}

impl<B: Bins> Kernel for Block<'_, B> {
    #[inline(always)]
    fn run(&mut self) {
        self.transform.transform(self.first, self.frames);
    }
}

/// A periodic Hann window, centred in a frame.
fn window(stft: Stft, length: usize) -> Vec<f32> {
    let own = stft.win_length.unwrap_or(stft.n_fft) as usize;
    let before = (length - own) / 2;
    let mut window = vec![0.0; length];
    for (at, value) in window[before..before + own].iter_mut().enumerate() {
        let angle = 2.0 * std::f64::consts::PI * at as f64 / own as f64;
        *value = (0.5 - 0.5 * libm::cos(angle)) as f32;
    }
    window
}

impl<B: Bins> SeriesChange for Transform<B> {
    fn shape(&self, input: SeriesShape) -> Result<SeriesShape, Error> {
        let length = u32::try_from(input.length).expect("at most LENGTH_MAX samples");
        let frames = self.stft.frames(length).ok_or(Error::ShortSeries {
            operation: "the spectrogram",
            length: input.length,
            needed: if self.stft.center {
                self.stft.padding() as usize + 1
            } else {
                self.stft.n_fft as usize
            },
        })?;
        Ok(SeriesShape { rows: self.bins.rows(), length: frames as usize, ..input })
    }

    fn apply(
        &mut self,
        _draws: &mut Draws,
        values: &mut Series,
        next: &mut Series,
        pause: Pause<'_>,
    ) -> Result<(), Error> {
        next.shape = self.shape(values.shape)?;
        let (frames, rows) = (next.shape.length, next.shape.rows);
        next.values.clear();
        next.values.resize(next.shape.values(), 0.0);
        let channels = values.values.chunks_exact(values.shape.length);
        let results = next.values.chunks_exact_mut(frames * rows);
        for (samples, result) in channels.zip(results) {
            self.pad(samples);
            for first in (0..frames).step_by(LANES) {
                let cpu = self.cpu;
                execute(cpu, &mut Block { transform: self, first, frames });
                let count = LANES.min(frames - first);
                for (row, lanes) in self.rows.iter().enumerate() {
                    let out = &mut result[row * frames + first..][..count];
                    match out.first_chunk_mut::<LANES>() {
                        // A copy of constant length.
                        Some(out) => *out = *lanes,
                        None => out.copy_from_slice(&lanes[..count]),
                    }
                }
                pause()?;
            }
        }
        std::mem::swap(values, next);
        Ok(())
    }
}
