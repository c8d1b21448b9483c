//! `decode_audio`.

use super::Step;
use crate::audio::AudioDecoder;
use meetpoint_format::recipe::DecodeAudio;

impl From<DecodeAudio> for Step {
    fn from(operation: DecodeAudio) -> Self {
        Self::DecodeSeries(Box::new(AudioDecoder(operation)))
    }
}
