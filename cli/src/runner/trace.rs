//! `--trace-events FILE`: a trace of all epochs, for ui.perfetto.dev or Chrome.

use super::Measured;
use crate::surface::fault::Fault;
use anyhow::Context;
use meetpoint_diagnose::shown;
use meetpoint_host::Notice;
use meetpoint_host::trace::{Process, TRACE_BATCHES_MAX, write as write_events};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Creates the file, so that an error occurs before anything runs.
pub(super) fn check(path: &Path) -> anyhow::Result<()> {
    File::create(path).map(drop).with_context(|| failed(path))
}

/// Writes the epochs of every strategy and rank.
pub(super) fn write(path: &Path, measured: &[Measured]) -> anyhow::Result<Notice> {
    let processes: Vec<Process<'_>> = measured
        .iter()
        .flat_map(|run| {
            let is_one = run.ranks.len() == 1;
            run.ranks.iter().map(move |rank| Process {
                name: match is_one {
                    true => run.name.as_str().to_owned(),
                    false => format!("{}, rank {}", run.name.as_str(), rank.rank),
                },
                epochs: rank.epochs.iter().collect(),
            })
        })
        .collect();
    let file = File::create(path).with_context(|| failed(path))?;
    let written = write_events(BufWriter::new(file), &processes, TRACE_BATCHES_MAX)
        .with_context(|| failed(path))?;
    Ok(Notice::TraceWritten {
        file: path.to_path_buf(),
        events: written.events as u64,
        batches_left_out: written.batches_left_out as u64,
    })
}

fn failed(path: &Path) -> Fault {
    let message = format!("failed to write the trace {}", shown(path));
    Fault::new("trace_not_written", message, "name a file that can be written")
}
