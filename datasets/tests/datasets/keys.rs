//! Finding samples by key: with an index, without one, and with one that is damaged.

use crate::support::Bench;
use meetpoint_datasets::index::{check_keys, index_keys};
use meetpoint_datasets::verify;
use meetpoint_diagnose::{Command, Diagnose, Remedy, Surface};
use meetpoint_format::key_index::KEY_INDEX_NAME;
use meetpoint_prepare::{Error, KeyLookup};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

fn bench() -> Bench {
    let names: Vec<String> = (0..20).map(|n| format!("c{}/picture {n}.jpg", n % 3)).collect();
    let bench = Bench::with_images(&names.iter().map(String::as_str).collect::<Vec<_>>());
    bench.pack().unwrap();
    let _ = std::fs::remove_file(keys_of(&bench));
    bench
}

fn keys_of(bench: &Bench) -> PathBuf {
    bench.to().join(KEY_INDEX_NAME)
}

fn index(bench: &Bench) -> u64 {
    index_keys(&bench.to(), &AtomicBool::new(false), &mut |_| ()).unwrap().keys
}

#[test]
fn with_and_without_an_index_every_key_is_found_and_no_other() {
    let bench = bench();
    for is_indexed in [false, true] {
        if is_indexed {
            assert_eq!(index(&bench), 20);
        }
        let dataset = bench.dataset();
        assert_eq!(matches!(dataset.key_lookup(), KeyLookup::Index { .. }), is_indexed);
        assert_eq!(dataset.key_lookup() == KeyLookup::Scan, !is_indexed);
        for (sample, key) in (0..).zip(bench.keys()) {
            assert_eq!(dataset.find(&key).unwrap(), Some(sample));
        }
        assert_eq!(dataset.find("c0/picture 0.png").unwrap(), None);
    }
    assert_eq!(check_keys(&bench.dataset()).unwrap(), None);
    let mut names = crate::support::names(&bench.to());
    names.retain(|name| !name.starts_with("part-"));
    assert_eq!(names, ["dataset.json", "keys.idx"]);
}

#[test]
fn a_damaged_index_is_an_error_and_never_a_key_that_is_not_there() {
    let bench = bench();
    index(&bench);
    let sound = std::fs::read(keys_of(&bench)).unwrap();
    for byte in (0..sound.len()).step_by(37) {
        let mut bytes = sound.clone();
        bytes[byte] ^= 0x10;
        std::fs::write(keys_of(&bench), bytes).unwrap();
        let dataset = bench.dataset();
        let error = dataset.find(&bench.keys()[3]).unwrap_err();
        assert!(matches!(&error, Error::KeyIndex { .. }), "{error}");
        assert_eq!(error.remedy(), Some(Remedy::run(Command::IndexKeys)));
        assert!(check_keys(&dataset).unwrap().is_some());
    }
    index(&bench);
    assert_eq!(std::fs::read(keys_of(&bench)).unwrap(), sound);
}

#[test]
fn an_index_of_another_dataset_is_not_used() {
    let (bench, other) = (bench(), bench());
    index(&bench);
    other.falsify(|manifest| manifest.provenance.tool = "another".to_owned());
    assert_eq!(other.dataset().key_lookup(), KeyLookup::Scan);
    std::fs::copy(keys_of(&bench), keys_of(&other)).unwrap();
    let said = other.dataset().find("x").unwrap_err().in_full(Surface::CommandLine);
    assert!(said.contains("another dataset.json"), "{said}");
    assert!(matches!(other.dataset().key_lookup(), KeyLookup::Unusable { .. }));
}

#[test]
fn a_dataset_with_an_index_of_keys_can_be_replaced() {
    let bench = bench();
    index(&bench);
    std::fs::write(bench.to().join(".keys.idx.partial-77"), "cut").unwrap();
    let options = meetpoint_datasets::PackOptions { force: true, ..Default::default() };
    assert!(bench.pack_with(&options).unwrap().replaced);
}

#[test]
fn an_index_that_is_no_file_is_a_problem_of_its_own_with_a_remedy() {
    let bench = bench();
    let keys = keys_of(&bench);
    let put: [&dyn Fn(); 3] = [
        &|| mknodat(CWD, &keys, FileType::Fifo, Mode::RWXU, 0).unwrap(),
        &|| std::os::unix::fs::symlink(&keys, &keys).unwrap(),
        &|| std::os::unix::fs::symlink("/dev/zero", &keys).unwrap(),
    ];
    for put in put {
        put();
        let report = verify(&bench.to(), &mut |_| ()).unwrap();
        let files: Vec<&str> = report.problems.iter().map(|found| found.file.as_str()).collect();
        assert_eq!((files, report.parts), (vec![KEY_INDEX_NAME], 1));
        assert_eq!(index(&bench), 20);
        assert!(verify(&bench.to(), &mut |_| ()).unwrap().is_sound());
        std::fs::remove_file(&keys).unwrap();
    }
}
