//! How long a sampler takes for a position, on a dataset as large as ImageNet, batch after batch in
//! an order that jumps: no more than 100 ns, whatever the sampler.

use meetpoint_benches::{Options, Report, Row, Target, median};
use meetpoint_format::batching::{Batching, Cut};
use meetpoint_format::sampler::{
    ColumnType, Expression, Indices, Mixture, Repeated, SampleColumns, Sampler, SamplerError,
    Sampling, Sequential, Shuffled, Stop, Weighted, Weights,
};
use std::hint::black_box;
use std::time::Instant;

/// Samples of the dataset.
const SAMPLES: u64 = 1_281_167;
/// Positions of a batch.
const BATCH: u32 = 256;
const POSITION_NS_MAX: f64 = 100.0;

/// A dataset without columns.
struct Plain;

impl SampleColumns for Plain {
    type Error = SamplerError;

    fn samples(&self) -> u64 {
        SAMPLES
    }

    fn datasets(&self) -> Vec<u64> {
        vec![SAMPLES - SAMPLES / 4, SAMPLES / 4]
    }

    fn columns(&self) -> Vec<(String, ColumnType)> {
        Vec::new()
    }

    fn whole_numbers(&self, _: &str) -> Result<Vec<Option<i64>>, SamplerError> {
        Ok(Vec::new())
    }

    fn numbers(&self, _: &str) -> Result<Vec<Option<f64>>, SamplerError> {
        Ok(Vec::new())
    }

    fn picture_sizes(&self) -> Result<Vec<Option<(u32, u32)>>, Self::Error> {
        Ok((0..self.samples()).map(|n| Some((300 + (n % 400) as u32, 500))).collect())
    }

    fn select(&self, _: &Expression) -> Result<Vec<u64>, SamplerError> {
        Ok(Vec::new())
    }
}

/// One sampler for each way to find a position: a filter finds its positions as `indices` does, and
/// `class_balanced` as `weighted`.
fn samplers() -> Vec<Sampler> {
    let weighted = |replacement| Weighted {
        weights: Weights::Numbers((0..SAMPLES).map(|n| (n * 31 % 97) as f64).collect()),
        replacement,
        length: None,
    };
    let indices = (0..SAMPLES).map(|n| n * 7919 % SAMPLES).collect();
    vec![
        Sequential.into(),
        Shuffled.into(),
        Indices { indices, shuffle: false }.into(),
        weighted(true).into(),
        weighted(false).into(),
        Repeated { repeats: 3, length: None }.into(),
        Mixture { weights: [1.0, 1.0].into(), stop: Stop::AllExhausted, shuffle: true }.into(),
    ]
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&[])?;
    let mut report = Report::new("samplers", &options);
    let (rounds, batches) = if options.quick { (3, 200) } else { (9, 2_000) };
    for sampler in samplers() {
        let cut = Cut { batch_size: BATCH, drop_last: true, seed: 1 };
        let batching = Batching::alone(cut, Sampling::of(&sampler, &Plain)?);
        let started = Instant::now();
        drop(black_box(batching.order(0)));
        report.note(format!("{sampler}: an epoch begins in {:?}", started.elapsed()));
        let times: Vec<f64> = (0..rounds).map(|_| position_ns(&batching, batches)).collect();
        let row = Row::alone(sampler.to_string(), median(&times), "ns/position");
        report.row(row.target(Target::ValueAtMost(POSITION_NS_MAX)));
    }
    report.finish(&options)
}

/// Mean time per position, in nanoseconds, over the first `batches` batches.
fn position_ns(batching: &Batching, batches: u64) -> f64 {
    let order = batching.order(0);
    let count = batching.batches();
    let started = Instant::now();
    for time in 0..batches {
        let batch = u32::try_from(time * 7919 % count).expect("below 2^32 batches");
        let sum = batching.samples_of(&order, batch).fold(0, u64::wrapping_add);
        black_box(sum);
    }
    started.elapsed().as_nanos() as f64 / (batches * u64::from(BATCH)) as f64
}
