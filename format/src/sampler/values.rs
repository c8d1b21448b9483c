//! The options of one sampler as they were given, checked against its declaration.

use super::declaration::{Declaration, Value};
use super::error::SamplerError;
use std::sync::Arc;

/// Values of declared options.
#[derive(Debug)]
pub(super) struct Values(Vec<(&'static str, Value)>);

impl Values {
    /// Checks names, types and ranges, and that all required options are given.
    pub(super) fn check(
        declaration: &'static Declaration,
        given: Vec<(String, Value)>,
    ) -> Result<Self, SamplerError> {
        let sampler = declaration.name;
        let mut checked = Vec::with_capacity(given.len());
        for (option, value) in given {
            let spec = declaration.options.iter().find(|spec| spec.name == option);
            let spec = spec.ok_or(SamplerError::UnknownOption { sampler, option })?;
            if !spec.takes.accepts(&value) {
                let given = value.to_string();
                return Err(SamplerError::Value { sampler, option: spec.name, given });
            }
            checked.push((spec.name, value));
        }
        let is_missing = |name: &str| checked.iter().all(|(given, _)| *given != name);
        let mut required = declaration.options.iter().filter(|spec| spec.default.is_none());
        match required.find(|spec| is_missing(spec.name)) {
            Some(spec) => Err(SamplerError::Missing { sampler, option: spec.name }),
            None => Ok(Self(checked)),
        }
    }

    /// The value of an option; `None` if it was left out.
    pub(super) fn value(&self, option: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| *name == option).map(|(_, value)| value)
    }

    pub(super) fn whole(&self, option: &str) -> Option<u64> {
        self.value(option).and_then(|value| match value {
            Value::Whole(number) => Some(*number),
            Value::Flag(_) | Value::Text(_) | Value::Wholes(_) | Value::Numbers(_) => None,
        })
    }

    pub(super) fn flag(&self, option: &str) -> Option<bool> {
        self.value(option).and_then(|value| match value {
            Value::Flag(flag) => Some(*flag),
            Value::Whole(_) | Value::Text(_) | Value::Wholes(_) | Value::Numbers(_) => None,
        })
    }

    pub(super) fn text(&self, option: &str) -> Option<String> {
        self.value(option).and_then(|value| match value {
            Value::Text(text) => Some(text.clone()),
            Value::Whole(_) | Value::Flag(_) | Value::Wholes(_) | Value::Numbers(_) => None,
        })
    }

    pub(super) fn wholes(&self, option: &str) -> Option<Arc<[u64]>> {
        self.value(option).and_then(|value| match value {
            Value::Wholes(list) => Some(Arc::clone(list)),
            Value::Whole(_) | Value::Flag(_) | Value::Text(_) | Value::Numbers(_) => None,
        })
    }

    pub(super) fn numbers(&self, option: &str) -> Option<Arc<[f64]>> {
        self.value(option).and_then(|value| match value {
            Value::Numbers(list) => Some(Arc::clone(list)),
            Value::Whole(_) | Value::Flag(_) | Value::Text(_) | Value::Wholes(_) => None,
        })
    }
}
