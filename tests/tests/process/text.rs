//! Text: packed from folders and tables, run with the same bits at both ends, shown, profiled and
//! prepared; files of the recipe that are missing or have changed are named.

use super::every_operation::{html, with_files};
use super::jobs::{SAMPLES, check_run, job};
use super::support::run;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Packs pages of two classes, with the files of the recipes beside them.
fn packed(folder: &Path) {
    for seed in 0..SAMPLES {
        let class = folder.join("files").join(["cat", "dog"][seed as usize % 2]);
        std::fs::create_dir_all(&class).expect("a folder");
        std::fs::write(class.join(format!("{seed}.html")), html(seed)).expect("a file");
    }
    run(folder, &["pack", "files", "small.set", "--force"]).success();
    with_files(folder);
}

/// A job with another recipe.
fn job_of(recipe: &str, strategy: &str) -> String {
    let text = job(strategy, 1, "");
    let (start, end) = (text.find("[[recipe").expect("a recipe"), text.find("[device]"));
    let end = end.expect("a device");
    format!("recipe = \"{recipe}\"\n{}{}", &text[..start], &text[end..])
}

const PACKED: &str = r#"
[[operation]]
name = "decode_text"
[[operation]]
name = "html_to_text"
[[operation]]
name = "tokenize"
tokenizer = "tokenizer.json"
[[operation]]
name = "pad_sequence"
length = 96
end_token = 0
planes = "ids_segments_positions"
[[operation]]
name = "pack_sequences"
"#;

#[test]
fn pages_have_the_same_bits_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder);
    std::fs::create_dir(folder.join("recipes")).expect("a folder");
    std::fs::write(folder.join("packed.toml"), PACKED).expect("a recipe");
    let check = |recipe: &str, shape: Value, dtype: &str| {
        for strategy in ["device-only", "mte"] {
            let job = format!("columns = [\"image\", \"label\"]\n{}", job_of(recipe, strategy));
            std::fs::write(folder.join("job.toml"), job).expect("a job file");
            let done = run(folder, &["run", "job.toml", "--json"]).success();
            let report: Value = serde_json::from_str(&done.stdout).expect("a JSON document");
            check_run(&report["runs"][0]);
            let column = &report["job"]["columns"][0];
            assert_eq!(column["shape"], shape, "{recipe}");
            assert_eq!(column["dtype"], dtype, "{recipe}");
        }
    };
    check("presto-nlp", json!([1024, 768]), "float32");
    check("packed.toml", json!([3, 96]), "int32");
}

#[test]
fn a_page_is_shown_and_every_cut_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder);
    let shown = |dataset: &str| {
        let show = ["show", dataset, "5", "--recipe", "presto-nlp", "-o", "x.npy"];
        run(folder, &show).success();
        std::fs::read(folder.join("x.npy")).expect("an array")
    };
    let expected = shown("small.set");
    assert!(expected.len() > 4 * 1024 * 768);
    for cut in ["decode_text", "html_to_text", "tokenize", "pad_sequence", "embed"] {
        let prepare = ["prepare", "presto-nlp", "small.set", "cut.set", "--cut", cut, "--force"];
        run(folder, &prepare).success();
        assert!(shown("cut.set") == expected, "{cut}");
    }
}

#[test]
fn a_file_that_is_missing_or_has_changed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder);
    std::fs::write(folder.join("packed.toml"), PACKED).expect("a recipe");
    let checked = run(folder, &["recipe", "check", "packed.toml", "--json"]).success();
    let checked: Value = serde_json::from_str(&checked.stdout).expect("a JSON document");
    let canonical = checked["canonical"].as_str().expect("a text");
    let of_file = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("sha256")).expect("a checksum");
        line.to_owned()
    };
    let line = of_file(canonical);
    let pinned = PACKED.replace("tokenizer.json\"", &format!("tokenizer.json\"\n{line}"));
    std::fs::write(folder.join("packed.toml"), pinned).expect("a recipe");
    let again = run(folder, &["recipe", "check", "packed.toml", "--json"]).success();
    let again: Value = serde_json::from_str(&again.stdout).expect("a JSON document");
    assert_eq!(checked["sha256"], again["sha256"]);

    let tokenizer = std::fs::read(folder.join("tokenizer.json")).expect("a file");
    let changed = [&tokenizer[..], b"\n"].concat();
    std::fs::write(folder.join("tokenizer.json"), changed).expect("a file");
    std::fs::write(folder.join("job.toml"), job_of("packed.toml", "host-only")).expect("a job");
    run(folder, &["run", "job.toml"]).refused(&["tokenizer.json", "SHA-256", "remove `sha256`"]);
    std::fs::remove_file(folder.join("tokenizer.json")).expect("a file");
    run(folder, &["run", "job.toml"]).refused(&["tokenizer.json", "`tokenize`"]);
}

#[test]
fn a_table_names_texts_and_a_text_that_is_not_utf_8_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    with_files(folder);
    std::fs::write(folder.join("packed.toml"), PACKED).expect("a recipe");
    let mut rows = String::new();
    for seed in 0..SAMPLES {
        let name = format!("{seed}.html");
        std::fs::write(folder.join(&name), html(seed)).expect("a file");
        writeln!(rows, "{}", json!({ "file_name": name, "label": seed % 3 })).expect("a string");
    }
    std::fs::write(folder.join("rows.jsonl"), rows).expect("a file");
    run(folder, &["pack", "rows.jsonl", "small.set", "--kind", "text"]).success();
    std::fs::write(folder.join("job.toml"), job_of("packed.toml", "device-only")).expect("a job");
    run(folder, &["run", "job.toml"]).success();

    std::fs::create_dir(folder.join("files")).expect("a folder");
    std::fs::write(folder.join("files/a.txt"), b"gr\xfcn").expect("a file");
    std::fs::write(folder.join("files/b.txt"), b"ok").expect("a file");
    let pack = ["pack", "files", "latin.set"];
    run(folder, &pack).refused(&["a.txt", "invalid UTF-8 from byte 2"]);
    run(folder, &[&pack[..], &["--kind", "bytes"]].concat()).success();
    let latin = PACKED.replace("decode_text\"", "decode_text\"\nencoding = \"latin-1\"");
    for (recipe, is_read) in [(PACKED, false), (&latin, true)] {
        let unpacked = recipe.split("[[operation]]\nname = \"tokenize\"").next().expect("a part");
        std::fs::write(folder.join("text.toml"), unpacked).expect("a recipe");
        let show = ["show", "latin.set", "a.txt", "--recipe", "text.toml", "-o", "x.npy"];
        match is_read {
            true => drop(run(folder, &show).success()),
            false => drop(run(folder, &show).refused(&["a.txt", "not utf-8 from byte 2"])),
        }
    }
}
