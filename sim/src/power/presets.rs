//! The bundled power files.

/// A bundled power file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name, for `--power`.
    pub name: &'static str,
    /// The file, as a user would write it.
    pub text: &'static str,
}

/// Name of the default preset.
pub const DEFAULT_PRESET: &str = "server";

macro_rules! preset {
    ($name:literal) => {
        Preset { name: $name, text: include_str!(concat!("../../power/presets/", $name, ".toml")) }
    };
}

const PRESETS: [Preset; 7] = [
    preset!("server"),
    preset!("server-v100"),
    preset!("server-a100"),
    preset!("server-h100"),
    preset!("server-a100-smartssd"),
    preset!("desktop"),
    preset!("solana"),
];

/// All presets, the default first.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}
