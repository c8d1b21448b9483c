//! How each strategy performs on a machine that differs from its profile: one table per strategy.

use crate::{Error, Progress};
use meetpoint_report::grid::{Grid, Style};
use meetpoint_report::units::{seconds, signed_percent};
use meetpoint_sim::studies::{Condition, Table, robustness};
use serde::Serialize;

/// A study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Study {
    /// The device's true time differs from its profile.
    Misprofiled,
    /// The device slows down.
    Slowdown,
    /// Times vary.
    Jitter,
    /// Several accelerators.
    Ranks,
    /// All of these studies.
    All,
    /// Trainings over many hosts; see [`super::hosts`].
    Hosts,
}

impl Study {
    /// All of them, in the order of their documentation.
    pub const ALL: [Self; 6] =
        [Self::Misprofiled, Self::Slowdown, Self::Jitter, Self::Ranks, Self::All, Self::Hosts];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Misprofiled => "misprofiled",
            Self::Slowdown => "slowdown",
            Self::Jitter => "jitter",
            Self::Ranks => "ranks",
            Self::All => "all",
            Self::Hosts => "hosts",
        }
    }

    /// How the machine differs from its profile, in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Misprofiled => "The device's true time is 0.5 to 4 times that in its profile",
            Self::Slowdown => "The device takes twice as long from the middle of the epoch on",
            Self::Jitter => "Every time is drawn from a lognormal distribution with sigma 0.3",
            Self::Ranks => {
                "2, 4 and 8 accelerators that step together, with and without a common decision"
            }
            Self::All => "All of the above",
            Self::Hosts => {
                "Trainings over 1 to 1,000 hosts: how many agents they need, and what limits them"
            }
        }
    }
}

/// A strategy under a condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The strategy, with its option if it has one.
    pub strategy: String,
    /// The condition.
    pub condition: String,
    /// T.
    pub total_seconds: f64,
    /// T of the host alone under the same condition and with the same random times.
    pub host_only_seconds: f64,
    /// T/T0.
    pub time_ratio: f64,
    /// Share of the batches that devices prepared.
    pub device_share: f64,
    /// Time that accelerators waited, mean over ranks.
    pub wait_seconds: f64,
    /// Share of the steps in which ranks took batches from different kinds of source; `None` for
    /// one rank.
    pub mixed_steps: Option<f64>,
}

/// A strategy that the scheduler refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The strategy.
    pub strategy: String,
    /// Why.
    pub reason: String,
}

/// The result of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    kind: &'static str,
    rows: Vec<Row>,
    refused: Vec<Refused>,
}

/// Runs a study with every strategy. [`Study::Hosts`] has a function of its own:
/// [`super::hosts::run`].
pub fn run(study: Study, progress: Progress<'_>) -> Result<Document, Error> {
    let tables = robustness(|done, total| progress(done as u64, total as u64))?;
    let mut document = Document { kind: "study", rows: Vec::new(), refused: Vec::new() };
    for table in tables {
        take(&mut document, study, table);
    }
    Ok(document)
}

fn take(document: &mut Document, study: Study, table: Table) {
    let strategy = table.strategy;
    let asked = table.rows.into_iter().filter(|row| belongs(study, row.condition));
    document.rows.extend(asked.map(|row| Row {
        strategy: strategy.clone(),
        condition: row.condition.describe(),
        total_seconds: row.total_s,
        host_only_seconds: row.host_only_s,
        time_ratio: row.against_host_only(),
        device_share: row.device_share,
        wait_seconds: row.wait_s,
        mixed_steps: row.mixed_steps,
    }));
    document.refused.extend(table.refused.map(|reason| Refused { strategy, reason }));
}

/// Whether a condition is part of a study; the undisturbed machine is part of each.
fn belongs(study: Study, condition: Condition) -> bool {
    match condition {
        Condition::AsProfiled => true,
        Condition::MisProfiled(_) => matches!(study, Study::All | Study::Misprofiled),
        Condition::HalvesMidEpoch => matches!(study, Study::All | Study::Slowdown),
        Condition::Jitter => matches!(study, Study::All | Study::Jitter),
        Condition::Ranks { .. } => matches!(study, Study::All | Study::Ranks),
    }
}

/// The rows of one strategy as a table.
fn grid(rows: &[Row], strategy: &str) -> Grid {
    let head = [
        strategy,
        "T / host alone",
        "time saved",
        "throughput",
        "device's share",
        "waited",
        "steps of mixed source",
    ];
    let mut grid = Grid::new(&head, 1..head.len());
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for row in rows.iter().filter(|row| row.strategy == strategy) {
        grid.rows.push(vec![
            row.condition.clone(),
            format!("{:.3}", row.time_ratio),
            signed_percent(1.0 - row.time_ratio),
            signed_percent(1.0 / row.time_ratio - 1.0),
            percent(row.device_share),
            seconds(row.wait_seconds),
            row.mixed_steps.map_or_else(|| "–".to_owned(), percent),
        ]);
    }
    grid
}

/// All tables for a terminal.
pub fn text(document: &Document, style: Style) -> String {
    let mut text = String::from(
        "Simulated: t_c 800 ms, t_g 300 ms, t_s 1.6 s in the profile, w = 0, 1000 batches a rank; \
         T is compared with that of host-only under the same condition and draws.\n",
    );
    let mut strategies: Vec<&str> = Vec::new();
    for row in &document.rows {
        if !strategies.contains(&row.strategy.as_str()) {
            strategies.push(&row.strategy);
        }
    }
    for strategy in strategies {
        text.push('\n');
        text.push_str(&grid(&document.rows, strategy).text(style));
    }
    for refused in &document.refused {
        text.push_str(&format!("{}: not simulated: {}\n", refused.strategy, refused.reason));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Study, belongs};
    use meetpoint_sim::studies::{Condition, conditions};

    #[test]
    fn every_condition_is_part_of_a_study_of_its_own() {
        use Study::{Jitter, Misprofiled, Ranks, Slowdown};
        for condition in conditions() {
            let studies = [Misprofiled, Slowdown, Jitter, Ranks];
            let of = studies.into_iter().filter(|study| belongs(*study, condition)).count();
            let wanted = if condition == Condition::AsProfiled { 4 } else { 1 };
            assert_eq!(of, wanted, "{condition:?}");
            assert!(belongs(Study::All, condition));
        }
    }
}
