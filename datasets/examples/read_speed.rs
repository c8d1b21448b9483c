//! How fast a dataset opens, reads and finds keys: prints one JSON object for the bench that asks.
//!
//! ```text
//! read_speed make DIR SAMPLES [PART_KIB]     a dataset of tiny samples, to open
//! read_speed pack SRC DIR [decode]            a folder; headers are checked, or all is decoded
//! read_speed open DIR                        milliseconds, median of 21
//! read_speed sequential|mapped DIR [ROUNDS]  all samples in order
//! read_speed random DIR [ROUNDS] [DEPTH]     all samples in random order, through io_uring
//! read_speed direct DIR [ROUNDS] [DEPTH]     all samples in order, through io_uring
//! read_speed plain DIR [ROUNDS] [DEPTH]      the same ranges by the engine alone: the limit
//! read_speed keys DIR                        finds 10,000 keys
//! ```

use meetpoint_datasets::writer::{Writer, WriterOptions};
use meetpoint_datasets::{Check, JpegOptions, PackOptions, Progressive, pack};
use meetpoint_format::dataset::{Columns, Provenance, Row, Stored};
use meetpoint_format::order::Order;
use meetpoint_prepare::{Dataset, MappedDataset, OnDamage, SampleReader};
use meetpoint_storage::{Access, EngineKind, Request, RequestKind, open_engine};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// What was read, and what it cost.
#[derive(Default)]
struct Read {
    samples: u64,
    bytes: u64,
    /// A sum over the samples, which forces a reader to read all of them.
    hash: u64,
}

impl Read {
    fn add(&mut self, sample: u64, bytes: &[u8]) {
        self.samples += 1;
        self.bytes += bytes.len() as u64;
        let ends = u64::from(bytes[0]) << 8 | u64::from(bytes[bytes.len() - 1]);
        self.hash = self.hash.wrapping_add(ends.wrapping_mul(2 * sample + 1));
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, path, rest @ ..] = arguments.as_slice() else {
        return Err("read_speed MODE DIR [ROUNDS] [DEPTH]".into());
    };
    let path = PathBuf::from(path);
    let number = |index: usize, other: u64| -> Result<u64, Failure> {
        Ok(rest.get(index).map_or(Ok(other), |text| text.parse())?)
    };
    match mode.as_str() {
        "make" => make(&path, number(0, 1_000_000)?, number(1, 256 << 10)?),
        "pack" => pack_folder(&path, rest),
        "open" => open(&path),
        "keys" => keys(&path),
        _ => read(mode, &path, number(0, 3)?, usize::try_from(number(1, 32)?)?),
    }
}

/// A dataset of samples of a few bytes.
fn make(path: &Path, samples: u64, part_kib: u64) -> Result<(), Failure> {
    let options =
        WriterOptions { part_bytes_target: part_kib << 10, force: true, ..Default::default() };
    let mut writer = Writer::create(path, Arc::new(Columns::images()), &options)?;
    for sample in 0..samples {
        let (key, image) = (format!("{sample:07}.jpg"), sample.to_le_bytes().to_vec());
        writer.push(Row { key, image, ..Row::default() })?;
    }
    let provenance = Provenance {
        tool: "read_speed".to_owned(),
        source: "generated".to_owned(),
        skipped: 0,
        options: Default::default(),
        time: None,
        recipe: None,
    };
    let stored = Stored { source_bytes: samples * 8, ..Stored::default() };
    let written = writer.finish(Vec::new(), stored, provenance)?;
    println!("{{\"samples\": {samples}, \"parts\": {}}}", written.manifest.parts.len());
    Ok(())
}

/// Packs a folder: as every other writer stores it, or as `meetpoint pack` does.
fn pack_folder(from: &Path, rest: &[String]) -> Result<(), Failure> {
    let [to, how @ ..] = rest else { return Err("pack SRC DIR [decode]".into()) };
    let plain = JpegOptions {
        entry_points: None,
        progressive: Progressive::Keep,
        ..JpegOptions::default()
    };
    let options = match how.first().map(String::as_str) {
        Some("decode") => PackOptions { force: true, ..PackOptions::default() },
        _ => PackOptions { force: true, check: Check::Header, jpeg: plain, ..Default::default() },
    };
    let (cpu, started) = (cpu_time(), Instant::now());
    let summary = pack(from, Path::new(to), &options, &mut |_| ())?;
    let (wall, cpu) = (started.elapsed().as_secs_f64(), (cpu_time() - cpu).as_secs_f64());
    let (samples, bytes) = (summary.samples, summary.image_bytes);
    println!(
        "{{\"samples\": {samples}, \"bytes\": {bytes}, \"wall_s\": {wall:.6}, \"cpu_s\": {cpu:.6}}}"
    );
    Ok(())
}

fn open(path: &Path) -> Result<(), Failure> {
    let mut times = Vec::new();
    for _ in 0..21 {
        let started = Instant::now();
        let dataset = Dataset::open(path)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        drop(dataset);
    }
    times.sort_by(f64::total_cmp);
    let dataset = Dataset::open(path)?;
    let (samples, parts) = (dataset.len(), dataset.manifest().parts.len());
    println!("{{\"samples\": {samples}, \"parts\": {parts}, \"open_ms\": {:.4}}}", times[10]);
    Ok(())
}

fn keys(path: &Path) -> Result<(), Failure> {
    let dataset = Dataset::open(path)?;
    let order = Order::shuffled(dataset.len(), 1, 0);
    let count = dataset.len().min(10_000);
    let keys = (0..count)
        .map(|index| dataset.key(order.sample_at(index)))
        .collect::<Result<Vec<_>, _>>()?;
    let dataset = Dataset::open(path)?;
    let started = Instant::now();
    for (index, key) in (0..).zip(&keys) {
        assert_eq!(dataset.find(key)?, Some(order.sample_at(index)));
    }
    let found = started.elapsed().as_secs_f64() * 1e6 / count as f64;
    let started = Instant::now();
    for key in &keys {
        assert_eq!(dataset.find(&format!("{key}/no"))?, None);
    }
    let absent = started.elapsed().as_secs_f64() * 1e6 / count as f64;
    println!("{{\"keys\": {count}, \"found_us\": {found:.2}, \"absent_us\": {absent:.2}}}");
    Ok(())
}

fn read(mode: &str, path: &Path, rounds: u64, depth: usize) -> Result<(), Failure> {
    let dataset = Arc::new(Dataset::open(path)?);
    let samples = dataset.len();
    let order = Order::shuffled(samples, 7, 0);
    let mut results = Vec::new();
    let mut engine_name = "none";
    for _ in 0..rounds {
        let mut read = Read::default();
        let mut direct = false;
        let (cpu, started) = (cpu_time(), Instant::now());
        match mode {
            "sequential" => plain_in_order(&dataset, &mut read)?,
            "mapped" => {
                let mapped = MappedDataset::new(Arc::clone(&dataset), true)?;
                for sample in 0..samples {
                    read.add(sample, mapped.sample(sample)?.1);
                }
            }
            "random" | "direct" => {
                let engine = open_engine(EngineKind::Auto, depth)?.engine;
                engine_name = engine.name();
                let mut reader = SampleReader::new(Arc::clone(&dataset), engine, OnDamage::Fail)?;
                let mut random = (0..samples).map(|index| order.sample_at(index));
                let mut in_order = 0..samples;
                let named: &mut dyn Iterator<Item = u64> =
                    if mode == "random" { &mut random } else { &mut in_order };
                reader.read(named, &mut |sample, _, bytes| {
                    read.add(sample, bytes);
                    Ok(())
                })?;
            }
            "plain" => direct = by_engine(&dataset, &order, depth, &mut read)?,
            other => return Err(format!("no mode {other}").into()),
        }
        let (wall, cpu) = (started.elapsed().as_secs_f64(), (cpu_time() - cpu).as_secs_f64());
        let Read { samples, bytes, hash } = read;
        results.push(format!(
            "{{\"samples\": {samples}, \"bytes\": {bytes}, \"wall_s\": {wall:.6}, \
             \"cpu_s\": {cpu:.6}, \"hash\": {hash}, \"direct\": {direct}}}"
        ));
    }
    let results = results.join(", ");
    println!("{{\"mode\": {mode:?}, \"engine\": {engine_name:?}, \"rounds\": [{results}]}}");
    Ok(())
}

/// Sample by sample through the page cache, into reused memory.
fn plain_in_order(dataset: &Dataset, read: &mut Read) -> Result<(), Failure> {
    let mut buffer = vec![0; usize::try_from(dataset.manifest().image_bytes_max)?];
    for sample in 0..dataset.len() {
        let location = dataset.locate(sample)?;
        let stored = &mut buffer[..usize::try_from(location.bytes)?];
        dataset.read_located_into(sample, &location, stored)?;
        read.add(sample, stored);
    }
    Ok(())
}

/// The same ranges in the same order by the engine alone: nothing is looked up or checked.
fn by_engine(
    dataset: &Dataset,
    order: &Order,
    depth: usize,
    read: &mut Read,
) -> Result<bool, Failure> {
    let mut engine = open_engine(EngineKind::Auto, depth)?.engine;
    let parts = dataset.manifest().parts.len();
    let files = (0..parts)
        .map(|part| engine.open(&dataset.part_path(part), Access::Read))
        .collect::<Result<Vec<_>, _>>()?;
    let longest = usize::try_from(dataset.manifest().image_bytes_max)? + 8192;
    let mut free: Vec<_> = (0..depth).map(|_| engine.buffer(longest)).collect();
    let (mut next, mut out) = (0, Vec::new());
    while next < dataset.len() || engine.in_flight() > 0 {
        while next < dataset.len()
            && let Some(buffer) = free.pop()
        {
            let sample = order.sample_at(next);
            let location = dataset.locate(sample)?;
            let (file, offset) = (files[location.part], location.offset);
            let bytes = usize::try_from(location.bytes)?;
            let kind = RequestKind::Read;
            let request = Request { token: sample, file, kind, offset, bytes, buffer };
            engine.submit(request).map_err(|refused| refused.error)?;
            next += 1;
        }
        engine.wait(Duration::from_secs(10), &mut out)?;
        for completion in out.drain(..) {
            let bytes = completion.result?;
            let start = completion.start;
            read.add(completion.token, &completion.buffer.as_slice()[start..start + bytes]);
            free.push(completion.buffer);
        }
    }
    Ok(files.first().is_some_and(|file| engine.is_direct(*file)))
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
