//! Operations on batches: every preparer mixes the samples that a batch holds, and their labels.

use crate::contract::{SUBJECTS, prepare};
use crate::support::{RECIPE, SAMPLES, SEED, damage, job, picture, write, write_labelled};
use meetpoint_diagnose::Diagnose;
use meetpoint_format::batching::{Batching, Entry, Rank};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::{BatchId, BatchMixer, BatchTensors, Cpu, SampleId, SamplePreparer};
use meetpoint_prepare::{Action, Dataset, Error, Job, OnError, PreparedBatch};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const BATCH: u32 = 6;
const CLASSES: u32 = 5;

const MIX: &str = r#"
[[operation]]
name = "to_dtype"
dtype = "float16"
scale = true
[[operation]]
name = "random_choice"
[[operation.operations]]
name = "mix_up"
num_classes = 5
[[operation.operations]]
name = "cut_mix"
num_classes = 5
"#;

fn label(sample: u64) -> i32 {
    (sample % u64::from(CLASSES)) as i32
}

fn labelled(folder: &Path) -> Arc<Dataset> {
    write_labelled(folder, |_, _| (), (CLASSES, |sample| Some(label(sample))))
}

fn mixing(dataset: &Arc<Dataset>, columns: &[&str]) -> Job {
    let recipe = Arc::new(Recipe::from_toml(&format!("{RECIPE}{MIX}")).unwrap());
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    Job { recipe, columns: columns.into(), ..job(dataset, BATCH) }
}

/// The images and labels of a batch of these samples, with the keys of their random parameters.
fn expected(job: &Job, epoch: u32, number: u64, held: &[Entry]) -> (Vec<u8>, Vec<u8>) {
    let spec = job.recipe.output().unwrap();
    let mut preparer = SamplePreparer::new(&job.recipe, Cpu::Portable);
    let mut mixer = BatchMixer::new(&job.recipe, spec).unwrap();
    let mut images = vec![0; held.len() * spec.bytes()];
    let mut labels = vec![0; held.len() * 4 * CLASSES as usize];
    let rows = labels.chunks_mut(4 * CLASSES as usize);
    for ((entry, out), row) in held.iter().zip(images.chunks_mut(spec.bytes())).zip(rows) {
        let id = SampleId { seed: SEED, epoch, sample: entry.key };
        preparer.prepare((&picture(entry.sample)).into(), id, out, &mut || ()).unwrap();
        BatchMixer::write_label(mixer.labels().unwrap(), label(entry.sample) as u32, row);
    }
    let tensors = BatchTensors { samples: held.len(), images: &mut images, labels: &mut labels };
    mixer.mix(BatchId { seed: SEED, epoch, batch: number }, tensors, &mut || ()).unwrap();
    (images, labels)
}

/// The bytes of the columns of a batch.
fn columns<'b>(prepared: &PreparedBatch, bytes: &'b [u8]) -> Vec<&'b [u8]> {
    let extents = prepared.layout.extents();
    let of = |offset: u64, length: u64| &bytes[offset as usize..][..length as usize];
    extents.iter().map(|extent| of(extent.offset, extent.bytes)).collect()
}

#[test]
fn a_batch_is_mixed_from_the_samples_it_holds_at_either_end() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = labelled(folder.path());
    damage(&dataset, 13);
    for action in [Action::Skip, Action::Replace] {
        let on_error = OnError::Always(action);
        let job = Job { on_error, ..mixing(&dataset, &["label", "image", "sample"]) };
        for (make, (epoch, batch)) in SUBJECTS
            .into_iter()
            .flat_map(|make| [0, 1].map(|epoch| (0..4).map(move |it| (make, (epoch, it)))))
            .flatten()
        {
            let mut preparer = make(&job);
            let mut memory = vec![7; 20_000];
            let prepared = prepare(&mut *preparer, (epoch, batch), &mut memory).unwrap();
            let order = job.batching.order(epoch);
            let left_out = |sample: u64| {
                action == Action::Skip && sample == 13 && !prepared.replacements.is_empty()
            };
            let entries = job.batching.entries_of(&order, batch);
            let keys = entries.filter(|entry| !left_out(entry.sample)).map(|entry| entry.key);
            let held = keys.zip(&prepared.samples).map(|(key, &sample)| Entry { sample, key });
            let held: Vec<Entry> = held.collect();
            assert_eq!(held.len(), prepared.samples.len());
            let (images, labels) = expected(&job, epoch, u64::from(batch), &held);
            let columns = columns(&prepared, &memory);
            assert!(columns[1] == images, "{}: images of {batch}", preparer.name());
            assert!(columns[0] == labels, "{}: labels of {batch}", preparer.name());
        }
    }
}

#[test]
fn ranks_have_batches_of_their_own_numbers_and_repeated_ones_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = labelled(folder.path());
    for devices in [1, 2] {
        let mut made: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut repeated = 0;
        for rank in 0..3 {
            let mut job = mixing(&dataset, &["image", "label"]);
            let holders = dataset.spread(devices, &[]).unwrap();
            let (options, sampling) =
                (*job.batching.options(), Arc::clone(job.batching.sampling()));
            job.batching =
                Batching::new(options, sampling, Rank { rank, ranks: 3 }, holders).unwrap();
            let mut preparer = SUBJECTS[0](&job);
            for batch in 0..u32::try_from(job.batching.batches()).unwrap() {
                let number = job.batching.number(batch);
                let mut memory = vec![0; 20_000];
                prepare(&mut *preparer, (0, batch), &mut memory).unwrap();
                if let Some(before) = made.insert(number, memory.clone()) {
                    assert!(before == memory, "batch {number} differs");
                    repeated += 1;
                }
            }
        }
        let batches = if devices == 1 { SAMPLES.div_ceil(u64::from(BATCH)) } else { 5 };
        assert_eq!(made.keys().copied().collect::<Vec<_>>(), (0..batches).collect::<Vec<_>>());
        assert_eq!(repeated, batches.next_multiple_of(3) - batches);
    }
}

#[test]
fn images_and_labels_are_mixed_alike_without_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = labelled(folder.path());
    let column = |names: &[&str], index: usize| {
        let mut preparer = SUBJECTS[0](&mixing(&dataset, names));
        let mut memory = vec![0; 20_000];
        let prepared = prepare(&mut *preparer, (0, 1), &mut memory).unwrap();
        columns(&prepared, &memory)[index].to_vec()
    };
    assert_eq!(column(&["image"], 0), column(&["image", "label"], 0));
    assert_eq!(column(&["label"], 0), column(&["image", "label"], 1));
}

#[test]
fn a_label_outside_of_the_classes_is_refused_and_is_no_damage() {
    for (bad, labels) in [(None, CLASSES), (Some(5), 9)] {
        let folder = tempfile::tempdir().unwrap();
        let of = |sample| if sample == 13 { bad } else { Some(label(sample)) };
        let dataset = write_labelled(folder.path(), |_, _| (), (labels, of));
        let on_error = OnError::Always(Action::Skip);
        let job = Job { on_error, ..mixing(&dataset, &["image", "label"]) };
        let order = job.batching.order(0);
        let holds = |batch: &u32| job.batching.samples_of(&order, *batch).any(|it| it == 13);
        let batch = (0..4).find(holds).unwrap();
        let mut preparer = SUBJECTS[0](&job);
        let error = prepare(&mut *preparer, (0, batch), &mut vec![0; 20_000]).unwrap_err();
        assert!(
            matches!(&error, Error::Label { row: 3, key, label, classes: CLASSES, .. }
                if key == "13.jpg" && *label == bad),
            "{error:?}"
        );
        assert!(!error.is_damage() && error.remedy().is_some());
    }
}

#[test]
fn a_dataset_without_labels_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let error = mixing(&dataset, &["image", "label"]).batch_columns().unwrap_err();
    let Error::NoLabels { operation, path } = &error else { panic!("{error:?}") };
    assert_eq!((*operation, path.as_path()), ("random_choice", folder.path()));
    assert!(mixing(&dataset, &["image"]).batch_columns().is_ok());
}
