//! Keys of a recipe's `decode` reach the JPEG decoder: damaged files that are filled in, and Exif
//! orientation.

use meetpoint_format::recipe::Recipe;
use meetpoint_jpeg::{Form, to_form};
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../jpeg/tests/golden/jpeg")
}

/// A file of the JPEG corpus by its name.
fn golden(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.jpg"))).expect("the file reads")
}

/// SHA-256 of the whole picture that the corpus lists for a file.
fn listed(name: &str) -> String {
    let index = std::fs::read_to_string(folder().join("index.txt")).expect("the index reads");
    let line = index.lines().find(|line| line.split_whitespace().next() == Some(name));
    let (_, sums) = line.and_then(|line| line.split_once(':')).expect("it is listed");
    sums.split_whitespace().next().expect("a listed file has a hash").to_owned()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_recipe_may_ask_for_damaged_files_to_be_filled_in() {
    let recipe = |keys: &str| {
        let text = format!("[[operation]]\nname = \"decode\"\n{keys}");
        SamplePreparer::new(&Recipe::from_toml(&text).expect("a recipe"), Cpu::detect())
    };
    let id = SampleId { seed: 0, epoch: 0, sample: 0 };
    let (mut strict, mut lenient) = (recipe(""), recipe("on_error = \"lenient\"\n"));
    for (name, is_damaged) in [("filled-cut", true), ("420-17x15", false)] {
        let file = golden(name);
        assert_eq!(strict.prepare_tensor((&file).into(), id).is_err(), is_damaged);
        let tensor = lenient.prepare_tensor((&file).into(), id).expect("it is filled in");
        assert_eq!(sha256(&tensor.data), listed(name));
        assert_eq!(lenient.is_filled_in(), is_damaged);
    }
}

/// SHA-256 of `ImageOps.exif_transpose(Image.open(..)).convert("RGB")` of Pillow 13, begun.
const TURNED: [(&str, &str); 8] = [
    ("exif-1", "474ac035c2fff46f"),
    ("exif-2", "49ddf413a3518c95"),
    ("exif-3", "8692df29ebe926a5"),
    ("exif-4", "428ed1481cf35dea"),
    ("exif-5", "3196b955f828f54a"),
    ("exif-6", "ce97f19b9dfab7fe"),
    ("exif-7", "f463849ce6131627"),
    ("exif-8", "6281f608af58fab6"),
];

#[test]
fn pictures_are_turned_as_pillow_turns_them_where_a_recipe_asks_for_it() {
    let recipe = "[[operation]]\nname = \"decode\"\norient = true\n";
    let mut preparer =
        SamplePreparer::new(&Recipe::from_toml(recipe).expect("a recipe"), Cpu::detect());
    let id = SampleId { seed: 0, epoch: 0, sample: 0 };
    for (name, expected) in TURNED {
        let file = golden(name);
        let compact = to_form(&file, Form::Compact).expect("it has a form");
        for stored in [file, compact] {
            let tensor = preparer.prepare_tensor((&stored).into(), id).expect("it decodes");
            assert!(sha256(&tensor.data).starts_with(expected), "{name}");
            let turned = name > "exif-4";
            assert_eq!((tensor.spec.width < tensor.spec.height), turned, "{name}");
        }
    }
}
