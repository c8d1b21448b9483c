//! `meetpoint profile` on generated pictures: what it prints, saves, draws, decides and refuses.

use super::support::{Finished, command, finish, packed, run, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const RECIPE: &str = "\
[[operation]]
name = \"decode\"
[[operation]]
name = \"resize\"
size = 32
[[operation]]
name = \"random_resized_crop\"
size = 24
";

/// A packed dataset of a given number of samples, and a recipe.
fn prepare(folder: &Path, samples: u32) {
    packed(folder, samples);
    std::fs::write(folder.join("recipe.toml"), RECIPE).unwrap();
}

/// A profile that is short.
fn profiled(folder: &Path, further: &[&str]) -> Finished {
    let short = ["profile", "recipe.toml", "small.set", "--runs", "2", "--samples", "4"];
    run(folder, &[&short, further].concat())
}

fn json(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout).expect("standard output is one document")
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_profile_is_printed_saved_drawn_and_decided_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder, 6);
    let before = names(folder);
    let saved = ["--csv", "results.csv", "--plot", "profile.html"];
    let done = profiled(folder, &saved).success();
    for part in ["Best for 10 epochs: ", "Next is ", "random_resized_crop"] {
        assert!(done.stdout.contains(part), "{part} in {done:?}");
    }
    // The printed table has the best of them, which depend on the machine; the file has all.
    let rows = std::fs::read_to_string(folder.join("results.csv")).unwrap();
    for start in ["files,0,", "packed,0,", "coefficients-fast,0,", "jpeg,1,decode", "prepared,2,"] {
        assert!(rows.lines().any(|row| row.starts_with(start)), "{start} in {rows}");
    }
    let mut after = names(folder);
    after.retain(|name| !before.contains(name));
    assert_eq!(after, ["profile.html", "results.csv"], "temporary files are removed");
    let page = std::fs::read_to_string(folder.join("profile.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("best: "), "{page}");

    // 2 points of files and packing, 2 of the coefficient form, 2 cuts of 2 forms; 3 codecs, 3
    // caches.
    let again = ["profile", "--from", "results.csv", "--epochs", "1", "--json"];
    let document = json(&run(folder, &again).success());
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), (1 + 7 * 3) * 3);
    let best = document["decision"]["ranked"][0]["index"].as_u64().unwrap() as usize;
    assert!(results[best]["form"] != "jpeg", "a form without loss wins");
    let weighed = ["profile", "--from", "results.csv", "--weights", "1,0,0", "--json"];
    let document = json(&run(folder, &weighed).success());
    let first = document["scores"][0]["index"].as_u64().unwrap() as usize;
    assert_eq!(document["results"][first]["form"], "files", "nothing offline costs nothing");
    assert_eq!(document["scores"][0]["score"], 1.0);

    let read =
        |further: &[&str]| run(folder, &[&["profile", "--from", "results.csv"], further].concat());
    assert!(!read(&[]).success().stdout.contains("score"), "no score that nobody asked for");
    let weighed = read(&["--weights", "0,0,1", "--storage-limit", "0B"]).success();
    let first = weighed.stdout.lines().find(|line| line.starts_with(" files"));
    assert!(first.is_some_and(|line| line.contains("best")), "{weighed:?}");
    assert!(
        weighed.stdout.contains("Best by PRESTO's score with extra storage: files"),
        "{weighed:?}"
    );
}

#[test]
fn a_profile_that_is_stopped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder, 40);
    let before = names(folder);
    let long = ["profile", "recipe.toml", "small.set", "--runs", "1000", "--samples", "40"];
    let child = command(folder, &long).spawn().unwrap();
    let begun = until(Duration::from_secs(60), || names(folder) != before);
    assert!(begun, "a temporary folder appears beside the dataset");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = finish(child);
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.stderr.contains("interrupted"), "{done:?}");
    assert_eq!(names(folder), before);
}

#[test]
fn what_cannot_be_profiled_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder, 3);
    let wrong: [(&[&str], &str); 8] = [
        (&["--codecs", "lz5"], "lz4"),
        (&["--weights", "0,-1,1"], "storage is -1"),
        (&["--weights", "0,0,0"], "all weights are 0"),
        (&["--weights", "1,1"], "three numbers"),
        (&["--epochs", "0"], "1.."),
        (&["--samples", "1"], "2 or more"),
        (&["--samples", "4"], "set --samples to 3 or less"),
        (&["--confidence", "1"], "below 1"),
    ];
    for (arguments, word) in wrong {
        let base = ["profile", "recipe.toml", "small.set"];
        let done = run(folder, &[&base, arguments].concat());
        assert_eq!(done.code(), Some(2), "{done:?}");
        assert!(done.stderr.contains(word), "{word} in {done:?}");
    }
    let refused = |arguments: &[&str], words: &[&str]| {
        run(folder, &[&["profile"], arguments].concat()).refused(words);
    };
    refused(&["recipe.toml", "pictures"], &["pictures", "dataset.json"]);
    refused(&["absent.toml", "small.set"], &["absent.toml"]);
    let few = ["recipe.toml", "small.set", "--samples", "2", "--runs", "1"];
    refused(&[&few[..], &["--temporary", "absent"]].concat(), &["absent", "another folder"]);
    refused(&[&few[..], &["--plot", "a.png"]].concat(), &["a.png", ".svg"]);
    let measured: [&[&str]; 2] = [&["--samples", "2"], &["--temporary", "."]];
    for option in measured {
        let done = run(folder, &[&["profile", "--from", "none.csv"], option].concat());
        assert_eq!(done.code(), Some(2), "{done:?}");
        assert!(done.stderr.contains("cannot be used with"), "{done:?}");
    }
    std::fs::write(folder.join("none.csv"), "a,b\n1,2\n").unwrap();
    refused(&["--from", "none.csv"], &["none.csv", "not a file of results"]);
}
