//! RAPL counters as performance events, through /sys/bus/event_source/devices/power.
//!
//! Files and the unit of 2^-32 J: Documentation/ABI/testing/sysfs-bus-event_source-devices-events
//! of Linux, and its commit 4788e5b4 ("Add Intel RAPL PMU support").

use std::io::Read;
use std::path::{Path, PathBuf};

use super::perf_event::Counters;
use super::sysfs::{garbage, names, number, text};
use super::{Coverage, Meter, MeterError, MeterInfo, ProbedMeter, Reading};

const FOLDER: &str = "sys/bus/event_source/devices/power";

const PERMISSION: &str = "sudo sysctl kernel.perf_event_paranoid=0, or run as root or with \
    CAP_PERFMON";

/// The processor's own resolution and update interval; the unit of the file is finer.
const STEP_J: f64 = 6.1e-5;
const RENEWED_S: f64 = 1e-3;

/// One event on one processor of a package.
struct Event {
    name: String,
    counter: Box<dyn Read + Send>,
    joules_per_count: f64,
}

impl Meter for Event {
    fn read(&mut self) -> Result<Reading, MeterError> {
        let mut value = [0; size_of::<u64>()];
        self.counter.read_exact(&mut value).map_err(|error| MeterError::Counter {
            event: self.name.clone(),
            error: error.into(),
        })?;
        let microjoules = u64::from_ne_bytes(value) as f64 * self.joules_per_count * 1e6;
        // The conversion saturates; the kernel extends counters to 64 bits.
        Ok(Reading::Energy { microjoules: microjoules as u64, range: None })
    }
}

/// The contents of a file that describes an event.
struct Described {
    unit: u32,
    config: u64,
    joules_per_count: f64,
    cpus: Vec<u32>,
}

/// Every energy event on every package, or the reason if there is none.
pub(super) fn list(root: &Path, counters: &dyn Counters) -> Vec<ProbedMeter> {
    let folder = root.join(FOLDER);
    let events: Vec<String> = names(&folder.join("events"))
        .into_iter()
        .filter(|name| name.starts_with("energy-") && !name.contains('.'))
        .collect();
    if events.is_empty() {
        let about = about("perf".to_owned(), "", format!("/{FOLDER}"));
        return vec![ProbedMeter::absent(about, MeterError::NoPerformanceEvents)];
    }
    events.iter().flat_map(|event| listed(&folder, event, counters)).collect()
}

fn listed(folder: &Path, event: &str, counters: &dyn Counters) -> Vec<ProbedMeter> {
    let source = format!("perf_event_open, power/{event}/");
    let described = match describe(folder, event) {
        Ok(described) => described,
        Err(error) => {
            let about = about(format!("perf:{event}"), event, source);
            return vec![ProbedMeter::failed(about, error, PERMISSION)];
        }
    };
    let one = |(package, cpu): (usize, &u32)| {
        let name = format!("perf:{event}/{package}");
        let about = about(name.clone(), event, format!("{source} on processor {cpu}"));
        match counters.open(described.unit, described.config, *cpu) {
            Ok(counter) => {
                let joules_per_count = described.joules_per_count;
                let event = Event { name, counter, joules_per_count };
                ProbedMeter::probed(about, Box::new(event), PERMISSION)
            }
            Err(error) => ProbedMeter::failed(
                about,
                MeterError::Open { event: name, error: error.into() },
                PERMISSION,
            ),
        }
    };
    described.cpus.iter().enumerate().map(one).collect()
}

fn describe(folder: &Path, event: &str) -> Result<Described, MeterError> {
    let unit_file = folder.join("type");
    let unit = number(&unit_file, "a number")?;
    let events = folder.join("events");
    let config = parsed(events.join(event), "event=0x…", |text| {
        u64::from_str_radix(text.strip_prefix("event=0x")?, 16).ok()
    })?;
    let joules_per_count = parsed(events.join(format!("{event}.scale")), "a scale", |text| {
        text.parse().ok().filter(|scale: &f64| scale.is_finite() && *scale > 0.0)
    })?;
    parsed(events.join(format!("{event}.unit")), "Joules", |text| {
        (text == "Joules").then_some(())
    })?;
    let cpus = parsed(folder.join("cpumask"), "a list of processors", cpu_list)?;
    let unit = u32::try_from(unit)
        .map_err(|_| garbage(unit_file, &unit.to_string(), "a number of 32 bits"))?;
    Ok(Described { unit, config, joules_per_count, cpus })
}

fn parsed<T>(
    path: PathBuf,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, MeterError> {
    let text = text(&path)?;
    parse(&text).ok_or_else(|| garbage(path, &text, expected))
}

/// `0,64` or `0-1`: one processor for each package.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => cpus.push(part.parse().ok()?),
            Some((first, last)) => {
                let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
                // A mask that names more processors than exist is not a mask.
                (last.checked_sub(first)? < 4_096).then_some(())?;
                cpus.extend(first..=last);
            }
        }
    }
    Some(cpus)
}

fn about(name: String, event: &str, source: String) -> MeterInfo {
    let covers = Coverage::of_rapl_domain(event);
    MeterInfo {
        name,
        scope: covers.scope(),
        covers,
        resolution_joules: Some(STEP_J),
        resolution_seconds: Some(RENEWED_S),
        source,
    }
}
