//! The contract of devices with primitive requests: every one executes the same jobs.

use crate::extents::{open, scatter};
use crate::support::{SEED, damage, expected, job, shuffled, write};
use meetpoint_format::recipe::RecipeHash;
use meetpoint_prepare::csx::{
    Afdm, Csx, CsxError, CsxPreparer, CsxRefusal, EmulatedCsx, FunctionId, Input, PipelineJob,
    pipeline_job,
};
use meetpoint_prepare::{Dataset, Error, Job, Preparer, Resources};
use meetpoint_storage::{EngineKind, Error as StorageError};
use std::path::Path;
use std::sync::Arc;

const BATCH: u32 = 6;
const BATCHES: u32 = 4;
const MEMORY_BYTES: u64 = 1 << 20;

fn device_of(job: &Job, memory_bytes: u64) -> EmulatedCsx {
    let engine = match job.dataset.has_extents() {
        true => job.dataset.open_engine(EngineKind::Threads, 4).unwrap().engine,
        false => shuffled(&job.dataset, 4, 9),
    };
    let resources = Resources { engine, decode_memory: None, cache: None };
    EmulatedCsx::new(job, resources, memory_bytes).unwrap()
}

/// A preparer of the contract of preparers.
pub(crate) fn on_csx(job: &Job, memory_bytes: u64) -> Box<dyn Preparer> {
    let device = Box::new(device_of(job, memory_bytes));
    Box::new(CsxPreparer::new(device, job.clone(), Arc::default()).unwrap())
}

/// The same dataset in files and in extents of an image, each with a job on it.
fn jobs(folder: &Path) -> [Job; 2] {
    let files = write(folder, |_, _| ());
    scatter(folder);
    let extents = Arc::new(Dataset::open_extents(&[open(folder).unwrap()]).unwrap());
    [files, extents].map(|dataset| job(&dataset, BATCH))
}

fn each(test: impl Fn(&Job)) {
    let folder = tempfile::tempdir().unwrap();
    jobs(folder.path()).iter().for_each(test);
}

fn of_batch(job: &Job, epoch: u32, batch: u32) -> PipelineJob {
    let bytes = job.recipe.output().unwrap().bytes() * BATCH as usize;
    pipeline_job(job, epoch, batch, bytes as u64).unwrap()
}

fn run(device: &mut EmulatedCsx, job: &PipelineJob) -> Result<Vec<u8>, CsxError> {
    let mut memory = vec![7; usize::try_from(job.output_bytes_max).unwrap()];
    let done = device.run(job, &mut memory, &mut |_| true)?;
    memory.truncate(usize::try_from(done.prepared.layout.bytes()).unwrap());
    Ok(memory)
}

#[test]
fn jobs_give_the_batches_of_the_host_and_count_the_bytes_of_each_leg() {
    each(|job| {
        let mut device = device_of(job, MEMORY_BYTES);
        assert_eq!(device.properties().memory_bytes, MEMORY_BYTES);
        for (epoch, batch) in (0..2).flat_map(|epoch| (0..BATCHES).map(move |it| (epoch, it))) {
            let pipeline = of_batch(job, epoch, batch);
            assert_eq!(device.properties().functions, [pipeline.function]);
            let expected = expected(job, epoch, batch);
            let mut memory = vec![7; expected.len() + 3];
            let done = device.run(&pipeline, &mut memory, &mut |_| true).unwrap();
            assert!(memory[..expected.len()] == expected, "batch {batch} of epoch {epoch} differs");
            assert_eq!(memory[expected.len()..], [7; 3]);
            let loaded: u64 = pipeline.inputs.iter().map(|input| input.bytes).sum();
            let legs = done.legs;
            assert_eq!((legs.load.bytes, legs.copy.bytes), (loaded, expected.len() as u64));
            assert_eq!(legs.compute.bytes, expected.len() as u64);
            assert!(legs.load.device_ns > 0 && legs.compute.device_ns > 0);
            assert_eq!(device.used(), 0);
        }
    });
}

#[test]
fn ranges_that_the_storage_does_not_have_are_refused_and_nothing_else_is_read() {
    each(|job| {
        let mut device = device_of(job, MEMORY_BYTES);
        let input = of_batch(job, 0, 0).inputs[0].clone();
        let memory = device.allocate(4096).unwrap();
        let length = std::fs::metadata(&input.source).unwrap().len();
        let beyond = Input { offset: length - 10, bytes: 11, ..input.clone() };
        let refused = device.load(&beyond, memory).unwrap_err();
        assert!(matches!(refused, CsxError::Storage(StorageError::ShortRead { .. })), "{refused}");
        let other = Input { source: "/nowhere/else".into(), ..input.clone() };
        let refused = device.load(&other, memory).unwrap_err();
        assert!(matches!(refused, CsxError::Storage(StorageError::Open { .. })), "{refused}");
        let long = Input { bytes: 4097, ..input };
        let refused = device.load(&long, memory).unwrap_err();
        let too_long = CsxRefusal::TooLong { bytes: 4097, allocated: 4096 };
        assert!(matches!(refused, CsxError::Refused(it) if it == too_long));
    });
}

#[test]
fn memory_that_is_exhausted_freed_or_unknown_is_refused_and_jobs_free_theirs() {
    each(|job| {
        let pipeline = of_batch(job, 0, 1);
        let loaded: u64 = pipeline.inputs.iter().map(|input| input.bytes).sum();
        let needed = loaded + pipeline.output_bytes_max;
        let mut device = device_of(job, needed - 1);
        let refused = run(&mut device, &pipeline).unwrap_err();
        assert!(matches!(refused, CsxError::Refused(CsxRefusal::NoMemory { .. })), "{refused}");
        assert_eq!(device.used(), 0);
        let mut device = device_of(job, needed);
        assert_eq!(run(&mut device, &pipeline).unwrap(), expected(job, 0, 1));

        let memory = device.allocate(10).unwrap();
        assert_eq!(device.used(), 10);
        device.free(memory);
        device.free(memory);
        assert_eq!(device.used(), 0);
        let input = Input { bytes: 10, ..pipeline.inputs[0].clone() };
        for unknown in [memory, Afdm { id: 1 << 40, bytes: 10 }] {
            let refusal = CsxRefusal::NotAllocated { id: unknown.id };
            let refused = [
                device.load(&input, unknown).unwrap_err(),
                device.copy(unknown, &mut [0; 10]).unwrap_err(),
                device.compute(&pipeline, &[], unknown, &mut |_| true).unwrap_err(),
            ];
            for error in refused {
                assert!(matches!(&error, CsxError::Refused(it) if *it == refusal), "{error}");
            }
        }
        let all = device.allocate(needed).unwrap();
        let none = device.allocate(1).unwrap_err();
        let full = CsxRefusal::NoMemory { needed: 1, free: 0 };
        assert!(matches!(none, CsxError::Refused(it) if it == full));
        device.free(all);
    });
}

#[test]
fn functions_of_another_recipe_or_seed_are_refused() {
    each(|job| {
        let mut device = device_of(job, MEMORY_BYTES);
        let pipeline = of_batch(job, 0, 0);
        let function = FunctionId(RecipeHash([3; 32]));
        let other = PipelineJob { function, ..pipeline.clone() };
        let refused = run(&mut device, &other).unwrap_err();
        let unknown = CsxRefusal::UnknownFunction { function };
        assert!(matches!(refused, CsxError::Refused(it) if it == unknown));
        let other = PipelineJob { seed: SEED + 1, ..pipeline.clone() };
        let refused = run(&mut device, &other).unwrap_err();
        let seed = CsxRefusal::OtherSeed { own: SEED, asked: SEED + 1 };
        assert!(matches!(refused, CsxError::Refused(it) if it == seed));
        assert_eq!((device.used(), run(&mut device, &pipeline).unwrap()), (0, expected(job, 0, 0)));
    });
}

#[test]
fn a_cancelled_job_frees_its_memory_and_the_next_is_whole() {
    each(|job| {
        let mut device = device_of(job, MEMORY_BYTES);
        let pipeline = of_batch(job, 1, 2);
        // While it loads, and between samples.
        for calls in 0..2 * BATCH {
            let mut left = calls;
            let mut memory = vec![0; usize::try_from(pipeline.output_bytes_max).unwrap()];
            let cancelled = device.run(&pipeline, &mut memory, &mut |_| {
                left = left.saturating_sub(1);
                left > 0
            });
            match cancelled.unwrap_err() {
                CsxError::Function(error) => assert!(matches!(*error, Error::Interrupted)),
                other => panic!("{other}"),
            }
            assert_eq!(device.used(), 0);
        }
        assert_eq!(run(&mut device, &pipeline).unwrap(), expected(job, 1, 2));
    });
}

#[test]
fn a_function_loads_what_the_job_does_not_name() {
    each(|job| {
        let mut device = device_of(job, MEMORY_BYTES);
        let mut pipeline = of_batch(job, 0, 3);
        let loaded: u64 = pipeline.inputs.iter().map(|input| input.bytes).sum();
        pipeline.inputs.clear();
        let mut memory = vec![0; usize::try_from(pipeline.output_bytes_max).unwrap()];
        let done = device.run(&pipeline, &mut memory, &mut |_| true).unwrap();
        assert_eq!(done.legs.load.bytes, loaded);
        let expected = expected(job, 0, 3);
        assert!(memory[..expected.len()] == expected);
    });
}

#[test]
fn a_damaged_sample_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    damage(&dataset, 13);
    let job = job(&dataset, BATCH);
    let mut device = device_of(&job, MEMORY_BYTES);
    let order = job.batching.order(0);
    let has = |batch: &u32| job.batching.samples_of(&order, *batch).any(|sample| sample == 13);
    let batch = (0..BATCHES).find(has).unwrap();
    match run(&mut device, &of_batch(&job, 0, batch)).unwrap_err() {
        CsxError::Function(error) => {
            assert!(matches!(*error, Error::ChecksumMismatch { .. }), "{error}");
            assert!(error.to_string().contains("key 13.jpg"), "{error}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(device.used(), 0);
}
