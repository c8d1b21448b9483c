//! Power files that are refused, each with the key and what to do.

use meetpoint_diagnose::{Diagnose, Remedy};

/// A power file or preset that was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PowerError {
    /// A name that is no preset.
    #[error("there is no power preset {name}")]
    NoSuchPreset {
        /// The given value.
        name: String,
        /// Names of the presets.
        known: String,
    },
    /// Text that is not such a file.
    #[error("power file {origin} does not parse: {reason}")]
    Syntax {
        /// Where it came from.
        origin: String,
        /// Place and reason.
        reason: String,
    },
    /// A key that its section does not have.
    #[error("power file {origin}: unknown key {key}")]
    UnknownKey {
        /// Where it came from.
        origin: String,
        /// Section and key, as `host_core.idle`.
        key: String,
        /// Keys of the section.
        known: String,
    },
    /// A key that is not given and no part has.
    #[error("power file {origin}: {key} is missing")]
    Missing {
        /// Where it came from.
        origin: String,
        /// Section and key.
        key: String,
    },
    /// A value that no machine has.
    #[error("power file {origin}: {key} is {value}")]
    Value {
        /// Where it came from.
        origin: String,
        /// Section and key.
        key: String,
        /// The given value.
        value: String,
        /// What it may be.
        must_be: &'static str,
    },
    /// A component that would use less when it works.
    #[error("power file {origin}: {section}.active_w is below its idle_w")]
    ActiveBelowIdle {
        /// Where it came from.
        origin: String,
        /// The component.
        section: &'static str,
    },
    /// A part that the program does not bring.
    #[error("power file {origin}: {section}.like names {name}, which does not exist")]
    NoSuchPart {
        /// Where it came from.
        origin: String,
        /// The section.
        section: &'static str,
        /// The given value.
        name: String,
        /// Names of the parts of this kind.
        known: String,
    },
    /// Numbers without a source.
    #[error("power file {origin}: {section} has no source")]
    NoSource {
        /// Where it came from.
        origin: String,
        /// The section.
        section: &'static str,
    },
    /// A name in `unverified` or `example` that is no value of the section.
    #[error("power file {origin}: {section}.{list} names {name}, which it does not have")]
    UnknownName {
        /// Where it came from.
        origin: String,
        /// The section.
        section: &'static str,
        /// `unverified` or `example`.
        list: &'static str,
        /// The given value.
        name: String,
    },
}

impl Diagnose for PowerError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NoSuchPreset { .. } => "no_such_power_preset",
            Self::Syntax { .. } => "power_file_syntax",
            Self::UnknownKey { .. } => "power_file_unknown_key",
            Self::Missing { .. } => "power_file_missing_key",
            Self::Value { .. } => "power_file_value",
            Self::ActiveBelowIdle { .. } => "power_file_active_below_idle",
            Self::NoSuchPart { .. } => "power_file_no_such_part",
            Self::NoSource { .. } => "power_file_no_source",
            Self::UnknownName { .. } => "power_file_unknown_name",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NoSuchPreset { known, .. } => {
                Remedy::from(format!("name one of {known}")).or("name a power file")
            }
            Self::Syntax { .. } => "correct the text; https://toml.io has the grammar".into(),
            Self::UnknownKey { known, .. } => format!("the section has {known}").into(),
            Self::Missing { key, .. } => {
                Remedy::from(format!("give {key}")).or("name a part that has it: like = \"PART\"")
            }
            Self::Value { must_be, .. } => format!("give {must_be}").into(),
            Self::ActiveBelowIdle { section, .. } => {
                format!("set {section}.active_w to {section}.idle_w or more").into()
            }
            Self::NoSuchPart { known, .. } => format!("name one of {known}").into(),
            Self::NoSource { section, .. } => {
                format!("name the source of its numbers in {section}.source").into()
            }
            Self::UnknownName { section, .. } => format!("name values of {section}").into(),
        })
    }
}
