//! The packed files of a folder, their order and labels.

use crate::support::{Bench, golden, jpeg, picture, tiff};
use image::ImageFormat;
use meetpoint_datasets::source::{self, SourceOptions};
use meetpoint_datasets::{Error, OnError, PackOptions, pack};
use meetpoint_diagnose::{Diagnose, Surface};
use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

#[test]
fn class_folders_are_labels_in_natural_order() {
    let bench = Bench::with_images(&[
        "class10/a.jpg",
        "class2/b10.jpg",
        "class2/b9.jpg",
        "Class1/deep/er/c.JPEG",
    ]);
    let summary = bench.pack().unwrap();
    assert_eq!(summary.labels, ["Class1", "class2", "class10"]);
    assert_eq!(
        bench.keys(),
        ["Class1/deep/er/c.JPEG", "class2/b9.jpg", "class2/b10.jpg", "class10/a.jpg"]
    );
    let dataset = bench.dataset();
    let labels: Vec<_> = (0..4).map(|sample| dataset.locate(sample).unwrap().label).collect();
    assert_eq!(labels, [Some(0), Some(1), Some(1), Some(2)]);
    assert_eq!(dataset.manifest().labels, summary.labels);
}

#[test]
fn a_flat_folder_has_no_labels() {
    let bench = Bench::with_images(&["10.jpg", "9.jpg", "B.jpg", "a.jpg"]);
    let summary = bench.pack().unwrap();
    assert_eq!(bench.keys(), ["9.jpg", "10.jpg", "a.jpg", "B.jpg"]);
    assert_eq!((summary.labels.len(), summary.samples), (0, 4));
    assert!((0..4).all(|sample| bench.dataset().locate(sample).unwrap().label.is_none()));
}

#[test]
fn every_image_comes_back_byte_for_byte() {
    let bench = Bench::with_images(&["a.jpg", "b.jpg", "c.jpg"]);
    for (name, format) in [
        ("d.png", ImageFormat::Png),
        ("e.webp", ImageFormat::WebP),
        ("f.bmp", ImageFormat::Bmp),
        ("g.gif", ImageFormat::Gif),
    ] {
        bench.put(name, &picture(format));
    }
    bench.put("h.tiff", &tiff());
    bench.pack().unwrap();
    let dataset = bench.dataset();
    assert_eq!(dataset.len(), 8);
    for (sample, key) in bench.keys().iter().enumerate() {
        let packed = dataset.read_sample(sample as u64).unwrap();
        assert!(packed == std::fs::read(bench.from().join(key)).unwrap(), "{key} differs");
        assert_eq!(dataset.find(key).unwrap(), Some(sample as u64));
    }
}

#[test]
fn images_at_the_top_and_in_folders_are_refused() {
    Bench::with_images(&["a.jpg", "cat/b.jpg"]).refuses("at the top (a.jpg) and in sub-folders");
}

#[test]
fn a_class_without_images_is_refused() {
    let bench = Bench::with_images(&["cat/a.jpg"]);
    bench.put("dog/notes.txt", b"no picture");
    bench.refuses("class sub-folder dog");
}

#[test]
fn folders_without_images_do_not_disturb_a_flat_folder() {
    let bench = Bench::with_images(&["a.jpg"]);
    bench.put("about/notes.txt", b"no picture");
    let summary = bench.pack().unwrap();
    assert_eq!((summary.samples, summary.not_samples[0].path.as_str()), (1, "about/notes.txt"));
}

#[test]
fn a_source_without_images_is_refused() {
    Bench::new().refuses("no images in");
    let bench = Bench::new();
    bench.put("README", b"text");
    bench.refuses("(1 other files)");
}

#[test]
fn a_source_that_is_missing_or_a_file_is_refused() {
    let bench = Bench::with_images(&["a.jpg"]);
    let pack = |from: &str| {
        let from = bench.from().join(from);
        pack(&from, &bench.to(), &Default::default(), &mut |_| ())
            .unwrap_err()
            .in_full(Surface::CommandLine)
    };
    assert!(pack("nothing").contains("nothing: No such file"));
    assert!(pack("a.jpg").contains("cannot determine the format of"));
}

#[test]
fn names_that_are_not_utf_8_are_all_named_and_can_be_left_out() {
    let bench = Bench::with_images(&["cat/a.jpg", "dog/b.jpg"]);
    bench.put("dog/broken.jpg", b"no picture");
    let put = |name: &[u8], bytes: &[u8]| {
        let path = bench.from().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    put(b"cat/caf\xe9.jpg", &jpeg(8, 8, 1));
    put(b"cat/\xff\xfe", &jpeg(8, 8, 2));
    put(b"f\xf6lder/c.jpg", &jpeg(8, 8, 3));
    put(b"f\xf6lder/notes.txt", b"text");
    bench.refuses("4 of 6 samples cannot be read");
    let error = bench.pack().unwrap_err().in_full(Surface::CommandLine);
    let names = [r"cat/caf\xE9.jpg", r"cat/\xFF\xFE", r"f\xF6lder/c.jpg", "dog/broken.jpg"];
    for words in names.into_iter().chain(["not UTF-8", "rename", "--on-error skip"]) {
        assert!(error.contains(words), "{error:?} does not say {words:?}");
    }
    let options = PackOptions { on_error: OnError::Skip, ..PackOptions::default() };
    let summary = bench.pack_with(&options).unwrap();
    let left: BTreeSet<_> = summary.unreadable.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(left, names.into());
    assert_eq!(bench.keys(), ["cat/a.jpg", "dog/b.jpg"]);
    assert_eq!(bench.dataset().manifest().provenance.skipped, 4);
    assert_eq!(summary.not_samples[0].path, r"f\xF6lder/notes.txt");
}

#[test]
fn a_source_of_nothing_but_names_that_are_not_utf_8_names_them() {
    let bench = Bench::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.jpg");
    std::fs::write(bench.from().join(name), jpeg(8, 8, 1)).unwrap();
    bench.refuses(r"caf\xE9.jpg: its name is not UTF-8");
}

#[test]
fn hidden_and_side_files_are_counted_and_other_files_are_named() {
    let bench = Bench::with_images(&["a/1.jpg"]);
    bench.put(".DS_Store", b"x");
    bench.put("a/Thumbs.db", b"x");
    bench.put("a/._1.jpg", b"x");
    bench.put(".git/config", b"x");
    bench.put("README.md", b"text");
    bench.put("a/labels.csv", b"text");
    let summary = bench.pack().unwrap();
    assert_eq!((summary.samples, summary.ignored), (1, 4));
    let names: Vec<_> = summary.not_samples.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names, ["a/labels.csv", "README.md"]);
}

#[test]
fn an_image_is_known_by_its_content_where_its_name_says_nothing() {
    let bench = Bench::with_images(&["first", "second.data"]);
    bench.put("third.txt", &picture(ImageFormat::Png));
    assert_eq!(bench.pack().unwrap().samples, 3);
}

fn following_links() -> PackOptions {
    let source = SourceOptions { follow_links: true, ..SourceOptions::default() };
    PackOptions { source, ..PackOptions::default() }
}

#[test]
fn links_are_followed_where_that_is_allowed_but_not_in_circles() {
    let bench = Bench::with_images(&["cat/a.jpg"]);
    let outside = Bench::with_images(&["b.jpg"]);
    symlink(bench.from(), bench.from().join("cat/loop")).unwrap();
    symlink(outside.from(), bench.from().join("dog")).unwrap();
    symlink("nowhere", bench.from().join("cat/notes")).unwrap();
    let summary = bench.pack_with(&following_links()).unwrap();
    assert_eq!(bench.keys(), ["cat/a.jpg", "dog/b.jpg"]);
    let left: Vec<_> = summary.not_samples.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(left, ["cat/loop", "cat/notes"]);
}

#[test]
fn links_that_lead_out_of_the_source_do_not_read() {
    let bench = Bench::with_images(&["cat/a.jpg"]);
    let outside = Bench::with_images(&["b.jpg"]);
    symlink(outside.from(), bench.from().join("dog")).unwrap();
    symlink(outside.from().join("b.jpg"), bench.from().join("cat/b.jpg")).unwrap();
    symlink("a.jpg", bench.from().join("cat/c.jpg")).unwrap();
    symlink(bench.from().join("cat"), bench.from().join("lynx")).unwrap();
    let Err(Error::Unreadable { files, .. }) = bench.pack() else { panic!("it was packed") };
    let refused: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(refused, ["cat/b.jpg", "dog", "lynx/b.jpg"]);
    assert!(
        files.iter().all(|file| file.reason.to_string().contains("--follow-links")),
        "{files:?}"
    );
    let options = PackOptions { on_error: OnError::Skip, ..PackOptions::default() };
    let summary = bench.pack_with(&options).unwrap();
    assert_eq!(bench.keys(), ["cat/a.jpg", "cat/c.jpg", "lynx/a.jpg", "lynx/c.jpg"]);
    assert_eq!((summary.unreadable, summary.labels), (files, vec!["cat".into(), "lynx".into()]));
}

#[test]
fn a_row_of_a_table_does_not_lead_out_of_its_folder() {
    let bench = Bench::with_images(&["a.jpg"]);
    let outside = Bench::with_images(&["b.jpg"]);
    symlink(outside.from(), bench.from().join("dog")).unwrap();
    symlink(outside.from().join("b.jpg"), bench.from().join("b.jpg")).unwrap();
    bench.put("metadata.csv", b"file_name\na.jpg\nb.jpg\ndog/b.jpg\n../in/a.jpg\n/etc/passwd\n");
    let Err(Error::Unreadable { files, .. }) = bench.pack() else { panic!("it was packed") };
    assert_eq!(files.len(), 4, "{files:?}");
    bench.put("metadata.csv", b"file_name\na.jpg\nb.jpg\ndog/b.jpg\n");
    assert_eq!(bench.pack_with(&following_links()).unwrap().samples, 3);
}

#[test]
fn a_table_that_is_a_link_out_of_its_folder_is_refused_unless_it_is_named() {
    let bench = Bench::with_images(&["a.jpg"]);
    let table = bench.path().join("table.csv");
    std::fs::write(&table, "file_name,label\na.jpg,x\n").unwrap();
    let link = bench.from().join("metadata.csv");
    symlink(&table, &link).unwrap();
    assert!(matches!(bench.pack(), Err(Error::LinkLeadsOut { .. })));
    let source = SourceOptions { table: Some(link), ..SourceOptions::default() };
    let summary = bench.pack_with(&PackOptions { source, ..PackOptions::default() }).unwrap();
    assert_eq!(summary.labels, ["x"]);
}

#[test]
fn a_shard_that_is_a_link_out_of_its_folder_is_refused() {
    let shard = golden().join("sources/wds-000.tar");
    for name in ["a.tar", "b.parquet", "c.tfrecord"] {
        let bench = Bench::new();
        symlink(&shard, bench.from().join(name)).unwrap();
        let Err(Error::LinkLeadsOut { link, .. }) = bench.pack() else { panic!("{name}") };
        assert_eq!(link, bench.from().join(name));
    }
    let bench = Bench::new();
    symlink(&shard, bench.from().join("a.tar")).unwrap();
    assert!(bench.pack_with(&following_links()).is_ok());
}

#[test]
fn a_path_that_is_too_long_is_one_file_that_does_not_read() {
    let bench = Bench::with_images(&["cat/a.jpg"]);
    // Each folder is created relative to its parent, since a path of this length cannot be opened.
    let mut folder = File::open(bench.from().join("cat")).unwrap();
    for _ in 0..17 {
        let name = "d".repeat(250);
        mkdirat(&folder, &name, Mode::RWXU).unwrap();
        folder = File::from(openat(&folder, &name, OFlags::DIRECTORY, Mode::empty()).unwrap());
    }
    let options = PackOptions { on_error: OnError::Skip, ..PackOptions::default() };
    let summary = bench.pack_with(&options).unwrap();
    assert_eq!((summary.samples, summary.unreadable.len()), (1, 1));
    assert!(summary.unreadable[0].path.starts_with("cat/ddd"));
    assert!(summary.unreadable[0].to_string().len() < 1000, "{}", summary.unreadable[0]);
}

#[test]
fn a_pipe_among_the_files_is_not_waited_for() {
    let bench = Bench::with_images(&["a.jpg"]);
    let pipe = |name: &str| {
        let kind = FileType::Fifo;
        mknodat(CWD, bench.from().join(name), kind, Mode::RWXU, 0).unwrap();
    };
    pipe("b.jpg");
    let summary = bench.pack().unwrap();
    assert_eq!((summary.samples, summary.not_samples[0].path.as_str()), (1, "b.jpg"));
    pipe("metadata.csv");
    pipe("labels.json");
    let from = Some("folder".to_owned());
    let options = PackOptions { from, force: true, ..PackOptions::default() };
    assert_eq!(bench.pack_with(&options).unwrap().samples, 1);
    for (kind, name) in [("table", "metadata.csv"), ("tar", "labels.json")] {
        let path = bench.from().join(name);
        let error = source::open(&path, Some(kind), &SourceOptions::default()).err().unwrap();
        assert!(matches!(error, Error::Source { .. }), "{error}");
    }
}

#[test]
fn a_link_with_the_name_of_an_image_that_leads_nowhere_is_unreadable() {
    let bench = Bench::with_images(&["a.jpg"]);
    symlink("nowhere", bench.from().join("b.jpg")).unwrap();
    bench.refuses("b.jpg: No such file");
}
