//! Power and energy sensors of boards, through /sys/class/hwmon (ACPI power meters among them).
//!
//! Names and units: Documentation/hwmon/sysfs-interface.rst of Linux (microwatts, microjoules).

use std::path::{Path, PathBuf};

use super::sysfs::{names, number, text};
use super::{Coverage, Meter, MeterError, MeterInfo, ProbedMeter, Reading};

const FOLDER: &str = "sys/class/hwmon";

const PERMISSION: &str = "run as root: this user may not read these sensors";

const MICRO: f64 = 1e-6;

/// A file with the current power in microwatts.
struct Power(PathBuf);

/// A file with the energy so far, in microjoules.
struct Energy(PathBuf);

impl Meter for Power {
    fn read(&mut self) -> Result<Reading, MeterError> {
        let microwatts = number(&self.0, "a number of microwatts")?;
        Ok(Reading::Power { watts: microwatts as f64 * MICRO })
    }
}

impl Meter for Energy {
    fn read(&mut self) -> Result<Reading, MeterError> {
        let microjoules = number(&self.0, "a number of microjoules")?;
        Ok(Reading::Energy { microjoules, range: None })
    }
}

/// Every sensor of power or energy, or the reason if there is none.
pub(super) fn list(root: &Path) -> Vec<ProbedMeter> {
    let folder = root.join(FOLDER);
    let sensors: Vec<ProbedMeter> = names(&folder)
        .iter()
        .flat_map(|chip| {
            let path = folder.join(chip);
            sensors(&path).into_iter().map(move |file| listed(&path, &file)).collect::<Vec<_>>()
        })
        .collect();
    if sensors.is_empty() {
        let about = about("hwmon".to_owned(), "", None, false, format!("/{FOLDER}"));
        return vec![ProbedMeter::absent(about, MeterError::NoSensor)];
    }
    sensors
}

/// `power1_average` or, if missing, `power1_input`; `energy1_input`.
fn sensors(chip: &Path) -> Vec<String> {
    let files = names(chip);
    let is_sensor = |name: &String| {
        let digits =
            |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        let between = |start: &str, end: &str| {
            name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)).is_some_and(digits)
        };
        let averaged = || files.contains(&name.replace("_input", "_average"));
        between("energy", "_input")
            || between("power", "_average")
            || (between("power", "_input") && !averaged())
    };
    files.iter().filter(|name| is_sensor(name)).cloned().collect()
}

fn listed(chip: &Path, file: &str) -> ProbedMeter {
    let chip_name = text(&chip.join("name")).unwrap_or_else(|_| "unnamed".to_owned());
    let (sensor, _) = file.rsplit_once('_').unwrap_or((file, ""));
    let label = text(&chip.join(format!("{sensor}_label"))).unwrap_or_else(|_| sensor.to_owned());
    let interval = number(&chip.join(format!("{sensor}_average_interval")), "milliseconds").ok();
    let folder = chip.file_name().unwrap_or_default().to_string_lossy();
    let is_energy = sensor.starts_with("energy");
    let about = about(
        format!("hwmon:{chip_name}/{label}"),
        &chip_name,
        interval.filter(|milliseconds| *milliseconds > 0),
        is_energy,
        format!("/{FOLDER}/{folder}/{file}"),
    );
    let path = chip.join(file);
    let meter: Box<dyn Meter> =
        if is_energy { Box::new(Energy(path)) } else { Box::new(Power(path)) };
    ProbedMeter::probed(about, meter, PERMISSION)
}

fn about(
    name: String,
    chip: &str,
    interval_ms: Option<u64>,
    is_energy: bool,
    source: String,
) -> MeterInfo {
    let covers = match chip {
        "power_meter" => Coverage::PowerInlet,
        "amdgpu" => Coverage::AmdgpuBoard,
        _ => Coverage::Rail,
    };
    let seconds = interval_ms.map(|milliseconds| milliseconds as f64 / 1e3);
    MeterInfo {
        name,
        scope: covers.scope(),
        covers,
        // The resolution of a power sensor is one microwatt, multiplied by its interval.
        resolution_joules: if is_energy { Some(MICRO) } else { seconds.map(|time| time * MICRO) },
        resolution_seconds: seconds,
        source,
    }
}
