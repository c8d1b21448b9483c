//! Recipes that do not fit a picture: refused by every command, at either end, with every policy
//! for damage.

use super::jobs::job;
use super::support::{Finished, jpeg, pictures, run};
use serde_json::Value;
use std::path::Path;

const CROP: &str = "name = \"random_crop\"\nsize = 48";

/// Eight sound pictures, one of which is smaller than the crop, packed.
fn packed(folder: &Path) {
    let source = pictures(folder, 8);
    std::fs::write(source.join("cat/small.jpg"), jpeg(9, 24, 20)).unwrap();
    run(folder, &["pack", "pictures", "small.set"]).success();
}

/// Checks that a document under `--json` says what does not fit, and contains the remedy.
fn assert_misfit(done: &Finished) {
    let document: Value = serde_json::from_str(&done.stdout).expect("one document");
    let error = &document["error"];
    assert_eq!(error["cause"], "recipe_does_not_fit", "{document}");
    assert_eq!(error["steps"][0]["setting"], "pad_if_needed", "{document}");
    let said = format!("{}{}", error["message"], error["because"]);
    for word in ["cat/small.jpg", "random_crop", "`size`", "20 x 24", "48 x 48"] {
        assert!(said.contains(word), "{word} in {said}");
    }
}

#[test]
fn a_run_is_refused_by_both_ends_whatever_is_done_about_damage() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path());
    for (strategy, workers) in [("host-only", 0), ("host-only", 2), ("device-only", 1)] {
        for action in ["raise", "skip", "replace"] {
            let job = job(strategy, workers, "");
            let job = job.replace("name = \"random_resized_crop\"\nsize = 48", CROP);
            let job = format!("on_error = \"{action}\"\n{job}");
            assert!(job.contains(CROP));
            std::fs::write(folder.path().join("job.toml"), &job).unwrap();
            run(folder.path(), &["run", "job.toml"]).refused(&[
                "small.set/part-00000.arrow",
                "cat/small.jpg",
                "random_crop does not fit a picture of 20 x 24",
                "set pad_if_needed = true, or resize to a larger picture before random_crop",
            ]);
            assert_misfit(&run(folder.path(), &["run", "job.toml", "--json"]));
            let padded = job.replace(CROP, &format!("{CROP}\npad_if_needed = true"));
            std::fs::write(folder.path().join("padded.toml"), padded).unwrap();
            run(folder.path(), &["run", "padded.toml"]).success();
        }
    }
}

#[test]
fn a_sample_that_is_shown_or_profiled_is_refused_alike() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path());
    let recipe = format!("[[operation]]\nname = \"decode\"\n[[operation]]\n{CROP}\n");
    std::fs::write(folder.path().join("recipe.toml"), recipe).unwrap();
    let show = ["show", "small.set", "cat/small.jpg", "--recipe", "recipe.toml", "-o", "x.png"];
    run(folder.path(), &show).refused(&["cat/small.jpg", "random_crop", "resize to a larger"]);
    assert_misfit(&run(folder.path(), &[&show[..], &["--json"]].concat()));
    let profile = ["profile", "recipe.toml", "small.set", "--runs", "2", "--samples", "9"];
    let refused = run(folder.path(), &profile).refused(&["cat/small.jpg", "pad_if_needed"]);
    assert!(!refused.stderr.contains("verify"), "nothing is damaged: {}", refused.stderr);
    assert_misfit(&run(folder.path(), &[&profile[..], &["--json"]].concat()));
}

#[test]
fn a_contact_sheet_takes_the_memory_of_one_picture_not_of_the_widest_by_the_tallest() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("lines")).unwrap();
    // Padded to one size, they would take 26 GB.
    for (name, size) in [("wide", "65535 1"), ("tall", "1 65535")] {
        let mut file = format!("P5 {size} 255\n").into_bytes();
        file.resize(file.len() + 65535, 128);
        std::fs::write(folder.join("lines").join(name).with_extension("pgm"), file).unwrap();
    }
    run(folder, &["pack", "lines", "lines.set"]).success();
    let recipe = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"random_invert\"\n";
    std::fs::write(folder.join("invert.toml"), recipe).unwrap();
    run(folder, &["show", "lines.set", "--recipe", "invert.toml", "-o", "x.png"]).success();
    // A sheet that is too large is refused before anything is prepared.
    let recipe = format!("{recipe}[[operation]]\nname = \"resize\"\nsize = [9000, 9000]\n");
    std::fs::write(folder.join("large.toml"), recipe).unwrap();
    run(folder, &["show", "lines.set", "--recipe", "large.toml", "-o", "x.png"])
        .refused(&["too large", "fewer samples"]);
}
