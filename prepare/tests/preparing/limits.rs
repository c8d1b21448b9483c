//! Batches that end early: interrupted, for want of memory, or by a defect.

use crate::support::{NoRoom, expected, job, shuffled, write};
use meetpoint_diagnose::Diagnose;
use meetpoint_format::recipe::OnError as DamagedJpeg;
use meetpoint_kernels::{Cpu, Interrupt, decode_bytes};
use meetpoint_prepare::{Action, CpuPreparer, DecodeMemory, Error, Job, OnError, Preparer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn an_interrupt_ends_a_batch_inside_its_samples_and_damages_none() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let job = Job { on_error: OnError::Always(Action::Skip), ..job(&dataset, 3) };
    let mut preparer = CpuPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 3];
    let mut prepare = |raised_at: usize| {
        let polled = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&polled);
        let poll = move || counter.fetch_add(1, Ordering::Relaxed) >= raised_at;
        preparer.set_interrupt(Interrupt::when(poll));
        let prepared = preparer.prepare(0, 0, &mut out, &mut |_| true);
        if let Ok(prepared) = &prepared {
            assert!(prepared.replacements.is_empty());
        }
        (prepared, polled.load(Ordering::Relaxed))
    };
    let (prepared, polls) = prepare(usize::MAX);
    assert_eq!(prepared.unwrap().stats.samples, 3);
    assert!(polls > 3 * 2, "rows of every sample: {polls}");
    for raised_at in 0..polls {
        let (prepared, _) = prepare(raised_at);
        assert!(matches!(prepared, Err(Error::Interrupted)), "{raised_at}: {prepared:?}");
    }
    assert_eq!(prepare(usize::MAX).0.unwrap().stats.samples, 3);
}

/// A small progressive file whose header declares many pixels.
fn bomb() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, 90);
    encoder.set_progressive(true);
    encoder.encode(&[7; 16 * 16 * 3], 16, 16, jpeg_encoder::ColorType::Rgb).unwrap();
    let frame = bytes.windows(2).position(|two| two == [0xff, 0xc2]).unwrap();
    bytes[frame + 5..frame + 9].copy_from_slice(&[0x10, 0, 0x10, 0]);
    bytes
}

#[test]
fn a_picture_whose_decoding_needs_more_than_the_budget_is_refused_and_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |sample, image| {
        if sample == 3 {
            *image = bomb();
        }
    });
    let job = Job { on_error: OnError::Always(Action::Skip), ..job(&dataset, 23) };
    let mut preparer = CpuPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 23];
    let needs = decode_bytes(&bomb(), DamagedJpeg::Fail).unwrap();
    for (limit, is_enough) in [(needs - 1, false), (needs, true)] {
        let memory = DecodeMemory::new(limit);
        preparer.set_decode_memory(Arc::clone(&memory));
        match preparer.prepare(0, 0, &mut out, &mut |_| true) {
            // Then it is read, and found to be truncated.
            Ok(prepared) => assert_eq!((is_enough, prepared.stats.left_out), (true, 1)),
            Err(Error::DecodeMemory { key, source, .. }) => {
                assert_eq!((is_enough, key.as_str()), (false, "3.jpg"));
                assert_eq!((source.needed, source.limit), (needs, limit));
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(memory.reserved(), 0);
    }
}

#[test]
fn a_batch_is_given_up_while_it_waits_for_memory() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |sample, image| {
        if sample == 3 {
            *image = bomb();
        }
    });
    let job = job(&dataset, 1);
    let order = job.batching.order(0);
    let mut batches = 0..23;
    let batch = batches.find(|it| job.batching.samples_of(&order, *it).any(|is| is == 3)).unwrap();
    let mut preparer = CpuPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes()];
    let memory = DecodeMemory::new(decode_bytes(&bomb(), DamagedJpeg::Fail).unwrap());
    let of_another = memory.reserve(memory.limit(), &mut || true).unwrap();
    preparer.set_decode_memory(memory);
    let mut questions = 0;
    let given_up = preparer.prepare(0, batch, &mut out, &mut |done| {
        assert_eq!(done, 0);
        questions += 1;
        questions < 4
    });
    assert!(matches!(given_up, Err(Error::Interrupted)), "{given_up:?}");
    assert_eq!(questions, 4);
    let polls = AtomicUsize::new(0);
    let poll = move || polls.fetch_add(1, Ordering::Relaxed) > 2;
    preparer.set_interrupt(Interrupt::when(poll));
    let interrupted = preparer.prepare(0, batch, &mut out, &mut |_| true);
    assert!(matches!(interrupted, Err(Error::Interrupted)));
    drop(of_another);
}

#[test]
fn a_panic_inside_a_sample_is_a_defect_that_names_it_and_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    for action in Action::ALL {
        let job = Job { on_error: OnError::Always(action), ..job(&dataset, 3) };
        let first = job.batching.samples_of(&job.batching.order(0), 0).next().unwrap();
        let engine = Box::new(NoRoom);
        let mut preparer = CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap();
        let mut out = vec![0; preparer.spec().bytes() * 3];
        let mut questions = 0;
        // Without an engine, the second poll takes place while the first sample is decoded.
        let panicked = preparer.prepare(0, 0, &mut out, &mut |_| {
            questions += 1;
            assert!(questions != 2, "a planned panic");
            true
        });
        let error = panicked.unwrap_err();
        assert!(!error.is_damage());
        assert_eq!(error.cause(), "defect");
        let Error::Defect { key, message, location, .. } = error else { panic!("{error}") };
        assert_eq!((key, message.as_str()), (format!("{first}.jpg"), "a planned panic"));
        assert!(location.unwrap().contains("limits.rs"));
        let whole = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap();
        assert_eq!(whole.stats.samples, 3);
        assert!(out == expected(&job, 0, 0), "the batch after a panic differs");
    }
}
