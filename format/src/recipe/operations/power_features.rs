//! `power_features`: computes active and reactive power, RMS and CUSUM from voltage and current.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{LENGTH_MAX, Layout, SampleType, Series};

/// Features of a power line for each period: of a signal of voltage u and current i, float32 for
/// active power, reactive power, RMS of the current and the CUSUM of that.
///
/// Of the N = `period` samples of a period, with sums in float64:
/// P = sum(u i) / N, U = sqrt(sum(u^2) / N), I = sqrt(sum(i^2) / N),
/// Q = sqrt(max((U I)^2 - P^2, 0)) and C, the sum of I - mean(I) over this period and those before
/// it. Samples after the last whole period are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PowerFeatures {
    /// Samples of a period.
    pub period: u32,
}

impl PowerFeatures {
    /// Number of features of a period.
    pub const COUNT: u32 = 4;
}

impl Data for PowerFeatures {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "power_features",
        about: "computes active and reactive power, RMS and CUSUM of each period of voltage and \
                current",
        phase: Phase::Series,
        targets: OnTargets::Refuses,
        takes: &[InputType { channels: &[2], ..InputType::SIGNAL }],
        gives: OutputType {
            size: Property::Key("period"),
            channels: Property::Is("4"),
            ..OutputType::SERIES
        },
        needs: Needs::All,
        random: &[],
        keys: &[Key::required(
            "period",
            KeyType::WholeIn { least: 1, most: LENGTH_MAX },
            Value::Whole(128),
            "samples of a period of the mains",
        )],
    };

    fn read(values: &Values) -> Self {
        Self { period: values.whole("period") }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Whole(self.period)]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let series = sample.expect_series();
        let length = series.length.map(|length| length / self.period);
        if length == Some(0) {
            let problem = format!("is longer than the {} samples", series.length.unwrap_or(0));
            return Err(Fault::of_value("period", problem, "a shorter period"));
        }
        sample.channels = Self::COUNT;
        sample.set_series(Series { length, ..series }, Layout::Nct);
        Ok(())
    }
}
