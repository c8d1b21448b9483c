//! `report.csv`: a row of figures for each strategy, for spreadsheets and data frames.

use super::Renderer;
use crate::{Report, Run, Verdict};

/// Comma-separated values (RFC 4180). Names carry their units; an empty cell is an unknown figure.
pub(super) struct Csv;

/// A column: its name, and its cell for a run.
type Column = (&'static str, fn(&Run) -> String);

const COLUMNS: [Column; 17] = [
    ("strategy", |run| run.strategy.clone()),
    ("epochs", |run| run.epochs.len().to_string()),
    ("seconds", |run| run.totals.seconds.to_string()),
    ("samples_per_second", |run| run.totals.samples_per_second.to_string()),
    ("host_batches", |run| run.totals.host_batches.to_string()),
    ("device_batches", |run| run.totals.device_batches.to_string()),
    ("host_core_seconds", |run| run.totals.host_core_seconds.to_string()),
    ("verify_core_seconds", |run| run.totals.verify_core_seconds.to_string()),
    ("host_peak_memory_bytes", |run| run.totals.host_peak_memory_bytes.to_string()),
    ("host_bytes_read", |run| run.totals.host_bytes_read.to_string()),
    ("host_bytes_written", |run| run.totals.host_bytes_written.to_string()),
    ("device_bytes_read", |run| run.totals.device_bytes_read.to_string()),
    ("device_bytes_written", |run| run.totals.device_bytes_written.to_string()),
    ("predicted_seconds", |run| optional(run.prediction.seconds)),
    ("measured_joules", |run| {
        optional(run.measured_energy.as_ref().and_then(|energy| energy.measured_joules))
    }),
    ("modelled_joules", |run| optional(run.modelled_energy.as_ref().map(|it| it.modelled_joules))),
    ("levels_verified", |run| {
        let verified = run.levels.iter().filter(|level| level.verdict == Verdict::Verified);
        verified.map(|level| level.level.as_str()).collect::<Vec<_>>().join(" ")
    }),
];

fn optional(figure: Option<f64>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}

impl Renderer for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn file_name(&self) -> &'static str {
        "report.csv"
    }

    fn describe(&self) -> &'static str {
        "a row of figures for each strategy, for spreadsheets and data frames"
    }

    fn render(&self, report: &Report) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |cells: &[String]| writer.write_record(cells).expect("memory takes rows");
        write(&COLUMNS.map(|(name, _)| name.to_owned()));
        report.runs.iter().for_each(|run| write(&COLUMNS.map(|(_, cell)| cell(run))));
        let bytes = writer.into_inner().expect("memory takes rows");
        String::from_utf8(bytes).expect("text was written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    #[test]
    fn a_reader_gets_the_figures_back() {
        let mut report = made_up::report(8);
        report.runs[0].strategy = "a \"name\", with\na line".to_owned();
        let text = Csv.render(&report);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let head = reader.headers().unwrap().clone();
        let column = |name: &str| head.iter().position(|it| it == name).unwrap();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), report.runs.len());
        for (row, run) in rows.iter().zip(&report.runs) {
            assert_eq!(&row[column("strategy")], run.strategy);
            assert_eq!(row[column("seconds")].parse::<f64>().unwrap(), run.totals.seconds);
            let joules = run.measured_energy.as_ref().and_then(|it| it.measured_joules);
            assert_eq!(row[column("measured_joules")].parse().ok(), joules);
            assert_eq!(&row[column("levels_verified")], "C0 C2");
        }
    }
}
