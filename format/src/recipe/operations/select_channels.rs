//! `select_channels`: selects channels.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::value::{Value, Values};
use std::borrow::Cow;

/// The channels with these indices, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SelectChannels {
    /// Indices of the channels, from 0.
    pub channels: Vec<u32>,
}

/// Maximum number of channels of a result.
const COUNT_MAX: usize = 64;

impl Data for SelectChannels {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "select_channels",
        about: "selects channels, in a given order",
        phase: Phase::Series,
        targets: OnTargets::Refuses,
        takes: InputType::SERIES,
        gives: OutputType { channels: Property::Key("channels"), ..OutputType::SERIES },
        needs: Needs::All,
        random: &[],
        keys: &[Key::required(
            "channels",
            KeyType::WholeList { count_max: COUNT_MAX, least: 0, most: COUNT_MAX as u32 - 1 },
            Value::Wholes(Cow::Borrowed(&[0])),
            "indices of the channels, from 0",
        )],
    };

    fn read(values: &Values) -> Self {
        Self { channels: values.wholes("channels").to_vec() }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Wholes(self.channels.clone().into())]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let count = sample.channels;
        if let Some(channel) = self.channels.iter().find(|channel| **channel >= count) {
            let problem = format!("holds {channel}, but there are {count} channels");
            return Err(Fault::of_value("channels", problem, format!("0 to {}", count - 1)));
        }
        sample.channels = u32::try_from(self.channels.len()).expect("the number was checked");
        Ok(())
    }
}
