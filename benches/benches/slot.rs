//! How long a batch takes from the device's publish to the consumer's hands.
//!
//! Device and host run as they ship, link and spool included; the device is not slowed down and the
//! consumer always waits. Both clocks are this machine's monotonic clock.

use anyhow::{Context, ensure};
use meetpoint_benches::{Options, Report, Row, Target, pictures};
use meetpoint_device::{ServeOptions, Shutdown, serve};
use meetpoint_format::recipe::Recipe;
use meetpoint_host::{DeviceSource, Loader, LoaderConfig, SpoolKind};
use meetpoint_scheduler::{AnyStrategy, DeviceOnly};
use std::path::Path;
use std::sync::Arc;

const P50_NS_MAX: f64 = 300_000.0;
const P99_NS_MAX: f64 = 2_000_000.0;

/// What is published: a kind of spool and a size of batch, which is one picture.
struct Case {
    name: &'static str,
    file: bool,
    side: u32,
    /// Whether the targets speak of it.
    judged: bool,
}

const CASES: [Case; 4] = [
    Case { name: "memory, 96 KiB", file: false, side: 181, judged: true },
    Case { name: "memory, 1.1 MiB", file: false, side: 612, judged: true },
    Case { name: "file, 96 KiB", file: true, side: 181, judged: false },
    Case { name: "file, 1.1 MiB", file: true, side: 612, judged: false },
];

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["dir"])?;
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let source = options.path("dir");
    let path =
        pictures::dataset(folder.path(), source.as_deref(), if options.quick { 48 } else { 400 })?;
    let mut report = Report::new("slot", &options);
    for case in &CASES {
        let mut times = measure(&path, folder.path(), case, if options.quick { 1 } else { 4 })?;
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        let name = |quantile: &str| format!("publish to consume, {}: {quantile}", case.name);
        let limit = |row: Row, limit| {
            if case.judged { row.target(Target::ValueAtMost(limit)) } else { row }
        };
        report.note(format!("{}: {} batches", case.name, times.len()));
        report.row(limit(Row::alone(name("p50"), at(0.5) / 1e3, "us"), P50_NS_MAX / 1e3));
        report.row(limit(Row::alone(name("p99"), at(0.99) / 1e3, "us"), P99_NS_MAX / 1e3));
    }
    report.finish(&options)
}

/// Nanoseconds from publish to consume of every batch of some epochs under `device-only`.
fn measure(path: &Path, folder: &Path, case: &Case, epochs: u32) -> anyhow::Result<Vec<f64>> {
    let socket = folder.join("device.sock");
    let stop = Arc::new(Shutdown::default());
    let served = ServeOptions::new(&socket, vec![path.to_path_buf()]);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let device = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            serve(
                served,
                move |_| {
                    // The receiver waits below; if it has ended, the result is not needed.
                    let _ = ready.send(());
                },
                stop,
            )
        })
    };
    is_ready.recv().context("the device ended before it was ready")?;
    let recipe = format!(
        "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\nsize = [{0}, {0}]\n",
        case.side
    );
    let mut config = LoaderConfig::new(path, Arc::new(Recipe::from_toml(&recipe)?), 1);
    config.strategy = AnyStrategy::DeviceOnly(DeviceOnly);
    config.drop_last = true;
    config.devices = vec![DeviceSource::Connect { socket }];
    if case.file {
        config.spool.kind = SpoolKind::File { directory: folder.to_path_buf() };
    }
    let mut loader = Loader::open(config)?;
    let mut times = Vec::new();
    for epoch in 0..epochs {
        let mut running = loader.start_epoch(epoch)?;
        while let Some(batch) = running.next_batch()? {
            std::hint::black_box(batch.bytes());
        }
        let stats = running.finish();
        ensure!(stats.schedule.host_batches == 0, "the device lost batches: {:?}", stats.events);
        times.extend(
            stats
                .records
                .iter()
                .map(|record| record.consume_ns.saturating_sub(record.prepare_end_ns) as f64),
        );
    }
    drop(loader);
    stop.end();
    device.join().expect("the device does not panic")?;
    Ok(times)
}
