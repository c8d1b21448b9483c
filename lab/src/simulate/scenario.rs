//! The results of a scenario file: table, document, files.

use super::load::Loaded;
use super::sweep::{Row, Simulated};
use crate::Error;
use meetpoint_report::grid::{Grid, Style};
use meetpoint_report::html;
use meetpoint_report::svg::Picture;
use meetpoint_report::units::{count, seconds, signed_percent, significant};
use meetpoint_scheduler::HostOnly;
use meetpoint_sim::scenario::Scenario;
use meetpoint_sim::{EpochOutcome, Outcome};
use serde::Serialize;

/// Maximum number of steps of a scenario that is also simulated under `host-only`, for comparison.
const COMPARED_STEPS_MAX: u64 = 1_000_000;
/// A resource in use for this share of the time limits the throughput.
const LIMITS: f64 = 0.9;

/// The result of a scenario.
#[derive(Debug, Serialize)]
pub struct Document {
    kind: &'static str,
    scenario: String,
    description: Option<String>,
    seed: u64,
    /// T of the same scenario under `host-only`; only without sweeps, and only for small scenarios.
    host_only_seconds: Option<f64>,
    rows: Vec<Row>,
}

impl Document {
    /// The document of a scenario's results; without sweeps, also with T under `host-only`.
    pub fn new(loaded: &Loaded, results: &[Simulated], seed: u64) -> Result<Self, Error> {
        let alone = match results {
            [only] if only.settings.is_empty() => host_only(&loaded.scenario, seed)?,
            _ => None,
        };
        Ok(Self {
            kind: "scenario",
            scenario: loaded.path.display().to_string(),
            description: loaded.scenario.description.clone(),
            seed,
            host_only_seconds: alone.map(|ns| ns / 1e9),
            rows: results.iter().map(Simulated::row).collect(),
        })
    }
}

/// T in nanoseconds of the same scenario without its devices.
fn host_only(scenario: &Scenario, seed: u64) -> Result<Option<f64>, Error> {
    let steps = u64::from(scenario.batches)
        * u64::from(scenario.epochs)
        * u64::from(scenario.rank_count().max(1));
    if !scenario.strategy.uses_devices() || steps > COMPARED_STEPS_MAX {
        return Ok(None);
    }
    let alone = Scenario { devices: Vec::new(), ..scenario.under(HostOnly) };
    Ok(Some(meetpoint_sim::run(&alone, seed)?.total_ns as f64))
}

/// For a terminal.
pub fn text(document: &Document, loaded: &Loaded, results: &[Simulated], style: Style) -> String {
    match results {
        [only] if only.settings.is_empty() => {
            one(loaded, &only.outcome, document.host_only_seconds, style)
        }
        _ => grid(results).text(style),
    }
}

/// Results side by side.
fn grid(results: &[Simulated]) -> Grid {
    let swept: Vec<&str> = results
        .first()
        .map(|result| result.settings.iter().map(|(name, _)| name.as_str()).collect())
        .unwrap_or_default();
    let mut head = swept.clone();
    head.extend([
        "time",
        "a step",
        "device's share",
        "waits",
        "waited",
        "host core-s",
        "device busy",
        "what went wrong",
    ]);
    let mut grid = Grid::new(&head, swept.len()..head.len() - 1);
    for Simulated { settings, outcome } in results {
        let mut row: Vec<String> = settings.iter().map(|(_, value)| value.clone()).collect();
        row.extend(cells(outcome));
        grid.rows.push(row);
    }
    grid
}

fn cells(outcome: &Outcome) -> [String; 8] {
    let total = outcome.total_ns as f64 / 1e9;
    [
        seconds(total),
        seconds(total / outcome.steps().max(1) as f64),
        format!("{:.1} %", outcome.device_share() * 100.0),
        outcome.sum(|rank| rank.waits.into()).to_string(),
        seconds(outcome.sum(|rank| rank.wait_ns) as f64 / 1e9),
        significant(outcome.sum(|rank| rank.host_busy_ns) as f64 / 1e9),
        seconds(outcome.sum_devices(|device| device.busy_ns) as f64 / 1e9),
        troubles(outcome).join(", "),
    ]
}

/// Faults that occurred, in a few words each.
fn troubles(outcome: &Outcome) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(lost) = outcome.lost_rank {
        said.push(format!(
            "rank {} did not reach step {} and was declared lost at {}",
            lost.rank,
            lost.step,
            seconds(lost.at_ns as f64 / 1e9)
        ));
    }
    let late: Vec<String> = outcome.late_ranks.iter().map(u32::to_string).collect();
    if !late.is_empty() {
        said.push(format!("late: rank {}", late.join(", ")));
    }
    for (sum, unit) in [
        (outcome.sum(|rank| rank.stalls.into()), "stall"),
        (outcome.sum(|rank| rank.devices_lost.into()), "device lost"),
        (outcome.sum(|rank| rank.redone.into()), "done twice"),
        (outcome.sum_devices(|device| device.failures.into()), "failures of devices"),
        (outcome.host_failures.into(), "failures of hosts"),
        (outcome.throttled, "requests rejected"),
    ] {
        match sum {
            0 => {}
            sum if unit == "stall" => said.push(count(sum, unit)),
            sum => said.push(format!("{sum} {unit}")),
        }
    }
    said
}

/// One scenario: its figures as a list, and a row per epoch if there are several.
fn one(loaded: &Loaded, outcome: &Outcome, alone: Option<f64>, style: Style) -> String {
    let scenario = &loaded.scenario;
    let mut text = String::new();
    if let Some(description) = &scenario.description {
        text.push_str(&format!("{}\n", description.trim()));
    }
    text.push_str(&format!(
        "{}: {} a rank, {}, {}, {}\n",
        scenario.strategy,
        count(scenario.batches.into(), "batch"),
        count(scenario.epochs.into(), "epoch"),
        count(scenario.rank_count().into(), "rank"),
        count(scenario.device_count() as u64, "device"),
    ));
    text.push_str(&epochs(&outcome.epochs).text(style));
    let total = outcome.total_ns as f64 / 1e9;
    text.push_str(&format!("simulated time: {}", seconds(total)));
    if let Some(alone) = alone {
        text.push_str(&format!(
            "; the host alone {}: time saved {}, throughput {}",
            seconds(alone),
            signed_percent(1.0 - total / alone),
            signed_percent(alone / total - 1.0)
        ));
    }
    text.push('\n');
    let mut ranks = outcome.epochs.iter().flat_map(|epoch| &epoch.ranks);
    if let Some(rank) = ranks.rfind(|rank| rank.picked.is_some()) {
        text.push_str(&format!("auto: {}\n", rank.picked.as_deref().unwrap_or_default()));
    }
    if let Some(limit) = outcome.binding() {
        text.push_str(&format!(
            "in use: {}{}\n",
            outcome
                .uses
                .iter()
                .map(|it| format!("{} {:.0} %", it.resource.name(), it.mean * 100.0))
                .collect::<Vec<_>>()
                .join(", "),
            if limit.mean >= LIMITS {
                format!("; limited by {}", limit.resource.name())
            } else {
                String::new()
            }
        ));
    }
    for trouble in troubles(outcome) {
        text.push_str(&format!("{trouble}\n"));
    }
    let kilo_events = significant(outcome.events as f64 / 1e3);
    text.push_str(&format!("{kilo_events} thousand events, nothing measured\n"));
    text
}

fn epochs(epochs: &[EpochOutcome]) -> Grid {
    let head = ["epoch", "time", "host batches", "device batches", "waits", "waited", "record"];
    let mut grid = Grid::new(&head, 0..6);
    // Only the first and the last few of many epochs.
    let hidden = epochs.len().saturating_sub(12);
    for (number, epoch) in epochs.iter().enumerate() {
        if hidden > 0 && (6..6 + hidden).contains(&number) {
            if number == 6 {
                let dots = std::iter::repeat_n("…".to_owned(), head.len());
                grid.rows.push(dots.collect());
            }
            continue;
        }
        let sum = |of: &dyn Fn(&meetpoint_sim::RankOutcome) -> u64| {
            epoch.ranks.iter().map(of).sum::<u64>()
        };
        let record = epoch.ranks.first().and_then(|rank| rank.record.clone());
        grid.rows.push(vec![
            number.to_string(),
            seconds(epoch.total_ns as f64 / 1e9),
            sum(&|rank| rank.host_batches.into()).to_string(),
            sum(&|rank| rank.device_batches.into()).to_string(),
            sum(&|rank| rank.waits.into()).to_string(),
            seconds(sum(&|rank| rank.wait_ns) as f64 / 1e9),
            record.unwrap_or_default(),
        ]);
    }
    grid
}

/// An HTML page with the chart and the table.
pub fn page(loaded: &Loaded, results: &[Simulated], picture: &Picture) -> String {
    let title = "Meetpoint simulation";
    let lead = match &loaded.scenario.description {
        Some(description) => description.trim().to_owned(),
        None => format!("Scenario {}; nothing here was measured.", loaded.path.display()),
    };
    let table = match results {
        [only] if only.settings.is_empty() => epochs(&only.outcome.epochs),
        _ => grid(results),
    };
    let sections = html::section("Picture", "", &html::figure(picture))
        + &html::section("Simulated", "", &html::grid(&table));
    html::page(title, &lead, &sections)
}
