//! Batches as a host prepares them.

use crate::support::{Device, RECIPE};
use meetpoint_format::batching::{BatchOptions, Batching, Rank};
use meetpoint_format::column::ColumnNames;
use meetpoint_format::holders::Holders;
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::Cpu;
use meetpoint_prepare::{CpuPreparer, Dataset, Job, OnError, Preparer};
use meetpoint_storage::{EngineKind, open_engine};
use std::sync::Arc;

const BATCH_OPTIONS: BatchOptions = BatchOptions { batch_size: 5, drop_last: false, seed: 7 };

/// Of the device's dataset.
fn sampling() -> Arc<Sampling> {
    Arc::new(Sampling::shuffled(20))
}

/// The batching of a request that was not changed.
pub(crate) fn alone() -> Batching {
    Batching::alone(BATCH_OPTIONS, Sampling::shuffled(20))
}

/// The batching of one of several ranks.
pub(crate) fn of_rank(rank: u32, ranks: u32) -> Batching {
    Batching::new(BATCH_OPTIONS, sampling(), Rank { rank, ranks }, Holders::all_alike()).unwrap()
}

/// The batching of one of several ranks, of a dataset with another number of samples.
pub(crate) fn of_samples(samples: u64, (rank, ranks): (u32, u32)) -> Batching {
    let sampling = Arc::new(Sampling::shuffled(samples));
    Batching::new(BATCH_OPTIONS, sampling, Rank { rank, ranks }, Holders::all_alike()).unwrap()
}

/// The batching of one rank with devices that hold different parts.
pub(crate) fn spread(device: &Device, devices: u32, of_part: &[u32]) -> Batching {
    let holders = Dataset::open(&device.dataset()).unwrap().spread(devices, of_part).unwrap();
    Batching::new(BATCH_OPTIONS, sampling(), Rank::ALONE, holders).unwrap()
}

/// A batch of the device's dataset.
pub(crate) fn prepared(device: &Device, batching: &Batching, epoch: u32, batch: u32) -> Vec<u8> {
    prepared_columns(device, batching, (epoch, batch), ColumnNames::default())
}

/// A batch with other columns.
pub(crate) fn prepared_columns(
    device: &Device,
    batching: &Batching,
    (epoch, batch): (u32, u32),
    columns: ColumnNames,
) -> Vec<u8> {
    let job = Job {
        dataset: Arc::new(Dataset::open(&device.dataset()).unwrap()),
        recipe: Arc::new(Recipe::from_toml(RECIPE).unwrap()),
        batching: batching.clone(),
        on_error: OnError::default(),
        columns,
    };
    let engine = open_engine(EngineKind::Threads, 2).unwrap().engine;
    let mut preparer = CpuPreparer::new(job, engine, Cpu::detect()).unwrap();
    let mut out = vec![0; 1 << 20];
    let prepared = preparer.prepare(epoch, batch, &mut out, &mut |_| true).unwrap();
    out.truncate(usize::try_from(prepared.layout.bytes()).unwrap());
    out
}
