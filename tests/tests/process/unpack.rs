//! Packs a folder and unpacks it again, in every form; and errors.

use super::support::{Finished, packed, pictures, run};
use crate::layers::root;
use std::collections::BTreeMap;
use std::path::Path;

const FORMS: [&str; 3] = ["jpeg", "compact", "fast"];

/// The files below a folder, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

fn json(finished: Finished) -> serde_json::Value {
    serde_json::from_str(&finished.success().stdout).unwrap()
}

#[test]
fn what_was_packed_in_any_form_comes_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 30);
    let golden = root().join("datasets/tests/golden/pictures/fine");
    for name in ["progressive.jpg", "10.png", "restarts.jpg"] {
        std::fs::copy(golden.join(name), source.join("cat").join(name)).unwrap();
    }
    for form in FORMS {
        let set = format!("{form}.set");
        let pack = ["pack", "pictures", &set, "--form", form, "--progressive", "keep", "--json"];
        let summary = json(run(folder.path(), &pack));
        assert_eq!((&summary["samples"], &summary["stored"]["rewritten"]), (&33.into(), &0.into()));
        assert_eq!(summary["stored"]["form"], form);
        assert_eq!(summary["stored"]["kept"]["not_jpeg"], 1);
        let verified = run(folder.path(), &["verify", &set, "--deep"]).success();
        assert!(verified.stdout.contains("33 samples decode"), "{}", verified.stdout);
        let inspected = run(folder.path(), &["inspect", &set]).success();
        let words = format!("form         {form}");
        assert!(inspected.stdout.contains(&words), "{}", inspected.stdout);
        let back = format!("{form}.back");
        let unpacked = json(run(folder.path(), &["unpack", &set, &back, "--json"]));
        assert_eq!((&unpacked["files"], &unpacked["rewritten"]), (&33.into(), &0.into()));
        assert!(files(&folder.path().join(&back)) == files(&source), "{form}: other files");
    }
}

#[test]
fn a_transcoded_file_is_reported_by_pack_and_by_unpack() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 4);
    let progressive = root().join("datasets/tests/golden/pictures/fine/progressive.jpg");
    std::fs::copy(&progressive, source.join("dog/p.jpg")).unwrap();
    let packed = run(folder.path(), &["pack", "pictures", "p.set"]).success();
    assert!(packed.stdout.contains("1 progressive JPEGs transcoded"), "{}", packed.stdout);
    assert!(packed.stdout.contains("entry points for 5 of 5"), "{}", packed.stdout);
    let unpacked = run(folder.path(), &["unpack", "p.set", "back"]).success();
    assert!(unpacked.stdout.contains("1 were re-written"), "{}", unpacked.stdout);
    let (before, after) = (files(&source), files(&folder.path().join("back")));
    for (key, file) in before {
        assert_eq!(after[&key] != file, key == "dog/p.jpg", "{key}");
    }
}

#[test]
fn every_form_shows_the_same_picture() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 4);
    let mut shown = Vec::new();
    for form in FORMS {
        run(folder.path(), &["pack", "pictures", "x.set", "--form", form, "--force"]).success();
        run(folder.path(), &["show", "x.set", "2", "-o", "x.npy"]).success();
        shown.push(std::fs::read(folder.path().join("x.npy")).unwrap());
    }
    assert!(shown.iter().all(|picture| *picture == shown[0]));
}

#[test]
fn what_cannot_be_unpacked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let set = packed(folder.path(), 6);
    run(folder.path(), &["unpack", "absent.set", "back"]).refused(&["absent.set"]);
    run(folder.path(), &["unpack", "pictures", "back"]).refused(&["dataset.json"]);
    run(folder.path(), &["unpack", "small.set", "pictures"]).refused(&["pictures", "--force"]);
    run(folder.path(), &["unpack", "small.set", "small.set/in"]).refused(&["contains the other"]);
    std::fs::write(folder.path().join("pictures/mine.txt"), "mine").unwrap();
    run(folder.path(), &["unpack", "small.set", "pictures", "--force"]).refused(&["mine.txt"]);
    std::fs::remove_file(folder.path().join("pictures/mine.txt")).unwrap();
    run(folder.path(), &["unpack", "small.set", "pictures", "--force"]).success();
    let part = set.join("part-00000.arrow");
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    run(folder.path(), &["unpack", "small.set", "back"]).refused(&[
        "1 of 6",
        "checksum",
        "--on-error skip",
    ]);
    assert!(!folder.path().join("back").exists(), "a refused unpack leaves nothing");
    let skipped = run(folder.path(), &["unpack", "small.set", "back", "--on-error", "skip"]);
    let skipped = skipped.success();
    assert!(skipped.stdout.contains("1 damaged, left out"), "{}", skipped.stdout);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("partial")), "{names:?}");
}

#[test]
fn a_dataset_with_a_false_manifest_is_not_sound() {
    let folder = tempfile::tempdir().unwrap();
    let set = packed(folder.path(), 6);
    let path = set.join("dataset.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let (body, _) = text.rsplit_once(",\n  \"self_sha256\"").unwrap();
    assert!(body.contains("\"cat\",\n"), "{body}");
    std::fs::write(&path, signed(&body.replacen("\"cat\",\n", "", 1))).unwrap();
    let verified = run(folder.path(), &["verify", "small.set"]);
    assert_eq!(verified.code(), Some(1), "{verified:?}");
    for words in ["DAMAGED", "label 1, dataset.json names 1 labels", "key dog/"] {
        assert!(verified.stdout.contains(words), "{words}: {}", verified.stdout);
    }
}

/// A manifest with the checksum of its body.
fn signed(body: &str) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(body.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{body},\n  \"self_sha256\": \"{digits}\"\n}}\n")
}

#[test]
fn options_that_make_no_sense_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 2);
    for options in [
        ["--form", "tiny"],
        ["--entry-points", "0"],
        ["--entry-points", "rows"],
        ["--restart-interval", "70000"],
        ["--progressive", "maybe"],
    ] {
        let arguments = [&["pack", "pictures", "x.set"][..], &options].concat();
        assert_eq!(run(folder.path(), &arguments).code(), Some(2), "{options:?}");
    }
}

#[test]
fn a_sample_above_the_limit_is_named_by_every_command_that_reads_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 4);
    std::fs::write(source.join("cat/long.jpg"), vec![7; 60_000]).unwrap();
    let limit = ["--sample-bytes-max", "50kB"];
    let words = ["cat/long.jpg", "58.6 KiB, the limit is 48.8 KiB", "--on-error skip"];
    for command in [
        &["pack", "pictures", "to", "--check", "header"][..],
        &["index", "pictures", "to", "--check", "header"],
        &["convert", "pictures", "to", "--to", "webdataset"],
    ] {
        run(folder.path(), &[command, &limit].concat()).refused(&words);
        assert!(!folder.path().join("to").exists());
        let skip = [command, &limit, &["--on-error", "skip", "--json"]].concat();
        assert_eq!(json(run(folder.path(), &skip))["samples"], 4, "{command:?}");
        std::fs::remove_dir_all(folder.path().join("to")).unwrap();
    }
    let more = ["pack", "pictures", "to", "--sample-bytes-max", "1GiB"];
    let done = run(folder.path(), &more);
    assert_eq!(done.code(), Some(2), "{done:?}");
    for words in ["--sample-bytes-max is 1 GiB", "at most 256 MiB", "meetpoint convert"] {
        assert!(done.stderr.contains(words), "{words}: {done:?}");
    }
    let bare = ["convert", "pictures", "to", "--sample-bytes-max", "50000"];
    let done = run(folder.path(), &bare);
    assert!(done.code() == Some(2) && done.stderr.contains("\"50000\" has no unit"), "{done:?}");
}

#[test]
fn names_that_are_not_utf_8_are_left_out_and_named() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 4);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.jpg");
    std::fs::copy(source.join("cat/0.jpg"), source.join("cat").join(name)).unwrap();
    run(folder.path(), &["pack", "pictures", "x.set"]).refused(&[
        r"cat/caf\xE9.jpg",
        "UTF-8",
        "--on-error skip",
    ]);
    let skipped =
        run(folder.path(), &["pack", "pictures", "x.set", "--on-error", "skip"]).success();
    for words in ["4 samples", "1 unreadable", r"cat/caf\xE9.jpg"] {
        assert!(skipped.stdout.contains(words), "{words}: {}", skipped.stdout);
    }
}
