//! The summary of a dataset by `inspect`.

use crate::support::{Bench, jpeg, picture};
use meetpoint_datasets::{Check, Error, PackOptions, inspect, verify};
use meetpoint_diagnose::{Command, Diagnose, Remedy, Surface};
use meetpoint_format::dataset::{DatasetError, MANIFEST_NAME};

#[test]
fn counts_labels_formats_and_dimensions_are_reported() {
    let bench = Bench::new();
    bench.put("cat/a.jpg", &jpeg(400, 300, 1));
    bench.put("cat/b.jpg", &jpeg(10, 20, 2));
    bench.put("dog/c.png", &picture(image::ImageFormat::Png));
    bench.pack().unwrap();
    let found = inspect(&bench.to()).unwrap();
    assert_eq!((found.samples, found.unlabelled, found.version), (3, 0, 3));
    assert_eq!((found.content.column.as_str(), found.columns.len()), ("image", 0));
    let labels: Vec<_> = found.labels.iter().map(|l| (l.name.as_str(), l.samples)).collect();
    assert_eq!(labels, [("cat", 2), ("dog", 1)]);
    assert_eq!((found.images.formats["JPEG"], found.images.formats["PNG"]), (2, 1));
    assert!(found.images.is_complete);
    let (width, height) = (found.images.width, found.images.height);
    assert_eq!((width.min, width.max, height.min, height.max), (5, 400, 4, 300));
    assert!((width.mean - 415.0 / 3.0).abs() < 1e-9);
    let classes: Vec<u64> = found.images.megapixels.iter().map(|class| class.images).collect();
    assert_eq!(classes, [2, 1, 0, 0, 0, 0]);
    let bits = found.image_bytes as f64 * 8.0 / f64::from(400 * 300 + 200 + 20);
    assert!((found.images.bits_per_pixel - bits).abs() < 1e-9);
    assert_eq!(found.manifest_sha256.len(), 64);
    assert_eq!(found.provenance.source, bench.from().display().to_string());
}

#[test]
fn images_without_a_readable_header_are_counted() {
    let bench = Bench::with_images(&["a.jpg"]);
    let options = PackOptions { check: Check::Header, ..PackOptions::default() };
    bench.pack_with(&options).unwrap();
    let found = inspect(&bench.to()).unwrap();
    assert_eq!((found.unlabelled, found.labels.len()), (1, 0));
    assert!(!found.images.formats.contains_key("unreadable"));
}

#[test]
fn a_damaged_dataset_is_an_error_that_names_the_part() {
    let bench = Bench::with_images(&["a.jpg"]);
    bench.pack().unwrap();
    let path = bench.to().join("part-00000.arrow");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = inspect(&bench.to()).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("part-00000.arrow"), "{error}");
}

#[test]
fn a_manifest_that_does_not_read_names_the_command_that_repairs_it() {
    let bench = Bench::with_images(&["a.jpg"]);
    bench.pack().unwrap();
    let path = bench.to().join(MANIFEST_NAME);
    let sound = std::fs::read(&path).unwrap();
    for at in [0, sound.len() / 2, sound.len() - 10] {
        let mut flipped = sound.clone();
        flipped[at] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        let error = inspect(&bench.to()).unwrap_err();
        let source = match &error {
            Error::Dataset(meetpoint_prepare::Error::Dataset { source, .. }) => source,
            other => panic!("{other:?}"),
        };
        assert!(matches!(source, DatasetError::Manifest { .. }), "{source:?}");
        assert_eq!(error.remedy(), Some(Remedy::run(Command::Repair)));
        let problems = verify(&bench.to(), &mut |_| ()).unwrap().problems;
        assert_eq!(problems[0].file, MANIFEST_NAME, "{problems:?}");
    }
    let newer = String::from_utf8(sound).unwrap().replace("\"version\": 3", "\"version\": 99");
    std::fs::write(&path, newer).unwrap();
    let error = inspect(&bench.to()).unwrap_err();
    let source = match &error {
        Error::Dataset(meetpoint_prepare::Error::Dataset { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(source, DatasetError::Version { version: 99, .. }), "{source:?}");
}
