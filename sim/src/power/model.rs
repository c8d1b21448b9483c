//! The numbers of one machine.

use super::error::PowerError;
use super::file::PowerFile;
use super::presets::{DEFAULT_PRESET, presets};

/// Watts, wear and prices of a machine, each with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerModel {
    pub(super) file: PowerFile,
}

/// One number of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Number<'a> {
    /// Section and key, such as `host_core.idle_w`.
    pub key: String,
    /// Its value, in the unit that the key names.
    pub value: f64,
    /// Where it comes from.
    pub source: &'a str,
    /// Whether the source was not verified, or the number is a guess.
    pub is_unverified: bool,
    /// Whether the number is only an example.
    pub is_example: bool,
}

impl PowerModel {
    /// The default preset.
    pub fn bundled() -> Self {
        Self::preset(DEFAULT_PRESET).expect("a test parses every preset")
    }

    /// A preset by name; an unknown name is an error that lists the known ones.
    pub fn preset(name: &str) -> Result<Self, PowerError> {
        let preset = presets().iter().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
            PowerError::NoSuchPreset { name: name.to_owned(), known: known.join(", ") }
        })?;
        Self::parse(preset.text, "bundled with the program")
    }

    /// Parses a user's file; errors name its `origin`.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PowerError> {
        Ok(Self { file: PowerFile::parse(text, origin)? })
    }

    /// The name in the file.
    pub fn profile(&self) -> &str {
        &self.file.profile
    }

    /// The file's description of the machine.
    pub fn about(&self) -> &str {
        &self.file.about
    }

    /// `modelled(PROFILE@HASH)`: the source that a report prints with a figure.
    pub fn source(&self) -> String {
        format!("modelled({}@{})", self.file.profile, self.file.hash)
    }

    /// Every number with its source.
    pub fn numbers(&self) -> Vec<Number<'_>> {
        let of_section = |(kind, section): (&'static super::section::SectionKind, _)| {
            let section: &super::section::Resolved = section;
            let has = |names: &[String], key: &str| names.iter().any(|name| name == key);
            section.values().map(move |(key, value)| Number {
                key: format!("{}.{key}", kind.section),
                value,
                source: &section.source,
                is_unverified: has(&section.unverified, key),
                is_example: has(&section.example, key),
            })
        };
        self.file.sections().flat_map(of_section).collect()
    }

    /// Keys of the given sections without a verified source, such as `device.active_w`.
    pub(super) fn unverified(&self, sections: &[&str]) -> Vec<String> {
        let wanted = |key: &str| sections.iter().any(|section| key.starts_with(section));
        let numbers = self.numbers().into_iter();
        numbers
            .filter(|number| number.is_unverified && wanted(&number.key))
            .map(|number| number.key)
            .collect()
    }
}
