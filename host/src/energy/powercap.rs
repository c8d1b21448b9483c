//! RAPL counters of Intel and AMD processors, through /sys/class/powercap.
//!
//! Files and wrap-around: Documentation/power/powercap/powercap.rst of Linux.

use std::path::{Path, PathBuf};

use super::sysfs::{names, number, text};
use super::{Coverage, Meter, MeterError, MeterInfo, ProbedMeter, Reading};

const FOLDER: &str = "sys/class/powercap";

/// Prefix of a zone's name. `intel-rapl-mmio:` exposes the same package a second time.
const ZONE: &str = "intel-rapl:";

/// The usual step of the counter: 2^-14 J (energy status unit 14, Intel SDM 3, "RAPL interfaces").
const STEP_J: f64 = 6.1e-5;

/// How often the processor updates it, by the same text: about every millisecond.
const RENEWED_S: f64 = 1e-3;

const PERMISSION: &str = "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj, or run as \
    root: since CVE-2020-8694 only root may read them";

const MICROJOULES: &str = "a number of microjoules";

struct Zone {
    energy: PathBuf,
    range: Option<u64>,
}

impl Meter for Zone {
    fn read(&mut self) -> Result<Reading, MeterError> {
        let microjoules = number(&self.energy, MICROJOULES)?;
        Ok(Reading::Energy { microjoules, range: self.range })
    }
}

/// Every zone that counts energy, or the reason if there is none.
pub(super) fn list(root: &Path) -> Vec<ProbedMeter> {
    let folder = root.join(FOLDER);
    let zones: Vec<String> = names(&folder)
        .into_iter()
        .filter(|name| name.starts_with(ZONE) && folder.join(name).join("energy_uj").exists())
        .collect();
    if zones.is_empty() {
        let about = about("rapl".to_owned(), "", format!("/{FOLDER}"));
        return vec![ProbedMeter::absent(about, MeterError::NoRapl)];
    }
    zones.iter().map(|zone| listed(&folder, zone)).collect()
}

fn listed(folder: &Path, zone: &str) -> ProbedMeter {
    let path = folder.join(zone);
    let energy = path.join("energy_uj");
    let name = |zone: &str| text(&folder.join(zone).join("name")).unwrap_or_else(|_| zone.into());
    let own = name(zone);
    // `intel-rapl:0:1` is a part of `intel-rapl:0`.
    let parent = zone.rsplit_once(':').map_or("", |(parent, _)| parent);
    let full = match parent.starts_with(ZONE) {
        true => format!("rapl:{}/{own}", name(parent)),
        false => format!("rapl:{own}"),
    };
    let about = about(full, &own, format!("/{FOLDER}/{zone}/energy_uj"));
    let range_file = path.join("max_energy_range_uj");
    let range = match number(&range_file, MICROJOULES) {
        Ok(range) => Some(range),
        Err(_) if !range_file.exists() => None,
        Err(error) => return ProbedMeter::failed(about, error, PERMISSION),
    };
    ProbedMeter::probed(about, Box::new(Zone { energy, range }), PERMISSION)
}

fn about(name: String, domain: &str, source: String) -> MeterInfo {
    let covers = Coverage::of_rapl_domain(domain);
    MeterInfo {
        name,
        scope: covers.scope(),
        covers,
        resolution_joules: Some(STEP_J),
        resolution_seconds: Some(RENEWED_S),
        source,
    }
}
