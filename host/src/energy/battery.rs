//! A battery that the machine runs from, through /sys/class/power_supply.
//!
//! Names and units: Documentation/ABI/testing/sysfs-class-power of Linux.

use std::path::{Path, PathBuf};

use super::sysfs::{garbage, names, number, text};
use super::{Coverage, Meter, MeterError, MeterInfo, ProbedMeter, Reading};

const FOLDER: &str = "sys/class/power_supply";

const PERMISSION: &str = "run as root: this user may not read the battery";

const MICRO: f64 = 1e-6;

struct Battery(PathBuf);

impl Battery {
    /// Some drivers report power, others current and voltage; it may be negative while discharging.
    fn watts(&self) -> Result<f64, MeterError> {
        let power = self.0.join("power_now");
        if power.exists() {
            return Ok(magnitude(&power, "a number of microwatts")? * MICRO);
        }
        let amperes = magnitude(&self.0.join("current_now"), "a number of microamperes")? * MICRO;
        let volts = number(&self.0.join("voltage_now"), "a number of microvolts")? as f64 * MICRO;
        Ok(amperes * volts)
    }
}

impl Meter for Battery {
    fn read(&mut self) -> Result<Reading, MeterError> {
        let status = self.0.join("status");
        let text = text(&status)?;
        if text != "Discharging" {
            return Err(MeterError::OnMains { status: text });
        }
        Ok(Reading::Power { watts: self.watts()? })
    }
}

fn magnitude(path: &Path, expected: &'static str) -> Result<f64, MeterError> {
    let text = text(path)?;
    let number: Result<i64, _> = text.parse();
    let number = number.map_err(|_| garbage(path.to_owned(), &text, expected))?;
    Ok(number.unsigned_abs() as f64)
}

/// Every battery, or the reason if there is none.
pub(super) fn list(root: &Path) -> Vec<ProbedMeter> {
    let folder = root.join(FOLDER);
    let is_battery = |name: &&String| {
        text(&folder.join(name).join("type")).is_ok_and(|kind| kind == "Battery")
            && folder.join(name).join("status").exists()
            // A mouse has a battery too, with the scope "Device"; that of the machine has "System"
            // or none.
            && text(&folder.join(name).join("scope")).map_or(true, |scope| scope != "Device")
    };
    let found = names(&folder);
    let batteries: Vec<ProbedMeter> =
        found.iter().filter(is_battery).map(|name| listed(&folder, name)).collect();
    if batteries.is_empty() {
        let about = about("battery".to_owned(), format!("/{FOLDER}"));
        return vec![ProbedMeter::absent(about, MeterError::NoBattery)];
    }
    batteries
}

fn listed(folder: &Path, name: &str) -> ProbedMeter {
    let about = about(format!("battery:{name}"), format!("/{FOLDER}/{name}"));
    ProbedMeter::probed(about, Box::new(Battery(folder.join(name))), PERMISSION)
}

fn about(name: String, source: String) -> MeterInfo {
    MeterInfo {
        name,
        scope: Coverage::Battery.scope(),
        covers: Coverage::Battery,
        resolution_joules: None,
        resolution_seconds: None,
        source,
    }
}
