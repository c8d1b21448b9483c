//! The power files that come with the program.

/// A power file that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// What `--power` takes.
    pub name: &'static str,
    /// The file, as a user would write it.
    pub text: &'static str,
}

/// The preset that stands where none is asked for.
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
