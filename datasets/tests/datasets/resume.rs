//! A pack that is killed at any point can be resumed: no sample lost or duplicated, the same bytes.

use crate::support::{Bench, files, jpeg};
use meetpoint_datasets::index::check_keys;
use meetpoint_datasets::{Error, JpegOptions, OnError, PackOptions, PackSummary, pack};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::dataset::{Form, MANIFEST_NAME, Manifest};
use meetpoint_format::key_index::HEADER_BYTES;
use meetpoint_prepare::Dataset;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

/// Variable with the folder for the process to be killed; if it is not set, its test does nothing.
const FOLDER: &str = "MEETPOINT_TEST_PACK_IN";

fn options() -> PackOptions {
    PackOptions {
        resume: true,
        on_error: OnError::Skip,
        part_bytes_target: 12_000,
        threads: 3,
        ..PackOptions::default()
    }
}

/// A few hundred small pictures, some of them broken.
fn bench() -> Bench {
    let bench = Bench::new();
    for index in 0..160_u16 {
        let name = format!("class{}/{index}.jpg", index % 3);
        match index % 40 {
            7 => bench.put(&name, b"not a picture"),
            _ => bench.put(&name, &jpeg(20 + index % 50, 30, index as u8)),
        }
    }
    bench
}

/// Bytes in working folders.
fn bytes_written(folder: &Path) -> u64 {
    let places = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let places = places.filter(|path| path.to_string_lossy().contains(".partial-"));
    let files = places.flat_map(|place| std::fs::read_dir(place).into_iter().flatten());
    files.filter_map(|file| file.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// The files of a dataset, with its manifest without the path of the source.
fn bytes_of(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(&bench.to());
    let mut manifest = Manifest::from_json(&files[MANIFEST_NAME]).unwrap();
    manifest.provenance.source.clear();
    files.insert(MANIFEST_NAME.to_owned(), manifest.to_json().into_bytes());
    // Its header identifies its manifest; the rest is the keys.
    let keys = files.get_mut("keys.idx").unwrap();
    assert_eq!(check_keys(&Dataset::open(&bench.to()).unwrap()).unwrap(), None);
    keys.drain(..HEADER_BYTES);
    files
}

/// Runs the pack below in a separate process.
fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "resume::packs_into_the_folder_of_the_environment",
            "--exact",
            "--test-threads",
            "1",
        ])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The work of the process that is killed.
#[test]
fn packs_into_the_folder_of_the_environment() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    pack(&folder.join("in"), &folder.join("out"), &options(), &mut |_| ()).unwrap();
}

/// Lets a process pack until it has written `bytes`, and kills it; returns whether it had finished.
fn pack_until(folder: &Path, bytes: u64) -> bool {
    let mut process = start(folder);
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            assert!(status.success(), "the pack fails");
            return true;
        }
        if bytes_written(folder) >= bytes {
            process.kill().unwrap();
            process.wait().unwrap();
            return folder.join("out").exists();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_pack_killed_at_any_point_and_resumed_gives_the_same_dataset() {
    let whole = bench();
    let summary = whole.pack_with(&options()).unwrap();
    assert!(summary.parts > 8 && summary.unreadable.len() == 4);
    let bytes = summary.file_bytes;
    let expected = bytes_of(&whole);
    let mut parts_resumed = 0;
    let mut random = 0x5eed_u64;
    for _ in 0..12 {
        let bench = Bench::with_source_of(&whole);
        for _ in 0..3 {
            // The generator of Knuth's MMIX; its upper bits are the random ones.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if pack_until(bench.path(), (random >> 33) % bytes) {
                break;
            }
        }
        if !bench.to().exists() {
            let summary = bench.pack_with(&options()).unwrap();
            assert_eq!(summary.unreadable.len(), 4);
            parts_resumed += summary.parts_resumed;
        }
        assert!(bytes_of(&bench) == expected, "the dataset differs");
        assert_eq!(bench.names(), ["in", "out"]);
    }
    assert!(parts_resumed > 0, "no part was ever kept");
}

/// A pack that its user stops after a given number of samples.
fn stop_after(bench: &Bench, samples: u64, options: &PackOptions) {
    let stop = &options.stop;
    let result = pack(&bench.from(), &bench.to(), options, &mut |step| {
        stop.store(step.samples_done >= samples, Ordering::Relaxed);
    });
    match result {
        Err(Error::Stopped { place, parts }) => {
            assert!(options.resume && place.is_dir() && parts > 0, "{parts} in {place:?}");
        }
        other => assert!(!options.resume && matches!(other, Err(Error::Interrupted)), "{other:?}"),
    }
}

fn resume(bench: &Bench, options: PackOptions) -> Result<PackSummary, Error> {
    bench.pack_with(&PackOptions { resume: true, ..options })
}

fn partial(bench: &Bench) -> Option<PathBuf> {
    let name = bench.names().into_iter().find(|name| name.contains(".partial-"))?;
    Some(bench.path().join(name))
}

#[test]
fn a_stopped_pack_retains_its_parts_only_if_it_can_be_resumed() {
    let bench = bench();
    stop_after(&bench, 100, &PackOptions { resume: false, ..options() });
    assert!(partial(&bench).is_none());
    stop_after(&bench, 100, &options());
    assert!(partial(&bench).is_some());
    let summary = resume(&bench, options()).unwrap();
    assert!(summary.parts_resumed > 3);
    assert_eq!(bench.names(), ["in", "out"]);
}

#[test]
fn a_pack_without_resume_removes_what_was_left() {
    let bench = bench();
    stop_after(&bench, 100, &options());
    let left = partial(&bench).unwrap();
    let summary = bench.pack_with(&PackOptions { resume: false, ..options() }).unwrap();
    assert_eq!((summary.parts_resumed, summary.cleaned.len()), (0, 1));
    assert!(!left.exists());
}

#[test]
fn a_damaged_part_is_not_reused() {
    let bench = bench();
    stop_after(&bench, 100, &options());
    let part = partial(&bench).unwrap().join("part-00002.arrow");
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let summary = resume(&bench, options()).unwrap();
    assert_eq!(summary.parts_resumed, 2);
    assert!(summary.notes[0].contains("part-00002.arrow: its checksum"), "{:?}", summary.notes);
    assert!(meetpoint_datasets::verify(&bench.to(), &mut |_| ()).unwrap().is_sound());
}

#[test]
fn a_journal_that_ends_in_the_middle_of_a_line_loses_that_line_alone() {
    let bench = bench();
    stop_after(&bench, 100, &options());
    let journal = partial(&bench).unwrap().join("journal.jsonl");
    let text = std::fs::read(&journal).unwrap();
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    std::fs::write(&journal, &text[..text.len() - 3]).unwrap();
    // The first line identifies the job, and the last one is incomplete.
    assert_eq!(resume(&bench, options()).unwrap().parts_resumed, lines - 2);
}

#[test]
fn a_pack_with_other_options_or_another_source_does_not_resume() {
    let bench = bench();
    stop_after(&bench, 100, &options());
    let compact = JpegOptions { form: Form::Compact, ..JpegOptions::default() };
    let error = resume(&bench, PackOptions { jpeg: compact, ..options() })
        .unwrap_err()
        .in_full(Surface::CommandLine);
    assert!(error.contains("--form was \"jpeg\", is \"compact\" now"), "{error}");
    assert!(error.contains("without --resume"), "{error}");
    bench.put("class0/another.jpg", &jpeg(9, 9, 9));
    let error = resume(&bench, options()).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("files of the source"), "{error}");
    assert!(partial(&bench).is_some(), "a refusal removes nothing");
}

#[test]
fn a_pack_with_nothing_to_resume_begins() {
    let bench = bench();
    assert_eq!(resume(&bench, options()).unwrap().parts_resumed, 0);
}

#[test]
fn leftovers_with_a_foreign_file_or_without_a_journal_are_refused_and_stay() {
    let bench = bench();
    stop_after(&bench, 100, &options());
    let place = partial(&bench).unwrap();
    let strange = place.join("notes.txt");
    std::fs::write(&strange, "mine").unwrap();
    let error = resume(&bench, options()).unwrap_err();
    assert!(
        matches!(&error, Error::ResumeForeign { entry, path }
            if entry == "notes.txt" && path.display().to_string().contains(".partial-")),
        "{error:?}"
    );
    // A pack that cannot resume leaves it there, and reports it.
    let summary = bench.pack_with(&PackOptions { resume: false, ..options() }).unwrap();
    assert!(
        summary.notes[0].contains("is not removed: it contains notes.txt"),
        "{:?}",
        summary.notes
    );
    std::fs::remove_dir_all(bench.to()).unwrap();
    std::fs::remove_file(&strange).unwrap();
    std::fs::write(place.join("journal.jsonl"), "{}\n").unwrap();
    let error = resume(&bench, options()).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("its journal cannot be read"), "{error}");
    assert!(place.join("part-00000.arrow").exists(), "a refusal removes nothing");
}

#[test]
fn only_one_pack_at_a_time_may_resume_a_destination() {
    let bench = bench();
    let mut refused = Vec::new();
    let beside = |refused: &mut Vec<String>| {
        refused.push(bench.pack_with(&options()).unwrap_err().in_full(Surface::CommandLine));
    };
    // With nothing to resume, and with something.
    pack(&bench.from(), &bench.to(), &options(), &mut |step| {
        if step.samples_done == 60 {
            beside(&mut refused);
        }
    })
    .unwrap();
    std::fs::remove_dir_all(bench.to()).unwrap();
    stop_after(&bench, 100, &options());
    pack(&bench.from(), &bench.to(), &options(), &mut |step| {
        if step.samples_done == 120 {
            beside(&mut refused);
        }
    })
    .unwrap();
    assert_eq!(refused.len(), 2);
    for error in refused {
        assert!(error.contains("written by another process") && error.contains("partial-0-0"));
    }
    assert_eq!(bench.names(), ["in", "out"]);
}
