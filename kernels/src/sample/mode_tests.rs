//! Pictures of every mode of `decode` against Pillow and NumPy, on every instruction set.

use super::{SampleId, SamplePreparer};
use crate::decode::golden_files;
use crate::golden;
use meetpoint_format::recipe::Recipe;
use meetpoint_jpeg::{Form, to_form};
use std::collections::HashMap;
use std::path::Path;

const MODES: &str = include_str!("../../tests/golden/modes.txt");
const ELEMENTS: &str = include_str!("../../tests/golden/elements.txt");
const ID: SampleId = SampleId { seed: 7, epoch: 2, sample: 0 };

/// The files of the script by their names.
fn files() -> HashMap<String, Vec<u8>> {
    let all = golden::lines(MODES).into_iter().chain(golden::lines(ELEMENTS));
    let own = all.filter(|(words, _)| words[0] == "file");
    let own = own.map(|(words, data)| (words[1].to_owned(), golden::bytes(data[0])));
    let listed = golden_files().into_iter().map(|(name, file)| (name.to_owned(), file));
    listed.chain(own).collect()
}

/// A file of the JPEG corpus by its name.
fn corpus(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jpeg/tests/golden/jpeg");
    std::fs::read(folder.join(format!("{name}.jpg"))).unwrap()
}

/// A recipe in the notation of the script.
fn recipe(text: &str) -> Recipe {
    let tables = text.split(";;").map(|table| {
        let keys = table.replace(';', "\n");
        format!("[[operation]]\n{keys}\n")
    });
    let text: String = tables.collect();
    Recipe::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_mode_equals_pillow_and_numpy_bit_for_bit() {
    compare(MODES);
}

#[test]
fn colours_with_alpha_and_of_elements_equal_pillow_and_numpy_bit_for_bit() {
    compare(ELEMENTS);
}

/// Compares every line of a golden file.
fn compare(lines: &str) {
    let files = files();
    let instruction_sets = golden::instruction_sets();
    let mut failed = Vec::new();
    for (words, expected) in golden::lines(lines) {
        let [name, text] = words[..] else { panic!("{words:?}") };
        if name == "file" {
            continue;
        }
        let recipe = recipe(text);
        let file = match name.strip_prefix("jpeg/") {
            Some(name) => corpus(name),
            None => files[name].clone(),
        };
        let form = name.starts_with("jpeg/").then(|| to_form(&file, Form::Compact).ok()).flatten();
        for &cpu in &instruction_sets {
            let mut preparer = SamplePreparer::new(&recipe, cpu);
            for stored in [Some(&file), form.as_ref()].into_iter().flatten() {
                let tensor = preparer.prepare_tensor(stored.into(), ID);
                let got = tensor.map(|tensor| golden::sha256(&tensor.data));
                if got.as_deref() != Ok(expected[0]) {
                    failed.push(format!("{} {name} {text}", cpu.name()));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} cases: {:#?}", failed.len(), &failed[..failed.len().min(40)]);
}
