//! The argument of `--replay`: one record, or a report whose epochs are replayed one by one.

use crate::surface::fault::Fault;
use anyhow::Context;
use meetpoint_diagnose::shown;
use meetpoint_host::Notice;
use meetpoint_host::{JobFile, StrategyName};
use meetpoint_report::{self as report, Report};
use meetpoint_scheduler::{Record, RecordKind};
use meetpoint_storage::files::read_regular;
use std::path::Path;

/// The records to replay.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recorded {
    /// One for each epoch, or one for all.
    pub(crate) records: Vec<Record>,
    /// The recorded job and the order hashes of its epochs, if they come from a report.
    run: Option<(report::Job, Vec<String>)>,
}

impl Recorded {
    /// Refuses a job whose epochs would have batches other than the recorded ones.
    pub(crate) fn check(&self, job: &JobFile) -> anyhow::Result<()> {
        let Some((recorded, _)) = &self.run else { return Ok(()) };
        let pairs = [
            ("seed", recorded.seed.to_string(), job.seed.to_string()),
            ("sampler", recorded.sampler.clone(), job.sampler.to_string()),
            ("batch_size", recorded.batch_size.to_string(), job.batch_size.to_string()),
            ("drop_last", recorded.drop_last.to_string(), job.drop_last.to_string()),
            ("ranks", recorded.ranks.to_string(), job.ranks.to_string()),
            ("recipe", recorded.recipe_sha256.clone(), job.recipe.hash().to_string()),
        ];
        match pairs.iter().find(|(_, then, now)| then != now) {
            Some((key, then, now)) => {
                let file = shown(&job.path);
                let message = format!("the recorded run had {key} {then}, and {file} has {now}");
                Err(Fault::new("replay_differs", message, format!("set {key} to {then}")).into())
            }
            None => Ok(()),
        }
    }

    /// Compares the order of every replayed epoch with the recorded one. Returns a notice if they
    /// are equal.
    pub(crate) fn compare(&self, replayed: &Report) -> anyhow::Result<Option<Notice>> {
        let (Some((_, hashes)), Some(run)) = (&self.run, replayed.runs.first()) else {
            return Ok(None);
        };
        for (recorded, epoch) in hashes.iter().zip(&run.epochs) {
            if *recorded != epoch.order_hash {
                let message = format!(
                    "epoch {} was not replayed: its order has the hash {}, the recorded one \
                     {recorded}",
                    epoch.epoch, epoch.order_hash
                );
                return Err(Fault::new("not_replayed", message, "use the recorded dataset").into());
            }
        }
        let epochs = run.epochs.len().min(hashes.len());
        Ok(Some(meetpoint_host::Notice::Replayed { epochs: epochs as u64 }))
    }
}

/// Parses a record (`mte:812`), or reads the records of a report file.
///
/// `wanted` selects a strategy if the report has several with records.
pub(crate) fn records(text: &str, wanted: Option<StrategyName>) -> anyhow::Result<Recorded> {
    let as_record = text.parse::<Record>();
    let path = Path::new(text);
    if let Ok(record) = as_record
        && !path.exists()
    {
        return Ok(Recorded { records: vec![record], run: None });
    }
    if !path.exists() {
        let remedy = "give --replay a record such as mte:812, or the report.json of a run";
        let message = format!("{text:?} is neither a record nor a file");
        return Err(Fault::new("not_a_record", message, remedy).into());
    }
    let bytes = read_regular(path, report::FILE_BYTES_MAX)
        .with_context(|| format!("failed to read {text}"))?;
    let report: Report = serde_json::from_slice(&bytes).with_context(|| {
        let message = format!("{text} is not a report.json of version {}", report::VERSION);
        Fault::new("not_a_report", message, "run the job again to create one")
    })?;
    of_report(&report, wanted).with_context(|| format!("{text} cannot be replayed"))
}

fn of_report(report: &Report, wanted: Option<StrategyName>) -> anyhow::Result<Recorded> {
    let has_records =
        |run: &&meetpoint_report::Run| run.epochs.iter().any(|epoch| epoch.record.is_some());
    let runs: Vec<_> = report.runs.iter().filter(has_records).collect();
    let run = match (&runs[..], wanted) {
        ([], _) => {
            let recorded = |name: &StrategyName| name.record() != RecordKind::None;
            let names = StrategyName::ALL.into_iter().filter(recorded);
            let names: Vec<&str> = names.map(StrategyName::as_str).collect();
            let remedy = format!("run a strategy that fixes an order: {}", names.join(", "));
            return Err(Fault::new("no_record", "no strategy of it left a record", remedy).into());
        }
        (runs, Some(wanted)) => {
            let found = runs.iter().find(|run| run.strategy == wanted.as_str());
            found.with_context(|| format!("it has no record of {wanted}"))?
        }
        ([run], None) => run,
        (runs, None) => {
            let names: Vec<&str> = runs.iter().map(|run| run.strategy.as_str()).collect();
            let message = format!("it has records of {}", names.join(", "));
            return Err(Fault::new("several_records", message, "pick one with --strategy").into());
        }
    };
    let record = |epoch: &meetpoint_report::Epoch| {
        let text = epoch
            .record
            .as_deref()
            .with_context(|| format!("epoch {} of {} left no record", epoch.epoch, run.strategy))?;
        text.parse::<Record>().with_context(|| format!("{text:?} is not a record"))
    };
    let records = run.epochs.iter().map(record).collect::<anyhow::Result<_>>()?;
    let hashes = run.epochs.iter().map(|epoch| epoch.order_hash.clone()).collect();
    Ok(Recorded { records, run: Some((report.job.clone(), hashes)) })
}

#[cfg(test)]
mod tests {
    use super::{of_report, records};
    use meetpoint_host::StrategyName;
    use meetpoint_report::made_up;

    #[test]
    fn a_report_gives_the_record_of_every_epoch() {
        let mut report = made_up::report(10);
        let error = of_report(&report, None).unwrap_err().to_string();
        assert!(error.contains("left a record"), "{error}");
        report.runs[1].epochs[0].record = Some("mte:4".to_owned());
        let found = of_report(&report, None).unwrap();
        let texts: Vec<String> = found.records.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["mte:4"]);
        // The same run again has the order that was recorded; another order is reported.
        report.runs.swap(0, 1);
        let compared = found.compare(&report).unwrap();
        assert_eq!(compared, Some(meetpoint_host::Notice::Replayed { epochs: 1 }));
        report.runs[0].epochs[0].order_hash = "0".to_owned();
        let error = found.compare(&report).unwrap_err().to_string();
        assert!(error.contains("epoch 0 was not replayed"), "{error}");
        report.runs.swap(0, 1);
        let error = of_report(&report, Some(StrategyName::MteFeedback)).unwrap_err().to_string();
        assert!(error.contains("no record of mte-feedback"), "{error}");
    }

    #[test]
    fn a_replay_that_is_neither_record_nor_file_is_refused() {
        let error = records("mte:few", None).unwrap_err().to_string();
        assert!(error.contains("mte:few"), "{error}");
        assert_eq!(records("mte:7", None).unwrap().records[0].to_string(), "mte:7");
    }

    #[test]
    fn a_device_is_refused_before_it_is_read() {
        let error = records("/dev/null", None).unwrap_err();
        assert!(error.root_cause().downcast_ref::<std::io::Error>().is_some(), "{error:?}");
    }
}
