//! Errors of power files, each with the key and the remedy.

use meetpoint_diagnose::{Diagnose, Remedy};

/// Why a power file or preset was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PowerError {
    /// There is no preset with this name.
    #[error("there is no power preset {name}")]
    NoSuchPreset {
        /// The given value.
        name: String,
        /// Names of the presets.
        known: String,
    },
    /// The text is not a valid power file.
    #[error("power file {origin} does not parse: {reason}")]
    Syntax {
        /// Name of the file or preset.
        origin: String,
        /// Position and reason.
        reason: String,
    },
    /// The section has no such key.
    #[error("power file {origin}: unknown key {key}")]
    UnknownKey {
        /// Name of the file or preset.
        origin: String,
        /// Section and key, such as `host_core.idle`.
        key: String,
        /// Keys of the section.
        known: String,
    },
    /// A required key is missing, and no bundled part supplies it.
    #[error("power file {origin}: {key} is missing")]
    Missing {
        /// Name of the file or preset.
        origin: String,
        /// Section and key.
        key: String,
    },
    /// A value is out of range.
    #[error("power file {origin}: {key} is {value}")]
    Value {
        /// Name of the file or preset.
        origin: String,
        /// Section and key.
        key: String,
        /// The given value.
        value: String,
        /// The valid range.
        must_be: &'static str,
    },
    /// A component would draw less power when active than when idle.
    #[error("power file {origin}: {section}.active_w is below its idle_w")]
    ActiveBelowIdle {
        /// Name of the file or preset.
        origin: String,
        /// The component.
        section: &'static str,
    },
    /// There is no bundled part with this name.
    #[error("power file {origin}: {section}.like names {name}, which does not exist")]
    NoSuchPart {
        /// Name of the file or preset.
        origin: String,
        /// The section.
        section: &'static str,
        /// The given value.
        name: String,
        /// Names of the parts of this kind.
        known: String,
    },
    /// A section has numbers but no source.
    #[error("power file {origin}: {section} has no source")]
    NoSource {
        /// Name of the file or preset.
        origin: String,
        /// The section.
        section: &'static str,
    },
    /// A name in `unverified` or `example` is not a key of the section.
    #[error("power file {origin}: {section}.{list} names {name}, which it does not have")]
    UnknownName {
        /// Name of the file or preset.
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
