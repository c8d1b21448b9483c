//! Datasets that earlier versions of the program wrote, which must open, verify and read for ever.
//!
//! All were packed from the pictures beside them, which `pictures.py` made. `UPDATE_GOLDEN=1`
//! writes the one of the version that is written now anew; those before it are never made again.

use crate::support::{Bench, files, golden};
use meetpoint_datasets::{JpegOptions, PackOptions, Progressive, inspect, pack, unpack, verify};
use meetpoint_format::dataset::schema;
use meetpoint_prepare::Dataset;
use std::path::Path;

fn fixture(version: u32) -> std::path::PathBuf {
    golden().join(format!("version-{version}"))
}

/// Packs the pictures so that every one of them is stored as it is.
fn make(to: &Path) {
    let jpeg = JpegOptions { progressive: Progressive::Keep, ..JpegOptions::default() };
    let options = PackOptions { force: true, jpeg, ..PackOptions::default() };
    // Where they lie on this machine does not belong into the fixture.
    let bench = Bench::new();
    pack(&golden().join("pictures"), &bench.to(), &options, &mut |_| ()).unwrap();
    bench.lie(|manifest| manifest.provenance.source = "pictures".to_owned());
    std::fs::create_dir_all(to).unwrap();
    for (name, bytes) in files(&bench.to()) {
        std::fs::write(to.join(name), bytes).unwrap();
    }
}

#[test]
fn every_version_opens_verifies_reads_and_unpacks() {
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        make(&fixture(schema::VERSION));
    }
    let pictures = files(&golden().join("pictures"));
    assert_eq!(pictures.len(), 6);
    for version in schema::VERSIONS_READ {
        let path = fixture(version);
        assert_eq!(verify(&path, &mut |_| ()).unwrap().problems, [], "version {version}");
        let dataset = Dataset::open(&path).unwrap();
        assert_eq!((dataset.manifest().version, dataset.len()), (version, 6));
        for sample in 0..dataset.len() {
            let key = dataset.key(sample).unwrap();
            assert!(dataset.read_file(sample).unwrap() == pictures[&key], "{version}: {key}");
        }
        assert_eq!(dataset.manifest().labels, ["coarse", "fine"]);
        assert_eq!(inspect(&path).unwrap().stored.is_some(), version > 1);
        let bench = Bench::new();
        unpack(&path, &bench.back(), &Default::default(), &mut |_| ()).unwrap();
        assert!(files(&bench.back()) == pictures, "version {version}: other files");
    }
}

#[test]
fn the_layout_that_is_written_is_that_of_its_fixture() {
    let bench = Bench::new();
    make(&bench.to());
    let (made, kept) = (Dataset::open(&bench.to()).unwrap(), fixture(schema::VERSION));
    let kept = Dataset::open(&kept).unwrap();
    for sample in 0..made.len() {
        let (made, kept) = (made.locate(sample).unwrap(), kept.locate(sample).unwrap());
        assert_eq!(made, kept);
    }
}

#[test]
fn a_later_version_is_refused_by_its_number() {
    let bench = Bench::new();
    make(&bench.to());
    let path = bench.to().join("dataset.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"version\": 2", "\"version\": 3", 1)).unwrap();
    let error = Dataset::open(&bench.to()).unwrap_err().to_string();
    assert!(error.contains("version is 3, this program reads versions 1 to 2"), "{error}");
}
