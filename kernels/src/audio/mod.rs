//! Sound: decoded, resampled, and transformed to spectrograms.
//!
//! Every result has the same bits on every instruction set: sums have a fixed order, products are
//! not fused with sums, and tables come from `libm`, not from the C library. In reading order:
//! `decode` (files), `resample`, `fft` (8 transforms at a time), `stft` (frames), `mel` (bands),
//! `logarithm`.

mod decode;
mod fft;
#[cfg(test)]
mod golden_tests;
mod logarithm;
mod mel;
mod resample;
mod stft;
#[cfg(test)]
mod tests;

pub(crate) use decode::AudioDecoder;
pub(crate) use logarithm::Logarithm;
pub(crate) use mel::Mel;
pub(crate) use stft::Transform;
