//! Modelled energy: E = P_base·T + Σ[P_idle·T + (P_active − P_idle)·busy].
//!
//! It reads no meter. Every result says that it is modelled, with which file of watts; it must
//! never share a column with a measured figure.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// The watts that come with the program; a user's own file has the same form.
pub const BUNDLED: &str = include_str!("../power.toml");

/// Digits of the file's hash that a result carries.
const HASH_DIGITS: usize = 12;

/// Watts, each with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerModel {
    file: PowerFile,
    hash: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PowerFile {
    profile: String,
    base: Base,
    host_core: Component,
    device: Component,
    accelerator: Component,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Base {
    watts: f64,
    source: String,
    #[serde(default)]
    unverified: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Component {
    idle_w: f64,
    active_w: f64,
    source: String,
    #[serde(default)]
    unverified: Vec<String>,
}

/// What a run used of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Activity {
    /// T, seconds.
    pub duration_s: f64,
    /// Cores of the host, busy or not.
    pub host_cores: u32,
    /// Core-seconds that they were busy.
    pub host_busy_core_s: f64,
    /// Devices present, used or not.
    pub devices: u32,
    /// Seconds that they were busy, summed.
    pub device_busy_s: f64,
    /// Accelerators present.
    pub accelerators: u32,
    /// Seconds that they were busy, summed.
    pub accelerator_busy_s: f64,
}

/// Joules by the model. Modelled, never measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelledEnergy {
    /// All of it.
    pub total_j: f64,
    /// What is drawn whatever happens.
    pub base_j: f64,
    /// The host's cores.
    pub host_j: f64,
    /// The devices.
    pub device_j: f64,
    /// The accelerators.
    pub accelerator_j: f64,
    /// `modelled(PROFILE@HASH)`.
    pub source: String,
    /// Values that have no checked source, as `device.active_w`.
    pub unverified: Vec<String>,
}

impl PowerModel {
    /// The watts that come with the program.
    pub fn bundled() -> Self {
        Self::parse(BUNDLED, "bundled with the program").expect("a test parses the bundled file")
    }

    /// A user's own watts; `origin` is named in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        let file: PowerFile = toml::from_str(text).map_err(|error| Error::PowerFile {
            origin: origin.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        file.check(origin)?;
        let digest = Sha256::digest(text.as_bytes());
        let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok(Self { file, hash: hash[..HASH_DIGITS].to_owned() })
    }

    /// The name in the file.
    pub fn profile(&self) -> &str {
        &self.file.profile
    }

    /// `modelled(PROFILE@HASH)`: what a report prints beside a figure.
    pub fn source(&self) -> String {
        format!("modelled({}@{})", self.file.profile, self.hash)
    }

    /// The energy of a run.
    pub fn energy(&self, activity: &Activity) -> ModelledEnergy {
        let joules = |component: &Component, count: u32, busy_s: f64| {
            f64::from(count) * component.idle_w * activity.duration_s
                + (component.active_w - component.idle_w) * busy_s
        };
        let file = &self.file;
        let base_j = file.base.watts * activity.duration_s;
        let host_j = joules(&file.host_core, activity.host_cores, activity.host_busy_core_s);
        let device_j = joules(&file.device, activity.devices, activity.device_busy_s);
        let accelerator_j =
            joules(&file.accelerator, activity.accelerators, activity.accelerator_busy_s);
        ModelledEnergy {
            total_j: base_j + host_j + device_j + accelerator_j,
            base_j,
            host_j,
            device_j,
            accelerator_j,
            source: self.source(),
            unverified: file.unverified(),
        }
    }
}

impl PowerFile {
    fn components(&self) -> [(&'static str, &Component); 3] {
        [
            ("host_core", &self.host_core),
            ("device", &self.device),
            ("accelerator", &self.accelerator),
        ]
    }

    fn check(&self, origin: &str) -> Result<(), Error> {
        let origin = || origin.to_owned();
        let watts = |key: String, watts: f64| {
            let possible = watts.is_finite() && watts >= 0.0;
            if possible { Ok(()) } else { Err(Error::Watts { origin: origin(), key, watts }) }
        };
        let sourced = |component, source: &str| {
            let empty = source.trim().is_empty();
            if empty { Err(Error::NoSource { origin: origin(), component }) } else { Ok(()) }
        };
        let named = |component, unverified: &[String], has: &[&str]| match unverified
            .iter()
            .find(|name| !has.contains(&name.as_str()))
        {
            None => Ok(()),
            Some(name) => {
                let name = name.clone();
                Err(Error::UnknownUnverified { origin: origin(), component, name })
            }
        };
        watts("base.watts".to_owned(), self.base.watts)?;
        sourced("base", &self.base.source)?;
        named("base", &self.base.unverified, &["watts"])?;
        for (name, component) in self.components() {
            watts(format!("{name}.idle_w"), component.idle_w)?;
            watts(format!("{name}.active_w"), component.active_w)?;
            sourced(name, &component.source)?;
            named(name, &component.unverified, &["idle_w", "active_w"])?;
            if component.active_w < component.idle_w {
                return Err(Error::ActiveBelowIdle { origin: origin(), component: name });
            }
        }
        Ok(())
    }

    fn unverified(&self) -> Vec<String> {
        let base = self.base.unverified.iter().map(|name| format!("base.{name}"));
        let components = self.components().into_iter().flat_map(|(component, values)| {
            values.unverified.iter().map(move |name| format!("{component}.{name}"))
        });
        base.chain(components).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_watts_parse_and_name_what_is_unverified() {
        let model = PowerModel::bundled();
        assert_eq!(model.profile(), "server-core-and-computational-drive");
        let energy = model.energy(&Activity::default());
        assert_eq!(energy.total_j, 0.0);
        assert_eq!(energy.unverified, ["host_core.idle_w", "device.active_w"]);
        assert!(energy.source.starts_with("modelled(server-core-and-computational-drive@"));
    }

    #[test]
    fn energy_is_base_plus_idle_plus_the_added_power_of_work() {
        let text = r#"
            profile = "test"
            base = { watts = 100.0, source = "made up" }
            host_core = { idle_w = 1.0, active_w = 5.0, source = "made up" }
            device = { idle_w = 6.0, active_w = 7.0, source = "made up" }
            accelerator = { idle_w = 50.0, active_w = 300.0, source = "made up" }
        "#;
        let energy = PowerModel::parse(text, "test").unwrap().energy(&Activity {
            duration_s: 10.0,
            host_cores: 4,
            host_busy_core_s: 20.0,
            devices: 1,
            device_busy_s: 8.0,
            accelerators: 1,
            accelerator_busy_s: 6.0,
        });
        assert_eq!(energy.base_j, 1_000.0);
        assert_eq!(energy.host_j, 4.0 * 10.0 + 4.0 * 20.0);
        assert_eq!(energy.device_j, 60.0 + 8.0);
        assert_eq!(energy.accelerator_j, 500.0 + 250.0 * 6.0);
        assert_eq!(energy.total_j, 1_000.0 + 120.0 + 68.0 + 2_000.0);
        assert_eq!(energy.unverified, Vec::<String>::new());
    }

    #[test]
    fn another_file_has_another_hash() {
        let other = BUNDLED.replace("watts = 10.0", "watts = 11.0");
        let other = PowerModel::parse(&other, "test").unwrap();
        assert_ne!(other.source(), PowerModel::bundled().source());
    }

    #[test]
    fn a_file_that_cannot_be_meant_is_refused_by_name() {
        let refused = |from: &str, to: &str| {
            assert!(BUNDLED.contains(from), "the bundled file has {from}");
            let error = PowerModel::parse(&BUNDLED.replace(from, to), "w.toml").unwrap_err();
            error.to_string()
        };
        assert_eq!(
            refused("idle_w = 2.2", "idle_w = -2.2"),
            "power file w.toml: host_core.idle_w is -2.2, must be a number of watts, 0 or more"
        );
        assert!(refused("active_w = 4.4", "active_w = nan").contains("host_core.active_w is NaN"));
        assert!(refused("active_w = 15.0", "active_w = 1.0").contains("below its idle_w"));
        assert!(refused("[\"idle_w\"]", "[\"idle\"]").contains("names idle, which"));
        assert!(refused("idle_w = 2.2\n", "").contains("missing field `idle_w`"));
        assert!(refused("[device]", "[drive]").contains("w.toml does not parse"));
        assert!(
            refused("source = \"memory: two", "source = \"\" #").contains("base has no source")
        );
    }
}
