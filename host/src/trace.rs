//! Epochs as a trace for Perfetto and Chrome (`chrome://tracing`): who prepared which batch when,
//! what waited for what, and what went wrong.
//!
//! The format is the Trace Event Format of the Chromium project, as one JSON object. Times are
//! microseconds since the first epoch began; each rank is a process, each of its threads a row.

use crate::stats::{BatchRecord, EpochStats, Preparer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Maximum number of batches in a trace: about 100 MB.
pub const TRACE_BATCHES_MAX: usize = 200_000;

/// Row of the consumer.
const CONSUMER: u32 = 1;
/// First row of the host's preparation; batches that overlap in time have separate rows.
const HOST: u32 = 100;
/// First row of the first device; each further device starts at the next multiple.
const DEVICE: u32 = 10_000;
/// Offset from a device's first row to the rows of its batches on their way to the host.
const HAND_OVER: u32 = 5_000;

/// The epochs of one rank.
#[derive(Debug, Clone)]
pub struct Process<'e> {
    /// The name.
    pub name: String,
    /// In the order in which they were run.
    pub epochs: Vec<&'e EpochStats>,
}

/// The contents of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Events, names of rows among them.
    pub events: u64,
    /// Batches that are not in it.
    pub batches_left_out: u64,
}

/// Writes the trace of some ranks, limited to their last `batches_max` batches in total.
pub fn write(to: impl Write, processes: &[Process<'_>], batches_max: usize) -> io::Result<Written> {
    let epochs = || processes.iter().flat_map(|process| &process.epochs);
    let zero_ns = epochs().map(|epoch| epoch.begun_ns).min().unwrap_or(0);
    let batches: usize = epochs().map(|epoch| epoch.records.len()).sum();
    let mut events = Events { to, count: 0 };
    events.to.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    // The same number for each rank, so that ranks can be compared to the end.
    let kept_each = batches_max / processes.len().max(1);
    let mut left_out = 0;
    for (number, process) in (1..).zip(processes) {
        left_out += write_process(&mut events, (number, process), zero_ns, kept_each)?;
    }
    let said = json!({
        "meetpoint": env!("CARGO_PKG_VERSION"),
        "batches": batches,
        "batches_left_out": left_out,
    });
    write!(events.to, "],\"otherData\":{said}}}")?;
    events.to.flush()?;
    Ok(Written { events: events.count, batches_left_out: left_out })
}

/// Writes events one at a time.
struct Events<W> {
    to: W,
    count: u64,
}

impl<W: Write> Events<W> {
    fn add(&mut self, event: &Value) -> io::Result<()> {
        let comma = if self.count == 0 { "" } else { ",\n" };
        self.count += 1;
        write!(self.to, "{comma}{event}")
    }

    fn name(&mut self, (process, row): (u32, u32), name: &str) -> io::Result<()> {
        self.add(&json!({
            "ph": "M", "name": "thread_name", "pid": process, "tid": row,
            "args": {"name": name},
        }))
    }

    /// Something with a start and an end.
    fn span(
        &mut self,
        row: (u32, u32),
        name: &str,
        (from, to): (u64, u64),
        args: &Value,
    ) -> io::Result<()> {
        self.add(&json!({
            "ph": "X", "name": name, "pid": row.0, "tid": row.1,
            "ts": microseconds(from), "dur": microseconds(to.saturating_sub(from)), "args": args,
        }))
    }
}

/// Nanoseconds in the format's unit.
fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// Rows for events that may overlap: each uses the first row that is free.
#[derive(Debug, Default)]
struct Lanes(Vec<u64>);

impl Lanes {
    fn place(&mut self, (from, to): (u64, u64)) -> u32 {
        let free = self.0.iter().position(|end| *end <= from).unwrap_or(self.0.len());
        if free == self.0.len() {
            self.0.push(0);
        }
        self.0[free] = to;
        u32::try_from(free).expect("fewer rows than batches")
    }
}

/// Writes one rank; returns how many of its batches were left out.
fn write_process<W: Write>(
    events: &mut Events<W>,
    (number, process): (u32, &Process<'_>),
    zero_ns: u64,
    kept: usize,
) -> io::Result<u64> {
    events.add(&json!({
        "ph": "M", "name": "process_name", "pid": number, "args": {"name": process.name},
    }))?;
    events.name((number, CONSUMER), "consumer")?;
    let batches: usize = process.epochs.iter().map(|epoch| epoch.records.len()).sum();
    let mut left_out = batches.saturating_sub(kept);
    let total_left_out = left_out as u64;
    let mut rows: BTreeMap<u32, Lanes> = BTreeMap::new();
    for epoch in &process.epochs {
        let skipped = left_out.min(epoch.records.len());
        left_out -= skipped;
        let begun = epoch.begun_ns.saturating_sub(zero_ns);
        write_consumer(events, number, epoch, begun, skipped)?;
        write_preparation(events, number, &mut rows, &epoch.records[skipped..], begun)?;
        for event in &epoch.events {
            events.add(&json!({
                "ph": "i", "s": "p", "name": event.kind.to_string(), "pid": number, "tid": CONSUMER,
                "ts": microseconds(begun + event.at_ns),
            }))?;
        }
    }
    for (first, rows) in &rows {
        for row in 0..u32::try_from(rows.0.len()).expect("fewer rows than batches") {
            let name = match first.checked_sub(DEVICE) {
                None => format!("host prepares, {row}"),
                Some(at) if at % DEVICE < HAND_OVER => format!("device {} prepares", at / DEVICE),
                Some(at) => format!("device {} hands over", at / DEVICE),
            };
            events.name((number, first + row.min(HAND_OVER - 1)), &name)?;
        }
    }
    Ok(total_left_out)
}

/// The epoch and, within it, the steps, the waits and the number of ready batches.
fn write_consumer<W: Write>(
    events: &mut Events<W>,
    process: u32,
    epoch: &EpochStats,
    begun: u64,
    skipped: usize,
) -> io::Result<()> {
    let row = (process, CONSUMER);
    let name = format!("epoch {}", epoch.epoch);
    let args = json!({"samples": epoch.samples, "is_complete": epoch.is_complete});
    events.span(row, &name, (begun, begun + epoch.duration_ns), &args)?;
    let records = &epoch.records[skipped..];
    let mut before = skipped.checked_sub(1).map_or(0, |last| epoch.records[last].step_end_ns);
    for record in records {
        let args = json!({"batch": record.batch, "source": source(record)});
        if record.consume_ns > before {
            let waited = (begun + before, begun + record.consume_ns);
            events.span(row, "wait", waited, &args)?;
        }
        let step = (begun + record.consume_ns, begun + record.step_end_ns);
        events.span(row, "step", step, &args)?;
        before = record.step_end_ns;
    }
    let comes = records.iter().map(|record| (record.ready_ns, 1));
    let goes = records.iter().map(|record| (record.consume_ns, -1));
    let mut changes: Vec<(u64, i64)> = comes.chain(goes).collect();
    // At equal times, additions come before removals.
    changes.sort_unstable_by_key(|(at, change)| (*at, -change));
    let mut ready = 0;
    for (at, change) in changes {
        ready += change;
        events.add(&json!({
            "ph": "C", "name": "ready batches", "pid": process,
            "ts": microseconds(begun + at), "args": {"ready": ready},
        }))?;
    }
    Ok(())
}

/// Preparation by host and devices, and transfers from devices.
fn write_preparation<W: Write>(
    events: &mut Events<W>,
    process: u32,
    rows: &mut BTreeMap<u32, Lanes>,
    records: &[BatchRecord],
    begun: u64,
) -> io::Result<()> {
    let mut spans = Vec::new();
    for record in records {
        let prepared = (begun + record.prepare_start_ns, begun + record.prepare_end_ns);
        let first = match record.device {
            None => HOST,
            Some(device) => DEVICE * (1 + u32::from(device)),
        };
        spans.push((prepared, first, "prepare", record));
        if record.device.is_some() {
            let handed = (prepared.1, begun + record.ready_ns);
            spans.push((handed, first + HAND_OVER, "hand-over", record));
        }
    }
    spans.sort_by_key(|(span, first, ..)| (*first, *span));
    for (span, first, name, record) in spans {
        let row = rows.entry(first).or_default().place(span).min(HAND_OVER - 1);
        let args = json!({"batch": record.batch, "memory": record.memory.as_str()});
        events.span((process, first + row), name, span, &args)?;
    }
    Ok(())
}

fn source(record: &BatchRecord) -> String {
    match (record.source, record.device) {
        (Preparer::Device, Some(device)) => format!("device {device}"),
        (Preparer::Device, None) => "device".to_owned(),
        (Preparer::Host, _) => "host".to_owned(),
    }
}
