//! `decode_signal`.

use super::Step;
use crate::signal::SignalDecoder;
use meetpoint_format::recipe::DecodeSignal;

impl From<DecodeSignal> for Step {
    fn from(operation: DecodeSignal) -> Self {
        Self::DecodeSeries(Box::new(SignalDecoder(operation)))
    }
}
