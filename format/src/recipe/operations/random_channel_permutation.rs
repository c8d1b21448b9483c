//! `random_channel_permutation`: permutes red, green and blue.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Needs, OnTargets, OutputType, Phase, RandomParameter,
};
use crate::recipe::value::{Value, Values};

/// `torchvision.transforms.v2.RandomChannelPermutation`: in the list of channels, the element at i
/// is swapped with that at `up_to(i)`, for i = 2, 1; channel c of the result is the channel at
/// index c of the list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomChannelPermutation;

impl Data for RandomChannelPermutation {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "random_channel_permutation",
        about: "puts the channels in a random order",
        phase: Phase::Pixels,
        targets: OnTargets::Leaves,
        takes: &[InputType::IMAGE, InputType::ELEMENTS],
        gives: OutputType::IMAGE,
        needs: Needs::All,
        random: &[RandomParameter { name: "permutation", distribution: "uniform" }],
        keys: &[],
    };

    fn read(_values: &Values) -> Self {
        Self
    }

    fn values(&self) -> Vec<Value> {
        vec![]
    }
}
