//! What `--replay` names: one record, or a report whose epochs are replayed one by one.

use crate::report::Report;
use anyhow::{Context, bail};
use meetpoint_host::StrategyName;
use meetpoint_scheduler::Record;
use std::path::Path;

/// The records behind `text`: a record itself (`mte:812`), or those of a report's file.
///
/// `wanted` picks among the strategies of a report that has more than one with a record.
pub(crate) fn records(text: &str, wanted: Option<StrategyName>) -> anyhow::Result<Vec<Record>> {
    let as_record = text.parse::<Record>();
    let path = Path::new(text);
    if let Ok(record) = as_record
        && !path.exists()
    {
        return Ok(vec![record]);
    }
    if !path.exists() {
        bail!(
            "{text:?} is neither a record nor a file; --replay takes a record such as mte:812, or \
             the report.json of the run that is to be replayed"
        );
    }
    let bytes = std::fs::read(path).with_context(|| format!("failed to read {text}"))?;
    let report: Report = serde_json::from_slice(&bytes).with_context(|| {
        format!("{text} is no report.json of this version; run the job again to have one")
    })?;
    of_report(&report, wanted).with_context(|| format!("{text} cannot be replayed"))
}

fn of_report(report: &Report, wanted: Option<StrategyName>) -> anyhow::Result<Vec<Record>> {
    let has_records =
        |run: &&crate::report::Run| run.epochs.iter().any(|epoch| epoch.record.is_some());
    let runs: Vec<_> = report.runs.iter().filter(has_records).collect();
    let run = match (&runs[..], wanted) {
        ([], _) => bail!(
            "none of its strategies left a record; those that fix an order do: mte, mte-feedback, \
             wrr-frozen"
        ),
        (runs, Some(wanted)) => {
            let found = runs.iter().find(|run| run.strategy == wanted.as_str());
            found.with_context(|| format!("it has no record of {}", wanted.as_str()))?
        }
        ([run], None) => run,
        (runs, None) => {
            let names: Vec<&str> = runs.iter().map(|run| run.strategy.as_str()).collect();
            bail!("it has records of {}; pick one with --strategy", names.join(", "))
        }
    };
    let record = |epoch: &crate::report::Epoch| {
        let text = epoch
            .record
            .as_deref()
            .with_context(|| format!("epoch {} of {} left no record", epoch.epoch, run.strategy))?;
        text.parse::<Record>().with_context(|| format!("{text:?} is no record"))
    };
    run.epochs.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::{of_report, records};
    use crate::report::made_up;
    use meetpoint_host::StrategyName;

    #[test]
    fn a_report_gives_the_record_of_every_epoch() {
        let mut report = made_up::report(10);
        let error = of_report(&report, None).unwrap_err().to_string();
        assert!(error.contains("left a record"), "{error}");
        report.runs[1].epochs[0].record = Some("mte:4".to_owned());
        let found = of_report(&report, None).unwrap();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["mte:4"]);
        let error = of_report(&report, Some(StrategyName::MteFeedback)).unwrap_err().to_string();
        assert!(error.contains("no record of mte-feedback"), "{error}");
    }

    #[test]
    fn what_is_neither_record_nor_file_is_refused_with_both() {
        let error = records("mte:few", None).unwrap_err().to_string();
        assert!(error.contains("mte:812") && error.contains("report.json"), "{error}");
        assert_eq!(records("mte:7", None).unwrap()[0].to_string(), "mte:7");
    }
}
