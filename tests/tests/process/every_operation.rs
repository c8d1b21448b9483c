//! `run` with every operation of the registry: the same bits at both ends.
//!
//! The recipes come from `recipe schema`, so that a new operation is included without a change
//! here, or fails the test.

use super::jobs::{BATCHES, SAMPLES, check_run, job, number, report};
use super::series::{npy, wav};
use super::support::{packed, run};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Most operations of one recipe, besides those that fix the size.
const OPERATIONS_MAX: usize = 8;

const DECODE: &str = "[[recipe.operation]]\nname = \"decode\"\n";
const RESIZE: &str = "[[recipe.operation]]\nname = \"resize\"\nsize = [24, 24]\n";
const FLOATS: &str =
    "[[recipe.operation]]\nname = \"to_dtype\"\ndtype = \"float32\"\nscale = true\n";
const BOXES: &str = "[recipe.targets.boxes]\nkind = \"boxes\"\nformat = \"xyxy\"\n";

const SOUND: &str = "[[recipe.operation]]\nname = \"decode_audio\"\nsample_rate = 8000\n";
const SIGNAL: &str = "[[recipe.operation]]\nname = \"decode_signal\"\nnum_channels = 2\n";
const TEXT: &str = "[[recipe.operation]]\nname = \"decode_text\"\n";
const TOKENIZE: &str =
    "[[recipe.operation]]\nname = \"tokenize\"\ntokenizer = \"tokenizer.json\"\n";
const PAD: &str = "[[recipe.operation]]\nname = \"pad_sequence\"\nlength = 9\n";
const PLANES: &str = "planes = \"ids_segments_positions\"\n";
const LENGTH: &str = "[[recipe.operation]]\nname = \"fix_length\"\nlength = 9\n";

/// Packs files of one kind in folders of two labels.
fn with_series(folder: &Path, name: &str, extension: &str, file: impl Fn(u32) -> Vec<u8>) {
    for seed in 0..SAMPLES {
        let label = folder.join(name).join(["low", "high"][seed as usize % 2]);
        std::fs::create_dir_all(&label).expect("a folder");
        std::fs::write(label.join(format!("{seed}.{extension}")), file(seed)).expect("a file");
    }
    run(folder, &["pack", name, &format!("{name}.set")]).success();
}

/// A page of HTML.
pub(crate) fn html(seed: u32) -> Vec<u8> {
    let item = |at: u32| format!("<li>bada <b>gu{at}</b> le&eacute; {}</li>\n", seed * at);
    let items: String = (0..=seed % 7).map(item).collect();
    format!("<!DOCTYPE html><title>no</title><h1>Page {seed}</h1><ul>{items}</ul>").into_bytes()
}

/// The files that the examples of operations name.
pub(crate) fn with_files(folder: &Path) {
    const TOKENIZER: &[u8] = include_bytes!("../../../kernels/tests/golden/text/byte_level.json");
    std::fs::write(folder.join("tokenizer.json"), TOKENIZER).expect("a file");
    let shape = "{'descr': '<f4', 'fortran_order': False, 'shape': (600, 768), }";
    let header = format!("{shape:<117}\n");
    let mut table = b"\x93NUMPY\x01\0".to_vec();
    table.extend((header.len() as u16).to_le_bytes());
    table.extend(header.as_bytes());
    table.extend((0..600 * 768).flat_map(|at| (at as f32 / 8.0).to_le_bytes()));
    std::fs::write(folder.join("embedding.npy"), table).expect("a file");
}

/// Pictures with a label and boxes.
fn with_boxes(folder: &Path) {
    packed(folder, SAMPLES);
    run(folder, &["unpack", "small.set", "files"]).success();
    let mut rows = String::new();
    let mut folders = vec![folder.join("files")];
    let mut names = Vec::new();
    while let Some(inside) = folders.pop() {
        for entry in std::fs::read_dir(inside).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(extension) if extension == "jpg" => names.push(path),
                _ => {}
            }
        }
    }
    names.sort();
    assert_eq!(names.len(), SAMPLES as usize);
    for (number, path) in names.iter().enumerate() {
        let name = path.strip_prefix(folder).expect("below it").display().to_string();
        let boxes = json!([[1.0, 2.0, 20.0 + number as f64 / 4.0, 30.0], [9.0, 9.0, 15.0, 29.0]]);
        let row = json!({ "file_name": name, "label": number % 2, "boxes": boxes });
        writeln!(rows, "{row}").expect("a string");
    }
    std::fs::write(folder.join("rows.jsonl"), rows).expect("a file");
    run(folder, &["pack", "rows.jsonl", "small.set", "--force"]).success();
}

/// A value of the schema in TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{key} = {}", toml(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The table of an operation with its examples, small, and always executed.
fn table(operation: &Value) -> String {
    let mut text = format!("[[recipe.operation]]\nname = {}\n", operation["name"]);
    for key in operation["keys"].as_array().expect("keys") {
        let name = key["name"].as_str().expect("a name");
        match (name, key.get("example")) {
            ("p", _) if key["type"] == "number" => text.push_str("p = 1.0\n"),
            ("size", Some(_)) => text.push_str("size = 24\n"),
            (_, Some(example)) => writeln!(text, "{name} = {}", toml(example)).expect("a string"),
            (_, None) => (),
        }
    }
    text
}

/// Whether a recipe, as it stands in a job, is accepted and gives pictures of one size.
fn is_accepted(folder: &Path, recipe: &str) -> bool {
    let text = recipe.replace("recipe.operation", "operation").replace("recipe.targets", "targets");
    std::fs::write(folder.join("recipe.toml"), text).expect("a file");
    run(folder, &["recipe", "check", "recipe.toml"]).code() == Some(0)
}

/// Recipes that hold every operation of the schema, with the names of those that they are for.
fn recipes(folder: &Path) -> Vec<(Vec<String>, String)> {
    let schema = run(folder, &["recipe", "schema", "--json"]).success().stdout;
    let schema: Value = serde_json::from_str(&schema).expect("a JSON document");
    let operations = schema["operations"].as_array().expect("operations");
    let mut recipes = Vec::new();
    let (mut names, mut chain) = (Vec::new(), DECODE.to_owned());
    for operation in operations {
        let name = operation["name"].as_str().expect("a name").to_owned();
        let own = table(operation);
        let phase = operation["phase"].as_str().expect("a phase");
        // Of pictures, and of sound and signals.
        let size = match (phase, name.as_str()) {
            ("decode", "decode") => RESIZE.to_owned(),
            ("decode", "decode_text") => format!("{TOKENIZE}{PAD}"),
            ("decode", _) => LENGTH.to_owned(),
            _ => String::new(),
        };
        let takes_images = ["geometry", "pixels", "picture", "choice"].contains(&phase);
        if takes_images && is_accepted(folder, &format!("{chain}{own}{RESIZE}{FLOATS}")) {
            chain.push_str(&own);
            names.push(name);
            if names.len() == OPERATIONS_MAX {
                recipes.push((std::mem::take(&mut names), format!("{chain}{RESIZE}")));
                DECODE.clone_into(&mut chain);
            }
            continue;
        }
        let alone = [
            format!("{own}{size}"),
            format!("{DECODE}{RESIZE}{FLOATS}{own}"),
            format!("{DECODE}{RESIZE}{own}"),
            format!("{DECODE}{own}{RESIZE}"),
            format!("{DECODE}{own}{RESIZE}{BOXES}"),
            format!("{SOUND}{own}{LENGTH}"),
            format!("{SIGNAL}{own}{LENGTH}"),
            format!("{TEXT}{own}{TOKENIZE}{PAD}"),
            format!("{TEXT}{own}{PAD}"),
            format!("{TEXT}{TOKENIZE}{PAD}{own}"),
            format!("{TEXT}{TOKENIZE}{own}"),
            format!("{TEXT}{TOKENIZE}{PAD}{PLANES}{own}"),
        ];
        let accepted = alone.into_iter().find(|recipe| is_accepted(folder, recipe));
        let accepted = accepted.unwrap_or_else(|| panic!("no recipe holds {name}:\n{own}"));
        recipes.push((vec![name], accepted));
    }
    recipes.push((names, format!("{chain}{RESIZE}")));
    let held: usize = recipes.iter().map(|(names, _)| names.len()).sum();
    assert_eq!(held, operations.len(), "every operation is part of a recipe");
    recipes
}

#[test]
fn every_operation_is_prepared_with_the_same_bits_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    with_boxes(folder);
    with_series(folder, "sound", "wav", |seed| wav(seed, 8000, 4000 + 100 * seed));
    with_series(folder, "signal", "npy", |seed| npy(seed, 2000 + 128 * seed));
    with_series(folder, "text", "html", html);
    with_files(folder);
    for (names, recipe) in recipes(folder) {
        let plain = job("host-only", 1, "");
        let (before, rest) = plain.split_once("[[recipe.operation]]").expect("a recipe");
        let (_, after) = rest.split_once("[device]").expect("a device");
        let job = format!("{before}{recipe}\n[device]{after}").replace("20ms", "1ms");
        let dataset = match &recipe {
            recipe if recipe.contains("decode_audio") => "sound.set",
            recipe if recipe.contains("decode_signal") => "signal.set",
            recipe if recipe.contains("decode_text") => "text.set",
            _ => "small.set",
        };
        let job = job.replace("small.set", dataset);
        for (strategy, at_device) in [("host-only", 0), ("device-only", BATCHES)] {
            let report = report(folder, &job, &["--strategy", strategy]);
            let run = &report["runs"][0];
            check_run(run);
            assert_eq!(number(run, "/totals/device_batches"), at_device, "{names:?}: {run}");
        }
    }
}
