//! Properties of any strategy.

use crate::closed_forms::{Inputs, NotApplicable, Prediction};
use crate::error::{Error, OptionTooLarge};
use crate::terms::Terms;

use super::AnyStrategy;
use super::guarantees::{Level, Order};
use super::option::{OptionSpec, Value, WrongOption};
use super::strategy::{DeviceUse, RecordKind};
use crate::strategy_name::StrategyName;

impl AnyStrategy {
    /// Its name in job files and reports.
    pub fn name(&self) -> StrategyName {
        self.declared().name()
    }

    /// Its guarantee for the order of consumption. For `auto`, this is the order in its options,
    /// regardless of its selection.
    pub fn order(&self) -> Order {
        self.declared().order()
    }

    /// The consistency levels that it guarantees, ascending.
    pub fn levels(&self) -> &'static [Level] {
        self.order().levels()
    }

    /// Whether it can use a device at all.
    pub fn uses_devices(&self) -> bool {
        self.name().uses_devices()
    }

    /// Whether it cannot run without a device.
    pub fn needs_device(&self) -> bool {
        self.name().needs_device()
    }

    /// Its options with their values.
    pub fn options(&self) -> Vec<(&'static OptionSpec, Value)> {
        self.declared().options()
    }

    /// Sets an option.
    ///
    /// # Errors
    ///
    /// If it has no such option, or the option does not accept the value.
    pub fn set(&mut self, option: &str, value: Value) -> Result<(), WrongOption> {
        self.declared_mut().set(option, value)
    }

    /// The duration of an epoch on a machine with these constants.
    ///
    /// # Errors
    ///
    /// If there is no form, a time is not known, or the form does not hold for these inputs.
    pub fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        self.declared().closed_form(inputs)
    }

    /// Whether its options fit an epoch of `batches` batches.
    ///
    /// # Errors
    ///
    /// The option that requires more batches.
    pub fn fits(&self, batches: u32) -> Result<(), OptionTooLarge> {
        self.declared().fits(batches)
    }

    pub(crate) fn check(&self, terms: &Terms) -> Result<(), Error> {
        self.fits(terms.batches)?;
        self.declared().check(terms)
    }
}

impl StrategyName {
    /// The strategy's description, in one line.
    pub fn summary(self) -> &'static str {
        self.with_defaults().declared().summary()
    }

    /// Whether devices prepare batches.
    pub fn devices(self) -> DeviceUse {
        self.with_defaults().declared().devices()
    }

    /// Whether it can use a device at all.
    pub fn uses_devices(self) -> bool {
        self.devices() != DeviceUse::Never
    }

    /// Whether it cannot run without a device.
    pub fn needs_device(self) -> bool {
        self.devices() == DeviceUse::Required
    }

    /// The kind of record with which its epochs are replayed.
    pub fn record(self) -> RecordKind {
        self.with_defaults().declared().record()
    }

    /// Its options with their defaults, in the order in which documents list them.
    pub fn options(self) -> Vec<(&'static OptionSpec, Value)> {
        self.with_defaults().options()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value that an option accepts, as far as they can be listed.
    fn values(spec: &OptionSpec) -> Vec<Value> {
        let words = spec.takes.words.iter().map(|&word| Value::Word(word));
        let ends = spec.takes.whole.iter().flat_map(|it| [*it.range.start(), *it.range.end()]);
        let shares = spec.takes.share.iter().flat_map(|_| [0, 700_000, 1_000_000]);
        words.chain(ends.map(Value::Whole)).chain(shares.map(Value::Share)).collect()
    }

    #[test]
    fn an_option_accepts_and_returns_every_value_that_it_declares() {
        for name in StrategyName::ALL {
            for (spec, default) in name.options() {
                assert!(spec.takes.contains(default), "{name}.{}", spec.name);
                for value in values(spec) {
                    let mut strategy = name.with_defaults();
                    strategy.set(spec.name, value).unwrap();
                    let found = strategy.options().into_iter().find(|(it, _)| it == &spec);
                    assert_eq!(found.map(|(_, value)| value), Some(value), "{name}.{}", spec.name);
                }
            }
        }
    }

    #[test]
    fn an_option_refuses_what_it_does_not_declare() {
        for name in StrategyName::ALL {
            let mut strategy = name.with_defaults();
            let unknown = strategy.set("colour", Value::Whole(1)).unwrap_err();
            assert!(matches!(unknown, WrongOption::Unknown { .. }), "{unknown}");
            for (spec, _) in name.options() {
                let word = strategy.set(spec.name, Value::Word("purple")).unwrap_err();
                assert!(matches!(word, WrongOption::Value { .. }), "{word}");
                assert_eq!(strategy, name.with_defaults());
            }
        }
    }

    #[test]
    fn records_belong_to_strategies_whose_order_can_be_replayed() {
        for name in StrategyName::ALL {
            if name.record() != RecordKind::None {
                assert_eq!(name.with_defaults().order(), Order::Replayable, "{name}");
                assert!(name.uses_devices(), "{name}");
            }
        }
    }
}
