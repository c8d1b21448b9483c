//! The result of a campaign: a table with a row for each fault, and a document.

use super::attempt::{Outcome, Verdict};
use super::trouble::Trouble;
use crate::surface::units;
use meetpoint_report::grid::{Grid, Style};
use serde::Serialize;

/// Version of the document.
const VERSION: u32 = 1;

/// The jobs with one fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct OfTrouble {
    pub(super) trouble: Trouble,
    /// Jobs with it.
    pub(super) jobs: u64,
    /// Jobs in which it happened before the run had ended.
    pub(super) injected: u64,
    /// Jobs that consumed every batch.
    pub(super) survived: u64,
    /// Jobs that ended with an error that the fault permits.
    pub(super) reported: u64,
    /// Jobs that violated an invariant.
    pub(super) failed: u64,
}

/// A job that violated an invariant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Failure {
    pub(super) job: u64,
    pub(super) trouble: Trouble,
    pub(super) violations: Vec<String>,
    /// The command that runs it again.
    pub(super) again: String,
    /// Its folder, with job files, ledgers and the output of every process.
    pub(super) folder: String,
}

/// The result of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Summary {
    version: u32,
    tool: String,
    pub(super) seed: u64,
    /// Whether a signal ended it.
    pub(super) is_interrupted: bool,
    pub(super) seconds: f64,
    /// Batches consumed by all jobs, and of these, batches of devices.
    pub(super) batches: u64,
    pub(super) device_batches: u64,
    /// By fault.
    pub(super) troubles: Vec<OfTrouble>,
    pub(super) failures: Vec<Failure>,
    /// Every job, in order.
    pub(super) outcomes: Vec<Outcome>,
}

impl Summary {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            version: VERSION,
            tool: format!("meetpoint {}", env!("CARGO_PKG_VERSION")),
            seed,
            is_interrupted: false,
            seconds: 0.0,
            batches: 0,
            device_batches: 0,
            troubles: Vec::new(),
            failures: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// Adds a job.
    pub(super) fn add(&mut self, outcome: Outcome) {
        let trouble = outcome.job.trouble;
        let position = match self.troubles.binary_search_by_key(&trouble, |row| row.trouble) {
            Ok(position) => position,
            Err(position) => {
                let row = OfTrouble {
                    trouble,
                    jobs: 0,
                    injected: 0,
                    survived: 0,
                    reported: 0,
                    failed: 0,
                };
                self.troubles.insert(position, row);
                position
            }
        };
        let row = &mut self.troubles[position];
        row.jobs += 1;
        row.injected += u64::from(outcome.is_injected);
        match outcome.verdict {
            Verdict::Survived => row.survived += 1,
            Verdict::Reported => row.reported += 1,
            Verdict::Failed => row.failed += 1,
        }
        self.batches += outcome.batches;
        self.device_batches += outcome.device_batches;
        self.outcomes.push(outcome);
    }

    /// The table, and one line about the whole campaign.
    pub(super) fn text(&self, style: Style) -> String {
        let mut grid =
            Grid::new(&["fault", "jobs", "injected", "survived", "reported", "failed"], 1..6);
        for row in &self.troubles {
            let counts = [row.jobs, row.injected, row.survived, row.reported, row.failed];
            let cells = std::iter::once(row.trouble.to_string());
            grid.rows.push(cells.chain(counts.map(|count| count.to_string())).collect());
        }
        let interrupted = if self.is_interrupted { ", interrupted" } else { "" };
        format!(
            "\n{}seed {}: {} with {} ({} of devices) in {}{interrupted}: {}\n",
            grid.text(style),
            self.seed,
            units::count(self.outcomes.len() as u64, "job"),
            units::count(self.batches, "batch").replace("batchs", "batches"),
            self.device_batches,
            units::seconds(self.seconds),
            match self.failures.len() {
                0 => "no invariant was violated".to_owned(),
                1 => "1 job violated an invariant".to_owned(),
                failed => format!("{failed} jobs violated an invariant"),
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;
    use crate::torture::attempt::{Outcome, Verdict};
    use crate::torture::job::TortureJob;
    use meetpoint_report::grid::Style;

    #[test]
    fn jobs_are_counted_by_their_fault() {
        let mut summary = Summary::new(7);
        for (number, verdict) in [Verdict::Survived, Verdict::Reported, Verdict::Failed]
            .into_iter()
            .cycle()
            .take(60)
            .enumerate()
        {
            summary.add(Outcome {
                job: TortureJob::new(7, number as u64, 40),
                is_injected: number % 2 == 0,
                verdict,
                cause: None,
                violations: Vec::new(),
                batches: 3,
                device_batches: 1,
                trends: Vec::new(),
                grew_at_first: Vec::new(),
                seconds: 0.5,
            });
        }
        let sum = |of: fn(&super::OfTrouble) -> u64| summary.troubles.iter().map(of).sum::<u64>();
        assert_eq!((sum(|it| it.jobs), sum(|it| it.injected)), (60, 30));
        let verdicts = [sum(|it| it.survived), sum(|it| it.reported), sum(|it| it.failed)];
        assert_eq!((verdicts, summary.batches), ([20; 3], 180));
        assert!(summary.troubles.is_sorted_by_key(|row| row.trouble));
        let text = summary.text(Style::Plain);
        assert!(text.contains("60 jobs with 180 batches (60 of devices)"), "{text}");
        let document = serde_json::to_value(&summary).unwrap();
        assert_eq!(document["outcomes"][3]["job"]["number"], 3);
    }
}
