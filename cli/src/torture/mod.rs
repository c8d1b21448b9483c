//! Random jobs with random faults, each as processes of this program, and invariants that must hold
//! after every fault.
//!
//! The seed and the number of a job determine all random choices, but not how the processes
//! interleave. In reading order: [`trouble`] (the faults), [`job`] (the random jobs), [`choices`]
//! (random numbers), [`sets`] (datasets), [`attempt`] (runs one job), [`injection`] (its fault),
//! [`child`] and [`served`] (its processes), [`relay`] (a proxy), [`damage`] (of parts),
//! [`processes`] (what the kernel reports), [`judge`] (the invariants), [`growth`] (resources over
//! many epochs), [`consumer`] (a host that resumes), [`summary`] (the result).

mod attempt;
mod child;
mod choices;
pub(crate) mod consumer;
mod damage;
mod growth;
mod injection;
mod job;
mod judge;
mod processes;
mod relay;
mod served;
mod sets;
mod summary;
mod trouble;

use crate::surface::failure::{Interrupted, Reported};
use crate::surface::output::table_style;
use crate::surface::{Output, Stop, units};
use anyhow::Context;
use attempt::{Outcome, Verdict};
use job::TortureJob;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use summary::{Failure, Summary};

/// Epochs of a job with many epochs, unless they are given.
pub(crate) const ENDURANCE_EPOCHS: u32 = 60;

/// Which jobs to run.
#[derive(Debug, Clone)]
pub(crate) struct Campaign {
    /// Determines datasets and jobs.
    pub(crate) seed: u64,
    /// When no further job begins; `None` is no limit.
    pub(crate) duration: Option<Duration>,
    /// Number of jobs after which none begins; `None` is no limit.
    pub(crate) jobs: Option<u64>,
    /// The only job to run.
    pub(crate) only: Option<u64>,
    /// Epochs of jobs that have many.
    pub(crate) endurance_epochs: u32,
    /// An empty folder, which is retained; `None` is a temporary one, which is retained only if a
    /// job fails.
    pub(crate) folder: Option<PathBuf>,
}

/// Runs the jobs and prints the result; an error if a job violated an invariant.
pub(crate) fn run(campaign: &Campaign, stop: &Stop, output: Output) -> anyhow::Result<()> {
    let begun = Instant::now();
    let temporary = match campaign.folder {
        Some(_) => None,
        None => {
            let mut builder = tempfile::Builder::new();
            let made = builder.prefix("meetpoint-torture-").tempdir();
            Some(made.context("failed to create a temporary folder")?)
        }
    };
    let given = campaign.folder.as_deref().or(temporary.as_ref().map(|folder| folder.path()));
    let folder = given.context("there is a folder")?;
    // Jobs run in folders of their own, so paths must not be relative.
    let folder = folder.canonicalize().context("failed to find the folder of the campaign")?;
    let mut summary = Summary::new(campaign.seed);
    let sets = sets::make(&folder, campaign.seed, stop)?;
    let mut number = campaign.only.unwrap_or(0);
    loop {
        let count = summary.outcomes.len() as u64;
        let is_over = campaign.duration.is_some_and(|limit| begun.elapsed() >= limit)
            || campaign.jobs.is_some_and(|jobs| count >= jobs)
            || campaign.only.is_some() && count > 0;
        if is_over {
            break;
        }
        match run_job(campaign, number, &sets, &folder, stop) {
            Ok(outcome) => conclude(campaign, outcome, &folder, &mut summary, output),
            Err(error) if error.is::<Interrupted>() => {
                summary.is_interrupted = true;
                break;
            }
            Err(error) => return Err(error.context(format!("job {number} could not be run"))),
        }
        number += 1;
    }
    summary.seconds = begun.elapsed().as_secs_f64();
    if let Some(temporary) = temporary.filter(|_| !summary.failures.is_empty()) {
        // Its failed jobs are retained.
        let _ = temporary.keep();
    }
    output.result(&summary, || summary.text(table_style()))?;
    if summary.failures.is_empty() { Ok(()) } else { Err(Reported.into()) }
}

fn folder_of(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("job-{number:05}"))
}

fn run_job(
    campaign: &Campaign,
    number: u64,
    sets: &Path,
    folder: &Path,
    stop: &Stop,
) -> anyhow::Result<Outcome> {
    stop.check()?;
    let job = TortureJob::new(campaign.seed, number, campaign.endurance_epochs);
    attempt::run(&job, sets, &folder_of(folder, number), stop)
}

/// Reports a job, and removes the folder of one that did not fail.
fn conclude(
    campaign: &Campaign,
    outcome: Outcome,
    folder: &Path,
    summary: &mut Summary,
    output: Output,
) {
    let Outcome { job, verdict, violations, seconds, .. } = &outcome;
    let own_folder = folder_of(folder, job.number);
    let verdict_text = match (verdict, &outcome.cause) {
        (Verdict::Failed, _) => "FAILED".to_owned(),
        (Verdict::Reported, Some(cause)) => format!("reported {cause}"),
        (Verdict::Survived | Verdict::Reported, _) => "survived".to_owned(),
    };
    let late = if outcome.is_injected { "" } else { " (too late)" };
    output.line(&format!(
        "job {}: {}{late}: {verdict_text} ({}; {})",
        job.number,
        job.trouble,
        job.describe(),
        units::seconds(*seconds)
    ));
    for grew in &outcome.grew_at_first {
        output.line(&format!("  with fewer epochs, {grew}"));
    }
    if *verdict == Verdict::Failed {
        let epochs = match campaign.endurance_epochs {
            ENDURANCE_EPOCHS => String::new(),
            epochs => format!(" --epochs {epochs}"),
        };
        let again =
            format!("meetpoint torture --seed {} --job {}{epochs}", campaign.seed, job.number);
        for violation in violations {
            output.line(&format!("  {violation}"));
        }
        output.line(&format!("  again: {again}"));
        output.line(&format!("  folder: {}", own_folder.display()));
        summary.failures.push(Failure {
            job: job.number,
            trouble: job.trouble,
            violations: violations.clone(),
            again,
            folder: own_folder.display().to_string(),
        });
    } else if campaign.folder.is_none() {
        // A folder that cannot be removed goes with the campaign's.
        let _ = std::fs::remove_dir_all(&own_folder);
    }
    summary.add(outcome);
}
