//! The declarations in a strategy's file, and how its epochs are decided.

use std::fmt::Debug;

use crate::closed_forms::{Inputs, NotApplicable, Prediction};
use crate::error::{Error, OptionTooLarge};
use crate::terms::Terms;

use super::guarantees::Order;
use super::option::{AcceptedValues, OptionSpec, Value, WrongOption};
use super::plan::Plan;
use super::selection::Selection;
use crate::strategy_name::StrategyName;

/// A strategy: its options are its fields, and the defaults of the options are its [`Default`].
pub trait Strategy: Debug + Copy + Default + PartialEq + 'static {
    /// Its name in the list of strategies.
    const NAME: StrategyName;
    /// Its description, in one line.
    const SUMMARY: &'static str;
    /// Whether devices prepare batches.
    const DEVICES: DeviceUse;
    /// The kind of record with which its epochs are replayed.
    const RECORD: RecordKind;
    /// Its options, in the order in which documents list them.
    const OPTIONS: &'static [StrategyOption<Self>];

    /// The guarantee for the order of consumption with these options.
    fn order(&self) -> Order;

    /// The duration of an epoch on a machine with these constants.
    ///
    /// # Errors
    ///
    /// If there is no form, a time is not known, or the form does not hold for these inputs.
    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable>;

    /// Whether these options fit an epoch of `batches` batches.
    ///
    /// # Errors
    ///
    /// The option that requires more batches.
    fn fits(&self, _batches: u32) -> Result<(), OptionTooLarge> {
        Ok(())
    }

    /// Whether an epoch on these terms can be run with these options, which fit its batches.
    ///
    /// # Errors
    ///
    /// An option, or a limit of the terms that the strategy depends on, is out of range.
    fn check(&self, _terms: &Terms) -> Result<(), Error> {
        Ok(())
    }
}

/// Whether devices prepare batches under a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceUse {
    /// Never.
    Never,
    /// If there are devices.
    IfPresent,
    /// Always: it cannot run without one.
    Required,
}

/// The kind of record that replays the order of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// None: the strategy alone determines the order, or the order depends on timing. Under a
    /// strategy that selects another one, an epoch has the record of the selected one.
    None,
    /// The devices' shares: one number, or one for each device that holds separate batches. The
    /// host's part is consumed first, then the devices' from the back.
    Shares,
    /// The numbers that fix the turns of both ends, then the devices' shares.
    Turns,
}

/// An option of the strategy `S`.
#[derive(Debug)]
pub struct StrategyOption<S> {
    /// Its declaration for parsers and documents.
    pub spec: OptionSpec,
    /// Its value.
    pub get: fn(&S) -> Value,
    /// Sets it to a value that it accepts; returns `false` for any other.
    pub set: fn(&mut S, Value) -> bool,
}

/// A strategy that plans epochs itself.
pub(crate) trait EpochPlanner: Strategy {
    type Plan: Plan;

    /// The plan of an epoch at its beginning.
    fn plan(&self, terms: &Terms) -> Self::Plan;
}

/// A strategy that runs each epoch with one of the others.
pub(crate) trait StrategySelector: Strategy {
    /// Selects a strategy for an epoch.
    fn pick(&self, terms: &Terms) -> Selection;
}

/// Type-erased [`Strategy`], for [`super::AnyStrategy`].
pub(crate) trait Declared {
    fn name(&self) -> StrategyName;
    fn summary(&self) -> &'static str;
    fn devices(&self) -> DeviceUse;
    fn record(&self) -> RecordKind;
    fn options(&self) -> Vec<(&'static OptionSpec, Value)>;
    fn set(&mut self, option: &str, value: Value) -> Result<(), WrongOption>;
    fn order(&self) -> Order;
    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable>;
    fn fits(&self, batches: u32) -> Result<(), OptionTooLarge>;
    fn check(&self, terms: &Terms) -> Result<(), Error>;
}

impl<S: Strategy> Declared for S {
    fn name(&self) -> StrategyName {
        S::NAME
    }

    fn summary(&self) -> &'static str {
        S::SUMMARY
    }

    fn devices(&self) -> DeviceUse {
        S::DEVICES
    }

    fn record(&self) -> RecordKind {
        S::RECORD
    }

    fn options(&self) -> Vec<(&'static OptionSpec, Value)> {
        S::OPTIONS.iter().map(|option| (&option.spec, (option.get)(self))).collect()
    }

    fn set(&mut self, option: &str, value: Value) -> Result<(), WrongOption> {
        let known = S::OPTIONS.iter().find(|known| known.spec.name == option);
        let found = known.ok_or_else(|| WrongOption::Unknown {
            strategy: S::NAME,
            option: option.to_owned(),
            known: S::OPTIONS.iter().map(|known| known.spec.name).collect(),
        })?;
        let OptionSpec { name, takes, .. } = &found.spec;
        if takes.contains(value) && (found.set)(self, value) {
            return Ok(());
        }
        let takes = AcceptedValues::clone(takes);
        Err(WrongOption::Value { strategy: S::NAME, option: name, value, takes })
    }

    fn order(&self) -> Order {
        Strategy::order(self)
    }

    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        Strategy::closed_form(self, inputs)
    }

    fn fits(&self, batches: u32) -> Result<(), OptionTooLarge> {
        Strategy::fits(self, batches)
    }

    fn check(&self, terms: &Terms) -> Result<(), Error> {
        Strategy::check(self, terms)
    }
}
