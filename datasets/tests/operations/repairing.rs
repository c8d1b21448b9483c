//! What `repair` recovers from a damaged dataset, and what it does not change.

use crate::support::{TestFolder, TestSample, cases, made, options, read, silent};
use meetpoint_datasets::Error;
use meetpoint_datasets::operations::{
    LabelsFrom, ManifestState, OperationError, RepairSummary, RepairTo, repair,
};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::dataset::{PartBytes, PartLayout};
use meetpoint_prepare::Dataset;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

fn repaired(from: &Path, to: &Path) -> Result<RepairSummary, Error> {
    repair(from, &RepairTo::Dataset(to.to_path_buf()), &options(), &mut silent)
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

/// The positions of the contents of a dataset and its record batches, by part.
#[derive(Default)]
struct Map {
    /// Part, range of bytes, sample.
    contents: Vec<(usize, Range<u64>, usize)>,
    /// Part, range of bytes, samples.
    batches: Vec<(usize, Range<u64>, Range<usize>)>,
    parts: Vec<PathBuf>,
}

impl Map {
    fn of(path: &Path) -> Self {
        let dataset = Dataset::open(path).unwrap();
        let mut map = Self::default();
        for sample in 0..dataset.len() {
            let at = dataset.locate(sample).unwrap();
            map.contents.push((at.part, at.offset..at.offset + at.bytes, sample as usize));
        }
        let mut first = 0;
        for (part, entry) in dataset.manifest().parts.iter().enumerate() {
            map.parts.push(dataset.part_path(part));
            let file = File(std::fs::read(dataset.part_path(part)).unwrap());
            for batch in PartLayout::read(0, entry, &file).unwrap().record_batches {
                let rows = batch.rows as usize;
                map.batches.push((part, batch.range(), first..first + rows));
                first += rows;
            }
        }
        map
    }

    /// The samples that cannot be proven intact if a byte of a part is damaged.
    fn lost(&self, part: usize, byte: u64) -> Vec<usize> {
        let content =
            self.contents.iter().find(|(of, range, _)| *of == part && range.contains(&byte));
        if let Some((.., sample)) = content {
            return vec![*sample];
        }
        let batch = self.batches.iter().find(|(of, range, _)| *of == part && range.contains(&byte));
        batch.map_or_else(Vec::new, |(.., samples)| samples.clone().collect())
    }

    /// Whether a byte is before the footer of a part.
    fn is_before_footer(&self, part: usize, byte: u64) -> bool {
        let ends =
            self.batches.iter().filter(|(of, ..)| *of == part).map(|(_, range, _)| range.end);
        byte < ends.max().unwrap()
    }
}

/// Changes a byte of a file.
fn change(path: &Path, byte: u64, xor: u8) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[usize::try_from(byte).unwrap()] ^= xor;
    std::fs::write(path, bytes).unwrap();
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn exactly_the_undamaged_samples_are_recovered(
        damages in proptest::collection::vec((any::<Index>(), any::<Index>(), 1_u8..), 1..6),
        loses_manifest: bool,
    ) {
        let place = TestFolder::new();
        let from = place.write_some("a", 24);
        let map = Map::of(&from);
        let mut lost = BTreeSet::new();
        // Two changes of one byte could cancel out.
        let mut changed = BTreeSet::new();
        for (part, byte, xor) in damages {
            let part = part.index(map.parts.len());
            let length = std::fs::metadata(&map.parts[part]).unwrap().len();
            let byte = byte.index(usize::try_from(length).unwrap()) as u64;
            if map.is_before_footer(part, byte) && changed.insert((part, byte)) {
                change(&map.parts[part], byte, xor);
                lost.extend(map.lost(part, byte));
            }
        }
        if loses_manifest {
            std::fs::remove_file(from.join("dataset.json")).unwrap();
        }
        let before = files(&from);
        let expected: Vec<TestSample> = made(24, 3)
            .into_iter()
            .enumerate()
            .filter(|(sample, _)| !lost.contains(sample))
            .map(|(_, made)| made)
            .collect();
        let to = place.path("b");
        match repaired(&from, &to) {
            Ok(summary) => {
                prop_assert_eq!(summary.samples_lost, lost.len() as u64);
                prop_assert_eq!(read(&to), expected);
            }
            Err(error) => {
                let hopeless = matches!(error, Error::Operation(OperationError::Hopeless { .. }));
                prop_assert!(hopeless && expected.is_empty(), "{}", error);
            }
        }
        prop_assert_eq!(files(&from), before, "the source is only read");
    }

    #[test]
    fn a_damaged_footer_loses_samples_and_changes_none(
        part in any::<Index>(),
        back in 0_u64..1200,
        xor in 1_u8..,
        loses_manifest: bool,
    ) {
        let place = TestFolder::new();
        let from = place.write_some("a", 24);
        let map = Map::of(&from);
        let part = part.index(map.parts.len());
        let samples = Dataset::open(&from).unwrap().manifest().parts[part].samples;
        let part = &map.parts[part];
        let length = std::fs::metadata(part).unwrap().len();
        change(part, length - 1 - back.min(length - 1), xor);
        if loses_manifest {
            std::fs::remove_file(from.join("dataset.json")).unwrap();
        }
        let to = place.path("b");
        repaired(&from, &to).unwrap();
        let all = made(24, 3);
        let saved = read(&to);
        prop_assert!(saved.iter().all(|made| all.contains(made)), "{:?}", saved);
        prop_assert!(saved.len() as u64 >= 24 - samples, "other parts are whole: {}", saved.len());
    }
}

/// Names and contents of the files in a folder.
fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_lost_manifest_is_rebuilt() {
    let place = TestFolder::new();
    let from = place.write_some("a", 24);
    std::fs::remove_file(from.join("dataset.json")).unwrap();
    let to = place.path("b");
    let summary = repaired(&from, &to).unwrap();
    assert_eq!((summary.samples, summary.samples_lost), (24, 0));
    assert_eq!(summary.manifest, ManifestState::Lost);
    assert_eq!(summary.labels_from, LabelsFrom::Keys);
    assert_eq!(read(&to), made(24, 3));
}

#[test]
fn labels_without_folders_become_numbers() {
    let place = TestFolder::new();
    let mut all = made(10, 2);
    for (index, made) in all.iter_mut().enumerate() {
        made.key = index.to_string();
    }
    let from = place.write("a", &["class0", "class1"], &all, 900);
    std::fs::remove_file(from.join("dataset.json")).unwrap();
    let summary = repaired(&from, &place.path("b")).unwrap();
    assert_eq!(summary.labels_from, LabelsFrom::Numbers);
    assert_eq!(Dataset::open(&place.path("b")).unwrap().manifest().labels, ["0", "1"]);
}

#[test]
fn a_label_without_samples_has_its_number_and_the_others_their_names() {
    let place = TestFolder::new();
    let left: Vec<TestSample> =
        made(10, 2).into_iter().filter(|made| made.label.as_deref() == Some("class1")).collect();
    let from = place.write("a", &["class0", "class1"], &left, 900);
    std::fs::remove_file(from.join("dataset.json")).unwrap();
    let summary = repaired(&from, &place.path("b")).unwrap();
    assert_eq!(summary.labels_from, LabelsFrom::Keys);
    assert_eq!(Dataset::open(&place.path("b")).unwrap().manifest().labels, ["0", "class1"]);
}

#[test]
fn labels_are_read_from_a_damaged_manifest() {
    let place = TestFolder::new();
    let mut all = made(10, 2);
    for (index, made) in all.iter_mut().enumerate() {
        made.key = index.to_string();
    }
    let from = place.write("a", &["class0", "class1"], &all, 900);
    let path = from.join("dataset.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"self_sha256\": \"", "\"self_sha256\": \"0")).unwrap();
    let summary = repaired(&from, &place.path("b")).unwrap();
    assert_eq!(summary.manifest, ManifestState::Damaged);
    assert_eq!(summary.labels_from, LabelsFrom::DamagedManifest);
    assert_eq!(read(&place.path("b")), all);
}

#[test]
fn missing_and_cut_parts_are_listed_with_their_samples() {
    let place = TestFolder::new();
    let from = place.write_some("a", 40);
    let parts = Dataset::open(&from).unwrap().manifest().parts.clone();
    std::fs::remove_file(from.join(&parts[0].file)).unwrap();
    let cut = from.join(&parts[1].file);
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let summary = repaired(&from, &place.path("b")).unwrap();
    let lost: Vec<(&str, u64)> =
        summary.lost.iter().map(|lost| (lost.part.as_str(), lost.samples)).collect();
    assert_eq!(lost, [(&*parts[0].file, parts[0].samples), (&*parts[1].file, parts[1].samples)]);
    let gone = usize::try_from(parts[0].samples + parts[1].samples).unwrap();
    assert_eq!(read(&place.path("b")), made(40, 3)[gone..]);
}

#[test]
fn a_part_that_exists_twice_gives_its_samples_once() {
    let place = TestFolder::new();
    let from = place.write_some("a", 24);
    std::fs::remove_file(from.join("dataset.json")).unwrap();
    std::fs::copy(from.join("part-00000.arrow"), from.join("part-00099.arrow")).unwrap();
    let summary = repaired(&from, &place.path("b")).unwrap();
    assert_eq!(read(&place.path("b")), made(24, 3));
    assert!(summary.lost.iter().all(|lost| lost.part == "part-00099.arrow"));
    assert!(summary.lost[0].reason.contains("has the same key"), "{:?}", summary.lost[0]);
}

#[test]
fn repair_in_place_leaves_a_sound_dataset_and_replaces_a_damaged_one() {
    let place = TestFolder::new();
    let from = place.write_some("a", 24);
    let before = files(&from);
    let in_place = || repair(&from, &RepairTo::InPlace, &options(), &mut silent).unwrap();
    let written = || std::fs::metadata(from.parent().unwrap()).unwrap().modified().unwrap();
    let at = written();
    let summary = in_place();
    assert_eq!((summary.repaired, summary.lost.len()), (None, 0));
    assert_eq!((files(&from) == before, summary.keys_indexed), (true, false));
    assert_eq!(written(), at, "what is sound may lie where nothing can be written");
    change(&from.join("keys.idx"), 300, 1);
    assert!(in_place().keys_indexed);
    assert_eq!(files(&from), before);
    change(&from.join("part-00000.arrow"), 30, 1);
    assert!(in_place().repaired.is_some(), "the schema at the beginning is rebuilt");
    assert_eq!(read(&from), made(24, 3));
    let dataset = Dataset::open(&from).unwrap();
    let location = dataset.locate(3).unwrap();
    change(&dataset.part_path(location.part), location.offset, 1);
    drop(dataset);
    assert_eq!(in_place().samples_lost, 1);
    let mut expected = made(24, 3);
    expected.remove(3);
    assert_eq!(read(&from), expected);
    assert_eq!(place.names(), ["a"]);
}

#[test]
fn a_folder_without_recoverable_samples_is_refused() {
    let place = TestFolder::new();
    let refusal =
        |from: &Path| repaired(from, &place.path("b")).unwrap_err().in_full(Surface::CommandLine);
    assert!(refusal(&place.path("none")).contains("not a folder"));
    std::fs::create_dir(place.path("empty")).unwrap();
    assert!(refusal(&place.path("empty")).contains("neither a readable manifest"));
    let from = place.write_some("a", 3);
    for entry in std::fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "arrow") {
            std::fs::write(path, "no part").unwrap();
        }
    }
    assert!(refusal(&from).contains("none of its parts has a readable footer"));
    assert_eq!(place.names(), ["a", "empty"]);
}
