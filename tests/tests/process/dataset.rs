//! Packing, looking into and verifying a dataset, and reading it without us.

use super::support::{packed, pictures, run};
use crate::layers::root;
use std::process::Command;

/// A Python with pyarrow; `None` where there is none, which is said on standard error, unless
/// MEETPOINT_REQUIRE_PYARROW is set.
fn python_with_pyarrow() -> Option<String> {
    let python = std::env::var("MEETPOINT_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python)
        .args(["-c", "import pyarrow"])
        .output()
        .is_ok_and(|output| output.status.success());
    if has {
        return Some(python);
    }
    assert!(
        std::env::var_os("MEETPOINT_REQUIRE_PYARROW").is_none(),
        "{python} has no pyarrow, and MEETPOINT_REQUIRE_PYARROW is set"
    );
    eprintln!("SKIPPED: {python} has no pyarrow (pip install -r tests/requirements.txt)");
    None
}

#[test]
fn plain_pyarrow_reads_a_packed_dataset() {
    let Some(python) = python_with_pyarrow() else { return };
    let folder = tempfile::tempdir().unwrap();
    let set = packed(folder.path(), 20);
    let script = root().join("tests/golden/pyarrow_reads_dataset.py");
    let output = Command::new(python).arg(script).arg(&set).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("20"), "{text}");
}

#[test]
fn plain_pyarrow_reads_the_datasets_of_every_version_and_form() {
    let Some(python) = python_with_pyarrow() else { return };
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 12);
    run(folder.path(), &["pack", "pictures", "compact.set", "--form", "compact"]).success();
    let script = root().join("tests/golden/pyarrow_reads_dataset.py");
    let golden = root().join("datasets/tests/golden");
    let sets =
        [golden.join("version-1"), golden.join("version-2"), folder.path().join("compact.set")];
    for (set, rows) in sets.into_iter().zip([6, 6, 12]) {
        let output = Command::new(&python).arg(&script).arg(&set).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text.lines().count(), rows, "{}: {text}", set.display());
    }
}

#[test]
fn keys_are_relative_paths_in_natural_order() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 24);
    std::fs::remove_dir_all(source.join("dog")).unwrap();
    run(folder.path(), &["pack", "pictures/cat", "flat.set"]).success();
    let shown = run(folder.path(), &["show", "flat.set", "1", "-o", "one.png"]).success();
    assert!(
        shown.stdout.contains("2.jpg"),
        "after 0.jpg comes 2.jpg, not 10.jpg: {}",
        shown.stdout
    );
    run(folder.path(), &["show", "flat.set", "10.jpg", "-o", "ten.npy"]).success();
    let npy = std::fs::read(folder.path().join("ten.npy")).unwrap();
    assert!(npy.starts_with(b"\x93NUMPY\x01\x00"));
    run(folder.path(), &["show", "flat.set", "99", "-o", "x.png"]).refused(&["99", "12"]);
    run(folder.path(), &["show", "flat.set", "no.jpg", "-o", "x.png"]).refused(&["no.jpg"]);
}

#[test]
fn what_is_shown_depends_on_seed_and_epoch_alone() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 6);
    let recipe = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"random_resized_crop\"\n\
                  size = 32\n";
    std::fs::write(folder.path().join("recipe.toml"), recipe).unwrap();
    let show = |seed: &str, epoch: &str| {
        let arguments = ["show", "small.set", "3", "--recipe", "recipe.toml", "-o", "x.npy"];
        let arguments = [&arguments[..], &["--seed", seed, "--epoch", epoch]].concat();
        run(folder.path(), &arguments).success();
        std::fs::read(folder.path().join("x.npy")).unwrap()
    };
    assert_eq!(show("1", "0"), show("1", "0"));
    assert_ne!(show("1", "0"), show("2", "0"));
    assert_ne!(show("1", "0"), show("1", "1"));
}
