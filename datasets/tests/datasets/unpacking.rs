//! Where files are written, what is refused, and the effect of damaged or hostile datasets.

use crate::support::{Bench, files, names};
use meetpoint_datasets::{Error, OnError, UnpackOptions, unpack};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::dataset::{Row, Stored};
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn packed() -> Bench {
    let bench = Bench::with_images(&["cat/a.jpg", "cat/deep/b.jpg", "dog/c.jpg"]);
    bench.pack().unwrap();
    bench
}

fn force() -> UnpackOptions {
    UnpackOptions { force: true, ..UnpackOptions::default() }
}

fn skip() -> UnpackOptions {
    UnpackOptions { on_error: OnError::Skip, ..UnpackOptions::default() }
}

/// Flips a bit in the image of a sample.
fn damage(bench: &Bench, sample: u64) {
    let dataset = bench.dataset();
    let location = dataset.locate(sample).unwrap();
    let path = dataset.part_path(location.part);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(location.offset).unwrap() + 20] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_folder_that_is_not_empty_is_only_replaced_on_request() {
    let bench = packed();
    std::fs::create_dir(bench.back()).unwrap();
    assert!(bench.unpack().unwrap().replaced, "an empty folder is as good as none");
    let error = bench.unpack().unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("back exists") && error.contains("--force"), "{error}");
    std::fs::write(bench.back().join("cat/a.jpg"), "changed").unwrap();
    assert!(bench.unpack_with(&force()).unwrap().replaced);
    assert!(files(&bench.back()) == files(&bench.from()));
    assert_eq!(bench.names(), ["back", "in", "out"]);
}

#[test]
fn force_does_not_replace_a_folder_with_anything_foreign_in_it() {
    type Put = fn(&std::path::Path);
    let puts: [(&str, Put); 5] = [
        ("thesis.tex", |back| std::fs::write(back.join("thesis.tex"), "years").unwrap()),
        ("cat/z.jpg", |back| std::fs::write(back.join("cat/z.jpg"), "another").unwrap()),
        ("bird", |back| std::fs::create_dir(back.join("bird")).unwrap()),
        ("dog/c.jpg", |back| {
            std::fs::remove_file(back.join("dog/c.jpg")).unwrap();
            symlink("/etc/passwd", back.join("dog/c.jpg")).unwrap();
        }),
        ("one itself", |back| {
            std::fs::remove_dir_all(back).unwrap();
            std::fs::write(back, "a file").unwrap();
        }),
    ];
    for (words, put) in puts {
        let bench = packed();
        bench.unpack().unwrap();
        put(&bench.back());
        let error = bench.unpack_with(&force()).unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error} does not say {words}");
        assert_eq!(bench.names(), ["back", "in", "out"]);
    }
}

#[test]
fn damaged_samples_fail_an_unpack_that_names_them_all_and_writes_nothing() {
    let bench = packed();
    damage(&bench, 0);
    damage(&bench, 2);
    let Error::Damaged { samples, checked, remedy } = bench.unpack().unwrap_err() else {
        panic!("another error")
    };
    let remedy = remedy.spelled(Surface::CommandLine);
    assert!(remedy.starts_with("restore the dataset, or leave these"), "{remedy}");
    let listed: Vec<_> = samples.iter().map(|sample| sample.path.as_str()).collect();
    assert_eq!((listed, checked), (vec!["cat/a.jpg", "dog/c.jpg"], 3));
    assert!(samples[0].reason.to_string().contains("checksum"), "{samples:?}");
    assert_eq!(bench.names(), ["in", "out"]);
}

#[test]
fn damaged_samples_can_be_left_out_and_are_named() {
    let bench = packed();
    damage(&bench, 1);
    let summary = bench.unpack_with(&skip()).unwrap();
    assert_eq!((summary.files, summary.damaged.len()), (2, 1));
    assert_eq!(summary.damaged[0].path, "cat/deep/b.jpg");
    assert!(!bench.back().join("cat/deep/b.jpg").exists());
    assert!(bench.back().join("dog/c.jpg").exists());
}

#[test]
fn hostile_keys_are_named_and_write_nothing_outside() {
    let keys = ["../out-of-it", "/tmp/absolute", "a/../../b", "a//b", ".", "a\0b", "good/one"];
    let row = |key: &str| Row {
        key: key.to_owned(),
        image: key.as_bytes().to_vec(),
        label: None,
        entry_points: None,
        extra: None,
    };
    let bench = Bench::new();
    bench.write_dataset(&keys.map(row), Stored::default());
    let Error::Damaged { samples, remedy, .. } = bench.unpack().unwrap_err() else {
        panic!("another error")
    };
    let remedy = remedy.spelled(Surface::CommandLine);
    assert!(remedy.contains("with --to") && !remedy.contains("restore"), "{remedy}");
    assert_eq!(samples.len(), 6);
    assert_eq!(bench.names(), ["in", "out"]);
    let summary = bench.unpack_with(&skip()).unwrap();
    assert_eq!((summary.samples, summary.damaged.len()), (1, 6));
    assert_eq!(bench.names(), ["back", "in", "out"]);
    // The table says that `good` is not a label.
    let written = files(&bench.back());
    assert_eq!(written.keys().collect::<Vec<_>>(), ["good/one", "metadata.jsonl"]);
}

#[test]
fn keys_that_clash_are_named() {
    let row = |key: &str| Row {
        key: key.to_owned(),
        image: key.as_bytes().to_vec(),
        label: None,
        entry_points: None,
        extra: None,
    };
    for keys in [["a", "a"], ["a", "a/b"], ["a/b", "a"]] {
        let bench = Bench::new();
        bench.write_dataset(&keys.map(row), Stored::default());
        let error = bench.unpack().unwrap_err().in_full(Surface::CommandLine);
        assert!(error.contains("1 of 2") && error.contains("occurs twice"), "{keys:?}: {error}");
        assert_eq!(bench.names(), ["in", "out"]);
    }
}

#[test]
fn dataset_and_destination_may_not_contain_one_another() {
    let bench = packed();
    for to in [bench.to(), bench.to().join("back"), bench.path().to_path_buf()] {
        let unpacked = unpack(&bench.to(), &to, &force(), &mut |_| ());
        assert!(matches!(unpacked, Err(Error::Overlap { .. })), "{unpacked:?}");
    }
}

#[test]
fn an_unpack_that_is_stopped_leaves_nothing() {
    let bench = packed();
    let stop = Arc::new(AtomicBool::new(true));
    let options = UnpackOptions { stop, ..UnpackOptions::default() };
    assert!(matches!(bench.unpack_with(&options), Err(Error::Interrupted)));
    assert_eq!(bench.names(), ["in", "out"]);
}

#[test]
fn remains_of_killed_unpacks_are_removed_and_foreign_folders_stay() {
    let bench = packed();
    let remain = |name: &str, entries: &[&str]| {
        let path = bench.path().join(name);
        for entry in entries {
            let entry = path.join(entry);
            std::fs::create_dir_all(entry.parent().unwrap()).unwrap();
            std::fs::write(entry, "half").unwrap();
        }
        path
    };
    let dead = remain("back.partial-4711-0", &["unpacking", "files/cat/a.jpg"]);
    let foreign = remain("back.partial-4711-1", &["files/cat/a.jpg"]);
    let other = remain("back.partial-4711-2", &["unpacking", "thesis.tex"]);
    let summary = bench.unpack().unwrap();
    assert_eq!(summary.cleaned, [dead.canonicalize().unwrap_or(dead.clone())]);
    assert!(!dead.exists() && foreign.exists() && other.exists());
}

#[test]
fn an_unpack_writes_beside_its_destination_until_it_is_done() {
    let bench = packed();
    let mut seen = 0;
    unpack(&bench.to(), &bench.back(), &UnpackOptions::default(), &mut |_| {
        let partial = bench.names().into_iter().find(|name| name.contains(".partial-"));
        assert!(partial.is_some() && !bench.back().exists());
        seen += 1;
    })
    .unwrap();
    assert_eq!(seen, 4);
    assert_eq!(names(&bench.back()), ["cat", "dog"]);
}

#[test]
fn a_folder_that_is_not_a_dataset_is_an_error() {
    let bench = packed();
    let error = unpack(&bench.from(), &bench.back(), &force(), &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("holds no dataset.json"), "{error}");
}

#[test]
fn files_of_keys_without_extension_get_that_of_their_content() {
    let bench = Bench::new();
    let row = |(key, image): (&str, Vec<u8>)| Row {
        key: key.to_owned(),
        image,
        label: None,
        entry_points: None,
        extra: None,
    };
    let jpeg = crate::support::jpeg(9, 7, 1);
    let png = crate::support::picture(image::ImageFormat::Png);
    let keys = [("0001", jpeg.clone()), ("v1.25", png.clone()), ("c.jpeg", jpeg.clone())];
    bench.write_dataset(&keys.map(row), Stored::default());
    let summary = bench.unpack().unwrap();
    assert!(summary.notes[0].starts_with("2 keys have no extension"), "{:?}", summary.notes);
    let written = files(&bench.back());
    let names: Vec<_> = written.keys().map(String::as_str).collect();
    assert_eq!(names, ["0001.jpg", "c.jpeg", "metadata.jsonl", "v1.25.png"]);
    assert_eq!((&written["0001.jpg"], &written["v1.25.png"]), (&jpeg, &png));
    let again = Bench::new();
    let options = meetpoint_datasets::PackOptions::default();
    meetpoint_datasets::pack(&bench.back(), &again.to(), &options, &mut |_| ()).unwrap();
    assert_eq!(again.keys(), ["0001", "v1.25", "c.jpeg"]);
    assert!(again.dataset().columns().extra.fields().is_empty());
    // The output may be replaced, since all names are those of the keys.
    assert!(bench.unpack_with(&force()).unwrap().replaced);
}
