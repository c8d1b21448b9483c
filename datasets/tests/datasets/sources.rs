//! Which files of a folder are packed, in which order, with which label.

use crate::support::{Bench, jpeg, picture};
use image::ImageFormat;
use meetpoint_datasets::{OnError, PackOptions, pack};
use std::collections::BTreeSet;
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
        ("h.tiff", ImageFormat::Tiff),
    ] {
        bench.put(name, &picture(format));
    }
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
        pack(&from, &bench.to(), &Default::default(), &mut |_| ()).unwrap_err().to_string()
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
    bench.refuses("4 of 6 samples do not read");
    let error = bench.pack().unwrap_err().to_string();
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

#[test]
fn links_are_followed_but_not_in_circles() {
    let bench = Bench::with_images(&["cat/a.jpg"]);
    let outside = Bench::with_images(&["b.jpg"]);
    symlink(bench.from(), bench.from().join("cat/loop")).unwrap();
    symlink(outside.from(), bench.from().join("dog")).unwrap();
    symlink("nowhere", bench.from().join("cat/notes")).unwrap();
    let summary = bench.pack().unwrap();
    assert_eq!(bench.keys(), ["cat/a.jpg", "dog/b.jpg"]);
    let left: Vec<_> = summary.not_samples.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(left, ["cat/loop", "cat/notes"]);
}

#[test]
fn a_link_with_the_name_of_an_image_that_leads_nowhere_is_unreadable() {
    let bench = Bench::with_images(&["a.jpg"]);
    symlink("nowhere", bench.from().join("b.jpg")).unwrap();
    bench.refuses("b.jpg: No such file");
}
