//! Every damaged byte is detected, and reported with the part, row or region that contains it.

use crate::support::{Bench, files, golden};
use meetpoint_datasets::{DamageLocation, PackOptions, Problem, verify};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::dataset::{PartBytes, PartLayout, RecordBatchMetadata};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

fn problems(bench: &Bench) -> Vec<Problem> {
    verify(&bench.to(), &mut |_| ()).unwrap().problems
}

/// Four images in two classes, in two parts.
fn packed() -> Bench {
    let bench = Bench::with_images(&["cat/a.jpg", "cat/b.jpg", "dog/c.jpg", "dog/d.jpg"]);
    let options = PackOptions { part_bytes_target: 2400, ..PackOptions::default() };
    bench.pack_with(&options).unwrap();
    assert_eq!(bench.dataset().manifest().parts.len(), 2);
    assert_eq!(problems(&bench), []);
    bench
}

/// Changes every byte in turn and passes the problems to `check`.
fn change_every_byte(bench: &Bench, file: &str, mut check: impl FnMut(u64, Vec<Problem>)) {
    let file = OpenOptions::new().read(true).write(true).open(bench.to().join(file)).unwrap();
    for index in 0..file.metadata().unwrap().len() {
        let mut byte = [0];
        file.read_exact_at(&mut byte, index).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << (index % 8)], index).unwrap();
        check(index, problems(bench));
        file.write_all_at(&byte, index).unwrap();
    }
    assert_eq!(problems(bench), []);
}

struct File(Vec<u8>);

impl PartBytes for File {
    fn part_bytes(&self, _part: usize) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&self, _part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        into.copy_from_slice(&self.0[start..start + into.len()]);
        Ok(())
    }
}

#[test]
fn every_changed_byte_of_a_part_is_found_and_located() {
    let bench = packed();
    let dataset = bench.dataset();
    let entry = &dataset.manifest().parts[0];
    let bytes = File(std::fs::read(bench.to().join(&entry.file)).unwrap());
    let layout = PartLayout::read(0, entry, &bytes).unwrap();
    let samples: Vec<_> = (0..entry.samples).map(|s| dataset.locate(s).unwrap()).collect();
    let keys = bench.keys();
    change_every_byte(&bench, &entry.file, |byte, problems| {
        let [problem] = &problems[..] else { panic!("byte {byte}: {problems:?}") };
        assert_eq!(problem.file, entry.file);
        let image = samples.iter().find(|s| (s.offset..s.offset + s.bytes).contains(&byte));
        match &problem.place {
            DamageLocation::File => panic!("byte {byte} is not placed: {problem}"),
            DamageLocation::Row { row, key } => {
                if let Some(image) = image {
                    assert_eq!(*row, image.row, "byte {byte}: {problem}");
                }
                assert_eq!(*key, keys[*row as usize], "byte {byte}: {problem}");
            }
            DamageLocation::Bytes { start, end, region } => {
                assert!(image.is_none(), "byte {byte} is of an image: {problem}");
                assert!((*start..*end).contains(&byte), "byte {byte}: {problem}");
                let in_tail = layout.tail.contains(&byte);
                assert_eq!(region == "Arrow footer", in_tail, "byte {byte}: {problem}");
                assert_eq!(region == "Arrow schema", layout.head.contains(&byte));
            }
        }
    });
}

#[test]
fn every_changed_byte_of_the_manifest_is_found() {
    let bench = packed();
    change_every_byte(&bench, "dataset.json", |byte, problems| {
        let [problem] = &problems[..] else { panic!("byte {byte}: {problems:?}") };
        assert_eq!(
            (problem.file.as_str(), &problem.place),
            ("dataset.json", &DamageLocation::File)
        );
    });
}

#[test]
fn every_kind_of_damaged_row_is_reported_with_row_and_key() {
    let bench = packed();
    let mut said = std::collections::BTreeSet::new();
    change_every_byte(&bench, "part-00001.arrow", |_, problems| {
        if let DamageLocation::Row { row, key } = &problems[0].place {
            let what = problems[0].problem.split(" (byte").next().unwrap().to_owned();
            said.insert((*row, key.clone(), what));
        }
    });
    for (row, key) in [(0, "dog/c.jpg"), (1, "dog/d.jpg")] {
        for what in ["the image", "the key", "the label", "the image's checksum"] {
            let expected = (row, key.to_owned(), what.to_owned());
            assert!(said.contains(&expected), "{expected:?} is not in {said:?}");
        }
    }
}

#[test]
fn several_damaged_images_are_all_named() {
    let bench = packed();
    let dataset = bench.dataset();
    let mut bytes = std::fs::read(dataset.part_path(0)).unwrap();
    for sample in 0..2 {
        let location = dataset.locate(sample).unwrap();
        let start = usize::try_from(location.offset).unwrap();
        bytes[start..start + 100].fill(0xaa);
    }
    std::fs::write(dataset.part_path(0), bytes).unwrap();
    let lines: Vec<String> = problems(&bench).iter().map(Problem::to_string).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("part-00000.arrow, row 0, key cat/a.jpg: the image"), "{lines:?}");
    assert!(lines[1].starts_with("part-00000.arrow, row 1, key cat/b.jpg: the image"), "{lines:?}");
}

#[test]
fn several_damaged_tables_are_reported_by_region_and_the_other_part_is_still_checked() {
    let bench = packed();
    let dataset = bench.dataset();
    let location = dataset.locate(0).unwrap();
    let mut bytes = std::fs::read(dataset.part_path(0)).unwrap();
    let before_images = usize::try_from(location.offset).unwrap() - 100;
    bytes[before_images..before_images + 80].fill(0x55);
    std::fs::write(dataset.part_path(0), bytes).unwrap();
    let other = dataset.locate(2).unwrap();
    let mut bytes = std::fs::read(dataset.part_path(1)).unwrap();
    bytes[usize::try_from(other.offset).unwrap()] ^= 1;
    std::fs::write(dataset.part_path(1), bytes).unwrap();
    let problems = problems(&bench);
    assert!(matches!(
        &problems[0].place,
        DamageLocation::Bytes { region, .. } if region.contains("rows 0 to 1")
    ));
    assert!(
        matches!(&problems[1].place, DamageLocation::Row { row: 0, key } if key == "dog/c.jpg")
    );
    assert_eq!(problems.len(), 2);
}

#[test]
fn missing_short_and_foreign_parts_are_found() {
    let bench = packed();
    let path = |part| bench.to().join(format!("part-0000{part}.arrow"));
    let sound = std::fs::read(path(0)).unwrap();
    std::fs::write(path(0), &sound[..sound.len() - 1]).unwrap();
    assert!(problems(&bench)[0].to_string().contains("bytes long, packed with"));
    std::fs::remove_file(path(0)).unwrap();
    assert!(problems(&bench)[0].to_string().contains("does not open: No such file"));
    std::fs::rename(path(1), path(0)).unwrap();
    assert_eq!(problems(&bench).len(), 2);
}

#[test]
fn a_folder_that_is_not_a_dataset_is_an_error() {
    let bench = packed();
    let error = verify(&bench.from(), &mut |_| ()).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("holds no dataset.json"), "{error}");
    let error = verify(&bench.path().join("nothing"), &mut |_| ())
        .unwrap_err()
        .in_full(Surface::CommandLine);
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn progress_covers_every_byte() {
    let bench = packed();
    let mut last = meetpoint_datasets::VerifyProgress::default();
    let report = verify(&bench.to(), &mut |step| last = step).unwrap();
    assert!(last.bytes > 0);
    assert_eq!((last.bytes_done, report.bytes), (last.bytes, last.bytes));
    assert_eq!((report.samples, report.parts), (4, 2));
}

#[test]
fn a_changed_byte_of_another_column_is_reported_with_the_column_and_its_rows() {
    let bench = Bench::new();
    std::fs::create_dir(bench.to()).unwrap();
    for (name, bytes) in files(&golden().join("version-3")) {
        std::fs::write(bench.to().join(name), bytes).unwrap();
    }
    let dataset = bench.dataset();
    let entry = &dataset.manifest().parts[0];
    let bytes = File(std::fs::read(dataset.part_path(0)).unwrap());
    let layout = PartLayout::read(0, entry, &bytes).unwrap();
    let batch = &layout.record_batches[0];
    let metadata = RecordBatchMetadata::read(0, &entry.file, batch, &bytes).unwrap();
    let table = metadata.extra(&layout.columns).unwrap();
    let path = dataset.part_path(0);
    let mut damaged = bytes.0.clone();
    // Every seventh byte of all, and every third of the columns.
    let first = usize::try_from(table.range(0).unwrap().start).unwrap();
    let end = usize::try_from(batch.range().end).unwrap();
    for byte in (0..damaged.len()).step_by(7).chain((first..end).step_by(3)) {
        damaged[byte] ^= 0x20;
        std::fs::write(&path, &damaged).unwrap();
        damaged[byte] ^= 0x20;
        let problems = problems(&bench);
        assert!(!problems.is_empty(), "byte {byte} went unseen");
        let holds = |column: &usize| table.range(*column).unwrap().contains(&(byte as u64));
        let Some(column) = (0..table.columns()).find(holds) else { continue };
        let [problem] = &problems[..] else { panic!("byte {byte}: {problems:?}") };
        let region =
            format!("column `{}` of rows 0 to 5", layout.columns.extra.field(column).name());
        let (start, end) = (byte as u64, byte as u64 + 1);
        assert_eq!(problem.place, DamageLocation::Bytes { start, end, region }, "{problem}");
    }
}
