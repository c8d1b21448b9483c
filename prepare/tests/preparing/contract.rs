//! The contract of preparers.

use crate::caching::caching;
use crate::csx::on_csx;
use crate::faulty::FaultyPreparer;
use crate::offloaded::{PartialOffload, offloading, on_gpu};
use crate::support::{NoRoom, damage, expected, job, shuffled, write};
use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::{Cpu, DoesNotFit, Interrupt, Misfit};
use meetpoint_prepare::gpu::ShareChoice;
use meetpoint_prepare::{
    Action, BatchMemory, CpuPreparer, Error, Job, MemoryKind, OnError, PreparedBatch, Preparer,
};
use meetpoint_storage::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Samples of a batch but the last.
const BATCH: u32 = 6;
const BATCHES: u32 = 4;

/// Creates a preparer of a job.
pub(crate) type MakePreparer = fn(&Job) -> Box<dyn Preparer>;

fn cpu(job: &Job, engine: Box<dyn Engine>) -> Box<dyn Preparer> {
    Box::new(CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap())
}

/// The preparers under test.
pub(crate) const SUBJECTS: [MakePreparer; 11] = [
    |job| cpu(job, shuffled(&job.dataset, 8, 1)),
    |job| cpu(job, Box::new(NoRoom)),
    |job| on_csx(job, 1 << 20),
    |job| {
        let engine = shuffled(&job.dataset, 1, 2);
        Box::new(CpuPreparer::new(job.clone(), engine, Cpu::Portable).unwrap())
    },
    |job| {
        let inner = cpu(job, shuffled(&job.dataset, 4, 3));
        Box::new(FaultyPreparer { inner, every: 2, calls: 0 })
    },
    |job| caching(job, 4 << 20),
    |job| caching(job, 40 << 10),
    |job| Box::new(offloading(job, Box::new(PartialOffload::new(job)))),
    |job| Box::new(offloading(job, Box::new(PartialOffload::panicking(job)))),
    |job| Box::new(offloading(job, Box::new(on_gpu(job, ShareChoice::Measured)))),
    |job| Box::new(offloading(job, Box::new(on_gpu(job, ShareChoice::Fixed(1.0))))),
];

/// Memory of a declared kind, longer than a batch and filled with sevens.
struct TestMemory {
    kind: MemoryKind,
    bytes: Vec<u8>,
}

impl BatchMemory for TestMemory {
    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

fn lent(job: &Job, kind: MemoryKind) -> TestMemory {
    let image = job.recipe.output().unwrap().bytes();
    TestMemory { kind, bytes: vec![7; image * BATCH as usize + 5] }
}

/// Prepares a batch, and retries after a planned fault of the preparer.
pub(crate) fn prepare(
    preparer: &mut dyn Preparer,
    (epoch, batch): (u32, u32),
    memory: &mut dyn BatchMemory,
) -> Result<PreparedBatch, Error> {
    match preparer.prepare(epoch, batch, memory, &mut |_| true) {
        Err(Error::ReadTimeout { .. }) => preparer.prepare(epoch, batch, memory, &mut |_| true),
        prepared => prepared,
    }
}

/// Prepares a batch and compares it with the expected one.
fn assert_batch(preparer: &mut dyn Preparer, job: &Job, at: (u32, u32), kind: MemoryKind) {
    let mut memory = lent(job, kind);
    let prepared = prepare(preparer, at, &mut memory).unwrap();
    let expected = expected(job, at.0, at.1);
    let bytes = usize::try_from(prepared.layout.bytes()).unwrap();
    assert_eq!(bytes, expected.len());
    assert!(memory.bytes[..bytes] == expected, "{}: batch {at:?} differs", preparer.name());
    assert!(memory.bytes[bytes..].iter().all(|byte| *byte == 7), "wrote beyond the batch");
    let order = job.batching.order(at.0);
    let samples: Vec<u64> = job.batching.samples_of(&order, at.1).collect();
    assert_eq!((prepared.samples, prepared.replacements), (samples, Vec::new()));
    assert_eq!(prepared.stats.samples, job.batching.batch_len(at.1));
    assert_eq!(prepared.layout.samples(), prepared.stats.samples);
}

#[test]
fn a_batch_is_the_same_in_any_order_any_number_of_times_and_in_any_kind_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(&write(folder.path(), |_, _| ()), BATCH);
    for make in SUBJECTS {
        let mut preparer = make(&job);
        assert_eq!(preparer.columns().as_slice(), job.batch_columns().unwrap().as_slice());
        for kind in [MemoryKind::Host, MemoryKind::Shared] {
            for at in [(0, 0), (1, 3), (0, 2), (0, 2), (1, 0), (0, 3), (0, 1)] {
                assert_batch(&mut *preparer, &job, at, kind);
            }
        }
    }
}

#[test]
fn what_cannot_be_prepared_is_refused_and_leaves_the_preparer_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    damage(&dataset, 13);
    let job = job(&dataset, BATCH);
    let order = job.batching.order(0);
    let holds = |batch| job.batching.samples_of(&order, batch).any(|sample| sample == 13);
    let (damaged, sound): (Vec<u32>, Vec<u32>) = (0..BATCHES).partition(|batch| holds(*batch));
    for make in SUBJECTS {
        let mut preparer = make(&job);
        let name = preparer.name().to_owned();
        let refused = prepare(&mut *preparer, (0, BATCHES), &mut lent(&job, MemoryKind::Host));
        assert!(
            matches!(refused, Err(Error::NoSuchBatch { batch: BATCHES, batches: 4 })),
            "{name}"
        );
        let refused = prepare(&mut *preparer, (0, sound[0]), &mut vec![0; 100]);
        assert!(matches!(refused, Err(Error::OutputTooSmall { got: 100, .. })), "{name}");
        let refused = prepare(&mut *preparer, (0, damaged[0]), &mut lent(&job, MemoryKind::Host));
        assert!(matches!(refused, Err(Error::ChecksumMismatch { .. })), "{name}: {refused:?}");
        for batch in &sound {
            assert_batch(&mut *preparer, &job, (0, *batch), MemoryKind::Host);
        }
    }
}

#[test]
fn a_damaged_sample_is_replaced_or_skipped_as_the_job_says() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    damage(&dataset, 13);
    for (make, action) in
        SUBJECTS.into_iter().flat_map(|make| [Action::Skip, Action::Replace].map(|it| (make, it)))
    {
        let job = Job { on_error: OnError::Always(action), ..job(&dataset, BATCH) };
        let mut preparer = make(&job);
        let order = job.batching.order(0);
        for batch in 0..BATCHES {
            let wanted: Vec<u64> = job.batching.samples_of(&order, batch).collect();
            let mut memory = lent(&job, MemoryKind::Host);
            let prepared = prepare(&mut *preparer, (0, batch), &mut memory).unwrap();
            let position = wanted.iter().position(|sample| *sample == 13);
            assert_eq!(prepared.replacements.len(), usize::from(position.is_some()));
            if let Some(replacement) = prepared.replacements.first() {
                assert_eq!(Some(replacement.position as usize), position);
                assert_eq!(replacement.damage.sample, 13);
                assert_eq!(replacement.replaced_by.is_some(), action == Action::Replace);
            }
            let held = meetpoint_prepare::samples_held(wanted.into_iter(), &prepared.replacements);
            assert_eq!(prepared.samples, held);
            assert_eq!(prepared.layout.samples() as usize, held.len());
        }
    }
}

#[test]
fn a_cancelled_or_interrupted_batch_is_an_error_and_the_next_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(&write(folder.path(), |_, _| ()), BATCH);
    for make in SUBJECTS {
        let mut preparer = make(&job);
        for limit in 0..BATCH {
            let mut memory = lent(&job, MemoryKind::Host);
            let given_up = preparer.prepare(0, 1, &mut memory, &mut |done| done < limit);
            assert!(matches!(given_up, Err(Error::Interrupted)), "{limit}: {given_up:?}");
            assert_batch(&mut *preparer, &job, (0, 1), MemoryKind::Host);
        }
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let poll = move || counted.fetch_add(1, Ordering::Relaxed) == 2;
        preparer.set_interrupt(Interrupt::when(poll));
        let interrupted = prepare(&mut *preparer, (0, 1), &mut lent(&job, MemoryKind::Host));
        assert!(matches!(interrupted, Err(Error::Interrupted)), "{interrupted:?}");
        assert!(polls.load(Ordering::Relaxed) > 2);
        assert_batch(&mut *preparer, &job, (0, 1), MemoryKind::Host);
    }
}

#[test]
fn a_recipe_that_does_not_fit_a_picture_is_an_error_whatever_is_done_about_damage() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    // Pictures are 20 to 42 pixels wide, and 40 to 18 high.
    let toml = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"random_crop\"\nsize = 20";
    let recipe = Arc::new(Recipe::from_toml(toml).unwrap());
    for (make, action) in SUBJECTS.into_iter().flat_map(|make| Action::ALL.map(|it| (make, it))) {
        let on_error = OnError::Always(action);
        let job = Job { recipe: Arc::clone(&recipe), on_error, ..job(&dataset, 1) };
        let mut preparer = make(&job);
        let order = job.batching.order(0);
        for batch in 0..23 {
            let sample = job.batching.samples_of(&order, batch).next().unwrap();
            let mut memory = vec![0; job.recipe.output().unwrap().bytes()];
            match prepare(&mut *preparer, (0, batch), &mut memory) {
                Ok(_) => assert!(sample <= 20, "{sample}"),
                Err(ref error @ Error::RecipeDoesNotFit { ref key, ref source, .. }) => {
                    assert!(sample > 20 && !error.is_damage(), "{sample}");
                    let (wanted, picture) = ((20, 20), (40 - sample as u32, 20 + sample as u32));
                    let misfit = Misfit::CropTooLarge { wanted, padded: picture };
                    let operation = "random_crop";
                    let expected = DoesNotFit { operation, key: "size", picture, misfit };
                    assert_eq!((key, **source), (&format!("{sample}.jpg"), expected));
                    assert_eq!(error.cause(), "recipe_does_not_fit");
                    let pad = Remedy::set(Setting::PadIfNeeded, Change::On);
                    let remedy = pad.or("resize to a larger picture before random_crop");
                    assert_eq!(error.remedy(), Some(remedy));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}
