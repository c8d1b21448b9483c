//! How long a sampler takes for a position, on a dataset as large as ImageNet, batch after batch in
//! an order that jumps: no more than 100 ns of CPU time, whatever the sampler. The peer is a table
//! of as many positions in random order, as other loaders hold it; samplers take turns with it.

use meetpoint_benches::{Options, Report, Row, Target, median};
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::sampler::{
    AspectRatio, ClassBalanced, ColumnType, Expression, Filter, Indices, Mixture, Repeated,
    SampleColumns, Sampler, SamplerError, Sampling, Sequential, Shuffled, Stop, Weighted, Weights,
};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Instant;

/// Samples of the dataset.
const SAMPLES: u64 = 1_281_167;
/// Positions of a batch.
const BATCH: u32 = 256;
const POSITION_NS_MAX: f64 = 100.0;
/// Classes of labels, the first of which is 100 times as frequent as the others.
const CLASSES: u64 = 1000;

/// A dataset with labels and with pictures of different sizes.
struct Labelled;

impl SampleColumns for Labelled {
    type Error = SamplerError;

    fn samples(&self) -> u64 {
        SAMPLES
    }

    fn datasets(&self) -> Vec<u64> {
        vec![SAMPLES - SAMPLES / 4, SAMPLES / 4]
    }

    fn columns(&self) -> Vec<(String, ColumnType)> {
        vec![("label".to_owned(), ColumnType::Whole)]
    }

    fn whole_numbers(&self, _: &str) -> Result<Vec<Option<i64>>, SamplerError> {
        let class = |sample: u64| (sample * 31 % (CLASSES + 99)).saturating_sub(99);
        Ok((0..SAMPLES).map(|sample| Some(class(sample).cast_signed())).collect())
    }

    fn numbers(&self, _: &str) -> Result<Vec<Option<f64>>, SamplerError> {
        Ok(Vec::new())
    }

    fn picture_sizes(&self) -> Result<Vec<Option<(u32, u32)>>, Self::Error> {
        Ok((0..self.samples()).map(|n| Some((300 + (n % 400) as u32, 500))).collect())
    }

    fn select(&self, _: &Expression) -> Result<Vec<u64>, SamplerError> {
        // What the expression below leaves.
        let classes = self.whole_numbers("label")?;
        let kept = (0..).zip(classes).filter(|(_, class)| class.is_some_and(|it| it < 500));
        Ok(kept.map(|(sample, _)| sample).collect())
    }
}

/// Every sampler, with the options that change how a position is found.
fn samplers() -> anyhow::Result<Vec<Sampler>> {
    let weighted = |replacement| Weighted {
        weights: Weights::Numbers((0..SAMPLES).map(|n| (n * 31 % 97) as f64).collect()),
        replacement,
        length: None,
    };
    let indices = (0..SAMPLES).map(|n| n * 7919 % SAMPLES).collect();
    let expression = Expression::parse("label < 500")?;
    let mixture = |stop| Mixture { weights: [1.0, 1.0].into(), stop, shuffle: true };
    Ok(vec![
        Sequential.into(),
        Shuffled.into(),
        Indices { indices, shuffle: false }.into(),
        weighted(true).into(),
        weighted(false).into(),
        ClassBalanced { column: "label".to_owned(), length: None }.into(),
        Filter { expression: expression.clone(), shuffle: false }.into(),
        Filter { expression, shuffle: true }.into(),
        Repeated { repeats: 3, length: None }.into(),
        mixture(Stop::FirstExhausted).into(),
        mixture(Stop::AllExhausted).into(),
        AspectRatio { factor: 3, columns: None, shuffle: true }.into(),
    ])
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&[])?;
    let mut report = Report::new("samplers", &options);
    let (rounds, batches) = if options.quick { (3, 200) } else { (9, 2_000) };
    let shuffled = Sampling::of(&Shuffled.into(), &Labelled)?;
    let whole = BatchOptions { batch_size: u32::try_from(SAMPLES)?, drop_last: true, seed: 1 };
    let whole = Batching::alone(whole, shuffled);
    let table: Vec<u64> = whole.samples_of(&whole.order(0), 0).collect();
    for sampler in samplers()? {
        let batch_options = BatchOptions { batch_size: BATCH, drop_last: true, seed: 1 };
        let batching = Batching::alone(batch_options, Sampling::of(&sampler, &Labelled)?);
        let started = Instant::now();
        drop(black_box(batching.order(0)));
        report.note(format!("{sampler}: an epoch begins in {:?}", started.elapsed()));
        let (mut times, mut of_table) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            times.push(position_ns(&batching, batches));
            of_table.push(table_ns(&table, batches));
        }
        let row = Row::alone(sampler.to_string(), median(&times), "ns/position");
        report.row(
            row.against("a table of positions", median(&of_table))
                .target(Target::ValueAtMost(POSITION_NS_MAX)),
        );
    }
    report.finish(&options)
}

/// Mean CPU time per position, in nanoseconds, over `batches` batches.
fn position_ns(batching: &Batching, batches: u64) -> f64 {
    let order = batching.order(0);
    let count = batching.batches();
    let started = cpu_ns();
    for time in 0..batches {
        let batch = u32::try_from(time * 7919 % count).expect("below 2^32 batches");
        let sum = batching.samples_of(&order, batch).fold(0, u64::wrapping_add);
        black_box(sum);
    }
    (cpu_ns() - started) / (batches * u64::from(BATCH)) as f64
}

/// The same of positions in a table.
fn table_ns(table: &[u64], batches: u64) -> f64 {
    let count = SAMPLES / u64::from(BATCH);
    let started = cpu_ns();
    for time in 0..batches {
        let first = (time * 7919 % count) as usize * BATCH as usize;
        let batch = &table[first..first + BATCH as usize];
        black_box(batch.iter().fold(0, |sum: u64, sample| sum.wrapping_add(black_box(*sample))));
    }
    (cpu_ns() - started) / (batches * u64::from(BATCH)) as f64
}

fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
