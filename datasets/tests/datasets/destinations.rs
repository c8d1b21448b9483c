//! Destinations of datasets: nothing incomplete, nothing lost, no foreign file removed.

use crate::support::{Bench, jpeg};
use meetpoint_datasets::{Error, PackOptions, pack};
use meetpoint_diagnose::{Diagnose, Surface};
use rustix::fs::{FlockOperation, flock};
use std::path::Path;

fn force() -> PackOptions {
    PackOptions { force: true, ..PackOptions::default() }
}

#[test]
fn a_dataset_is_replaced_only_by_force() {
    let bench = Bench::with_images(&["a.jpg"]);
    assert!(!bench.pack().unwrap().replaced);
    bench.put("b.jpg", &jpeg(9, 9, 9));
    assert!(matches!(bench.pack(), Err(Error::Exists { .. })));
    assert_eq!(bench.dataset().len(), 1);
    assert!(bench.pack_with(&force()).unwrap().replaced);
    assert_eq!(bench.dataset().len(), 2);
    assert_eq!(bench.names(), ["in", "out"]);
}

#[test]
fn a_replacement_that_fails_leaves_the_old_dataset() {
    let bench = Bench::with_images(&["a.jpg"]);
    bench.pack().unwrap();
    bench.put("b.jpg", b"broken");
    assert!(matches!(bench.pack_with(&force()), Err(Error::Unreadable { .. })));
    assert_eq!(bench.keys(), ["a.jpg"]);
    assert_eq!(bench.names(), ["in", "out"]);
}

#[test]
fn force_does_not_replace_a_folder_that_is_not_a_dataset() {
    let bench = Bench::with_images(&["a.jpg"]);
    std::fs::create_dir(bench.to()).unwrap();
    std::fs::write(bench.to().join("thesis.tex"), "years of work").unwrap();
    let error = bench.pack_with(&force()).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("it contains thesis.tex"), "{error}");
    assert!(bench.to().join("thesis.tex").exists());
    std::fs::remove_dir_all(bench.to()).unwrap();
    std::fs::write(bench.to(), "a file").unwrap();
    assert!(matches!(bench.pack_with(&force()), Err(Error::NotReplaced { .. })));
    assert_eq!(std::fs::read(bench.to()).unwrap(), b"a file");
}

#[test]
fn source_and_destination_may_not_contain_one_another() {
    let bench = Bench::with_images(&["cat/a.jpg"]);
    let refused = |from: &Path, to: &Path| {
        let result = pack(from, to, &force(), &mut |_| ());
        assert!(matches!(result, Err(Error::Overlap { .. })), "{result:?}");
    };
    refused(&bench.from(), &bench.from());
    refused(&bench.from(), &bench.from().join("out"));
    refused(&bench.from(), &bench.from().join("cat/../cat"));
    refused(&bench.from().join("cat"), &bench.from());
    assert!(bench.from().join("cat/a.jpg").exists());
}

#[test]
fn a_destination_without_a_folder_around_it_says_so() {
    let bench = Bench::with_images(&["a.jpg"]);
    let to = bench.path().join("not/there");
    let error = pack(&bench.from(), &to, &force(), &mut |_| ()).unwrap_err();
    let is_absent = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
    assert!(
        matches!(&error, Error::Write { path, source } if *path == to && is_absent(source)),
        "{error:?}"
    );
}

#[test]
fn a_link_to_a_dataset_stays_a_link_when_it_is_replaced() {
    let bench = Bench::with_images(&["a.jpg"]);
    bench.pack().unwrap();
    let link = bench.path().join("link");
    std::os::unix::fs::symlink(bench.to(), &link).unwrap();
    bench.put("b.jpg", &jpeg(9, 9, 9));
    assert!(pack(&bench.from(), &link, &force(), &mut |_| ()).unwrap().replaced);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(bench.dataset().len(), 2);
}

#[test]
fn remains_of_killed_packs_are_removed_and_named() {
    let bench = Bench::with_images(&["a.jpg"]);
    let remain = |name: &str, file: &str| {
        let path = bench.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join(file), "half").unwrap();
        path
    };
    let dead = remain("out.partial-4711-0", "part-00000.arrow");
    let living = remain("out.partial-4711-1", "part-00000.arrow");
    let foreign = remain("out.partial-4711-2", "thesis.tex");
    let other = remain("outer.partial-4711-0", "part-00000.arrow");
    let named_alike = remain("out.partial-old", "part-00000.arrow");
    let lock = std::fs::File::open(&living).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let summary = bench.pack().unwrap();
    assert_eq!(summary.cleaned, [dead.canonicalize().unwrap_or(dead.clone())]);
    assert!(!dead.exists());
    assert!([living, foreign, other, named_alike].iter().all(|path| path.exists()));
}

#[test]
fn remains_of_a_killed_pack_do_not_open_as_a_dataset() {
    let bench = Bench::with_images(&["a.jpg", "b.jpg"]);
    let mut seen = Vec::new();
    pack(&bench.from(), &bench.to(), &PackOptions::default(), &mut |_| {
        let names = bench.names();
        let partial =
            names.iter().find(|name| name.contains(".partial-")).expect("it writes there");
        let opened = meetpoint_prepare::Dataset::open(&bench.path().join(partial));
        seen.push(opened.unwrap_err().in_full(Surface::CommandLine));
        assert!(!bench.to().exists());
    })
    .unwrap();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|error| error.contains("holds no dataset.json")));
}
