//! Work divided into shards: real processes give the same bytes for any number of shards and kills,
//! and leave no other files.

use super::support::{PATIENCE, command, finish, pictures, run, until, wait};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A user whom permissions bind, unlike root.
const OTHER_USER: u32 = 65_534;
/// Number of pictures in the source.
const SAMPLES: u32 = 40;
/// Number of parts of the plans.
const PARTS: usize = 10;
/// Number of shards of the plans.
const SHARDS: usize = 4;
/// Options of all runs.
const RULE: [&str; 2] = ["--part-samples", "4"];

/// Runs the program with a fixed time for the provenance.
fn at_epoch(folder: &Path, arguments: &[&str]) -> super::support::Finished {
    finish(start(folder, arguments))
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = command(folder, arguments);
    command.env("SOURCE_DATE_EPOCH", "1000000000").spawn().expect("the program starts")
}

/// The SHA-256 of every file below a folder, by its path.
fn hashes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = walkdir::WalkDir::new(folder).into_iter().map(|entry| entry.unwrap());
    let files = files.filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            let name = entry.path().strip_prefix(folder).unwrap().display().to_string();
            (name, Sha256::digest(std::fs::read(entry.path()).unwrap()).to_vec())
        })
        .collect()
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A folder of pictures, and the dataset that one process packs from it.
fn source(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    pictures(folder, SAMPLES);
    at_epoch(folder, &[&["pack", "pictures", "alone.set"], &RULE[..]].concat()).success();
    let alone = hashes(&folder.join("alone.set"));
    assert_eq!(alone.len(), PARTS + 2, "{:?}", alone.keys());
    std::fs::rename(folder.join("alone.set"), folder.join("kept")).unwrap();
    alone
}

fn plan(folder: &Path, to: &str, shards: usize) {
    let count = shards.to_string();
    let words = ["shards", "plan", "pack", "pictures", to, "--shards", &count];
    let said = at_epoch(folder, &[&words, &RULE[..]].concat()).success().stdout;
    let [run, commit] =
        ["run", "commit"].map(|step| said.find(&format!("`meetpoint shards {step}")));
    assert!(run.is_some() && run < commit, "{said}");
}

fn shard(folder: &Path, plan: &str, index: usize) -> Child {
    start(folder, &["shards", "run", plan, "--shard", &index.to_string(), "--threads", "1"])
}

fn commit(folder: &Path, plan: &str) -> super::support::Finished {
    at_epoch(folder, &["shards", "commit", plan])
}

#[test]
fn any_number_of_shards_gives_the_files_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let alone = source(folder);
    for shards in [1, SHARDS, PARTS + 5] {
        plan(folder, "a.set", shards);
        // In reverse order and two at a time: nothing depends on the order.
        let indices: Vec<usize> = (0..shards).rev().collect();
        for pair in indices.chunks(2) {
            let running: Vec<Child> =
                pair.iter().map(|index| shard(folder, "a.set.shards", *index)).collect();
            for child in running {
                let done = finish(child).success();
                for line in done.stdout.lines() {
                    let record: serde_json::Value = serde_json::from_str(line).unwrap();
                    assert!(record["part"].is_u64() && record["plan"].is_string(), "{line}");
                }
            }
        }
        commit(folder, "a.set.shards").success();
        assert_eq!(hashes(&folder.join("a.set")), alone, "{shards} shards");
        assert_eq!(names(folder), ["a.set", "kept", "pictures"]);
        run(folder, &["verify", "a.set"]).success();
        std::fs::remove_dir_all(folder.join("a.set")).unwrap();
    }
}

#[test]
fn two_attempts_at_once_and_shards_that_run_twice_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let alone = source(folder);
    plan(folder, "a.set", 2);
    let twice = [0, 0, 1, 1].map(|index| shard(folder, "a.set.shards", index));
    for child in twice {
        finish(child).success();
    }
    let again = finish(shard(folder, "a.set.shards", 1)).success();
    assert!(again.stdout.is_empty(), "all parts were finished before: {}", again.stdout);
    commit(folder, "a.set.shards").success();
    assert_eq!(hashes(&folder.join("a.set")), alone);
    assert_eq!(names(folder), ["a.set", "kept", "pictures"]);
}

#[test]
fn shards_killed_after_any_part_are_run_again_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let alone = source(folder);
    plan(folder, "a.set", 1);
    let plan_folder = folder.join("a.set.shards");
    let finished = || names(&plan_folder).iter().filter(|name| name.ends_with(".json")).count();
    // Each attempt is killed after it has finished another part, or within a part.
    for round in 0..PARTS + 2 {
        let before = finished();
        let mut child = shard(folder, "a.set.shards", 0);
        let is_far = || match round % 2 {
            0 => finished() > before,
            _ => names(&plan_folder).iter().any(|name| name.starts_with(".attempt-")),
        };
        let mut has_ended = false;
        until(PATIENCE, || {
            has_ended = child.try_wait().unwrap().is_some();
            has_ended || is_far()
        });
        if !has_ended {
            child.kill().unwrap();
        }
        wait(&mut child, PATIENCE).expect("a killed process ends");
    }
    finish(shard(folder, "a.set.shards", 0)).success();
    // Files that a killed attempt may leave behind.
    std::fs::write(plan_folder.join(".attempt-0123456789abcdef-part-00003.arrow"), b"x").unwrap();
    let said = commit(folder, "a.set.shards").success().stdout;
    assert!(said.contains(".attempt-0123456789abcdef-part-00003.arrow"), "{said}");
    assert_eq!(hashes(&folder.join("a.set")), alone);
    assert_eq!(names(folder), ["a.set", "kept", "pictures"]);
}

#[test]
fn a_commit_refuses_what_is_missing_damaged_or_of_another_plan() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let alone = source(folder);
    plan(folder, "a.set", SHARDS);
    let plan_folder = folder.join("a.set.shards");
    for index in [0, 1, 3] {
        finish(shard(folder, "a.set.shards", index)).success();
    }
    commit(folder, "a.set.shards").refused(&["shard 2: 2 parts", "shards run"]);
    finish(shard(folder, "a.set.shards", SHARDS)).refused(&["4", "0..4"]);
    finish(shard(folder, "a.set.shards", 2)).success();

    let part = plan_folder.join("part-00003.arrow");
    let sound = std::fs::read(&part).unwrap();
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 1;
    let again = |word: &str| {
        commit(folder, "a.set.shards").refused(&["part-00003.arrow", word, "--shard 1"]);
        finish(shard(folder, "a.set.shards", 1)).success();
        assert_eq!(std::fs::read(&part).unwrap(), sound, "{word}");
    };
    for (bytes, word) in [(&flipped[..], "SHA-256"), (&sound[..100], "length")] {
        std::fs::write(&part, bytes).unwrap();
        again(word);
    }
    std::fs::remove_file(&part).unwrap();
    again("missing");
    std::fs::rename(&part, folder.join("moved.arrow")).unwrap();
    std::os::unix::fs::symlink("../moved.arrow", &part).unwrap();
    again("not a regular file");

    // A commit removes the folder, so it must not contain files of others.
    std::fs::create_dir(plan_folder.join("part-00001.mine")).unwrap();
    commit(folder, "a.set.shards").refused(&["part-00001.mine", "move it"]);
    std::fs::remove_dir(plan_folder.join("part-00001.mine")).unwrap();

    // A truncated record, one with a wrong number, and one of another plan: the commit rejects all,
    // and the shard writes them again.
    let record = plan_folder.join("part-00003.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let fields: serde_json::Value = serde_json::from_str(&text).unwrap();
    let hash = fields["plan"].as_str().unwrap();
    let (_, body) = text.trim_end().split_once(',').unwrap();
    let other = format!("{{{}", body.replace(hash, &"0".repeat(64)));
    let digest = Sha256::digest(&other);
    let digest = digest.iter().map(|byte| format!("{byte:02x}"));
    let other = format!("{{\"sha256\":\"{}\",{}\n", digest.collect::<String>(), &other[1..]);
    let samples = format!("\"samples\":{}", fields["result"]["rows"]["samples"]);
    assert!(text.contains(&samples), "{text}");
    let huge = text.replace(&samples, "\"samples\":18446744073709551615");
    for (text, word) in [(&text[..40], "SHA-256"), (&huge, "SHA-256"), (&other, "another plan")] {
        std::fs::write(&record, text).unwrap();
        commit(folder, "a.set.shards").refused(&["part-00003.json", word]);
        finish(shard(folder, "a.set.shards", 1)).success();
    }
    // Another process commits.
    let other = std::fs::File::open(&plan_folder).unwrap();
    other.lock().unwrap();
    commit(folder, "a.set.shards").refused(&["in use by another process", "wait for it"]);
    drop(other);
    plan_refused(folder);
    commit(folder, "a.set.shards").success();
    assert_eq!(hashes(&folder.join("a.set")), alone);
}

#[test]
fn a_plan_never_replaces_files_of_others_and_has_a_limited_number_of_shards() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    source(folder);
    let words =
        |shards: &'static str| ["shards", "plan", "pack", "pictures", "a.set", "--shards", shards];
    at_epoch(folder, &words("18446744073709551615")).refused(&["1 to 1048576 shards"]);
    for option in ["--part-size=1MiB", "--resume", "--threads=2"] {
        let refused = at_epoch(folder, &[&words("2")[..], &[option]].concat());
        assert_eq!(refused.code(), Some(2), "{refused:?}");
        assert!(refused.stderr.contains("--shards"), "{refused:?}");
    }
    let plan_folder = folder.join("a.set.shards");
    std::fs::create_dir_all(plan_folder.join("part-of-a-thesis")).unwrap();
    let text = plan_folder.join("part-of-a-thesis/a.txt");
    std::fs::write(&text, "precious").unwrap();
    at_epoch(folder, &words("2")).refused(&["a.set.shards", "not a complete plan", "remove it"]);
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "precious");
    // A plan that was killed before it was written is replaced.
    std::fs::remove_dir_all(&plan_folder).unwrap();
    std::fs::create_dir(&plan_folder).unwrap();
    std::fs::write(plan_folder.join("stamps.bin"), "").unwrap();
    at_epoch(folder, &words("2")).success();
}

/// A second plan does not replace the first.
fn plan_refused(folder: &Path) {
    let words = ["shards", "plan", "pack", "pictures", "a.set", "--shards", "2"];
    at_epoch(folder, &words).refused(&["a.set.shards", "4 shards"]);
    let words = [&["pack", "pictures", "a.set"], &RULE[..]].concat();
    at_epoch(folder, &words).refused(&["a.set.shards", "4 shards"]);
}

/// Runs the program as a user whom permissions bind, and to whom everything in the folder belongs.
fn restricted(folder: &Path, arguments: &[&str]) -> super::support::Finished {
    let mut command = command(folder, arguments);
    if !rustix::process::geteuid().is_root() {
        return finish(command.spawn().expect("the program starts"));
    }
    // That user may not reach the folder in which the program was built.
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("meetpoint");
    std::fs::set_permissions(programs.path(), Permissions::from_mode(0o755)).unwrap();
    std::fs::hard_link(command.get_program(), &program)
        .or_else(|_| std::fs::copy(command.get_program(), &program).map(drop))
        .unwrap();
    for entry in walkdir::WalkDir::new(folder) {
        chown(entry.unwrap().path(), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(arguments).current_dir(folder).env_clear().uid(OTHER_USER).gid(OTHER_USER);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().expect("the program starts"))
}

#[test]
fn a_commit_that_cannot_remove_the_plan_succeeds_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let alone = source(folder);
    plan(folder, "a.set", 1);
    at_epoch(folder, &["shards", "plan", "verify", "kept", "--shards", "1"]).success();
    let words = ["shards", "plan", "convert", "pictures", "a.out", "--to", "parquet"];
    at_epoch(folder, &[&words[..], &["--shards", "1"], &RULE[..]].concat()).success();
    let plans = ["a.set.shards", "kept.shards", "a.out.shards"];
    for plan in plans {
        finish(shard(folder, plan, 0)).success();
    }
    let allow = |mode| {
        for plan in plans {
            std::fs::set_permissions(folder.join(plan), Permissions::from_mode(mode)).unwrap();
        }
    };
    allow(0o555);
    // The second commit finds the result of the first.
    for plan in plans.into_iter().chain(plans) {
        let done = restricted(folder, &["shards", "commit", plan]).success();
        assert!(done.stdout.contains(&format!("{plan} is not removed: ")), "{done:?}");
    }
    assert_eq!(hashes(&folder.join("a.set")), alone);
    allow(0o755);
    for plan in plans {
        let done = restricted(folder, &["shards", "commit", plan]).success();
        assert!(!done.stdout.contains("not removed"), "{done:?}");
    }
    assert_eq!(names(folder), ["a.out", "a.set", "kept", "pictures"]);
}

#[test]
fn a_source_that_changes_after_the_plan_is_refused_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    source(folder);
    plan(folder, "a.set", 2);
    let first = walkdir::WalkDir::new(folder.join("pictures")).sort_by_file_name().into_iter();
    let first = first.map(|entry| entry.unwrap()).find(|entry| entry.file_type().is_file());
    let path = first.unwrap().into_path();
    let bytes = std::fs::read(&path).unwrap();
    finish(shard(folder, "a.set.shards", 0)).success();
    std::fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    finish(shard(folder, "a.set.shards", 1)).refused(&["changed", &name]);
    std::fs::remove_file(&path).unwrap();
    finish(shard(folder, "a.set.shards", 1)).refused(&["40 files then, 39 now"]);
    commit(folder, "a.set.shards").refused(&["shard 1"]);
}

#[test]
fn a_full_disk_is_an_error_and_the_shard_can_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let alone = source(folder);
    plan(folder, "a.set", 1);
    let program = super::support::program().display().to_string();
    let line = format!("ulimit -f 1; exec {program} shards run a.set.shards --shard 0");
    let mut limited = std::process::Command::new("sh");
    let limited = limited.args(["-c", &line]).current_dir(folder).output().unwrap();
    assert_eq!(limited.status.code(), Some(1), "{}", String::from_utf8_lossy(&limited.stderr));
    assert!(
        names(&folder.join("a.set.shards")).iter().all(|name| !name.starts_with(".attempt-")),
        "an attempt that fails removes its files"
    );
    finish(shard(folder, "a.set.shards", 0)).success();
    commit(folder, "a.set.shards").success();
    assert_eq!(hashes(&folder.join("a.set")), alone);
}

#[test]
fn convert_verify_and_prepare_in_shards_equal_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    source(folder);
    for sink in ["webdataset", "parquet", "mds", "tfrecord"] {
        let words = ["convert", "pictures", "alone.out", "--to", sink];
        at_epoch(folder, &[&words, &RULE[..]].concat()).success();
        let words = ["shards", "plan", "convert", "pictures", "a.out", "--to", sink];
        at_epoch(folder, &[&words[..], &["--shards", "3"], &RULE[..]].concat()).success();
        for index in 0..3 {
            finish(shard(folder, "a.out.shards", index)).success();
        }
        commit(folder, "a.out.shards").success();
        assert_eq!(hashes(&folder.join("a.out")), hashes(&folder.join("alone.out")), "{sink}");
        assert!(names(&folder.join("a.out")).len() >= PARTS);
        for name in ["a.out", "alone.out"] {
            std::fs::remove_dir_all(folder.join(name)).unwrap();
        }
    }
    let words =
        ["shards", "plan", "convert", "pictures", "a.out", "--to", "folder", "--shards", "2"];
    at_epoch(folder, &words).refused(&["--to folder"]);

    at_epoch(folder, &["shards", "plan", "verify", "kept", "--shards", "3"]).success();
    for index in 0..3 {
        finish(shard(folder, "kept.shards", index)).success();
    }
    let report = commit(folder, "kept.shards").success().stdout;
    assert_eq!(
        report,
        run(folder, &["verify", "kept"]).success().stdout.replace("kept", &{
            folder.canonicalize().unwrap().join("kept").display().to_string()
        })
    );

    let recipe = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\nsize = 16\n";
    std::fs::write(folder.join("recipe.toml"), recipe).unwrap();
    let words = ["prepare", "recipe.toml", "kept", "alone.prepared", "--cut", "2"];
    at_epoch(folder, &[&words, &RULE[..]].concat()).success();
    let words = ["shards", "plan", "prepare", "recipe.toml", "kept", "a.prepared", "--cut", "2"];
    at_epoch(folder, &[&words[..], &["--shards", "3"], &RULE[..]].concat()).success();
    for index in 0..3 {
        finish(shard(folder, "a.prepared.shards", index)).success();
    }
    commit(folder, "a.prepared.shards").success();
    assert_eq!(hashes(&folder.join("a.prepared")), hashes(&folder.join("alone.prepared")));
    assert_eq!(names(folder), ["a.prepared", "alone.prepared", "kept", "pictures", "recipe.toml"]);
}

#[test]
fn one_process_with_a_rule_resumes_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let alone = source(folder);
    let words = [&["pack", "pictures", "a.set", "--resume", "--threads", "1"], &RULE[..]].concat();
    let mut child = start(folder, &words);
    let record = folder.join("a.set.shards/part-00001.json");
    until(PATIENCE, || record.exists() || child.try_wait().unwrap().is_some());
    let _ = child.kill();
    wait(&mut child, PATIENCE).expect("a killed process ends");
    if !folder.join("a.set").exists() {
        at_epoch(folder, &words).success();
    }
    assert_eq!(hashes(&folder.join("a.set")), alone);
    assert_eq!(names(folder), ["a.set", "kept", "pictures"]);
}

#[test]
fn a_plan_with_fewer_parts_than_shards_warns_of_the_idle_ones() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 8);
    let plan = |to: &str, shards: &str, extra: &[&str]| {
        let words = ["shards", "plan", "pack", "pictures", to, "--shards", shards, "--json"];
        let done = at_epoch(folder.path(), &[&words, &RULE[..], extra].concat()).success();
        let planned: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        (planned["parts"].clone(), planned["idle_shards"].clone(), done.stderr)
    };
    let (parts, idle, said) = plan("a.set", "5", &[]);
    assert_eq!((parts, idle), (2.into(), 3.into()));
    let expected = "note: 2 parts for 5 shards: 3 have nothing to do; plan at most 2 shards, or";
    assert!(said.starts_with(expected) && said.contains("--part-samples"), "{said}");
    let (parts, idle, said) = plan("b.set", "2", &[]);
    assert_eq!((parts, idle, &said[..]), (2.into(), 0.into(), ""));
}
