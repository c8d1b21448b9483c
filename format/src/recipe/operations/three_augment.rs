//! `three_augment`: greys, solarizes or blurs.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Needs, OnTargets, OutputType, Phase, RandomParameter,
};
use crate::recipe::value::{Value, Values};

/// The choice of DeiT III's 3-Augment: `up_to(2)` is drawn; 0 makes all channels grey, 1 inverts
/// the values from 128 on, 2 blurs as [`super::PillowGaussianBlur`] with a radius that is drawn
/// from `uniform_in(0.1, 2)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreeAugment;

impl Data for ThreeAugment {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "three_augment",
        about: "makes the picture grey, solarizes it or blurs it",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[
            RandomParameter { name: "chosen", distribution: "one of three, uniform" },
            RandomParameter { name: "radius", distribution: "uniform in [0.1, 2], of the blur" },
        ],
        keys: &[],
    };

    fn read(_values: &Values) -> Self {
        Self
    }

    fn values(&self) -> Vec<Value> {
        vec![]
    }
}
