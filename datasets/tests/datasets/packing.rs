//! The output of packing: parts, totals, policies for unreadable files.

use crate::support::{Bench, jpeg, names};
use meetpoint_datasets::source::SourceOptions;
use meetpoint_datasets::{Check, Error, OnError, PackOptions, pack, verify};
use meetpoint_diagnose::{Diagnose, Surface};
use std::sync::atomic::Ordering;

fn skip() -> PackOptions {
    PackOptions { on_error: OnError::Skip, ..PackOptions::default() }
}

/// Twelve images in three classes, two of them broken.
fn broken() -> Bench {
    let names: Vec<String> = (0..12).map(|index| format!("c{}/{index}.jpg", index % 3)).collect();
    let bench = Bench::with_images(&names.iter().map(String::as_str).collect::<Vec<_>>());
    bench.put("c1/4.jpg", b"not a picture at all");
    bench.put("c2/5.jpg", b"");
    bench
}

#[test]
fn unreadable_images_fail_a_pack_that_names_them_all_and_writes_nothing() {
    let bench = broken();
    let Error::Unreadable { files, checked } = bench.pack().unwrap_err() else {
        panic!("another error")
    };
    let listed: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((listed, checked), (vec!["c1/4.jpg", "c2/5.jpg"], 12));
    bench.refuses("c2/5.jpg: the file is empty");
}

#[test]
fn unreadable_images_can_be_left_out_and_are_named() {
    let bench = broken();
    let summary = bench.pack_with(&skip()).unwrap();
    assert_eq!((summary.samples, summary.unreadable.len()), (10, 2));
    assert_eq!(summary.unreadable[0].path, "c1/4.jpg");
    assert_eq!(bench.dataset().manifest().provenance.skipped, 2);
    assert!(!bench.keys().contains(&"c1/4.jpg".to_owned()));
    assert!(verify(&bench.to(), &mut |_| ()).unwrap().is_sound());
}

#[test]
fn a_pack_of_nothing_but_unreadable_images_writes_nothing() {
    let bench = Bench::new();
    bench.put("a.jpg", b"no");
    assert!(matches!(bench.pack_with(&skip()), Err(Error::Unreadable { .. })));
    assert_eq!(bench.names(), ["in"]);
}

#[test]
fn an_image_cut_short_is_found_by_decoding_and_not_by_its_header() {
    let bench = Bench::with_images(&["a.jpg"]);
    let whole = jpeg(64, 64, 3);
    bench.put("b.jpg", &whole[..whole.len() / 2]);
    bench.refuses("b.jpg: ");
    let options = PackOptions { check: Check::Header, ..PackOptions::default() };
    assert_eq!(bench.pack_with(&options).unwrap().samples, 2);
}

#[test]
fn a_sample_above_the_limit_does_not_read_and_is_named() {
    let bench = Bench::with_images(&["a.jpg", "b.jpg", "c.jpg"]);
    let longer = jpeg(64, 64, 3);
    bench.put("b.jpg", &longer);
    let with = |limit: u64, on_error| PackOptions {
        source: SourceOptions { sample_bytes_max: Some(limit), ..SourceOptions::default() },
        on_error,
        ..PackOptions::default()
    };
    let limit = longer.len() as u64 - 1;
    let error =
        bench.pack_with(&with(limit, OnError::Fail)).unwrap_err().in_full(Surface::CommandLine);
    let words = format!("b.jpg: {} bytes, the limit is {limit} bytes", limit + 1);
    assert!(error.contains(&words) && error.contains("--on-error skip"), "{error}");
    assert_eq!(bench.names(), ["in"]);
    assert_eq!(bench.pack_with(&with(limit, OnError::Skip)).unwrap().samples, 2);
    let force = PackOptions { force: true, ..with(limit + 1, OnError::Fail) };
    assert_eq!(bench.pack_with(&force).unwrap().samples, 3);
    let too_much = PackOptions { force: true, ..with((1 << 28) + 1, OnError::Fail) };
    let error = bench.pack_with(&too_much).unwrap_err();
    assert!(matches!(error, Error::SampleLimit { limit: 0x1000_0000, .. }), "{error}");
    // One byte too many, which larger units would not show.
    assert!(error.to_string().contains("268435457 bytes"), "{error}");
}

#[test]
fn parts_end_at_their_target_and_the_sums_are_right() {
    let names: Vec<String> = (0..40).map(|index| format!("{index}.jpg")).collect();
    let bench = Bench::with_images(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let options = PackOptions { part_bytes_target: 6000, ..PackOptions::default() };
    let summary = bench.pack_with(&options).unwrap();
    let dataset = bench.dataset();
    let manifest = dataset.manifest();
    assert!(manifest.parts.len() > 3);
    assert_eq!(summary.parts, manifest.parts.len() as u64);
    assert_eq!(manifest.parts.iter().map(|part| part.samples).sum::<u64>(), 40);
    let lengths: Vec<u64> =
        (0..40).map(|sample| dataset.read_sample(sample).unwrap().len() as u64).collect();
    assert_eq!(manifest.image_bytes, lengths.iter().sum::<u64>());
    assert_eq!(Some(manifest.image_bytes_max), lengths.iter().copied().max());
    let on_disk: u64 =
        std::fs::read_dir(bench.to()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(summary.file_bytes, on_disk);
    for part in 0..manifest.parts.len() {
        let bytes = std::fs::metadata(dataset.part_path(part)).unwrap().len();
        assert_eq!(manifest.parts[part].bytes, bytes);
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_byte() {
    let names: Vec<String> = (0..50).map(|index| format!("{index}.jpg")).collect();
    let bench = Bench::with_images(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut seen = Vec::new();
    for threads in [1, 2, 7, 100] {
        let options = PackOptions { threads, force: true, part_bytes_target: 9000, ..skip() };
        bench.pack_with(&options).unwrap();
        let files = names_and_bytes(&bench);
        seen.push(files);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

fn names_and_bytes(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| {
        let bytes = std::fs::read(bench.to().join(&name)).unwrap();
        (name, bytes)
    };
    names(&bench.to()).into_iter().map(read).collect()
}

#[test]
fn progress_ends_with_all_files_and_bytes() {
    let bench = broken();
    let mut steps = Vec::new();
    pack(&bench.from(), &bench.to(), &skip(), &mut |step| steps.push(step)).unwrap();
    assert_eq!(steps.len(), 13);
    assert!(steps.windows(2).all(|pair| pair[0].bytes_done <= pair[1].bytes_done));
    let last = steps.last().unwrap();
    assert_eq!((last.samples_done, last.bytes_done), (12, last.bytes.unwrap()));
}

#[test]
fn a_pack_that_is_stopped_leaves_nothing_behind() {
    let bench = broken();
    let options = skip();
    let result = pack(&bench.from(), &bench.to(), &options, &mut |step| {
        options.stop.store(step.samples_done == 3, Ordering::Relaxed);
    });
    assert!(matches!(result, Err(Error::Interrupted)));
    assert_eq!(bench.names(), ["in"]);
}
