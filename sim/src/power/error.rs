//! Power files that are refused, each with the key and what to do.

/// A power file or preset that was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PowerError {
    /// A name that is no preset.
    #[error("there is no power preset {name}; there are {known}, or give a file")]
    NoSuchPreset {
        /// As given.
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
    #[error("power file {origin}: {key} is not a key; the section has {known}")]
    UnknownKey {
        /// Where it came from.
        origin: String,
        /// Section and key, as `host_core.idle`.
        key: String,
        /// Keys of the section.
        known: String,
    },
    /// A key that is not given and no part has.
    #[error(
        "power file {origin}: {key} is missing; give it, or say like = \"PART\" for a part that \
         has it"
    )]
    Missing {
        /// Where it came from.
        origin: String,
        /// Section and key.
        key: String,
    },
    /// A value that no machine has.
    #[error("power file {origin}: {key} is {value}, must be {must_be}")]
    Value {
        /// Where it came from.
        origin: String,
        /// Section and key.
        key: String,
        /// As given.
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
    #[error("power file {origin}: {section}.like names {name}; there are {known}")]
    NoSuchPart {
        /// Where it came from.
        origin: String,
        /// The section.
        section: &'static str,
        /// As given.
        name: String,
        /// Names of the parts of this kind.
        known: String,
    },
    /// Numbers without a source.
    #[error("power file {origin}: {section} has no source; say where its numbers come from")]
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
        /// As given.
        name: String,
    },
}
