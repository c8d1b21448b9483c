//! `decode_signal`: an array of measurements to a signal.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, ValueKind,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Layout, SampleType, Series};

/// A NumPy `.npy` file of `[num_channels, time]`, or of `[time]` for one channel, to float32.
/// Always first, and nowhere else.
///
/// Elements are int16, int32, uint16, uint8, float32 or float64, little-endian and in C order; each
/// becomes the nearest float32. A file of another shape or type is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecodeSignal {
    /// Channels, such as voltage and current.
    pub num_channels: u32,
}

impl DecodeSignal {
    /// Maximum number of channels.
    pub const CHANNELS_MAX: u32 = 64;
}

impl Data for DecodeSignal {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "decode_signal",
        about: "reads measurements from a NumPy file",
        phase: Phase::Decode,
        targets: OnTargets::Refuses,
        takes: &[InputType::ENCODED],
        gives: OutputType {
            kind: ValueKind::Signal,
            dtype: Property::Is("float32"),
            size: Property::Variable,
            channels: Property::Key("num_channels"),
        },
        needs: Needs::All,
        random: &[],
        keys: &[Key::required(
            "num_channels",
            KeyType::WholeIn { least: 1, most: Self::CHANNELS_MAX },
            Value::Whole(2),
            "channels of every file",
        )],
    };

    fn read(values: &Values) -> Self {
        Self { num_channels: values.whole("num_channels") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Whole(self.num_channels)]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        sample.channels = self.num_channels;
        let series = Series { sample_rate: None, rows: 1, length: None };
        sample.set_series(series, Layout::Nct);
        Ok(())
    }
}
