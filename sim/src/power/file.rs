//! A power file: the machine's sections, resolved against the parts that come with the program.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::error::PowerError;
use super::section::{Parts, Resolved, SectionInput, SectionKind};

/// The bundled parts, as text.
pub(super) const PARTS: &str = include_str!("../../power/parts.toml");

/// Digits of the hash that a result carries.
const HASH_DIGITS: usize = 12;

pub(super) const BASE: SectionKind =
    SectionKind { section: "base", keys: &["watts"], positive: &[], has_currency: false };
pub(super) const HOST_CORE: SectionKind = SectionKind {
    section: "host_core",
    keys: &["idle_w", "active_w"],
    positive: &[],
    has_currency: false,
};
pub(super) const DRAM: SectionKind = SectionKind {
    section: "dram",
    keys: &["modules", "module_w", "picojoules_per_byte"],
    positive: &[],
    has_currency: false,
};
pub(super) const DEVICE: SectionKind = SectionKind {
    section: "device",
    keys: &["idle_w", "active_w"],
    positive: &[],
    has_currency: false,
};
pub(super) const ACCELERATOR: SectionKind = SectionKind {
    section: "accelerator",
    keys: &["idle_w", "active_w"],
    positive: &[],
    has_currency: false,
};
pub(super) const FLASH: SectionKind = SectionKind {
    section: "flash",
    keys: &["capacity_tb", "rated_tbw", "rated_years"],
    positive: &["capacity_tb", "rated_tbw", "rated_years"],
    has_currency: false,
};
pub(super) const PRICES: SectionKind = SectionKind {
    section: "prices",
    keys: &["node_per_hour", "per_kwh", "device_premium", "device_life_years", "drive"],
    positive: &["device_life_years"],
    has_currency: true,
};

/// A power file as deserialized.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PowerFileInput {
    profile: String,
    #[serde(default)]
    about: String,
    base: SectionInput,
    host_core: SectionInput,
    dram: Option<SectionInput>,
    device: SectionInput,
    accelerator: SectionInput,
    flash: Option<SectionInput>,
    prices: Option<SectionInput>,
}

/// The bundled parts by kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartsFile {
    base: Parts,
    host_core: Parts,
    dram: Parts,
    device: Parts,
    accelerator: Parts,
    flash: Parts,
    prices: Parts,
}

/// A power file with every number resolved.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PowerFile {
    pub profile: String,
    pub about: String,
    pub hash: String,
    pub base: Resolved,
    pub host_core: Resolved,
    pub dram: Option<Resolved>,
    pub device: Resolved,
    pub accelerator: Resolved,
    pub flash: Option<Resolved>,
    pub prices: Option<Resolved>,
}

impl PowerFile {
    pub(super) fn parse(text: &str, origin: &str) -> Result<Self, PowerError> {
        let file: PowerFileInput = toml::from_str(text).map_err(|error| PowerError::Syntax {
            origin: origin.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        let parts = parts();
        let required = |kind: &SectionKind, written: &SectionInput, parts: &Parts| {
            kind.resolve(written, Some(parts), origin)
        };
        let optional = |kind: &SectionKind, written: &Option<SectionInput>, parts: &Parts| {
            written.as_ref().map(|written| kind.resolve(written, Some(parts), origin)).transpose()
        };
        Ok(Self {
            base: required(&BASE, &file.base, &parts.base)?,
            host_core: required(&HOST_CORE, &file.host_core, &parts.host_core)?,
            dram: optional(&DRAM, &file.dram, &parts.dram)?,
            device: required(&DEVICE, &file.device, &parts.device)?,
            accelerator: required(&ACCELERATOR, &file.accelerator, &parts.accelerator)?,
            flash: optional(&FLASH, &file.flash, &parts.flash)?,
            prices: optional(&PRICES, &file.prices, &parts.prices)?,
            profile: file.profile,
            about: file.about,
            hash: hash(text),
        })
    }

    /// The sections that the file has, in its order.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&'static SectionKind, &Resolved)> {
        const fn kinds() -> [&'static SectionKind; 7] {
            [&BASE, &HOST_CORE, &DRAM, &DEVICE, &ACCELERATOR, &FLASH, &PRICES]
        }
        let sections = [
            Some(&self.base),
            Some(&self.host_core),
            self.dram.as_ref(),
            Some(&self.device),
            Some(&self.accelerator),
            self.flash.as_ref(),
            self.prices.as_ref(),
        ];
        kinds().into_iter().zip(sections).filter_map(|(kind, section)| Some((kind, section?)))
    }
}

fn parts() -> PartsFile {
    toml::from_str(PARTS).expect("a test parses the bundled parts")
}

/// Hash of the file and of the parts that it may refer to.
fn hash(text: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(text.as_bytes());
    digest.update(PARTS.as_bytes());
    let digits = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    digits[..HASH_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part must be usable, not only those that a preset uses.
    #[test]
    fn every_bundled_part_is_complete_and_has_a_source() {
        let parts = parts();
        let kinds = [
            (&BASE, &parts.base),
            (&HOST_CORE, &parts.host_core),
            (&DRAM, &parts.dram),
            (&DEVICE, &parts.device),
            (&ACCELERATOR, &parts.accelerator),
            (&FLASH, &parts.flash),
            (&PRICES, &parts.prices),
        ];
        for (kind, parts) in kinds {
            assert!(!parts.is_empty(), "{}", kind.section);
            for (name, part) in parts {
                let resolved = kind.resolve(part, None, "parts.toml");
                resolved.unwrap_or_else(|error| panic!("{}.{name}: {error}", kind.section));
            }
        }
    }
}
