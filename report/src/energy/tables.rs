//! Tables of the consumption of runs. A column is measured, counted or modelled, as its header
//! says.

use crate::grid::{Grid, unknown};
use crate::units::{bytes, seconds, significant};
use crate::{MeasuredEnergy, Report, Run};

/// Measured energy, a row for each meter of each run; nothing in it is modelled.
pub fn measured(report: &Report) -> Grid {
    let head = [
        "strategy",
        "meter",
        "measured energy",
        "measured J/sample",
        "measured over",
        "busy",
        "covers",
    ];
    let mut grid = Grid::new(&head, 2..6);
    for run in &report.runs {
        let Some(energy) = &run.measured_energy else { continue };
        let samples: u64 = run.epochs.iter().map(|epoch| epoch.samples).sum();
        let of_sample = |total: Option<f64>| {
            let total = total.filter(|_| samples > 0);
            total.map_or_else(unknown, |total| significant(total / samples as f64))
        };
        for part in &energy.meters {
            let covers = match &part.failure {
                Some(failure) => format!("FAILED: {failure}"),
                None => part.covers.to_string(),
            };
            grid.rows.push(vec![
                run.strategy.clone(),
                part.meter.clone(),
                part.measured_joules.map_or_else(unknown, joules),
                of_sample(part.measured_joules),
                seconds(energy.measured_seconds),
                part.utilisation.map_or_else(unknown, |busy| format!("{:.0} %", busy * 100.0)),
                covers,
            ]);
        }
        if energy.meters.iter().filter(|part| part.adds_up).count() > 1 {
            grid.rows.push(vec![
                run.strategy.clone(),
                "sum".to_owned(),
                energy.measured_joules.map_or_else(unknown, joules),
                of_sample(energy.measured_joules),
                seconds(energy.measured_seconds),
                unknown(),
                "packages, memory and graphics boards; the other meters overlap with them".into(),
            ]);
        }
    }
    grid
}

/// Modelled energy; no column is measured.
pub fn modelled(report: &Report) -> Grid {
    let energies =
        || report.runs.iter().filter_map(|run| Some((run, run.modelled_energy.as_ref()?)));
    let parts: Vec<&str> = energies()
        .next()
        .map(|(_, energy)| energy.modelled_parts.iter().map(|part| part.name.as_str()).collect())
        .unwrap_or_default();
    let sums = ["strategy", "modelled total", "modelled preparation", "modelled J/sample"];
    let head: Vec<&str> = sums.into_iter().chain(parts.iter().copied()).collect();
    let mut grid = Grid::new(&head, 1..head.len());
    for (run, energy) in energies() {
        let sums = [
            run.strategy.clone(),
            joules(energy.modelled_joules),
            joules(energy.modelled_preparation_joules),
            energy.modelled_joules_per_sample.map_or_else(unknown, significant),
        ];
        let of_part = |name: &&str| {
            let part = energy.modelled_parts.iter().find(|part| part.name == **name);
            part.map_or_else(unknown, |part| joules(part.modelled_joules))
        };
        grid.rows.push(sums.into_iter().chain(parts.iter().map(of_part)).collect());
    }
    grid
}

/// Counted bytes, and figures that the model derives from them.
pub fn consumption(report: &Report) -> Grid {
    let head = [
        "strategy",
        "host core-s",
        "device to host",
        "to flash",
        "modelled DRAM",
        "modelled writes/day",
        "modelled life",
    ];
    let mut grid = Grid::new(&head, 1..head.len());
    for run in &report.runs {
        let Some(used) = &run.consumption else { continue };
        let wear = used.modelled_wear.as_ref();
        grid.rows.push(vec![
            run.strategy.clone(),
            significant(run.totals.host_core_seconds),
            bytes(used.device_to_host_bytes),
            bytes(used.flash_bytes_per_epoch),
            bytes(used.modelled_dram.modelled_bytes),
            wear.map_or_else(unknown, |wear| significant(wear.modelled_drive_writes_per_day)),
            wear.map_or_else(unknown, |wear| small(wear.modelled_life_share_per_epoch)),
        ]);
    }
    grid
}

/// Money for an epoch by the model.
pub fn cost(report: &Report) -> Grid {
    let head = ["strategy", "modelled cost", "node", "electricity", "device premium", "flash wear"];
    let mut grid = Grid::new(&head, 1..head.len());
    for run in &report.runs {
        let cost = run.consumption.as_ref().and_then(|used| used.modelled_cost.as_ref());
        let Some(cost) = cost else { continue };
        let money = |amount: f64| format!("{} {}", small(amount), cost.currency);
        grid.rows.push(vec![
            run.strategy.clone(),
            money(cost.modelled_total),
            money(cost.modelled_node),
            money(cost.modelled_energy),
            money(cost.modelled_device_premium),
            money(cost.modelled_flash_wear),
        ]);
    }
    grid
}

/// The source of the modelled figures: the file, and its unverified values.
pub fn origin(report: &Report) -> String {
    let mut energies = report.runs.iter().filter_map(|run| run.modelled_energy.as_ref());
    let Some(energy) = energies.next() else { return String::new() };
    let mut text = energy.source.clone();
    let mut says = |what: &str, names: &[String]| {
        if !names.is_empty() {
            text.push_str(&format!("; {what}: {}", names.join(", ")));
        }
    };
    says("watts without a checked source", &energy.unverified_watts);
    let used = report.runs.iter().find_map(|run| run.consumption.as_ref());
    let cost = used.and_then(|used| used.modelled_cost.as_ref());
    if let Some(cost) = cost {
        says("prices without a checked source", &cost.unverified);
        says("prices chosen as examples", &cost.example_prices);
    }
    let wear = used.and_then(|used| used.modelled_wear.as_ref());
    if let Some(wear) = wear {
        says("rating without a checked source", &wear.unverified);
        let rated = significant(wear.rated_drive_writes_per_day);
        text.push_str(&format!("; the drive is rated for {rated} drive writes a day"));
    }
    text
}

/// The lines for a terminal: the measured sum or why there is none, and the modelled totals.
pub fn lines(report: &Report) -> String {
    let mut text = String::new();
    let measured: Vec<String> = report
        .runs
        .iter()
        .filter_map(|run| Some(format!("{} {}", run.strategy, sum(run.measured_energy.as_ref()?)?)))
        .collect();
    if !measured.is_empty() {
        text.push_str(&format!("measured energy: {}\n", measured.join(", ")));
    } else if let Some(why) = why_nothing(report) {
        text.push_str(&format!("measured energy: none; {why}\n"));
    }
    let boards: Vec<String> = report.runs.iter().flat_map(boards).collect();
    if !boards.is_empty() {
        text.push_str(&format!("measured graphics boards: {}\n", boards.join("; ")));
    }
    let modelled: Vec<String> = report
        .runs
        .iter()
        .filter_map(|run| {
            let energy = run.modelled_energy.as_ref()?;
            Some(format!("{} {}", run.strategy, joules(energy.modelled_joules)))
        })
        .collect();
    if !modelled.is_empty() {
        text.push_str(&format!("modelled energy (not measured): {}\n", modelled.join(", ")));
    }
    text
}

/// Energy and utilisation of each graphics board of a run.
fn boards(run: &Run) -> Vec<String> {
    let parts = run.measured_energy.iter().flat_map(|energy| &energy.meters);
    let boards = parts.filter_map(|part| {
        let busy = part.utilisation?;
        let joules = part.measured_joules.map_or_else(unknown, joules);
        Some(format!("{} {} {joules}, busy {:.0} %", run.strategy, part.meter, busy * 100.0))
    });
    boards.collect()
}

/// Why no run has measured energy.
pub fn why_nothing(report: &Report) -> Option<String> {
    let mut energies = report.runs.iter().filter_map(|run| run.measured_energy.as_ref());
    energies.find_map(|energy| energy.nothing_because.as_ref()).map(ToString::to_string)
}

fn sum(energy: &MeasuredEnergy) -> Option<String> {
    if energy.meters.is_empty() {
        return None;
    }
    let failed = || match energy.meters.iter().any(|part| part.adds_up) {
        true => "FAILED".to_owned(),
        false => "(no meter of a package, memory or graphics board)".to_owned(),
    };
    Some(energy.measured_joules.map_or_else(failed, joules))
}

fn joules(value: f64) -> String {
    format!("{} J", significant(value))
}

/// Shares and prices of single epochs may be far below 1.
fn small(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ if value >= 0.1 => significant(value),
        _ if value >= 1e-3 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;
    use meetpoint_host::energy::{MeterError, NoMeters, UnusableMeter};

    #[test]
    fn measured_and_modelled_columns_are_apart() {
        let report = made_up::report(10);
        let (measured, modelled) = (measured(&report), modelled(&report));
        assert!(measured.head.iter().all(|name| !name.contains("modelled")));
        assert!(modelled.head.iter().all(|name| !name.contains("measured")));
        let grids = [&measured, &modelled, &consumption(&report), &cost(&report)];
        for grid in grids {
            assert!(!grid.rows.is_empty());
            assert!(grid.rows.iter().all(|row| row.len() == grid.head.len()));
        }
    }

    #[test]
    fn what_is_uncertain_in_the_file_is_reported_with_its_name() {
        let text = origin(&made_up::report(10));
        let expected = [
            "modelled(desktop@00ff)",
            "watts without a checked source: device.active_w",
            "prices chosen as examples: prices.drive",
            "the drive is rated for 0.66 drive writes a day",
        ];
        assert_eq!(text, expected.join("; "));
    }

    #[test]
    fn a_meter_that_failed_is_shown_without_a_figure() {
        let mut report = made_up::report(10);
        let energy = report.runs[0].measured_energy.as_mut().unwrap();
        energy.measured_joules = None;
        energy.meters[0].measured_joules = None;
        energy.meters[0].failure = Some(MeterError::NoAnswer);
        let grid = measured(&report);
        assert_eq!(grid.rows[0][2], "–");
        assert_eq!(grid.rows[0][3], "–");
        assert_eq!(grid.rows[0][6], "FAILED: the meters did not answer in time");
        assert!(lines(&report).contains("measured energy: host-only FAILED, mte "));
    }

    #[test]
    fn a_graphics_board_is_shown_with_its_utilisation_and_joules_per_sample() {
        let mut report = made_up::report(10);
        let run = &mut report.runs[0];
        let samples: u64 = run.epochs.iter().map(|epoch| epoch.samples).sum();
        let part = &mut run.measured_energy.as_mut().unwrap().meters[0];
        (part.meter, part.utilisation) = ("nvml:0".into(), Some(0.43));
        part.measured_joules = Some(2.0 * samples as f64);
        let grid = measured(&report);
        assert_eq!((grid.rows[0][3].as_str(), grid.rows[0][5].as_str()), ("2.00", "43 %"));
        assert!(lines(&report).contains("host-only nvml:0 640 J, busy 43 %"), "{}", lines(&report));
    }

    #[test]
    fn a_machine_without_meters_says_so_beside_the_model() {
        let mut report = made_up::report(10);
        for run in &mut report.runs {
            let energy = run.measured_energy.as_mut().unwrap();
            energy.meters.clear();
            energy.measured_joules = None;
            let unusable = vec![UnusableMeter { meter: "rapl".into(), reason: MeterError::NoRapl }];
            energy.nothing_because = Some(NoMeters { unusable });
        }
        let text = lines(&report);
        assert!(
            text.starts_with("measured energy: none; no energy meter works on this machine"),
            "{text}"
        );
        assert!(text.contains("\nmodelled energy (not measured): host-only "), "{text}");
    }

    #[test]
    fn small_shares_and_prices_retain_their_digits() {
        let shown = [0.0, 0.000_000_123, 0.001_234, 0.25].map(small);
        assert_eq!(shown, ["0", "1.23e-7", "0.0012", "0.25"]);
    }
}
