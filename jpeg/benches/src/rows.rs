//! Results: one row for each case, as a table for people and as JSON for programs.

use crate::{Machine, Options};
use anyhow::Context;
use serde::{Serialize, Serializer};

/// The target of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// The ratio to the peer is at least this.
    RatioAtLeast(f64),
    /// The ratio to the peer is at most this.
    RatioAtMost(f64),
    /// The value is at most this.
    ValueAtMost(f64),
    /// The value is at least this.
    ValueAtLeast(f64),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RatioAtLeast(limit) => write!(f, "ratio >= {limit}"),
            Self::RatioAtMost(limit) => write!(f, "ratio <= {limit}"),
            Self::ValueAtMost(limit) => write!(f, "value <= {limit}"),
            Self::ValueAtLeast(limit) => write!(f, "value >= {limit}"),
        }
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was measured.
    pub case: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// The peer or limit that was measured in the same run.
    pub peer: Option<String>,
    /// The peer's value, in the same unit.
    pub peer_value: Option<f64>,
    /// Value over the peer's.
    pub ratio: Option<f64>,
    /// The target.
    pub target: Option<Target>,
}

impl Row {
    /// A value without a peer.
    pub fn alone(case: impl Into<String>, value: f64, unit: impl Into<String>) -> Self {
        let (case, unit) = (case.into(), unit.into());
        Self { case, value, unit, peer: None, peer_value: None, ratio: None, target: None }
    }

    /// Compares it with a peer.
    #[must_use]
    pub fn against(mut self, peer: impl Into<String>, peer_value: f64) -> Self {
        self.peer = Some(peer.into());
        self.peer_value = Some(peer_value);
        self.ratio = (peer_value != 0.0).then_some(self.value / peer_value);
        self
    }

    /// Sets a target.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// Whether it reaches its target; a target on a ratio is missed without a peer.
    pub fn is_met(&self) -> bool {
        match self.target {
            None => true,
            Some(Target::RatioAtLeast(limit)) => self.ratio.is_some_and(|ratio| ratio >= limit),
            Some(Target::RatioAtMost(limit)) => self.ratio.is_some_and(|ratio| ratio <= limit),
            Some(Target::ValueAtMost(limit)) => self.value <= limit,
            Some(Target::ValueAtLeast(limit)) => self.value >= limit,
        }
    }
}

/// All results of a bench.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the bench.
    pub bench: String,
    /// Where it ran.
    pub machine: Machine,
    /// Whether it was a `--quick` run.
    pub quick: bool,
    /// Remarks: hashes of outputs, what was skipped and why.
    pub notes: Vec<String>,
    /// Results.
    pub rows: Vec<Row>,
}

impl Report {
    /// An empty report of this machine.
    pub fn new(bench: &str, options: &Options) -> Self {
        Self {
            bench: bench.to_owned(),
            machine: Machine::here(),
            quick: options.quick,
            notes: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a remark.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a result.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Prints the table, and writes the JSON if requested. With `--judge`, a missed target is an
    /// error.
    pub fn finish(&self, options: &Options) -> anyhow::Result<()> {
        print!("{self}");
        if let Some(path) = &options.json {
            let text = serde_json::to_string_pretty(self)?;
            std::fs::write(path, text + "\n")
                .with_context(|| format!("failed to write {}", path.display()))?;
        }
        let missed: Vec<_> = self.rows.iter().filter(|row| !row.is_met()).collect();
        if !options.judge || missed.is_empty() {
            return Ok(());
        }
        let missed: Vec<_> = missed.iter().map(|row| row.case.as_str()).collect();
        anyhow::bail!("targets missed: {}", missed.join("; "))
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {}", self.bench, self.machine)?;
        for note in &self.notes {
            writeln!(f, "  {note}")?;
        }
        for row in &self.rows {
            write!(f, "{:<44} {:>12.3} {:<6}", row.case, row.value, row.unit)?;
            if let (Some(peer), Some(value)) = (&row.peer, row.peer_value) {
                write!(f, " {peer:<16} {value:>12.3}")?;
            }
            if let Some(ratio) = row.ratio {
                write!(f, "  x {ratio:.3}")?;
            }
            if let Some(target) = row.target {
                let verdict = match (self.quick, row.is_met()) {
                    (true, _) => "not checked",
                    (false, true) => "met",
                    (false, false) => "MISSED",
                };
                write!(f, "  {target}: {verdict}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The median; for an even number of values, the mean of the two in the middle.
///
/// # Panics
/// If there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_promised_fields_and_judges_its_target() {
        let row = Row::alone("reads", 90.0, "MB/s").against("fio", 100.0);
        let row = row.target(Target::RatioAtLeast(0.9));
        assert!(row.is_met());
        assert_eq!(
            serde_json::to_value(&row).unwrap(),
            serde_json::json!({
                "case": "reads", "value": 90.0, "unit": "MB/s", "peer": "fio",
                "peer_value": 100.0, "ratio": 0.9, "target": "ratio >= 0.9",
            })
        );
        assert!(!Row { value: 1.0, ratio: Some(0.89), ..row.clone() }.is_met());
        assert!(!Row::alone("x", 201.0, "ns").target(Target::ValueAtMost(200.0)).is_met());
        assert!(!row.against("nobody", 0.0).is_met());
    }

    #[test]
    fn a_missed_target_is_an_error_where_targets_are_judged() {
        for judge in [false, true] {
            let options = Options { judge, ..Options::default() };
            let mut report = Report::new("test", &options);
            report.row(Row::alone("x", 2.0, "s").target(Target::ValueAtMost(1.0)));
            assert_eq!(report.finish(&options).is_ok(), !judge);
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
