//! `random_sensor_noise`: simulated noise of a camera sensor.

use super::Data;
use crate::recipe::declaration::{
    APPLIED, Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter, numbers,
};
use crate::recipe::value::{Value, Values};

/// The noise of crumpets' `add_noise_rgb` when `uniform() < p`, with a strength s that is drawn
/// from `uniform_in(strength.0, strength.1)`, and then a field.
///
/// A whole number n is added to every value and the sum clipped to 0..=255. With a strength of t, n
/// is low + floor(word * (high - low) / 2^32) for low = trunc(-256 * t) and high = trunc(255 * t),
/// where the word is that of the value in the field. Green has t = s / 2. Red and blue have t = s,
/// and numbers for max(1, H / 2) rows and max(1, W / 2) columns alone, rounded down, which are
/// resized to H rows and W columns: with the position (x + 1/2) * (columns / W) - 1/2, not below 0
/// and not above columns - 1, linear between the two numbers around it, first along the columns,
/// then along the rows, in float64, rounded to the nearest whole number, halves to even. A picture
/// of one channel has t = s, and a number for every value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomSensorNoise {
    /// Bounds of the largest noise, as a share of 256.
    pub strength: (f64, f64),
    /// Probability.
    pub p: f64,
}

impl Data for RandomSensorNoise {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_sensor_noise",
        about: "adds the noise of a sensor, coarse in red and blue, with probability `p`",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            APPLIED,
            RandomParameter { name: "strength", distribution: "uniform in `strength`" },
            RandomParameter { name: "noise", distribution: "uniform whole numbers" },
        ],
        keys: &[
            Key::optional(
                "strength",
                KeyType::Interval { bounds: Bounds::UNIT, middle: None },
                numbers(&[0.0, 0.05]),
                "the largest noise, as a share of 256",
            ),
            Key::probability(0.5),
        ],
    };

    fn read(values: &Values) -> Self {
        Self { strength: values.interval("strength"), p: values.number("p") }
    }

    fn values(&self) -> Vec<Value> {
        vec![self.strength.into(), Value::Number(self.p)]
    }
}
