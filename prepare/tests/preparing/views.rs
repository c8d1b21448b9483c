//! Views: several pictures of each sample, each view a column of the batch.

use crate::support::{SEED, damage, job, picture, shuffled, write};
use meetpoint_diagnose::Diagnose;
use meetpoint_format::column::ColumnNames;
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use meetpoint_prepare::{Action, CpuPreparer, Dataset, Error, Job, OnError, Preparer};
use std::collections::BTreeMap;
use std::sync::Arc;

const VIEWS: &str = r#"
[[operation]]
name = "decode"
[[views]]
column = "global"
count = 2
[[views.operations]]
name = "random_resized_crop"
size = [7, 5]
[[views]]
column = "local"
count = 3
[[views.operations]]
name = "random_crop"
size = 6
[[views.operations]]
name = "random_horizontal_flip"
"#;

fn viewing(dataset: &Arc<Dataset>, columns: &[&str]) -> Job {
    let recipe = Arc::new(Recipe::from_toml(VIEWS).unwrap());
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    Job { recipe, columns: columns.into(), ..job(dataset, 5) }
}

/// The columns of samples, by name, each prepared alone.
fn expected(recipe: &Recipe, epoch: u32, samples: &[u64]) -> BTreeMap<String, Vec<u8>> {
    let mut columns: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for &sample in samples {
        let mut preparer = SamplePreparer::new(recipe, Cpu::Portable);
        let id = SampleId { seed: SEED, epoch, sample };
        let prepared = preparer.prepare_tensors((&picture(sample)).into(), id).unwrap();
        for (images, pictures) in recipe.images().iter().zip(prepared) {
            let column = columns.entry(images.column.clone()).or_default();
            pictures.iter().for_each(|picture| column.extend(&picture.data));
        }
    }
    columns
}

/// Prepares all batches, and compares each column with the samples prepared alone.
fn check(job: &Job, skips: bool) -> usize {
    let names: Vec<String> = job.columns.to_vec();
    let engine = shuffled(&job.dataset, 8, 3);
    let mut preparer = CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap();
    let mut out = vec![0xa5; 1 << 16];
    let mut held = 0;
    for batch in 0..u32::try_from(job.batching.batches()).unwrap() {
        let prepared = preparer.prepare(1, batch, &mut out, &mut |_| true).unwrap();
        let expected = expected(&job.recipe, 1, &prepared.samples);
        for (index, name) in names.iter().enumerate() {
            let extent = prepared.layout.extent(index);
            let start = usize::try_from(extent.offset).unwrap();
            let got = &out[start..start + usize::try_from(extent.bytes).unwrap()];
            if let Some(expected) = expected.get(name) {
                assert!(got == expected, "batch {batch}, column {name}");
            }
        }
        assert!(skips || prepared.replacements.is_empty());
        held += prepared.samples.len();
    }
    held
}

#[test]
fn each_view_of_a_batch_holds_the_pictures_of_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    for columns in [
        &["global", "local", "label"][..],
        &["label", "local", "key", "global"],
        &["sample", "local"],
        &["global"],
        &["label"],
    ] {
        assert_eq!(check(&viewing(&dataset, columns), false), 23, "{columns:?}");
    }
}

#[test]
fn crops_of_a_picture_are_in_the_column_of_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let text = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\n\
                size = [9, 8]\n[[operation]]\nname = \"five_crop\"\nsize = 4\n";
    let recipe = Arc::new(Recipe::from_toml(text).unwrap());
    for columns in [&["image", "label"][..], &["key", "image"], &["label"]] {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let recipe = Arc::clone(&recipe);
        let job = Job { recipe, columns: columns.into(), ..job(&dataset, 5) };
        assert_eq!(check(&job, false), 23);
    }
}

#[test]
fn views_of_samples_that_are_left_out_are_closed_up() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    [0, 7, 8, 22].iter().for_each(|sample| damage(&dataset, *sample));
    for columns in [&["global", "key", "local"][..], &["local", "global"]] {
        let on_error = OnError::Always(Action::Skip);
        let job = Job { on_error, ..viewing(&dataset, columns) };
        assert_eq!(check(&job, true), 19);
    }
}

#[test]
fn the_columns_of_a_recipe_are_its_views_and_labels() {
    let recipe = Recipe::from_toml(VIEWS).unwrap();
    assert_eq!(*ColumnNames::of(&recipe), ["global", "local", "label"].map(str::to_owned));
    let plain = Recipe::from_toml("[[operation]]\nname = \"decode\"").unwrap();
    assert_eq!(ColumnNames::of(&plain), ColumnNames::default());
}

#[test]
fn an_image_that_no_view_is_and_a_view_without_a_shape_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let refused = |columns: &[&str]| viewing(&dataset, columns).batch_columns().unwrap_err();
    for columns in [&["image", "label"][..], &["global", "image"]] {
        let error = refused(columns);
        assert_eq!(error.cause(), "column_of_views");
        assert!(error.to_string().contains("global, local"), "{error}");
    }
    assert_eq!(refused(&["global", "locale"]).cause(), "unknown_column");
    let text = VIEWS.replace(
        "[[views]]\ncolumn = \"local\"",
        "[[views]]\ncolumn = \"whole\"\n\
                              [[views]]\ncolumn = \"local\"",
    );
    let recipe = Arc::new(Recipe::from_toml(&text).unwrap());
    let job = Job { recipe, ..viewing(&dataset, &["global"]) };
    let error = job.batch_columns().unwrap_err();
    assert!(matches!(&error, Error::ViewShape { view } if view == "whole"), "{error}");
}

#[test]
fn memory_that_the_views_of_a_batch_do_not_fit_in_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let job = viewing(&dataset, &["global", "local"]);
    let engine = shuffled(&dataset, 8, 3);
    let mut preparer = CpuPreparer::new(job, engine, Cpu::detect()).unwrap();
    // 5 samples of 2 x 7 x 5 x 3 bytes, up to a multiple of 64, and 5 of 3 x 6 x 6 x 3.
    let needed = 1088 + 1620;
    let mut short = vec![0; needed - 1];
    let error = preparer.prepare(0, 0, &mut short, &mut |_| true).unwrap_err();
    let expected = Error::OutputTooSmall { got: needed - 1, needed };
    assert_eq!(error.to_string(), expected.to_string());
    assert!(preparer.prepare(0, 0, &mut vec![0; needed], &mut |_| true).is_ok());
}
