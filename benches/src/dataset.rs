//! Opening, reading and finding keys in a dataset, against plain reads of the same bytes.
//!
//! Options: `--directory D` for the folder of the dataset, `--pictures D` for a folder of pictures
//! instead of generated ones. Other formats are measured by `benches/peers/datasets.py`.

use crate::fio::{self, Pattern};
use crate::pictures::dataset;
use crate::{Options, Report, Row, Target, median};
use anyhow::Context;
use meetpoint_datasets::writer::{Writer, WriterOptions};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{Columns, Provenance, Row as DatasetRow, Stored};
use meetpoint_format::order::Order;
use meetpoint_prepare::{Dataset, MappedDataset, OnDamage, SampleReader};
use meetpoint_storage::{Access, BLOCK_BYTES, EngineKind, Request, RequestKind, open_engine};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads in flight.
const DEPTH: usize = 32;
/// Bytes of a part of tiny samples, so that a million samples have about 430 parts with 9 record
/// batches each, like a million photographs.
const MANY_PARTS_BYTES: u64 = 98 << 10;
/// Keys that are looked up.
const KEYS: u64 = 10_000;

/// Measures.
pub fn run(options: &Options) -> anyhow::Result<Report> {
    let directory = options.path("directory").unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::tempdir_in(&directory)
        .with_context(|| format!("failed to make a folder in {}", directory.display()))?;
    let (pictures, tiny, rounds) = if options.quick { (20, 2000, 1) } else { (2000, 1_000_000, 5) };
    let mut report = Report::new("dataset", options);
    opening(folder.path(), tiny, None, &mut report)?;
    opening(folder.path(), tiny, Some(MANY_PARTS_BYTES), &mut report)?;
    let source = options.path("pictures");
    let packed = dataset(folder.path(), source.as_deref(), pictures)?;
    let packed = Arc::new(Dataset::open(&packed)?);
    let fio = match fio::version() {
        Ok(version) if !options.quick => {
            report.note(format!("peer: {version}, io_uring, direct, blocks of the mean length"));
            true
        }
        Ok(_) => false,
        Err(error) => {
            report.note(format!("skipped: fio: {error:#}"));
            false
        }
    };
    reading(&packed, rounds, fio, &mut report)?;
    Ok(report)
}

/// Opens a dataset of a given number of tiny samples, in parts of the usual length or of another,
/// and finds keys in it.
fn opening(
    folder: &Path,
    samples: u64,
    part_bytes: Option<u64>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let path = folder.join("tiny.set");
    let mut options = WriterOptions { force: true, ..WriterOptions::default() };
    options.part_bytes_target = part_bytes.unwrap_or(options.part_bytes_target);
    let mut writer = Writer::create(&path, Arc::new(Columns::images()), &options)?;
    for sample in 0..samples {
        let (key, image) = (format!("{sample:07}.jpg"), sample.to_le_bytes().to_vec());
        writer.push(DatasetRow { key, image, ..DatasetRow::default() })?;
    }
    let provenance = Provenance {
        tool: "bench".to_owned(),
        source: "generated".to_owned(),
        skipped: 0,
        options: Default::default(),
        time: None,
        recipe: None,
    };
    writer.finish(Vec::new(), Stored::default(), provenance)?;
    let mut times = Vec::new();
    for _ in 0..21 {
        let started = Instant::now();
        let opened = Dataset::open(&path)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        drop(opened);
    }
    let opened = Dataset::open(&path)?;
    let parts = opened.manifest().parts.len();
    let row = Row::alone(format!("open {samples} samples, {parts} parts"), median(&times), "ms");
    report.row(row.target(Target::ValueAtMost(5.0)));
    let order = Order::shuffled(samples, 1, 0);
    let count = samples.min(KEYS);
    let started = Instant::now();
    for sample in (0..count).map(|position| order.sample_at(position)) {
        let found = opened.find(&format!("{sample:07}.jpg"))?;
        anyhow::ensure!(found == Some(sample), "sample {sample} is found as {found:?}");
    }
    let each = started.elapsed().as_secs_f64() * 1e6 / count as f64;
    report.row(Row::alone(format!("find one of {samples} keys"), each, "us"));
    Ok(())
}

/// Reads all samples, in order and in random order, against the same bytes read plainly.
fn reading(
    dataset: &Arc<Dataset>,
    rounds: usize,
    fio: bool,
    report: &mut Report,
) -> anyhow::Result<()> {
    let order = Order::shuffled(dataset.len(), 7, 0);
    let (mut plain, mut in_order, mut mapped) = (vec![], vec![], vec![]);
    let (mut alone, mut random, mut peer, mut hash) = (vec![], vec![], vec![], 0);
    for _ in 0..rounds {
        plain.push(timed(dataset, &mut hash, &mut |hash| plain_parts(dataset, hash))?);
        in_order.push(timed(dataset, &mut hash, &mut |hash| {
            for sample in 0..dataset.len() {
                *hash += u64::from(dataset.read_sample(sample)?[0]);
            }
            Ok(())
        })?);
        mapped.push(timed(dataset, &mut hash, &mut |hash| {
            let mapped = MappedDataset::new(Arc::clone(dataset), true)?;
            for sample in 0..dataset.len() {
                *hash += u64::from(mapped.sample(sample)?.1[0]);
            }
            Ok(())
        })?);
        alone.push(timed(dataset, &mut hash, &mut |hash| by_engine(dataset, &order, hash))?);
        random.push(timed(dataset, &mut hash, &mut |hash| {
            let engine = open_engine(EngineKind::Auto, DEPTH)?.engine;
            let mut reader = SampleReader::new(Arc::clone(dataset), engine, OnDamage::Fail)?;
            let mut samples = (0..dataset.len()).map(|position| order.sample_at(position));
            reader.read(&mut samples, &mut |_, _, bytes| {
                *hash += u64::from(bytes[0]);
                Ok(())
            })?;
            Ok(())
        })?);
        if fio {
            peer.push(by_fio(dataset)?);
        }
    }
    let row = |case: &str, speeds: &[f64]| Row::alone(case, median(speeds), "MB/s");
    let limit = "parts, read and summed";
    report.row(row("in order, page cache", &in_order).against(limit, median(&plain)));
    report.row(row("in order, mapped", &mapped).against(limit, median(&plain)));
    let row = row("random, depth 32", &random);
    report.row(row.against("engine alone", median(&alone)).target(Target::RatioAtLeast(0.9)));
    if fio {
        let row = Row::alone("random, depth 32", median(&random), "MB/s");
        report.row(row.against("fio", median(&peer)).target(Target::RatioAtLeast(0.9)));
    }
    report.note(format!("{} samples, medians of {rounds} rounds, hash {hash:016x}", dataset.len()));
    Ok(())
}

/// MB of samples a second.
fn timed(
    dataset: &Dataset,
    hash: &mut u64,
    work: &mut dyn FnMut(&mut u64) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let started = Instant::now();
    work(hash)?;
    Ok(dataset.manifest().image_bytes as f64 / 1e6 / started.elapsed().as_secs_f64())
}

/// The parts from end to end, and a checksum over all of it.
fn plain_parts(dataset: &Dataset, hash: &mut u64) -> anyhow::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    for part in 0..dataset.manifest().parts.len() {
        let mut file = std::fs::File::open(dataset.part_path(part))?;
        loop {
            let bytes = file.read(&mut buffer)?;
            if bytes == 0 {
                break;
            }
            *hash += u64::from(crc32c(&buffer[..bytes]));
        }
    }
    Ok(())
}

/// The same ranges in the same order by the engine alone: nothing is checked.
fn by_engine(dataset: &Dataset, order: &Order, hash: &mut u64) -> anyhow::Result<()> {
    let mut engine = open_engine(EngineKind::Auto, DEPTH)?.engine;
    let files = (0..dataset.manifest().parts.len())
        .map(|part| engine.open(&dataset.part_path(part), Access::Read))
        .collect::<Result<Vec<_>, _>>()?;
    let longest = usize::try_from(dataset.manifest().image_bytes_max)? + 8192;
    let mut free: Vec<_> = (0..DEPTH).map(|_| engine.buffer(longest)).collect();
    let (mut next, mut out) = (0, Vec::new());
    while next < dataset.len() || engine.in_flight() > 0 {
        while next < dataset.len()
            && let Some(buffer) = free.pop()
        {
            let location = dataset.locate(order.sample_at(next))?;
            let request = Request {
                token: next,
                file: files[location.part],
                kind: RequestKind::Read,
                offset: location.offset,
                bytes: usize::try_from(location.bytes)?,
                buffer,
            };
            engine.submit(request).map_err(|refused| refused.error)?;
            next += 1;
        }
        engine.wait(Duration::from_secs(10), &mut out)?;
        for completion in out.drain(..) {
            completion.result?;
            *hash += u64::from(completion.buffer.as_slice()[completion.start]);
            free.push(completion.buffer);
        }
    }
    Ok(())
}

/// Blocks anywhere in the longest part, of the samples' mean length; MB a second.
fn by_fio(dataset: &Dataset) -> anyhow::Result<f64> {
    let parts = &dataset.manifest().parts;
    let longest = (0..parts.len()).max_by_key(|part| parts[*part].bytes).context("no parts")?;
    let mean = usize::try_from(dataset.manifest().image_bytes / dataset.len())?;
    let block_bytes = mean.next_multiple_of(BLOCK_BYTES);
    let pattern = Pattern { random: true, block_bytes, depth: DEPTH, time: Duration::from_secs(1) };
    fio::read(&dataset.part_path(longest), pattern, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tiny_run_reads_everything() {
        let report = run(&Options { quick: true, ..Options::default() }).unwrap();
        assert_eq!(report.rows.len(), 7);
        assert!(report.rows.iter().all(|row| row.value > 0.0), "{report}");
    }
}
