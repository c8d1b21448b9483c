//! Describes a job for the report, with every default filled in.

use meetpoint_format::checksum::hexadecimal;
use meetpoint_format::column::Column;
use meetpoint_host::job::Choice;
use meetpoint_host::stats::EpochStats;
use meetpoint_host::{AcceleratorJob, DeviceJob, DeviceKind, JobFile, ServeCommand, SpoolKind};
use meetpoint_link::Fault;
use meetpoint_prepare::Job;
use meetpoint_report as report;
use std::sync::Arc;

/// The job in the report's data model.
pub(super) fn job(
    file: &JobFile,
    epoch: Option<&EpochStats>,
    job: &Job,
) -> anyhow::Result<report::Job> {
    // A loader for a GPU prepares part of the recipe.
    let whole = Job { recipe: Arc::clone(&file.recipe), ..job.clone() };
    Ok(report::Job {
        dataset: file.dataset.to_string(),
        samples: job.batching.samples(),
        recipe_toml: file.recipe.to_toml(),
        recipe_sha256: file.recipe.hash().to_string(),
        columns: whole.batch_columns()?.as_slice().iter().map(column).collect(),
        collate: file.columns.collate().to_string(),
        batch_size: file.batch_size,
        batches: epoch.map_or(0, |epoch| epoch.batches),
        epochs: file.epochs,
        seed: file.seed,
        sampler: file.sampler.to_string(),
        sampler_sha256: hexadecimal(&job.batching.sampling().checksum()),
        drop_last: file.drop_last,
        workers: file.workers,
        prefetch: file.prefetch,
        tune: file.tune,
        memory_budget_bytes: file.memory_budget_bytes,
        strategies: file.options,
        spool: spool(file),
        accelerator: match file.accelerator {
            AcceleratorJob::Null => report::Accelerator::None,
            AcceleratorJob::Emulated { step } => {
                report::Accelerator::Emulated { step_seconds: step.as_secs_f64() }
            }
        },
        devices: file.devices.iter().map(device).collect(),
        shared: file.shared,
        ranks: file.ranks,
        run_ahead: file.run_ahead,
        reuse: file.reuse,
        choice: match file.choice {
            Choice::Tail => report::Choice::Tail,
            Choice::Saving => report::Choice::Saving,
        },
    })
}

fn column(column: &Column) -> report::Column {
    report::Column {
        name: column.name.clone(),
        kind: column.kind.name().to_owned(),
        dtype: column.kind.element().name().to_owned(),
        shape: column.kind.axes().to_vec(),
    }
}

fn device(device: &DeviceJob) -> report::DeviceSetup {
    let processor = match &device.kind {
        DeviceKind::Connect { socket } => report::Processor::Connected { socket: socket.clone() },
        DeviceKind::Remote(device) => {
            report::Processor::Remote { address: device.address.to_string() }
        }
        DeviceKind::Emulated(command) => emulated(command),
    };
    report::DeviceSetup { processor, parts: device.parts.clone() }
}

fn spool(file: &JobFile) -> report::Spool {
    let quota_bytes = file.spool.quota_bytes;
    match &file.spool.kind {
        SpoolKind::Memory => report::Spool::Memory { quota_bytes },
        SpoolKind::File { directory } => {
            report::Spool::File { directory: directory.clone(), quota_bytes }
        }
    }
}

fn emulated(command: &ServeCommand) -> report::Processor {
    let targets = &command.emulation.targets;
    report::Processor::Emulated {
        cpu_ratio: targets.cpu_ratio,
        read_bytes_per_second: targets.read_bytes_per_second,
        write_bytes_per_second: targets.write_bytes_per_second,
        latency_seconds: targets.latency_ns.map(|time| time as f64 / 1e9),
        core: targets.core,
        allow_shared: command.emulation.allow_shared,
        faults: command.faults.iter().map(Fault::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::device;
    use meetpoint_host::JobFile;
    use std::path::Path;

    /// The first TOML example of docs/jobs.md.
    fn documented() -> &'static str {
        let text = include_str!("../../../docs/jobs.md");
        let example = text.split("```toml\n").nth(1).expect("there is an example");
        example.split("```").next().expect("it ends")
    }

    #[test]
    fn the_job_of_the_documentation_can_be_read_and_is_described() {
        let job = JobFile::parse(documented(), Path::new("jobs/job.toml")).unwrap();
        assert_eq!(job.dataset, Path::new("jobs/photos.set").into());
        let text = "emulated, CPU ratio 0.33, reads 500 MB/s, latency 100 µs";
        let described: Vec<String> = job.devices.iter().map(|it| device(it).to_string()).collect();
        assert_eq!(described, [text]);
    }
}
