//! `meetpoint device calibrate`: declared devices compared with what this machine can emulate.

use crate::emulation::{self, Measured, Pictures, Setting};
use crate::surface::output::table_style;
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, output, units};
use meetpoint_device::{DeviceProfile, PROFILES, ProfileError};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_report::EmulatedCore;
use meetpoint_report::grid::Grid;
use serde::Serialize;
use std::time::Duration;

/// Shares of a core that a sweep measures.
const SWEEP: [f64; 10] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0];

/// Measure how well this machine emulates a device.
///
/// A profile declares how fast a real device decodes JPEG pictures, its bandwidths, latency and
/// memory, each with its source. This command measures how fast a core of this machine decodes
/// generated photographs, derives the share of it that is as fast as the device, runs at that
/// share, and compares the result with the target. Without a profile it prints only the rate of
/// this machine: on a device, that is the figure for its profile.
///
/// A profile that is faster than a core of this machine, or more than a thousand times as slow, is
/// refused. A share that is more than 5 % off its target is marked as INVALID, with the measured
/// cause, if any: contention (another thread used the core), steal (the hypervisor used it), or
/// late wake-ups.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint device calibrate
  meetpoint device calibrate a53
  meetpoint device calibrate --all
  meetpoint device calibrate --sweep                ten targets from 1 % to 100 %
  meetpoint device calibrate --sweep --neighbour    the same beside a busy thread
  meetpoint run job.toml --device-profile a53")]
pub(crate) struct Arguments {
    /// Name of a profile, or a TOML file.
    #[arg(conflicts_with_all = ["all", "sweep"])]
    profile: Option<String>,
    /// Measure every built-in profile.
    #[arg(long, conflicts_with = "sweep")]
    all: bool,
    /// Measure ten shares of a core from 1 % to 100 %.
    #[arg(long)]
    sweep: bool,
    /// Run a busy thread on the same core during the measurement.
    #[arg(long)]
    neighbour: bool,
    /// Minimum time of each measurement, such as 2s.
    #[arg(long, value_name = "TIME", default_value = "2s",
          value_parser = units::parse_positive_duration)]
    time: Duration,
    /// Core to use; by default the last one, as a device does.
    #[arg(long, value_name = "N")]
    core: Option<u32>,
    /// Measure even if host and device would share the only core.
    #[arg(long)]
    allow_shared: bool,
}

/// The result.
#[derive(Debug, Serialize)]
struct Calibration {
    /// A core of this machine without a limit.
    own: Measured,
    profiles: Vec<OfProfile>,
    /// Targets of a sweep.
    sweep: Vec<Measured>,
}

/// One profile.
#[derive(Debug, Serialize)]
struct OfProfile {
    profile: DeviceProfile,
    /// At the derived share; `None` if the profile was refused.
    measured: Option<Measured>,
    /// Why it was refused.
    refused: Option<String>,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let profiles: Vec<DeviceProfile> = match (&arguments.profile, arguments.all) {
        (Some(name), _) => vec![emulation::profile(name)?],
        (None, true) => PROFILES
            .iter()
            .map(|(name, _)| emulation::profile(name))
            .collect::<anyhow::Result<_>>()?,
        (None, false) => Vec::new(),
    };
    if cfg!(debug_assertions) {
        output::notice("this is a debug build: its core decodes more slowly than a release build");
    }
    let setting = Setting {
        duration: arguments.time,
        core: arguments.core,
        allow_shared: arguments.allow_shared,
        has_neighbour: false,
    };
    let loaded = Setting { has_neighbour: arguments.neighbour, ..setting };
    let pictures = Pictures::generate(&stop)?;
    let own = emulation::measure(&pictures, None, setting, &stop)?;
    let rate = own.pixels_per_cpu_second;
    let mut calibration = Calibration { own, profiles: Vec::new(), sweep: Vec::new() };
    let shares = if arguments.sweep { &SWEEP[..] } else { &[] };
    let steps = (profiles.len() + shares.len()) as u64;
    let mut bar = Progress::new("measuring", "targets", steps);
    for profile in profiles {
        if let Some(assumptions) = emulation::assumptions(&profile) {
            output::notice(&assumptions);
        }
        let (measured, refused) = match profile.cpu_ratio(rate) {
            Ok(share) => (Some(emulation::measure(&pictures, Some(share), loaded, &stop)?), None),
            // A single profile: the refusal is the error of the command.
            Err(refused) if arguments.profile.is_some() => return Err(refused.into()),
            Err(refused) => (None, Some(in_words(&refused))),
        };
        calibration.profiles.push(OfProfile { profile, measured, refused });
        bar.set(calibration.profiles.len() as u64, steps);
    }
    for &share in shares {
        calibration.sweep.push(emulation::measure(&pictures, Some(share), loaded, &stop)?);
        bar.set(calibration.sweep.len() as u64, steps);
    }
    drop(bar);
    output.result(&calibration, || text(&calibration))
}

fn in_words(refused: &ProfileError) -> String {
    refused.in_full(Surface::CommandLine)
}

/// The columns that all targets have.
fn columns(measured: &Measured) -> Vec<String> {
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let causes: Vec<String> = measured.causes.iter().map(ToString::to_string).collect();
    let verdict = match (measured.is_valid, causes.is_empty()) {
        (true, _) => "valid".to_owned(),
        (false, true) => "INVALID".to_owned(),
        (false, false) => format!("INVALID: {}", causes.join(", ")),
    };
    let first = [
        measured.target.map_or("-".to_owned(), percent),
        percent(measured.achieved),
        format!("{:+.1} %", measured.off() * 100.0),
        format!("{:.1}", measured.pixels_per_second / 1e6),
    ];
    first.into_iter().chain(measured.core_use.columns()).chain([verdict]).collect()
}

/// The name of the last column.
const VERDICT: &str = "verdict";

/// Their names.
fn names() -> Vec<&'static str> {
    let first = ["target", "achieved", "off", "MP/s"].into_iter();
    first.chain(EmulatedCore::COLUMNS).chain([VERDICT]).collect()
}

fn text(calibration: &Calibration) -> String {
    let own = &calibration.own;
    let core = own.core.map_or("a core".to_owned(), |core| format!("core {core}"));
    let mut text = format!(
        "{core} of this machine decodes {:.1} megapixels per second of CPU time\n",
        own.pixels_per_cpu_second / 1e6
    );
    let names = names();
    let numbers = |first: usize| first..first + names.len() - 1;
    if !calibration.profiles.is_empty() {
        let head: Vec<&str> =
            ["profile", "declared MP/s"].into_iter().chain(names.clone()).collect();
        let mut grid = Grid::new(&head, numbers(1));
        let mut refusals = String::new();
        for OfProfile { profile, measured, refused } in &calibration.profiles {
            let declared = format!("{:.1}", profile.pixels_per_second.value / 1e6);
            let rest = match measured {
                Some(measured) => columns(measured),
                None => {
                    let refused = refused.as_deref().unwrap_or_default();
                    refusals.push_str(&format!("refused: {refused}\n"));
                    let none = |name: &&str| if *name == VERDICT { "refused" } else { "-" };
                    names.iter().map(none).map(str::to_owned).collect()
                }
            };
            grid.rows.push([vec![profile.name.clone(), declared], rest].concat());
        }
        text.push_str(&grid.text(table_style()));
        text.push_str(&refusals);
        for OfProfile { profile, .. } in &calibration.profiles {
            for (key, value, basis, source) in profile.figures() {
                let basis = basis.as_str();
                text.push_str(&format!("{}.{key} = {value}, {basis}: {source}\n", profile.name));
            }
        }
    }
    if !calibration.sweep.is_empty() {
        let mut grid = Grid::new(&names, numbers(0));
        grid.rows.extend(calibration.sweep.iter().map(columns));
        text.push_str(&grid.text(table_style()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Calibration, OfProfile, SWEEP, text};
    use crate::emulation::{Measured, profile};
    use meetpoint_link::{CoreUse, Disturbance};

    fn measured(target: Option<f64>, achieved: f64) -> Measured {
        let is_valid = target.is_none_or(|target| (achieved / target - 1.0).abs() <= 0.05);
        Measured {
            target,
            achieved,
            pixels_per_second: achieved * 150e6,
            pixels_per_cpu_second: 150e6,
            core: Some(1),
            core_use: CoreUse { sleeps: 10, late_p50_ns: 60_000, ..CoreUse::default() }.into(),
            is_valid,
            causes: if is_valid { Vec::new() } else { vec![Disturbance::Contention] },
        }
    }

    #[test]
    fn targets_are_ten_from_one_to_a_hundred_percent_and_invalid_ones_are_marked() {
        assert_eq!((SWEEP.len(), SWEEP[0], SWEEP[9]), (10, 0.01, 1.0));
        let sweep = SWEEP.map(|share| measured(Some(share), share.min(0.5)));
        let own = measured(None, 1.0);
        let result = Calibration { own, profiles: Vec::new(), sweep: sweep.to_vec() };
        let printed = text(&result);
        assert!(printed.starts_with("core 1 of this machine decodes 150.0 megapixels"));
        assert_eq!(printed.matches("INVALID: contention").count(), 3, "{printed}");
        assert_eq!(printed.matches("not measured").count(), 2 * SWEEP.len(), "{printed}");
        let document = serde_json::to_value(&result).unwrap();
        let last = &document["sweep"][9];
        assert_eq!((&last["is_valid"], &last["causes"][0]), (&false.into(), &"contention".into()));
        assert_eq!((&last["sleeps"], last["steal_seconds"].is_null()), (&10.into(), true));
    }

    #[test]
    fn every_figure_of_a_profile_is_printed_with_its_source() {
        let own = measured(None, 1.0);
        let refused = Some("too fast".to_owned());
        let profiles = vec![
            OfProfile {
                profile: profile("a53").unwrap(),
                measured: Some(own.clone()),
                refused: None,
            },
            OfProfile { profile: profile("fpga").unwrap(), measured: None, refused },
        ];
        let printed = text(&Calibration { own, profiles, sweep: Vec::new() });
        assert!(printed.contains("refused: too fast"), "{printed}");
        assert!(printed.contains("fpga.jpeg = 301.0 MP/s, published: https://"), "{printed}");
        assert!(printed.contains("a53.jpeg = 25.0 MP/s, assumed: "), "{printed}");
    }
}
