//! `normalize`: subtracts a mean and divides by a deviation, per channel.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, numbers,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Dtype, PerChannel, SampleType};

/// `torchvision.transforms.v2.Normalize`, per channel, on a float type: (x - mean) / std in that
/// type, subtraction and division each rounded to it; `mean` and `std` are rounded to float32 and
/// from there to that type first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalize {
    /// Subtracted.
    pub mean: PerChannel,
    /// Divided by; not zero.
    pub std: PerChannel,
}

impl Data for Normalize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "normalize",
        about: "computes (x - mean) / std per channel, in a float type",
        phase: Phase::Elements,
        targets: OnTargets::Leaves,
        takes: &[
            InputType::FLOATS,
            InputType::FEW_AUDIO,
            InputType::FEW_SPECTROGRAM,
            InputType::FEW_SIGNAL,
        ],
        gives: OutputType::TENSOR,
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required(
                "mean",
                KeyType::PerChannel,
                numbers(&[0.485, 0.456, 0.406]),
                "the numbers to subtract, finite in the current type",
            ),
            Key::required(
                "std",
                KeyType::PerChannel,
                numbers(&[0.229, 0.224, 0.225]),
                "the numbers to divide by, finite and not 0 in the current type",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let numbers = |key| PerChannel::from_slice(values.numbers(key));
        let [mean, std] = ["mean", "std"].map(|key| numbers(key).expect("the length was checked"));
        Self { mean, std }
    }

    fn values(&self) -> Vec<Value> {
        [self.mean, self.std].map(|it| Value::Numbers(it.as_slice().to_vec().into())).to_vec()
    }

    /// Normalization computes in the current element type, so its numbers must be finite there.
    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let channels = sample.channels as usize;
        for (key, numbers) in [("mean", self.mean), ("std", self.std)] {
            let got = numbers.as_slice().len();
            if got != channels {
                let problem = format!("has length {got}, but the number of channels is {channels}");
                return Err(Fault::of_value(key, problem, "one number per channel"));
            }
        }
        // Numbers are rounded to float32 first. A float16 rounds to zero up to half of its smallest
        // step, and to infinity from half a step past its largest number.
        let (zero_to, infinite_from) = match sample.dtype {
            Dtype::Float16 => (f64::powi(2.0, -25), 65520.0),
            Dtype::Uint8 | Dtype::Uint16 | Dtype::Int32 | Dtype::Float32 => (0.0, f64::INFINITY),
        };
        let rounded = |value: &f64| f64::from(*value as f32).abs();
        // NaN is in no range.
        let is_finite = |value: &f64| (0.0..infinite_from).contains(&rounded(value));
        let name = sample.dtype.name();
        if let Some(value) = self.mean.as_slice().iter().find(|value| !is_finite(value)) {
            let problem = format!("holds {value:?}, which is not a finite {name}");
            return Err(Fault::of_value("mean", problem, "finite numbers, one per channel"));
        }
        let is_bad = |value: &&f64| !is_finite(value) || rounded(value) <= zero_to;
        if let Some(value) = self.std.as_slice().iter().find(is_bad) {
            let problem = format!("holds {value:?}, which is zero or not finite as {name}");
            let remedy = "finite numbers other than zero, one per channel";
            return Err(Fault::of_value("std", problem, remedy));
        }
        Ok(())
    }
}
