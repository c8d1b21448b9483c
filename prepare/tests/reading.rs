//! Samples as they are stored: in order, shuffled, mapped, damaged.
#![expect(clippy::unwrap_used, reason = "in a test, what fails panics")]

use meetpoint_diagnose::Diagnose;
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, part_name,
};
use meetpoint_prepare::{Dataset, Error, MappedDataset, OnDamage, SampleReader};
use meetpoint_storage::faulty::{Fault, FaultPlan, FaultyEngine};
use meetpoint_storage::{Engine, EngineKind, Error as StorageError, RequestKind, open_engine};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const SAMPLES: u64 = 900;

fn content(sample: u64) -> Vec<u8> {
    let bytes = 1 + (sample * 7919) % 9000;
    (0..bytes).map(|at| (at.wrapping_mul(sample + 3) >> 2) as u8).collect()
}

/// Two parts with [`SAMPLES`] samples in total.
fn dataset() -> (TempDir, Arc<Dataset>) {
    dataset_of(&[0..300, 300..SAMPLES])
}

/// Parts of these samples.
fn dataset_of(parts_of: &[Range<u64>]) -> (TempDir, Arc<Dataset>) {
    let folder = tempfile::tempdir().unwrap();
    let columns = Arc::new(Columns::images());
    let mut parts = Vec::new();
    for (index, samples) in parts_of.iter().cloned().enumerate() {
        let mut encoder = PartEncoder::new(Vec::new(), Arc::clone(&columns)).unwrap();
        for sample in samples {
            let (key, image) = (format!("{sample}"), content(sample));
            encoder.push(Row { key, image, ..Row::default() }).unwrap();
        }
        let part = encoder.finish().unwrap();
        let sha256 = Sha256::digest(&part.sink).iter().map(|byte| format!("{byte:02x}")).collect();
        let file = part_name(index);
        std::fs::write(folder.path().join(&file), &part.sink).unwrap();
        let (samples, bytes, tail_crc32c) = (part.samples, part.bytes, part.tail_crc32c);
        parts.push(PartEntry { file, samples, bytes, tail_crc32c, sha256 });
    }
    let provenance = Provenance {
        tool: "test".to_owned(),
        source: "nowhere".to_owned(),
        skipped: 0,
        options: BTreeMap::new(),
        time: None,
        recipe: None,
    };
    let lengths = (0..SAMPLES).map(|sample| content(sample).len() as u64);
    let manifest = Manifest {
        samples: SAMPLES,
        image_bytes: lengths.clone().sum(),
        image_bytes_max: lengths.max().unwrap(),
        parts,
        ..Manifest::new(&columns, provenance)
    };
    std::fs::write(folder.path().join(MANIFEST_NAME), manifest.to_json()).unwrap();
    let dataset = Arc::new(Dataset::open(folder.path()).unwrap());
    (folder, dataset)
}

fn engine(depth: usize) -> Box<dyn Engine> {
    open_engine(EngineKind::Auto, depth).unwrap().engine
}

fn read(reader: &mut SampleReader, order: &[u64]) -> Result<Vec<u64>, Error> {
    let mut seen = Vec::new();
    let stats = reader.read(&mut order.iter().copied(), &mut |sample, _, bytes| {
        assert_eq!(bytes, content(sample), "{sample}");
        seen.push(sample);
        Ok(())
    })?;
    assert_eq!(stats.samples, seen.len() as u64);
    assert_eq!(stats.skipped.len() + seen.len(), order.len());
    Ok(seen)
}

/// Flips a byte of a sample.
fn damage(folder: &Path, dataset: &Dataset, sample: u64) {
    let location = dataset.locate(sample).unwrap();
    let path = folder.join(part_name(location.part));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(location.offset).unwrap()] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn samples_come_whole_and_in_the_order_asked_for_at_any_depth() {
    let (_folder, dataset) = dataset();
    let in_order: Vec<u64> = (0..SAMPLES).collect();
    let shuffled: Vec<u64> = (0..SAMPLES).map(|sample| sample * 7 % SAMPLES).collect();
    let twice: Vec<u64> = vec![5, 5, 6, 5, 899, 0];
    for depth in [1, 3, 32] {
        for order in [&in_order, &shuffled, &twice] {
            let mut reader =
                SampleReader::new(Arc::clone(&dataset), engine(depth), OnDamage::Fail).unwrap();
            assert_eq!(read(&mut reader, order).unwrap(), *order);
            // The reader is reused.
            assert_eq!(read(&mut reader, &order[..2]).unwrap(), order[..2]);
        }
    }
}

#[test]
fn a_part_that_is_gone_or_became_a_pipe_after_opening_is_an_error_and_no_wait() {
    let (folder, dataset) = dataset();
    let open = || SampleReader::new(Arc::clone(&dataset), engine(1), OnDamage::Fail).map(|_| ());
    let part = folder.path().join(part_name(1));
    std::fs::remove_file(&part).unwrap();
    for kind in [std::io::ErrorKind::NotFound, std::io::ErrorKind::InvalidInput] {
        match open() {
            Err(Error::Storage(StorageError::Open { path, source })) => {
                assert_eq!((path.file_name(), source.kind()), (part.file_name(), kind));
            }
            other => panic!("{other:?}"),
        }
        if kind == std::io::ErrorKind::NotFound {
            rustix::fs::mkfifoat(rustix::fs::CWD, &part, rustix::fs::Mode::RUSR).unwrap();
        }
    }
}

#[test]
fn adjacent_samples_are_read_at_once() {
    let (_folder, dataset) = dataset();
    let bytes = dataset.manifest().image_bytes;
    let mut reader = SampleReader::new(dataset, engine(8), OnDamage::Fail).unwrap();
    let stats = reader.read(&mut (0..SAMPLES), &mut |_, _, _| Ok(())).unwrap();
    assert_eq!(stats.bytes, bytes);
    // At most one read per MiB and one per end of a record batch.
    assert!(stats.reads <= (bytes >> 20) + 6, "{} reads", stats.reads);
}

#[test]
fn a_damaged_sample_is_an_error_that_names_it_or_is_left_out() {
    let (folder, dataset) = dataset();
    damage(folder.path(), &dataset, 17);
    let order: Vec<u64> = (0..50).collect();
    let mut reader = SampleReader::new(Arc::clone(&dataset), engine(4), OnDamage::Fail).unwrap();
    let error = read(&mut reader, &order).unwrap_err();
    assert!(matches!(&error, Error::ChecksumMismatch { row: 17, key, .. } if key == "17"));
    let mut reader = SampleReader::new(Arc::clone(&dataset), engine(4), OnDamage::Skip).unwrap();
    let sound: Vec<u64> = order.iter().copied().filter(|sample| *sample != 17).collect();
    assert_eq!(read(&mut reader, &order).unwrap(), sound);
    let mapped = MappedDataset::new(dataset, false).unwrap();
    assert!(matches!(mapped.sample(17), Err(Error::ChecksumMismatch { row: 17, .. })));
    assert_eq!(mapped.sample(18).unwrap().1, content(18));
}

#[test]
fn a_read_that_fails_costs_no_sample_that_reads_by_itself() {
    let (_folder, dataset) = dataset();
    let order: Vec<u64> = (0..100).collect();
    let faulty = || {
        let plan = FaultPlan::none().and(RequestKind::Read, 0, Fault::Broken);
        Box::new(FaultyEngine::new(engine(4), plan))
    };
    let mut reader = SampleReader::new(Arc::clone(&dataset), faulty(), OnDamage::Skip).unwrap();
    assert_eq!(read(&mut reader, &order).unwrap(), order);
    let mut reader = SampleReader::new(dataset, faulty(), OnDamage::Fail).unwrap();
    assert!(matches!(read(&mut reader, &order), Err(Error::Read { row: 0, .. })));
}

#[test]
fn mapped_samples_are_those_of_the_parts() {
    let (_folder, dataset) = dataset();
    for is_sequential in [true, false] {
        let mapped = MappedDataset::new(Arc::clone(&dataset), is_sequential).unwrap();
        for sample in 0..SAMPLES {
            assert_eq!(mapped.sample(sample).unwrap().1, content(sample));
        }
        assert!(mapped.sample(SAMPLES).is_err());
        assert_eq!(mapped.dataset().len(), SAMPLES);
    }
}

#[test]
fn many_parts_open_in_their_order_and_a_damaged_one_is_named() {
    let parts: Vec<_> = (0..300).map(|part| 3 * part..3 * part + 3).collect();
    let (folder, dataset) = dataset_of(&parts);
    for sample in 0..SAMPLES {
        assert_eq!(dataset.locate(sample).unwrap().part as u64, sample / 3);
        assert_eq!(dataset.read_sample(sample).unwrap(), content(sample));
    }
    // The first wrong sample, whichever thread finds it.
    for part in [299, 170] {
        let path = folder.path().join(part_name(part));
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() - 12;
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
        let error = Dataset::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&part_name(part)), "{error}");
    }
    std::fs::remove_file(folder.path().join(part_name(80))).unwrap();
    let error = Dataset::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains(&part_name(80)), "{error}");
}

#[test]
fn a_truncated_part_is_reported_with_its_sample_and_remedy() {
    let (folder, dataset) = dataset();
    let last = dataset.locate(299).unwrap();
    assert_eq!(dataset.key(299).unwrap(), "299");
    let part = std::fs::File::options().write(true).open(folder.path().join(part_name(0))).unwrap();
    part.set_len(last.offset + 1).unwrap();
    let error = dataset.read_sample(299).unwrap_err();
    let Error::Read { row: 299, key, source: StorageError::ShortRead { wanted, got: 1, .. } } =
        &error
    else {
        panic!("{error}");
    };
    assert_eq!((key.as_str(), *wanted as u64), ("299", last.bytes));
    assert!(error.to_string().contains("ends early"), "{error}");
    assert!(error.remedy().is_some());
    assert!(error.is_damage());
}
